"""`document` entities: they hold the text units that no entity has, so that the tree holds all text."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import DOCUMENTS, ENTITIES, MASS_SCALE, TEXT_UNITS
from communitree_workers.tables.columns import Ints, one_chunk
from communitree_workers.tables.io import Tables, from_rows

DOCUMENT_TYPE = "document"

#: Tokens of one document entity's text units: its evidence is the text itself, and has to fit a report's prompt.
RUN_TOKENS = 6000

#: What a text unit counts whose tokens are not known.
_UNKNOWN_TOKENS = 1200


def runs(empty: Ints, document: Ints, tokens: Ints) -> list[Ints]:
    """Cut text units without entities into runs: neighbours in one document, at most `RUN_TOKENS` or a single one.

    Args:
        empty: numbers of the text units without entities, ascending, in canonical order.
        document, tokens: of every text unit.
    """
    if len(empty) == 0:
        return []
    apart = (np.diff(empty) != 1) | (document[empty][1:] != document[empty][:-1])
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1, [len(empty)]])
    size = np.where(tokens[empty] > 0, tokens[empty], _UNKNOWN_TOKENS)
    before = np.concatenate([[0], np.cumsum(size)])
    cuts = [0]
    for end in starts[1:].tolist():
        while (at := cuts[-1]) < end:
            fits = int(np.searchsorted(before, before[at] + RUN_TOKENS, side="right")) - 1
            cuts.append(min(max(fits, at + 1), end))
    return np.split(empty, cuts[1:-1])


def document_entities(tables: Tables, pieces: list[Ints], rows: Ints, document: Ints, names: list[str]) -> pa.Table:
    """Return one `entities` row for each run, in order, with the run's text units.

    The id is a hash of the text units' ids. The title is the document's, with the run's first and last position in it
    (from 1); where two documents share a title, also the document's id.

    Args:
        tables: the corpus.
        pieces: the runs, as text-unit numbers in canonical order.
        rows: the row in `text_units` of each text unit.
        document: the document of each text unit; -1 for none.
        names: the documents' ids.
    """
    ids = one_chunk(tables[TEXT_UNITS]["id"]).take(pa.array(rows))
    titles = _titles(tables, names)
    first = np.searchsorted(np.where(document < 0, len(names), document), np.arange(len(names) + 1))
    number = pc.max(one_chunk(tables[ENTITIES]["human_readable_id"])).as_py()
    number = -1 if number is None else number
    made = []
    for at, piece in enumerate(pieces, start=1):
        mine = ids.slice(int(piece[0]), len(piece)).to_pylist()
        owner = int(document[piece[0]])
        low, high = (int(piece[i] - first[owner]) + 1 for i in (0, -1))
        where = f"{low}" if low == high else f"{low}–{high}"
        digest = hashlib.sha256("\n".join([DOCUMENT_TYPE, *mine]).encode()).hexdigest()[:32]
        row = {"id": digest, "human_readable_id": number + at, "title": f"{titles[owner]} [{where}]".strip()}
        filled = {"text_unit_ids": mine, "frequency": len(mine), "mass": len(mine) * MASS_SCALE}
        made.append({**row, "type": DOCUMENT_TYPE, **filled})
    return from_rows(ENTITIES, made)


def _titles(tables: Tables, names: list[str]) -> list[str]:
    """Return a title for each document, and last "" for text units without one."""
    known = tables[DOCUMENTS]
    titles = dict(zip(known["id"].to_pylist(), known["title"].to_pylist(), strict=True))
    plain = [(titles.get(name) or "").strip() or name for name in names]
    often = Counter(plain)
    return [f"{title} ({name})" if often[title] > 1 else title for title, name in zip(plain, names, strict=True)] + [""]

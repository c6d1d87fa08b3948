"""Documents that the version before had and a new one lacks: an index replaces the whole set, and says what went."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from communitree_shared.contract.tables import DOCUMENTS
from communitree_workers.runtime.context import UnitContext
from communitree_workers.tables import io

#: Columns that say which document a row is.
_NAMES = ["id", "title"]
_SHOWN = 20


def gone(before: pa.Table, after: pa.Table) -> list[str]:
    """Return the titles of documents that are no longer there, sorted; the id of one that has no title.

    A document is there when its id is (the same text, whatever its file is called now), or else another with its title
    (the same file with another text), one for one.

    Args:
        before: `documents` of the version before, with `id` and `title`.
        after: those of the new one.
    """
    known, left = set(before["id"].to_pylist()), set(after["id"].to_pylist())
    new = Counter(row["title"] for row in after.select(_NAMES).to_pylist() if row["id"] not in known)
    titles = []
    for row in before.select(_NAMES).to_pylist():
        if row["id"] in left:
            continue
        if new[row["title"]] > 0:
            new[row["title"]] -= 1
        else:
            titles.append(row["title"] or row["id"])
    return sorted(titles)


def line(titles: list[str]) -> str:
    """Return one sentence about the documents that are gone: all are counted, the first ones named."""
    n = len(titles)
    more = f" and {n - _SHOWN:,} more" if n > _SHOWN else ""
    what = "1 document of the version before is gone" if n == 1 else f"{n:,} documents of the version before are gone"
    return f"{what}, as an index replaces the whole set: {', '.join(titles[:_SHOWN])}{more}"


def replaced(context: UnitContext, corpus: str, current: dict[str, Any] | None, documents: pa.Table) -> list[str]:
    """Return the line about documents of the published version that are not in a new one; none where all are.

    Args:
        context: of the step that has the new version's tables.
        corpus: its name.
        current: what is published now, `{version, …}`; None for nothing.
        documents: the new version's.
    """
    data = current and context.services.store.find(context.keys.table(corpus, str(current["version"]), DOCUMENTS))
    titles = gone(io.from_bytes(data, _NAMES), documents) if data else []
    return [line(titles)] if titles else []

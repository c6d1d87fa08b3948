"""Planted corpora: seeded graphs with a known community tree, in the table form that GraphRAG writes.

A tree of themes, groups and circles is planted. An entity has a long-tailed activity; a relationship starts at an
entity by activity and ends in the same circle, group or theme, or anywhere. A few entities live in tiny components and
a few have no relationship at all; both are mentioned all over the corpus, as in real extractions. A few pairs are
stated twice, in both directions. Everything is drawn in whole columns: a million entities take about a minute.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.cluster.graph import distinct, distinct_pairs
from communitree_workers.tables import io
from communitree_workers.tables.columns import to_lists

Ints = npt.NDArray[np.int64]


def _words(text: str) -> list[str]:
    return text.split()


WHO = _words(
    """council guild archive foundry garrison convoy ministry theatre refinery herald senate clinic caravan
    dockyard seminary brigade exchange vineyard observatory tribunal embassy consulate parish syndicate
    orchard workshop"""
)
HOW = _words(
    """salt-worn provincial clandestine borrowed amber frontier mechanical exiled tidal ceremonial bankrupt
    northbound unlicensed painted glacial merchant widowed subterranean itinerant vermilion"""
)
DID = _words(
    """petitioned smuggled catalogued besieged underwrote dismantled translated surveyed pardoned auctioned
    irrigated denounced mapped ransomed apprenticed quarantined minted unearthed chartered salvaged"""
)
WHAT = _words(
    """ledgers aqueducts looms granaries seals ferries manuscripts furnaces treaties bells compasses dyes barges
    relics almanacs bridges tolls saddles lanterns cannons"""
)
WHERE = _words(
    """Ashdown Beltane Corvale Drummore Esterhold Fenwick Galbrae Hollin Istermark Jarrow Kelmoor Lathe Mirefield
    Norrast Ombrey Pellan Quillon Ravensea Sorrel Tamsin"""
)
TYPES = ("ORGANIZATION", "PERSON", "GEO", "EVENT")

#: Entities of a theme, a group, a circle; and where the other end of a relationship lies.
THEME, GROUP, CIRCLE = 1200, 120, 14
REACH = (0.55, 0.22, 0.13, 0.10)


@dataclass(frozen=True)
class Shape:
    """How a planted corpus looks, as shares of its entities or relationships."""

    relationships: float = 5.0
    isolated: float = 0.01
    in_small_components: float = 0.03
    stated_twice: float = 0.02
    entities_of_text_unit: float = 8.0
    text_units_of_document: int = 20
    empty_text_units: float = 0.005


def planted(entities: int, seed: int, documents: int | None = None, shape: Shape | None = None) -> io.Tables:
    """Return the tables `documents`, `text_units`, `entities`, `relationships`, conforming, rows in random order.

    Args:
        entities: how many, at least 1.
        seed: the same seed gives the same tables.
        documents: how many; None: by `shape`.
        shape: everything else.
    """
    shape = shape or Shape()
    rng = np.random.default_rng(seed)
    alone = int(entities * shape.isolated)
    tiny = int(entities * shape.in_small_components)
    core = entities - alone - tiny
    a, b = _edges(rng, core, tiny, int(entities * shape.relationships))
    units = max(4, int(entities / shape.entities_of_text_unit))
    documents = documents or max(1, units // shape.text_units_of_document)
    document = np.sort(rng.integers(0, documents, units))
    home = np.arange(entities, dtype=np.int64) * units // max(entities, 1)
    home[core:] = rng.integers(0, units, entities - core)
    empty = rng.random(units) < shape.empty_text_units
    empty[0] = False
    words = _Words(rng)

    degree = np.bincount(a, minlength=entities) + np.bincount(b, minlength=entities)
    titles = words.titles(entities)
    ids, unit_ids = _ids(rng, entities), _ids(rng, units)
    owner, mention = _mentions(rng, home, 1 + np.minimum(rng.geometric(0.5, entities), 5), 3, empty)
    shuffled = rng.permutation(entities).astype(np.int64)
    entity_table = pa.table(
        {
            "id": ids,
            "title": titles,
            "type": pa.array(TYPES).take(pa.array(rng.integers(0, 4, entities))),
            "description": words.sentences(titles, 3),
            "text_unit_ids": to_lists(owner, unit_ids.take(pa.array(mention)), entities),
            "frequency": np.bincount(owner, minlength=entities),
            "degree": degree,
        }
    ).take(pa.array(shuffled))
    entity_table = entity_table.append_column("human_readable_id", pa.array(np.arange(entities)))

    a, b, weight = _stated(rng, a, b, shape.stated_twice)
    count = len(a)
    edge_ids = _ids(rng, count)
    edge, edge_unit = _mentions(rng, home[a], 1 + (rng.random(count) < 0.4), 2, empty)
    source, target = titles.take(pa.array(a)), titles.take(pa.array(b))
    relationship_table = pa.table(
        {
            "id": edge_ids,
            "human_readable_id": np.arange(count),
            "source": source,
            "target": target,
            "description": words.sentences(pc.binary_join_element_wise(source, target, " and "), 2),
            "weight": weight,
            "combined_degree": degree[a] + degree[b],
            "text_unit_ids": to_lists(edge, unit_ids.take(pa.array(edge_unit)), count),
            "source_id": ids.take(pa.array(a)),
            "target_id": ids.take(pa.array(b)),
        }
    )
    document_ids = pa.array([f"document-{i}" for i in range(documents)])
    texts = words.sentences(pa.array([f"Page {i}" for i in range(units)]), 12)
    by_unit, named = distinct_pairs(mention, owner, entities)
    by_edge, stated = distinct_pairs(edge_unit, edge, count)
    unit_table = pa.table(
        {
            "id": unit_ids,
            "human_readable_id": np.arange(units),
            "text": texts,
            "n_tokens": pc.divide(pc.cast(pc.binary_length(texts), pa.int64()), 5),
            "document_id": document_ids.take(pa.array(document)),
            "entity_ids": to_lists(by_unit, ids.take(pa.array(named)), units),
            "relationship_ids": to_lists(by_edge, edge_ids.take(pa.array(stated)), units),
        }
    )
    document_table = pa.table(
        {
            "id": document_ids,
            "human_readable_id": np.arange(documents),
            "title": [f"volume {i}.txt" for i in range(documents)],
            "text_unit_ids": to_lists(document, unit_ids, documents),
        }
    )
    made = {
        ENTITIES: entity_table,
        RELATIONSHIPS: relationship_table,
        TEXT_UNITS: unit_table,
        DOCUMENTS: document_table,
    }
    return {name: io.conform(name, table) for name, table in made.items()}


def _edges(rng: np.random.Generator, core: int, tiny: int, wanted: int) -> tuple[Ints, Ints]:
    """Return distinct pairs: those of the core by reach, then chains of two to five."""
    circle = np.arange(core, dtype=np.int64) // CIRCLE
    size = rng.permutation(np.arange(core) % 3)  # uneven circles: a third of the entities move next door
    circle = np.minimum(circle + (size == 0) * rng.integers(0, 2, core), circle[-1] if core else 0)
    blocks = [
        np.sort(circle),
        *(np.arange(core, dtype=np.int64) // n for n in (GROUP, THEME)),
        np.zeros(core, np.int64),
    ]
    activity = np.minimum(rng.pareto(2.2, core) + 0.4, 40.0)
    weight = np.concatenate([[0.0], np.cumsum(activity)])
    low = [np.searchsorted(block, block) for block in blocks]
    high = [np.searchsorted(block, block, side="right") for block in blocks]
    keys = np.empty(0, np.int64)
    for _ in range(6):
        missing = wanted - tiny - len(keys)
        if core < 2 or missing <= 0:
            break
        draws = int(missing * 1.4) + 100
        one = np.minimum(np.searchsorted(weight, rng.random(draws) * weight[-1], side="right") - 1, core - 1)
        reach = rng.choice(4, draws, p=REACH)
        begin, end = (np.choose(reach, [x[one] for x in ends]) for ends in (low, high))
        point = weight[begin] + rng.random(draws) * (weight[end] - weight[begin])
        other = np.clip(np.searchsorted(weight, point, side="right") - 1, begin, end - 1)
        apart = one != other
        new = np.minimum(one, other)[apart] * core + np.maximum(one, other)[apart]
        keys = distinct(np.concatenate([keys, rng.permutation(distinct(new))[: int(missing * 1.02)]]))
    a, b = keys // max(core, 1), keys % max(core, 1)
    lone = np.setdiff1d(np.arange(core), np.concatenate([a, b])) if core > 1 else np.empty(0, np.int64)
    mate = np.where(lone + 1 < core, lone + 1, lone - 1)
    links = np.arange(core, core + tiny - 1, dtype=np.int64) if tiny else np.empty(0, np.int64)
    links = links[(links - core) % 5 < rng.integers(1, 5)]
    a, b = np.concatenate([a, np.minimum(lone, mate), links]), np.concatenate([b, np.maximum(lone, mate), links + 1])
    return distinct_pairs(a, b, core + tiny)


def _stated(rng: np.random.Generator, a: Ints, b: Ints, twice: float) -> tuple[Ints, Ints, npt.NDArray[np.float64]]:
    """Return the pairs in random order and direction, some of them stated again the other way round."""
    flip = rng.random(len(a)) < 0.5
    source, target = np.where(flip, b, a), np.where(flip, a, b)
    again = rng.choice(len(a), int(len(a) * twice), replace=False)
    source, target = np.concatenate([source, target[again]]), np.concatenate([target, source[again]])
    order = rng.permutation(len(source))
    return source[order], target[order], np.round(1 + rng.gamma(1.5, 1.5, len(source)), 2)


def _mentions(
    rng: np.random.Generator, home: Ints, often: Ints, spread: int, empty: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """Return distinct (row, text unit) near each row's home, at least one a row; text units marked empty get none."""
    full = np.flatnonzero(~empty)
    row = np.repeat(np.arange(len(home), dtype=np.int64), often)
    place = np.searchsorted(full, home[row]) + rng.integers(-spread, spread + 1, len(row))
    return distinct_pairs(row, full[np.clip(place, 0, len(full) - 1)], len(empty))


def _ids(rng: np.random.Generator, count: int) -> pa.Array:
    text = rng.bytes(16 * count).hex().encode()
    offsets = np.arange(count + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


class _Words:
    """Names, and descriptions of about 59 (three clauses) or 54 (two clauses, two names) tokens."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        pools = (HOW, WHO, WHERE, DID, HOW, WHAT)
        picks = [rng.integers(0, len(pool), 20_000).tolist() for pool in pools]
        years = rng.integers(1640, 2020, 20_000).tolist()
        self.clauses = pa.array(
            f"{HOW[h]} {WHO[w]} of {WHERE[p]} {DID[d]} {HOW[k]} {WHAT[o]} in {year}"
            for h, w, p, d, k, o, year in zip(*picks, years, strict=True)
        )

    def titles(self, count: int) -> pa.Array:
        """Return distinct names whose order has nothing to do with the planted tree."""
        number = self.rng.permutation(count).tolist()
        return pa.array(f"{HOW[k % 20].upper()} {WHO[k // 20 % 26].upper()} {k:07d}" for k in number)

    def sentences(self, heads: pa.Array, clauses: int) -> pa.Array:
        """Return one description a head."""
        picked = [self.clauses.take(pa.array(self.rng.integers(0, 20_000, len(heads)))) for _ in range(clauses)]
        return pc.binary_join_element_wise(heads, *picked, "; ")


def main() -> None:
    """Write a planted corpus as Parquet files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--entities", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, table in planted(options.entities, options.seed).items():
        (options.folder / f"{name}.parquet").write_bytes(io.to_bytes(table))


if __name__ == "__main__":
    main()

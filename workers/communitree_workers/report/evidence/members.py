"""The tables as arrays, and the rows of each community in order of importance.

Everything here is done for a whole level at once, so that the cost grows with the number of rows.

Order, most important first (internal = of relationships inside the community, so that what happens elsewhere in the
corpus does not change a community's evidence):

- relationships by the sum of their ends' internal degrees, then weight;
- entities by internal degree, then internal weight;
- claims by their entity's internal degree;
- text units (of `document` entities) as they follow in the corpus;

then by content, then by id.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from communitree_shared.contract import tables as names
from communitree_shared.errors import IntegrityError
from communitree_workers.report.evidence import rows as rendering
from communitree_workers.report.records import KINDS
from communitree_workers.tables.io import Tables, empty

Ints = NDArray[np.int64]
Rows = dict[str, Ints]

#: Entities of this type stand for text units that name no entity.
DOCUMENT = "document"

_TABLES = {
    "entities": names.ENTITIES,
    "relationships": names.RELATIONSHIPS,
    "claims": names.COVARIATES,
    "text_units": names.TEXT_UNITS,
}
_MEMBERS = {"entities": "entity_ids", "relationships": "relationship_ids", "claims": "covariate_ids"}
_CONTENT = {
    "entities": ("title", "description", "id"),
    "relationships": ("source", "target", "description", "id"),
    "claims": ("subject_id", "description", "id"),
}


@dataclass(frozen=True)
class Community:
    """One row of `communities` with its rows of each kind (positions in the tables), most important first.

    `costs` are the tokens of these rows together; `documents` the positions of its `document` entities.
    """

    number: int
    key: str
    level: int
    size: int
    mass: int
    children: tuple[int, ...]
    documents: tuple[int, ...]
    rows: Rows
    costs: dict[str, int]


class Corpus:
    """The tables of one index as arrays; rows are positions in their tables.

    Raises:
        IntegrityError: a community or relationship names an id that no table holds.
    """

    def __init__(self, tables: Tables, encoding: str) -> None:
        self.encoding = encoding
        self._tables = {kind: tables.get(name, empty(name)) for kind, name in _TABLES.items()}
        self._communities = tables[names.COMMUNITIES]
        self.ids = {kind: table["id"].combine_chunks() for kind, table in self._tables.items()}
        self.numbers: dict[str, list[int]] = {
            kind: table["human_readable_id"].to_pylist() for kind, table in self._tables.items()
        }
        entities, edges = self._tables["entities"], self._tables["relationships"]
        self.titles = [" ".join((title or "").split()) for title in entities["title"].to_pylist()]
        #: For each kind one -1 a row, for whoever needs to mark rows; to be left as it was found.
        self.scratch = {kind: np.full(len(self.ids[kind]), -1, dtype=np.int64) for kind in KINDS}
        self.entity_mass = _ints(entities["mass"])
        self.is_document = np.asarray(pc.equal(entities["type"], DOCUMENT).fill_null(False), dtype=bool)
        self.total_mass = int(self.entity_mass.sum())
        self.source = self._ends(edges, "source_id")
        self.target = self._ends(edges, "target_id")
        self.weight = _fixed(edges["weight"])
        self.claim_entity = _find(self._tables["claims"]["entity_id"], self.ids["entities"])
        self._unit_numbers = _ints(self._tables["text_units"]["human_readable_id"])
        self._tails: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self._members: dict[str, tuple[Ints, Ints]] = {}
        self._units: dict[int, Ints] | None = None
        self.costs = {kind: self._costs(kind) for kind in KINDS}
        self._rank = {kind: _content_rank(self._tables[kind], columns) for kind, columns in _CONTENT.items()}
        #: Place of each relationship by weight, then content.
        self._edge_rank = np.empty(len(self.weight), dtype=np.int64)
        self._edge_rank[np.lexsort((self._rank["relationships"], -self.weight))] = np.arange(len(self.weight))

    def tails(self, kind: str) -> list[str]:
        """Return the rendered rows of a kind without their numbers; rendered on first use."""
        if kind not in self._tails:
            if kind == "text_units":  # only text without entities is ever shown: the rest stays unrendered
                shown = np.zeros(self._tables[kind].num_rows, dtype=bool)
                for units in self.units.values():
                    shown[units] = True
                some = iter(rendering.tails(kind, self._tables[kind].filter(pa.array(shown))))
                self._tails[kind] = [next(some) if flag else "" for flag in shown]
            else:
                self._tails[kind] = rendering.tails(kind, self._tables[kind])
        return self._tails[kind]

    def names(self, kind: str) -> list[str]:
        """Return the ids of a kind as a list."""
        if kind not in self._names:
            self._names[kind] = self.ids[kind].to_pylist()
        return self._names[kind]

    @property
    def units(self) -> dict[int, Ints]:
        """Text units of each `document` entity, by the entity's position, in corpus order."""
        if self._units is None:
            self._units = {}
            where = np.flatnonzero(self.is_document)
            lists = self._tables["entities"]["text_unit_ids"].combine_chunks().take(pa.array(where))
            owner, unit = self._explode(lists, "text_units", where, "entity")
            order = np.lexsort((self._unit_numbers[unit], owner))
            owner, unit = owner[order], unit[order]
            cuts = np.flatnonzero(np.diff(owner)) + 1
            for who, part in zip(owner[np.r_[0, cuts]] if len(owner) else [], np.split(unit, cuts), strict=False):
                self._units[int(who)] = part
        return self._units

    def levels(self) -> list[int]:
        """Return the levels that have communities, coarsest first."""
        return sorted(set(self._communities["level"].to_pylist()))

    def level(self, level: int) -> list[Community]:
        """Return the communities of a level with their rows."""
        where = np.flatnonzero(np.asarray(pc.equal(self._communities["level"], level)))
        table = self._communities.take(pa.array(where))
        n = len(where)
        c_entity, entity = self._held("entities", where)
        c_edge, edge = self._held("relationships", where)
        c_claim, claim = self._held("claims", where)

        # A slot is one (community, entity) pair; overlapping communities of imported trees have a slot each.
        width = max(1, len(self.ids["entities"]))
        slots = np.sort(c_entity * width + entity)
        c_entity, entity = slots // width, slots % width
        start, end = _slot(slots, c_edge * width + self.source[edge]), _slot(slots, c_edge * width + self.target[edge])
        inside = (start >= 0) & (end >= 0)  # an edge that leaves its community is not evidence about it
        c_edge, edge, start, end = c_edge[inside], edge[inside], start[inside], end[inside]
        weight = self.weight[edge]
        degree = np.bincount(start, minlength=len(slots)) + np.bincount(end, minlength=len(slots))
        strength = np.zeros(len(slots), dtype=np.int64)
        np.add.at(strength, start, weight)
        np.add.at(strength, end, weight)

        by_edge = np.lexsort((self._edge_rank[edge], -(degree[start] + degree[end]), c_edge))
        by_entity = np.lexsort((self._rank["entities"][entity], -strength, -degree, c_entity))
        subject = self.claim_entity[claim]
        about = np.where(subject >= 0, _slot(slots, c_claim * width + subject), -1)
        claim_degree = np.where(about >= 0, degree[about], -1) if len(slots) else np.full(len(claim), -1)
        by_claim = np.lexsort((self._rank["claims"][claim], -claim_degree, c_claim))

        shown = by_entity[~self.is_document[entity[by_entity]]]
        ordered = {
            "entities": (c_entity[shown], entity[shown]),
            "relationships": (c_edge[by_edge], edge[by_edge]),
            "claims": (c_claim[by_claim], claim[by_claim]),
        }
        parts = {kind: _split(owner, rows, n) for kind, (owner, rows) in ordered.items()}
        sums = {kind: _sums(owner, self.costs[kind][rows], n) for kind, (owner, rows) in ordered.items()}
        documents: list[list[int]] = [[] for _ in range(n)]
        for slot in np.flatnonzero(self.is_document[entity]).tolist():
            documents[int(c_entity[slot])].append(int(entity[slot]))
        for some in documents:
            some.sort(key=self._rank["entities"].__getitem__)
        columns = ("community", "key", "level", "size", "mass", "children")
        out = []
        for i, (number, key, at, size, mass, children) in enumerate(
            zip(*(table[c].to_pylist() for c in columns), strict=True)
        ):
            rows = {kind: part[i] for kind, part in parts.items()}
            rows["text_units"] = self._text(documents[i])
            costs = {kind: int(sums[kind][i]) for kind in sums}
            costs["text_units"] = int(self.costs["text_units"][rows["text_units"]].sum())
            out.append(Community(number, key, at, size, mass, tuple(children or ()), tuple(documents[i]), rows, costs))
        return out

    def _held(self, kind: str, where: Ints) -> tuple[Ints, Ints]:
        """Return (place in `where`, row) for each row that these communities hold; ids are looked up once for all."""
        if kind not in self._members:
            lists = self._communities[_MEMBERS[kind]].combine_chunks()
            owner, found = self._explode(lists, kind, np.arange(len(lists), dtype=np.int64), "community")
            self._members[kind] = np.searchsorted(owner, np.arange(len(lists) + 1)), found
        starts, found = self._members[kind]
        lengths = starts[where + 1] - starts[where]
        owner = np.repeat(np.arange(len(where), dtype=np.int64), lengths)
        first = np.cumsum(lengths) - lengths
        return owner, found[np.arange(len(owner), dtype=np.int64) - first[owner] + starts[where][owner]]

    def direct_mass(self, rows: dict[str, list[int]], community: Community) -> int:
        """Return the mass of the entities whose row is among `rows`; for text without entities, the share shown."""
        mass = int(self.entity_mass[rows["entities"]].sum()) if rows["entities"] else 0
        shown = set(rows["text_units"])
        for entity in community.documents:
            units = self.units[entity].tolist() if entity in self.units else []
            if units:
                mass += int(self.entity_mass[entity]) * sum(unit in shown for unit in units) // len(units)
        return mass

    def _text(self, documents: list[int]) -> Ints:
        parts = [self.units[entity] for entity in documents if entity in self.units]
        if not parts:
            return np.zeros(0, dtype=np.int64)
        units = np.unique(np.concatenate(parts))
        return units[np.argsort(self._unit_numbers[units], kind="stable")]

    def _costs(self, kind: str) -> Ints:
        table = self._tables[kind]
        if kind == "text_units":  # `n_tokens` of a text unit counts its text as it is, not its row
            costs = np.zeros(table.num_rows, dtype=np.int64)
            if self.units:
                units = np.unique(np.concatenate(list(self.units.values())))
                tails = self.tails(kind)
                rows = rendering.numbered((self.numbers[kind][u] for u in units), (tails[u] for u in units))
                costs[units] = rendering.count(rows, self.encoding)
            return costs
        costs = _ints(table["n_tokens"])
        if (costs <= 0).any():
            costs = _ints(pa.chunked_array([rendering.count_table(kind, table, self.encoding)]))
        return costs

    def _ends(self, edges: pa.Table, column: str) -> Ints:
        found = _find(edges[column], self.ids["entities"])
        if (found < 0).any():
            at = int(np.flatnonzero(found < 0)[0])
            raise IntegrityError(
                f"Relationship {edges['id'][at]} has the {column} {edges[column][at]}, which no entity bears.",
                hint="Import the tables again: the importer makes entities for ends that name none.",
            )
        return found

    def _explode(self, lists: pa.Array, kind: str, owners: Ints, what: str) -> tuple[Ints, Ints]:
        """Return (owner, row) for each id of a list column."""
        owner = owners[np.asarray(pc.list_parent_indices(lists), dtype=np.int64)]
        flat = pc.list_flatten(lists)
        found = _find(flat, self.ids[kind])
        if (found < 0).any():
            missing = flat[int(np.flatnonzero(found < 0)[0])]
            raise IntegrityError(
                f"A {what} names the id {missing} in its {kind}, which the table of {kind} does not hold.",
                hint="The tables do not belong together: index or import the corpus again.",
            )
        return owner, found


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.combine_chunks().fill_null(0), dtype=np.int64)


def _fixed(column: pa.ChunkedArray) -> Ints:
    """Weights in fixed point, so that their sums do not depend on row order."""
    values = np.nan_to_num(np.asarray(column.combine_chunks().fill_null(0.0), dtype=np.float64))
    return np.rint(np.clip(values, 0, 1e9) * names.WEIGHT_SCALE).astype(np.int64)


def _find(wanted: pa.Array | pa.ChunkedArray, ids: pa.Array) -> Ints:
    """Return the position of each wanted id, -1 where there is none."""
    found = pc.index_in(wanted, value_set=ids)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return np.asarray(found.fill_null(-1), dtype=np.int64)


def _content_rank(table: pa.Table, columns: tuple[str, ...]) -> Ints:
    """Return each row's place when rows are sorted by content."""
    order = np.asarray(pc.sort_indices(table, sort_keys=[(c, "ascending") for c in columns]), dtype=np.int64)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _slot(slots: Ints, codes: Ints) -> Ints:
    """Return the position of each code among the sorted slots, -1 where there is none."""
    if not len(slots):
        return np.full(len(codes), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(slots, codes), len(slots) - 1)
    return np.where(slots[at] == codes, at, -1)


def _split(owner: Ints, rows: Ints, n: int) -> list[Ints]:
    """Cut rows that are sorted by owner into one array an owner."""
    return np.split(rows, np.searchsorted(owner, np.arange(1, n))) if n else []


def _sums(owner: Ints, costs: Ints, n: int) -> Ints:
    """Return each owner's sum of costs, exact."""
    total = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(costs)])
    ends = np.searchsorted(owner, np.arange(n), side="right")
    starts = np.searchsorted(owner, np.arange(n), side="left")
    sums: Ints = total[ends] - total[starts]
    return sums

"""What clustering reads, as integer columns: members in canonical order, edges, weak edges, text units, mass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.cluster import canonical
from communitree_workers.cluster.documents import document_entities, runs
from communitree_workers.cluster.graph import Graph, components, digests, distinct, distinct_pairs, summed
from communitree_workers.cluster.weak import Mentions, weak_edges
from communitree_workers.tables.columns import Ints, flatten, one_chunk, positions, to_lists
from communitree_workers.tables.columns import replace as with_column
from communitree_workers.tables.io import Tables, conform, empty, schema
from communitree_workers.tables.memory import give_back

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Prepared:
    """The corpus as clustering sees it. A member is an entity, known by its place in canonical order.

    Attributes:
        tables: the corpus with all agreed columns; `document` entities are the last rows of `entities`; entities and
            text units name each other both ways.
        ids, rows: id and row in `entities` of each member; `document` entities come last, in text order.
        clustered: how many members take part in clustering (the others are `document` entities).
        graph: edges between members, weak ones among them; `weak` tells which.
        small: members that had no edge, or were in a component of at most `max_cluster_size`.
        mentions: T(e), the text units of each member, and mass.
        unit_ids, unit_rows, unit_place: of the text units in canonical order (document, human_readable_id, id).
        relationship_rows, source, target: relationships in canonical order, and their members; -1: none.
        covariate_ids, subject: covariates in canonical order, and their member; -1: none.
        degree: other members that a member has a relationship with.
        warnings: what a user should know, each counted.
        counts: "entities", "text_units", "relationships" of the whole corpus, "weak_edges", "document_entities".
    """

    tables: Tables
    ids: pa.Array
    rows: Ints
    clustered: int
    graph: Graph
    weak: Flags
    small: Flags
    mentions: Mentions
    unit_ids: pa.Array
    unit_rows: Ints
    relationship_rows: Ints
    source: Ints
    target: Ints
    covariate_ids: pa.Array
    subject: Ints
    degree: Ints
    warnings: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def slice(self, members: Ints) -> Graph:
        """Return what the subtree of these members (ascending) needs, to be sent to another process."""
        return self.graph.part(members)

    @staticmethod
    def from_bytes(data: bytes) -> Graph:
        """Return the slice whose `to_bytes` this is; `subtree` takes it in place of the whole."""
        return Graph.from_bytes(data)


def prepare(tables: Tables, options: ClusterOptions) -> Prepared:
    """Read the tables.

    Raises:
        IntegrityError: an id stands twice in a table, or is missing.
    """
    tables = {**tables, **{name: _conforming(tables, name) for name in _READ}}
    warnings: list[str] = []
    rows = canonical.entity_order(tables)
    taken = pa.array(rows)
    ids, titles = (one_chunk(tables[ENTITIES][column]).take(taken) for column in ("id", "title"))
    count = len(ids)
    unit_rows, document, names = canonical.unit_order(tables)
    unit_ids = one_chunk(tables[TEXT_UNITS]["id"]).take(pa.array(unit_rows))

    tables, own = _both_ways(tables, ids, rows, unit_ids, unit_rows, warnings)
    source, target, by_id = canonical.relationship_members(tables, ids, titles)
    mentions = Mentions.of(*_text_units(tables, own, source, target, unit_ids), count, document)
    graph, warned = _edges(tables, source, target, ids)
    warnings += warned
    degree = np.bincount(graph.low, minlength=count) + np.bincount(graph.high, minlength=count)
    tables = _filled(tables, rows, mentions.mass, degree, source, target, None if by_id else ids)
    component = components(count, graph.low, graph.high)
    sizes = np.bincount(component, minlength=count)
    small = sizes[component] <= options.max_cluster_size

    order = canonical.numbered_order(tables[RELATIONSHIPS], RELATIONSHIPS)
    covariates = canonical.numbered_order(tables[COVARIATES], COVARIATES)
    prepared = Prepared(
        tables=tables,
        ids=ids,
        rows=rows,
        clustered=count,
        graph=graph,
        weak=np.zeros(len(graph.low), bool),
        small=small,
        mentions=mentions,
        unit_ids=unit_ids,
        unit_rows=unit_rows,
        relationship_rows=order,
        source=source[order],
        target=target[order],
        covariate_ids=one_chunk(tables[COVARIATES]["id"]).take(pa.array(covariates)),
        subject=_subjects(tables, ids, titles)[covariates],
        degree=degree.astype(np.int64),
        warnings=warnings,
        counts={
            "entities": count,
            "text_units": len(unit_ids),
            "relationships": len(source),
            "weak_edges": 0,
            "document_entities": 0,
        },
    )
    if options.use_lcc:
        prepared = _largest(prepared, component, sizes)
    else:
        prepared = _with_documents(_tied(prepared, component), names)
    give_back()
    return prepared


#: Relationships whose text units are looked up at a time: their names need much more memory than their numbers.
_ROWS = 500_000

_READ = (ENTITIES, RELATIONSHIPS, TEXT_UNITS, DOCUMENTS, COVARIATES)


def _conforming(tables: Tables, name: str) -> pa.Table:
    table = tables.get(name)
    if table is None:
        return empty(name)
    return table if table.schema.equals(schema(name)) else conform(name, table)


def _both_ways(
    tables: Tables, ids: pa.Array, rows: Ints, unit_ids: pa.Array, unit_rows: Ints, warnings: list[str]
) -> tuple[Tables, tuple[Ints, Ints]]:
    """Make entities and text units name each other; return the distinct pairs (member, text unit) too."""
    entities, units = tables[ENTITIES], tables[TEXT_UNITS]
    member_of = np.empty(len(rows), np.int64)
    member_of[rows] = np.arange(len(rows))
    unit_of = np.empty(len(unit_rows), np.int64)
    unit_of[unit_rows] = np.arange(len(unit_rows))
    row, named = flatten(entities["text_unit_ids"])
    unit_row, inside = flatten(units["entity_ids"])
    member, unit = member_of[row], positions(named, unit_ids)
    back_member, back_unit = positions(inside, ids), unit_of[unit_row]
    lost, back_lost = int((unit < 0).sum()), int((back_member < 0).sum())
    if lost:
        warnings.append(f"{lost} mentions of text units that are not in the table were taken out of entities.")
    if back_lost:
        warnings.append(f"{back_lost} mentions of entities that are not in the table were taken out of text units.")
    known, back_known = unit >= 0, back_member >= 0
    forward = distinct_pairs(member[known], unit[known], len(unit_ids))
    member, unit = distinct_pairs(
        np.concatenate([forward[0], back_member[back_known]]),
        np.concatenate([forward[1], back_unit[back_known]]),
        len(unit_ids),
    )
    if not len(row) == len(forward[0]) == len(member):
        entities = with_column(entities, "text_unit_ids", _lists(rows[member], unit, unit_ids, len(rows)))
    by_unit, by_member = distinct_pairs(unit, member, len(rows))
    units = with_column(units, "entity_ids", _lists(unit_rows[by_unit], by_member, ids, len(unit_rows)))
    return {**tables, ENTITIES: entities, TEXT_UNITS: units}, (member, unit)


def _lists(row: Ints, value: Ints, ids: pa.Array, count: int) -> pa.Array:
    """Return `count` lists of ids: `ids[value]` into the list of `row`, in the order given within a row."""
    order = np.argsort(row, kind="stable")
    return to_lists(row[order], ids.take(pa.array(value[order])), count)


def _text_units(
    tables: Tables, own: tuple[Ints, Ints], source: Ints, target: Ints, unit_ids: pa.Array
) -> tuple[Ints, Ints]:
    """Return T: the text units of each member, united with those of its relationships."""
    column, width = tables[RELATIONSHIPS]["text_unit_ids"], max(len(unit_ids), 1)
    keys = [own[0] * width + own[1]]
    for at in range(0, len(column), _ROWS):
        row, named = flatten(column.slice(at, _ROWS))
        unit = positions(named, unit_ids)
        members = [end[at : at + _ROWS][row] for end in (source, target)]
        known = [np.flatnonzero((member >= 0) & (unit >= 0)) for member in members]
        keys += [distinct(m[k] * width + unit[k]) for m, k in zip(members, known, strict=True)]
    every = distinct(np.concatenate(keys))
    return every // width, every % width


def _edges(tables: Tables, source: Ints, target: Ints, ids: pa.Array) -> tuple[Graph, list[str]]:
    """Return the graph of the relationships, parallel and reversed ones added up, and what there is to say of them."""
    weight, floored = canonical.fixed_weights(tables[RELATIONSHIPS]["weight"])
    known = (source >= 0) & (target >= 0)
    loops, strays = int((known & (source == target)).sum()), int(len(known) - known.sum())
    warnings = []
    if floored:
        warnings.append(
            f"{floored} of {len(weight)} relationships have no usable weight (zero, negative or missing): "
            "each counts a tenth of the median."
        )
    if strays:
        warnings.append(f"{strays} relationships name an entity that is not in the table: no community holds them.")
    if loops:
        warnings.append(f"{loops} relationships lead from an entity to itself: they do not take part in clustering.")
    low, high, weight = summed(source[known], target[known], weight[known], len(ids))
    return Graph(digests(ids), low, high, weight), warnings


def _filled(
    tables: Tables, rows: Ints, mass: Ints, degree: Ints, source: Ints, target: Ints, ids: pa.Array | None
) -> Tables:
    """Fill in what follows from the edges: mass, degrees, and the ends' ids where these are not all there already."""
    entities, relationships = tables[ENTITIES], tables[RELATIONSHIPS]
    by_row = np.empty(len(rows), np.int64)
    by_row[rows] = np.arange(len(rows))
    entities = with_column(entities, "mass", pa.array(mass[by_row]))
    entities = with_column(entities, "degree", pa.array(degree[by_row]))
    both = np.zeros(len(source), np.int64)
    for end, column in ((source, "source_id"), (target, "target_id")):
        if ids is not None:
            found = ids.take(pa.array(end, mask=end < 0))
            filled = pc.coalesce(found, one_chunk(relationships[column]), pa.scalar(""))
            relationships = with_column(relationships, column, filled)
        both += np.where(end < 0, 0, np.append(degree, 0)[end])
    relationships = with_column(relationships, "combined_degree", pa.array(both))
    return {**tables, ENTITIES: entities, RELATIONSHIPS: relationships}


def _subjects(tables: Tables, ids: pa.Array, titles: pa.Array) -> Ints:
    covariates = tables[COVARIATES]
    member = positions(covariates["entity_id"], ids)
    return np.where(member < 0, positions(covariates["subject_id"], titles), member)


def _tied(prepared: Prepared, component: Ints) -> Prepared:
    """Add the weak edges of what stands alone or in a small component."""
    graph = prepared.graph
    weight = canonical.weak_weight(graph.weight)
    low, high, strength = weak_edges(prepared.mentions, component, prepared.small, weight)
    every_low, every_high = np.concatenate([graph.low, low]), np.concatenate([graph.high, high])
    order = np.argsort(every_low * len(graph) + every_high, kind="stable")
    weak = np.concatenate([prepared.weak, np.ones(len(low), bool)])[order]
    tied = Graph(graph.digests, every_low[order], every_high[order], np.concatenate([graph.weight, strength])[order])
    return replace(prepared, graph=tied, weak=weak, counts={**prepared.counts, "weak_edges": len(low)})


def _with_documents(prepared: Prepared, names: list[str]) -> Prepared:
    """Append a `document` entity for each run of text units that no entity has."""
    m, tables = prepared.mentions, prepared.tables
    held = np.bincount(m.unit, minlength=m.units) > 0
    tokens = np.asarray(pc.fill_null(one_chunk(tables[TEXT_UNITS]["n_tokens"]), 0), np.int64)[prepared.unit_rows]
    pieces = runs(np.flatnonzero(~held), m.document, tokens)
    if not pieces:
        return prepared
    made = document_entities(tables, pieces, prepared.unit_rows, m.document, names)
    count, before = len(prepared.ids), tables[ENTITIES].num_rows
    ids = pa.concat_arrays([prepared.ids, one_chunk(made["id"])])
    member = count + np.repeat(np.arange(len(pieces), dtype=np.int64), [len(p) for p in pieces])
    unit = np.concatenate(pieces)
    mentions = Mentions.of(
        np.concatenate([m.member, member]), np.concatenate([m.unit, unit]), count + len(pieces), m.document
    )
    if len(m.member) == 0:  # a corpus whose entities name no text at all: their rows keep standing for themselves
        mentions.mass[:count] = m.mass
    owner = np.full(m.units, -1, np.int64)
    owner[unit] = member
    units = tables[TEXT_UNITS]
    by_row = owner[np.argsort(prepared.unit_rows, kind="stable")]
    row, inside = flatten(units["entity_ids"])
    mine = np.flatnonzero(by_row >= 0)
    pool = pa.concat_arrays([inside, ids.take(pa.array(by_row[mine]))])
    row = np.concatenate([row, mine])
    units = with_column(units, "entity_ids", _lists(row, np.arange(len(row)), pool, units.num_rows))
    extra = np.arange(len(pieces), dtype=np.int64)
    nothing = np.zeros(len(pieces), bool)
    return replace(
        prepared,
        tables={**tables, ENTITIES: pa.concat_tables([tables[ENTITIES], made]), TEXT_UNITS: units},
        ids=ids,
        rows=np.concatenate([prepared.rows, before + extra]),
        graph=replace(prepared.graph, digests=np.concatenate([prepared.graph.digests, digests(one_chunk(made["id"]))])),
        small=np.concatenate([prepared.small, nothing]),
        mentions=mentions,
        degree=np.concatenate([prepared.degree, np.zeros(len(pieces), np.int64)]),
        counts={**prepared.counts, "entities": count + len(pieces), "document_entities": len(pieces)},
    )


def _largest(prepared: Prepared, component: Ints, sizes: Ints) -> Prepared:
    """Keep only the largest component (of equals, the one with the first member), and say what is left out."""
    if len(component) == 0:
        return prepared
    kept = np.flatnonzero(component == int(np.argmax(sizes)))
    number = np.full(len(component) + 1, -1, np.int64)  # the last one answers for -1
    number[kept] = np.arange(len(kept))
    m = prepared.mentions
    inside = number[m.member] >= 0
    units = np.bincount(m.unit[inside], minlength=m.units) > 0
    lost, lost_units = len(component) - len(kept), int(m.units - units.sum())
    warnings = list(prepared.warnings)
    if lost or lost_units:
        warnings.append(
            f"{lost} entities are outside the largest component, {lost_units} text units have no entity in it: "
            "the tree does not hold them, as `use_lcc` asks."
        )
    return replace(
        prepared,
        ids=prepared.ids.take(pa.array(kept)),
        rows=prepared.rows[kept],
        clustered=len(kept),
        graph=prepared.graph.part(kept),
        weak=np.zeros(len(prepared.graph.part(kept).low), bool),
        small=prepared.small[kept],
        mentions=replace(
            m,
            member=number[m.member[inside]],
            unit=m.unit[inside],
            members=len(kept),
            mass=m.mass[kept],
        ),
        source=number[prepared.source],
        target=number[prepared.target],
        subject=number[prepared.subject],
        degree=prepared.degree[kept],
        warnings=warnings,
    )

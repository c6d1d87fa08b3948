"""Communities and reports as they were, under our column names; a whole tree is made of them by `cluster.adopt`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import COLUMNS, COMMUNITIES, COMMUNITY_REPORTS, NO_PARENT
from communitree_workers.corpus.graph_import import values
from communitree_workers.corpus.graph_import.account import Notes
from communitree_workers.corpus.graph_import.entities import Entities
from communitree_workers.corpus.graph_import.files import Raw
from communitree_workers.corpus.graph_import.grouping import content_ids, groups_of
from communitree_workers.corpus.graph_import.names import Reader, blank
from communitree_workers.corpus.graph_import.relationships import Relationships
from communitree_workers.tables.columns import Ints, flatten, lengths, positions, to_lists, unique_pairs
from communitree_workers.tables.io import conform

Columns = dict[str, pa.Array]


def _numbers(reader: Reader, column: str, expected: str) -> pa.Array:
    reader.must_have(column)
    found = reader.get(column)
    if found.null_count:
        row = int(np.argmax(pc.is_null(found).to_numpy(zero_copy_only=False)))
        values.refuse(reader.file, reader.spelled(column) or column, row, expected, None)
    return found


def read_communities(
    reader: Reader | None, nodes: Raw | None, entities: Entities, relationships: Relationships, notes: Notes
) -> pa.Table | None:
    """Return the communities with `entity_ids` where any table says them; `parent` is null where none does.

    Ids of entities and relationships that are not there stay, for the keeper of the tree to see.

    Raises:
        BadInput: a community without a whole number, or two with the same.
    """
    member = _members(nodes, entities) if nodes is not None else None
    if reader is None:
        return None if member is None or not len(member.row) else _from_nodes(member, notes)
    columns = {name: reader.get(name) for name in COLUMNS[COMMUNITIES] if name not in ("community", "level")}
    columns["community"] = _numbers(reader, "community", "the whole number of a community")
    columns["level"] = _numbers(reader, "level", "a whole number, 0 for the coarsest communities")
    numbers = columns["community"].to_numpy()
    _, first = np.unique(numbers, return_index=True)
    if len(first) < len(numbers):
        again = np.setdiff1d(np.arange(len(numbers)), first)
        row = int(again[0])
        expected = "a number that no other community has"
        values.refuse(reader.file, reader.spelled("community") or "community", row, expected, int(numbers[row]))
    order = np.argsort(numbers, kind="stable")
    columns = {name: column.take(pa.array(order)) for name, column in columns.items()}
    columns["entity_ids"] = _entity_ids(columns["entity_ids"], entities)
    empty = lengths(columns["entity_ids"]) == 0
    if member is not None and empty.any():
        columns["entity_ids"] = _fill_from(member, columns, empty)
        notes.note(int(empty.sum()), "community|communities got the entities of the nodes table")
    columns["relationship_ids"] = _survivors(columns["relationship_ids"], relationships)
    return _finished(columns)


def _entity_ids(lists: pa.Array, entities: Entities) -> pa.Array:
    """Return the lists with ids for titles, where a list names titles."""
    rows, ids = flatten(lists)
    by_title = np.where(positions(ids, entities.columns["id"]) < 0, positions(ids, entities.written), -1)
    if (by_title < 0).all():
        return lists
    taken = entities.columns["id"].take(pa.array(by_title, mask=by_title < 0))
    return to_lists(rows, pc.coalesce(taken, ids), len(lists))


def _survivors(lists: pa.Array, relationships: Relationships) -> pa.Array:
    """Return the lists with the ids that merged relationships have now, each once, unknown ids kept."""
    rows, ids = flatten(lists)
    before = positions(ids, relationships.ids)
    now = np.where(before >= 0, relationships.now[before], -1) if len(relationships.now) else before
    taken = relationships.columns["id"].take(pa.array(now, mask=now < 0))
    ids = pc.coalesce(taken, ids) if len(ids) else ids
    known = pc.unique(ids)
    left, right = unique_pairs(rows, positions(ids, known))
    return to_lists(left, known.take(pa.array(right)), len(lists))


class _Members:
    """Pairs (entity row, community) with the level they were seen at."""

    def __init__(self, row: Ints, community: Ints, level: Ints, ids: pa.Array) -> None:
        self.row, self.community, self.level, self.ids = row, community, level, ids


def _members(nodes: Raw, entities: Entities) -> _Members:
    title, ident = nodes.find("title", "name"), nodes.find("id")
    row = np.full(len(nodes), -1, np.int64)
    for column, known in ((title, entities.written), (ident, entities.columns["id"])):
        if column is not None:
            found = positions(values.text(nodes.table[column], nodes.file, column), known)
            row = np.where(row < 0, found, row)
    at = nodes.find("community", "cluster") or "community"
    community = pc.fill_null(values.whole_numbers(nodes.table[at], nodes.file, at), -1).to_numpy()
    at = nodes.find("level") or "level"
    level = pc.fill_null(values.whole_numbers(nodes.table[at], nodes.file, at), 0).to_numpy()
    held = (row >= 0) & (community >= 0)
    return _Members(row[held], community[held], level[held], entities.columns["id"])


def _fill_from(member: _Members, columns: Columns, empty: np.ndarray) -> pa.Array:
    numbers, levels = columns["community"].to_numpy(), columns["level"].to_numpy()
    at = np.searchsorted(numbers, member.community).clip(max=len(numbers) - 1)
    good = (numbers[at] == member.community) & (levels[at] == member.level) & empty[at]
    rows, ids = flatten(columns["entity_ids"])
    kept = positions(ids, member.ids)
    dangling = kept < 0
    left, right = unique_pairs(
        np.concatenate([rows[~dangling], at[good]]), np.concatenate([kept[~dangling], member.row[good]])
    )
    if not dangling.any():
        return to_lists(left, member.ids.take(pa.array(right)), len(numbers))
    everything = pa.concat_arrays([member.ids.take(pa.array(right)), ids.filter(pa.array(dangling))])
    owner = np.concatenate([left, rows[dangling]])
    order = np.argsort(owner, kind="stable")
    return to_lists(owner[order], everything.take(pa.array(order)), len(numbers))


def _from_nodes(member: _Members, notes: Notes) -> pa.Table:
    """Return communities made from a nodes table alone; their level is the lowest they were seen at."""
    numbers, code = np.unique(member.community, return_inverse=True)
    level = np.full(len(numbers), np.iinfo(np.int64).max)
    np.minimum.at(level, code, member.level)
    left, right = unique_pairs(code, member.row)
    columns = {name: blank(COMMUNITIES, name, len(numbers)) for name in COLUMNS[COMMUNITIES]}
    columns["community"], columns["level"] = pa.array(numbers), pa.array(level)
    columns["entity_ids"] = to_lists(left, member.ids.take(pa.array(right)), len(numbers))
    notes.note(len(numbers), "community|communities was|were made from the nodes table: there is no communities table")
    return _finished(columns)


def _finished(columns: Columns) -> pa.Table:
    numbers = columns["community"]
    texts = numbers.cast(pa.string())
    columns["human_readable_id"] = numbers
    # GraphRAG 2.x and 3.x take one report for each distinct community title: two of a name would hide a report.
    label = pc.binary_join_element_wise("Community", texts, " ")
    _, first = groups_of(columns["title"])
    again = np.ones(len(numbers), bool)
    again[first] = False
    unnamed = pc.or_(pc.equal(columns["title"], ""), pa.array(again))
    columns["title"] = pc.if_else(unnamed, label, columns["title"])
    ids = columns["id"]
    columns["id"] = pc.if_else(pc.equal(ids, ""), content_ids(label), ids)
    for name in ("size", "weight", "mass"):
        columns[name] = pc.fill_null(columns[name], 0)
    for name in ("is_leaf", "oversize"):
        columns[name] = pc.fill_null(columns[name], False)
    return conform(COMMUNITIES, pa.table({name: columns[name] for name in COLUMNS[COMMUNITIES]}))


def read_reports(reader: Reader, notes: Notes) -> pa.Table:
    """Return the reports, one for each community number, marked as imported unless they say who wrote them.

    Raises:
        BadInput: no community number, or a rank that is no number.
    """
    columns = {name: reader.get(name) for name in COLUMNS[COMMUNITY_REPORTS] if name != "community"}
    columns["community"] = _numbers(reader, "community", "the whole number of a community")
    numbers = columns["community"].to_numpy()
    order = np.lexsort([pc.rank(columns["id"]).to_numpy(), numbers])
    _, first = np.unique(numbers[order], return_index=True)
    notes.warn(len(numbers) - len(first), "second report|reports on a community was|were left out")
    columns = {name: column.take(pa.array(order[first])) for name, column in columns.items()}
    numbers = columns["community"]
    columns["human_readable_id"] = pc.coalesce(columns["human_readable_id"], numbers)
    ids = columns["id"]
    made = content_ids(numbers.cast(pa.string()), columns["title"], columns["full_content"])
    columns["id"] = pc.if_else(pc.equal(ids, ""), made, ids)
    by = columns["generated_by"]
    columns["generated_by"] = pc.if_else(pc.equal(by, ""), "imported", by)
    columns["parent"] = pc.fill_null(columns["parent"], NO_PARENT)
    if reader.spelled("findings") is None:
        columns["findings"] = values.findings(columns["full_content_json"], reader.file, "full_content_json")
    columns["full_content"] = _contents(columns)
    for name, kind in COLUMNS[COMMUNITY_REPORTS].items():
        if kind in ("int", "float", "bool") and name != "rank":  # one that is missing is neutral, not the lowest
            columns[name] = pc.fill_null(columns[name], False if kind == "bool" else 0)
    return conform(COMMUNITY_REPORTS, pa.table({name: columns[name] for name in COLUMNS[COMMUNITY_REPORTS]}))


def _contents(columns: Columns) -> pa.Array:
    """Return the reports' texts; where one is missing it is put together from title, summary and findings."""
    texts = columns["full_content"]
    missing = pc.equal(texts, "")
    if not pc.any(missing).as_py():
        return texts
    parts = pa.table({name: columns[name].filter(missing) for name in ("title", "summary", "findings")})
    return pc.replace_with_mask(texts, missing, pa.array([_content(row) for row in parts.to_pylist()], pa.string()))


def _content(row: dict[str, object]) -> str:
    found = row["findings"] if isinstance(row["findings"], list) else []
    sections = [f"# {row['title']}", str(row["summary"])]
    sections += [f"## {f['summary']}\n\n{f['explanation']}" if f["explanation"] else str(f["summary"]) for f in found]
    return "\n\n".join(section for section in sections if section.strip("# "))

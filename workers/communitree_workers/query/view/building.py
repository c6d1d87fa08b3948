"""Building the view of a version from its tables: `build_view(tables) -> CorpusView`."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from communitree_shared.contract.options import BatchOptions
from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    NO_PARENT,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.languages import is_chinese
from communitree_shared.tokens import DEFAULT_ENCODING
from communitree_workers.citing.grammar import grammar_of
from communitree_workers.query.view.blocks import bits, build_blocks
from communitree_workers.query.view.cells import NEUTRAL_RANK, default_tokens, rank_cell, weight_cell
from communitree_workers.query.view.corpus_view import CorpusView, IntArray, gather
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.query.view.overview import build_overview
from communitree_workers.tables.columns import flatten, positions, unique_pairs
from communitree_workers.tables.io import Tables, conform, empty
from communitree_workers.text.words import chinese_cut, language, terms

__all__ = ["CorpusView", "build_view"]

#: Kinds of evidence, and the tables that their ids are of.
_EVIDENCE = {
    "entities": ENTITIES,
    "relationships": RELATIONSHIPS,
    "claims": COVARIATES,
    "text_units": TEXT_UNITS,
}
#: Leaves' entity titles are searched too: rare names often stand nowhere else.
_TITLES_A_LEAF = 40


def build_view(tables: Tables, encoding: str = DEFAULT_ENCODING) -> CorpusView:
    """Build the view of a version. Rows of the tables may come in any order."""
    get = {name: conform(name, tables[name]) if name in tables else empty(name) for name in (
        COMMUNITIES, COMMUNITY_REPORTS, COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS)}  # fmt: skip
    communities = _ordered(get[COMMUNITIES])
    reports = _reports(get[COMMUNITY_REPORTS], communities)
    n = communities.num_rows
    community = np.asarray(communities["community"].to_numpy(), dtype=np.int64)
    level = np.asarray(communities["level"].to_numpy(), dtype=np.int64)
    node = {c: i for i, c in enumerate(community.tolist())}
    parent = np.array(
        [node.get(p, -1) if p is not None and p != NO_PARENT else -1 for p in communities["parent"].to_pylist()],
        dtype=np.int64,
    )
    child_ptr, child_idx = _children(parent)
    units = get[TEXT_UNITS].sort_by([("human_readable_id", "ascending"), ("id", "ascending")])
    held_ptr, held_idx = _held(communities["text_unit_ids"], units["id"], n)
    weight = np.asarray(communities["weight"].to_numpy(), dtype=np.int64)
    weight = np.where(weight > 0, weight, np.diff(held_ptr)).astype(np.int64)
    rank = np.array([_rank(r.get("rank")) for r in reports], dtype=np.float64)
    titles = [(r.get("title") or t or "") for r, t in zip(reports, communities["title"].to_pylist(), strict=True)]
    tokens, tokens_summary = _row_tokens(community, level, weight, rank, titles, reports, encoding)
    mass = np.asarray(communities["mass"].to_numpy(), dtype=np.int64)
    generated = [str(r.get("generated_by") or "") for r in reports]
    kinds = [kind or "cluster" for kind in communities["kind"].to_pylist()]
    readable = np.array([bool(r) for r in reports], dtype=bool)
    keys = [key or str(c) for key, c in zip(communities["key"].to_pylist(), community.tolist(), strict=True)]
    # Which node's row is cheaper decides a cut; a chain's single child has the same mass, so only tokens differ.
    share = bits(mass, int(mass[parent < 0].sum()))
    read_ptr, read_idx = _read(reports, get, (held_ptr, held_idx), units, mass)
    ones = np.ones(n, dtype=np.int64)
    document_titles, unit_document = _documents(get[DOCUMENTS], units)
    return CorpusView(
        community=community,
        level=level,
        parent=parent,
        child_ptr=child_ptr,
        child_idx=child_idx,
        tokens=tokens,
        tokens_summary=tokens_summary,
        mass=mass,
        direct=np.array([int(r.get("direct") or 0) for r in reports], dtype=np.int64),
        weight=weight,
        rank=rank,
        size=np.asarray(communities["size"].to_numpy(), dtype=np.int64),
        shown=_shown(kinds, generated, readable),
        readable=readable,
        bits=share,
        held_ptr=held_ptr,
        held_idx=held_idx,
        read_ptr=read_ptr,
        read_idx=read_idx,
        unit_key=units["id"].to_pylist(),
        unit_id=np.asarray(units["human_readable_id"].to_numpy(), dtype=np.int64),
        unit_tokens=np.asarray(units["n_tokens"].to_numpy(), dtype=np.int64),
        unit_document=unit_document,
        by_tokens=build_blocks(parent, tokens, share, keys),
        by_reports=build_blocks(parent, ones, share, keys),
        lexicon=_lexicon(communities, reports, titles, get[ENTITIES], np.diff(child_ptr) == 0),
        titles=titles,
        kinds=kinds,
        generated_by=generated,
        documents=document_titles,
        overview=_overview(get, communities, reports, titles, parent, weight, community, encoding),
        entities=get[ENTITIES].num_rows,
        language=_language(reports, titles),
        encoding=encoding,
    )


def _ordered(communities: pa.Table) -> pa.Table:
    return communities.sort_by([("level", "ascending"), ("community", "ascending")])


def _reports(reports: pa.Table, communities: pa.Table) -> list[dict[str, Any]]:
    columns = ["community", "title", "summary", "full_content", "rank", "direct", "generated_by", "language",
               "evidence", "findings"]  # fmt: skip
    by_community = {row["community"]: row for row in reports.select(columns).to_pylist()}
    return [by_community.get(c, {}) for c in communities["community"].to_pylist()]


def _rank(value: Any) -> float:
    return NEUTRAL_RANK if value is None or value != value else float(value)


def _children(parent: IntArray) -> tuple[IntArray, IntArray]:
    has = np.flatnonzero(parent >= 0)
    order = has[np.argsort(parent[has], kind="stable")]
    counts = np.bincount(parent[has], minlength=len(parent)) if len(has) else np.zeros(len(parent), dtype=np.int64)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), order.astype(np.int64)


def _held(lists: pa.ChunkedArray, ids: pa.ChunkedArray, rows: int) -> tuple[IntArray, NDArray[np.int32]]:
    """Return, as CSR, the positions in `ids` of what each row of a list column names, ascending."""
    owner, named = flatten(lists)
    place = positions(named, ids)
    owner, place = unique_pairs(owner[place >= 0], place[place >= 0])
    return _pointers(owner, rows), place.astype(np.int32)


def _pointers(owner: IntArray, rows: int) -> IntArray:
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=rows)))).astype(np.int64)


def _row_tokens(
    community: IntArray,
    level: IntArray,
    weight: IntArray,
    rank: NDArray[np.float64],
    titles: list[str],
    reports: list[dict[str, Any]],
    encoding: str,
) -> tuple[IntArray, IntArray]:
    heaviest = int(weight.max()) if len(weight) else 1
    options = BatchOptions()
    full = np.zeros(len(community), dtype=np.int64)
    summary = np.zeros(len(community), dtype=np.int64)
    for i, report in enumerate(reports):
        head = (int(community[i]), titles[i], int(level[i]), weight_cell(int(weight[i]), heaviest, options),
                rank_cell(float(rank[i])))  # fmt: skip
        full[i] = default_tokens(*head, report.get("full_content") or "", encoding)
        summary[i] = default_tokens(*head, report.get("summary") or "", encoding)
    return full, summary


def _shown(kinds: list[str], generated: list[str], readable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """In an index that brings its own reports, ours are stand-ins that GraphRAG's selections never knew."""
    imported = "imported" in generated
    hidden = [kind == "remainder" or (imported and by != "imported") for kind, by in zip(kinds, generated, strict=True)]
    return ~np.array(hidden, dtype=bool) & readable if hidden else readable


def _read(
    reports: list[dict[str, Any]],
    get: Tables,
    held: tuple[IntArray, NDArray[np.int32]],
    units: pa.Table,
    mass: IntArray,
) -> tuple[IntArray, NDArray[np.int32]]:
    """Text units whose rows or text stood in each report's own evidence, the most mentioned first, as CSR."""
    named: dict[str, tuple[list[int], list[str]]] = {kind: ([], []) for kind in _EVIDENCE}
    owners: list[IntArray] = []
    places: list[IntArray] = []
    for node, report in enumerate(reports):
        evidence = orjson.loads(report["evidence"]) if report.get("evidence") else {}
        for kind, (nodes, ids) in named.items():
            found = evidence.get(kind) or ()
            nodes.extend([node] * len(found))
            ids.extend(found)
        if not evidence and report and int(report.get("direct") or 0) >= int(mass[node]) > 0:
            whole = held[1][held[0][node] : held[0][node + 1]]  # an imported report that must have seen everything
            owners.append(np.full(len(whole), node, dtype=np.int64))
            places.append(whole.astype(np.int64))
    for kind, (nodes, ids) in named.items():
        owner, row = np.array(nodes, dtype=np.int64), positions(pa.array(ids, pa.string()), get[_EVIDENCE[kind]]["id"])
        owner, row = owner[row >= 0], row[row >= 0]
        ptr, idx = _units_of(kind, get, units)
        owners.append(np.repeat(owner, ptr[row + 1] - ptr[row]))
        places.append(idx[gather(ptr, row)].astype(np.int64))
    owner, place = np.concatenate(owners), np.concatenate(places)
    width = max(1, units.num_rows)
    packed, times = np.unique(owner * width + place, return_counts=True)
    owner, place = packed // width, packed % width
    order = np.lexsort((place, -times, owner))
    return _pointers(owner, len(reports)), place[order].astype(np.int32)


def _units_of(kind: str, get: Tables, units: pa.Table) -> tuple[IntArray, NDArray[np.int32]]:
    table = get[_EVIDENCE[kind]]
    if kind in ("entities", "relationships"):
        return _held(table["text_unit_ids"], units["id"], table.num_rows)
    place = positions(table["text_unit_id" if kind == "claims" else "id"], units["id"])
    rows = np.flatnonzero(place >= 0)
    return _pointers(rows, table.num_rows), place[rows].astype(np.int32)


def _documents(documents: pa.Table, units: pa.Table) -> tuple[list[str], IntArray]:
    number = {id: i for i, id in enumerate(documents["id"].to_pylist())}
    of_unit = [number.get(id, -1) for id in units["document_id"].to_pylist()]
    titles = zip(documents["title"].to_pylist(), documents["id"].to_pylist(), strict=True)
    return [title or id or "" for title, id in titles], np.array(of_unit, dtype=np.int64)


def _lexicon(
    communities: pa.Table,
    reports: list[dict[str, Any]],
    titles: list[str],
    entities: pa.Table,
    leaf: NDArray[np.bool_],
) -> Lexicon:
    names = dict(zip(entities["id"].to_pylist(), entities["title"].to_pylist(), strict=True))
    members = communities["entity_ids"].to_pylist()
    cut = chinese_cut(filter(None, names.values()))

    def document(i: int, report: dict[str, Any]) -> list[str]:
        text = searched_text(titles[i], report)
        if leaf[i]:
            text = "\n".join([text, *(names.get(id) or "" for id in (members[i] or ())[:_TITLES_A_LEAF])])
        return terms(text, cut)

    return Lexicon.build(document(i, report) for i, report in enumerate(reports))


def searched_text(title: str, report: dict[str, Any]) -> str:
    """Return what a report is found by: all that it says, without its references, whose numbers name nothing."""
    findings = report.get("findings") or ()
    parts = [title, report.get("summary") or ""]
    parts += [finding.get(part) or "" for finding in findings for part in ("summary", "explanation")]
    if not any(finding.get("explanation") for finding in findings):
        parts.append(report.get("full_content") or "")  # an imported one may have its text there alone
    # What was found to be none of the evidence stands there as `[Unverified: …]`, and names as little.
    return grammar_of(None).without("\n".join(parts).replace("[Unverified:", "[Data:"))


def _overview(
    get: Tables,
    communities: pa.Table,
    reports: list[dict[str, Any]],
    titles: list[str],
    parent: IntArray,
    weight: IntArray,
    community: IntArray,
    encoding: str,
) -> Any:
    roots = np.flatnonzero(parent < 0)
    roots = roots[np.lexsort((community[roots], -weight[roots]))]
    number = {id: i for i, id in enumerate(get[ENTITIES]["id"].to_pylist())}
    root_of = np.full(get[ENTITIES].num_rows, -1, dtype=np.int64)
    members = communities["entity_ids"].to_pylist()
    for root in roots.tolist():
        for id in members[root] or ():
            if id in number:
                root_of[number[id]] = community[root]
    rows = [(int(community[r]), titles[r], reports[r].get("summary") or "") for r in roots.tolist() if reports[r]]
    return build_overview(rows, root_of, get[ENTITIES], get[RELATIONSHIPS], encoding)


def _language(reports: list[dict[str, Any]], titles: list[str]) -> str:
    given = [r.get("language") for r in reports if r.get("language")]
    if given:
        return "zh" if sum(is_chinese(str(g)) for g in given) * 2 > len(given) else "en"
    return language("\n".join(titles[:2000]))

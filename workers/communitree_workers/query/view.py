"""Building the view of a version from its tables: `build_view(tables) -> CorpusView`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from communitree_shared.options import BatchOptions
from communitree_shared.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    NO_PARENT,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.tokens import DEFAULT_ENCODING
from communitree_workers.query.blocks import bits, build_blocks
from communitree_workers.query.corpus_view import CorpusView, IntArray
from communitree_workers.query.lexicon import Lexicon
from communitree_workers.query.overview import build_overview
from communitree_workers.query.rows import NEUTRAL_RANK, default_tokens, rank_cell, weight_cell
from communitree_workers.tables.io import Tables, conform, empty
from communitree_workers.text.words import language, terms

__all__ = ["CorpusView", "build_view"]

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
    unit_number = {id: i for i, id in enumerate(units["id"].to_pylist())}
    held = [_numbers(ids, unit_number) for ids in communities["text_unit_ids"].to_pylist()]
    weight = np.asarray(communities["weight"].to_numpy(), dtype=np.int64)
    weight = np.where(weight > 0, weight, [len(h) for h in held]).astype(np.int64)
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
    read = _read(reports, get, held, unit_number, mass)
    held_ptr, held_idx = _csr(held)
    read_ptr, read_idx = _csr(read)
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


def _numbers(ids: Iterable[str] | None, number: Mapping[str, int]) -> list[int]:
    return sorted({number[id] for id in ids or () if id in number})


def _csr(rows: list[list[int]]) -> tuple[IntArray, NDArray[np.int32]]:
    ptr = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64))).astype(np.int64)
    return ptr, np.fromiter((x for row in rows for x in row), dtype=np.int32, count=int(ptr[-1]))


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
    held: list[list[int]],
    unit_number: Mapping[str, int],
    mass: IntArray,
) -> list[list[int]]:
    """Text units whose rows or text stood in each report's own evidence, the most mentioned first."""
    entities, relationships = _unit_lists(get[ENTITIES], unit_number), _unit_lists(get[RELATIONSHIPS], unit_number)
    claims = {
        id: [unit_number[unit]]
        for id, unit in zip(get[COVARIATES]["id"].to_pylist(), get[COVARIATES]["text_unit_id"].to_pylist(), strict=True)
        if unit in unit_number
    }
    out: list[list[int]] = []
    for i, report in enumerate(reports):
        evidence = orjson.loads(report["evidence"]) if report.get("evidence") else {}
        mentions = Counter(_numbers(evidence.get("text_units"), unit_number))
        for kind, lists in (("entities", entities), ("relationships", relationships), ("claims", claims)):
            for id in evidence.get(kind) or ():
                mentions.update(lists.get(id, ()))
        if not evidence and report and int(report.get("direct") or 0) >= int(mass[i]) > 0:
            mentions.update(held[i])  # an imported report that must have seen all of its community
        out.append(sorted(mentions, key=lambda unit: (-mentions[unit], unit)))
    return out


def _unit_lists(table: pa.Table, number: Mapping[str, int]) -> dict[str, list[int]]:
    ids, lists = table["id"].to_pylist(), table["text_unit_ids"].to_pylist()
    return {id: [number[u] for u in units or () if u in number] for id, units in zip(ids, lists, strict=True)}


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
    documents: list[list[str]] = []
    for i, report in enumerate(reports):
        parts = [titles[i], report.get("summary") or ""]
        parts += [finding.get("summary") or "" for finding in report.get("findings") or ()]
        if leaf[i]:
            parts += [names.get(id) or "" for id in (members[i] or ())[:_TITLES_A_LEAF]]
        documents.append(terms("\n".join(parts)))
    return Lexicon.build(documents)


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
        return "zh" if sum(str(g).startswith("zh") for g in given) * 2 > len(given) else "en"
    return language("\n".join(titles[:2000]))

"""Looks: small jobs that read a published version for a caller who carries no Parquet reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa

from communitree_shared.contract.looks import CORPORA
from communitree_shared.contract.messages import LookRequest, QueryRequest
from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Tree, TreeCommunity
from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.errors import UsageError
from communitree_shared.ledger.corpora import corpora
from communitree_shared.ledger.jobs import Jobs
from communitree_workers.corpus.export import export as export_tables
from communitree_workers.look.around import around
from communitree_workers.look.question_plan import plans
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.formats import check_format
from communitree_workers.runtime.runner import Handler
from communitree_workers.tables.columns import replace

#: Characters shown around a text unit.
AROUND = 400

ALL = (DOCUMENTS, TEXT_UNITS, ENTITIES, RELATIONSHIPS, COVARIATES, COMMUNITIES, COMMUNITY_REPORTS)


def look(context: UnitContext) -> Outcome:
    """Carry out a look and write what it found.

    Raises:
        UsageError: there is no such community or text unit.
    """
    request = context.look_request()
    if request.op not in OPS:
        raise UsageError(f"There is no look {request.op!r}.", hint=f"Looks: {', '.join(OPS)}.")
    if request.corpus:
        check_format(context, request.corpus, request.version)
    found = OPS[request.op](context, request)
    key = context.keys.job(context.message.job, "result.json")
    data = orjson.dumps({"result": found})
    context.services.store.put(key, data)
    context.finish("done", {"result": key}, ttl=600, result=data if request.told else b"")
    return Outcome()


def tree(context: UnitContext, request: LookRequest) -> dict[str, Any]:
    """Return the community tree, as `results.Tree`."""
    tables = context.read(request.corpus, request.version, COMMUNITIES, COMMUNITY_REPORTS)
    columns = ["community", "title", "n_tokens", "generated_by"]
    reports = {row["community"]: row for row in tables[COMMUNITY_REPORTS].select(columns).to_pylist()}
    names = ["community", "key", "level", "parent", "children", "title", "size", "weight", "is_leaf"]
    communities = []
    for row in tables[COMMUNITIES].select(names).sort_by([("community", "ascending")]).to_pylist():
        report = reports.get(row["community"], {})
        communities.append(
            TreeCommunity(
                id=row["community"], key=row["key"], level=row["level"], parent=row["parent"], children=row["children"],
                title=report.get("title") or row["title"], size=row["size"], weight=row["weight"],
                n_tokens=report.get("n_tokens", 0), is_leaf=row["is_leaf"],
                generated_by=report.get("generated_by", ""),
            )
        )  # fmt: skip
    levels: dict[int, dict[str, Any]] = {}
    for c in communities:
        level = levels.setdefault(
            c.level, {"level": c.level, "communities": 0, "leaves": 0, "entities": 0, "tokens": 0, "largest": 0}
        )
        level["communities"] += 1
        level["leaves"] += c.is_leaf
        level["entities"] += c.size
        level["tokens"] += c.n_tokens
        level["largest"] = max(level["largest"], c.size)
    ordered = [levels[level] for level in sorted(levels)]
    return Tree(corpus=request.corpus, version=request.version, levels=ordered, communities=communities).model_dump()


def report(context: UnitContext, request: LookRequest) -> dict[str, Any]:
    """Return a report's row with findings, evidence, what was omitted as structures, and its text units' ids."""
    tables = context.read(request.corpus, request.version, COMMUNITIES, COMMUNITY_REPORTS)
    table = tables[COMMUNITY_REPORTS]
    wanted = request.args.get("community")
    numbers = table["community"].to_pylist()
    if wanted not in numbers:
        raise UsageError(
            f"{request.corpus!r} has no community {wanted}.", hint=f"`communitree tree {request.corpus}` lists them."
        )
    row: dict[str, Any] = table.slice(numbers.index(wanted), 1).to_pylist()[0]
    for name in ("evidence", "omitted"):
        row[name] = json.loads(row[name]) if row[name] else {}
    communities = tables[COMMUNITIES]
    at = communities["community"].to_pylist().index(wanted)
    return row | {"text_units": communities["text_unit_ids"][at].as_py() or []}


def source(context: UnitContext, request: LookRequest) -> dict[str, Any]:
    """Return a text unit, its document, and the text around it. Found by id, by a beginning of it, or by number."""
    tables = context.read(request.corpus, request.version, TEXT_UNITS, DOCUMENTS)
    units = tables[TEXT_UNITS]
    wanted = str(request.args.get("text_unit", ""))
    ids = units["id"].to_pylist()
    rows = [n for n, identity in enumerate(ids) if identity == wanted]
    rows = rows or [n for n, identity in enumerate(ids) if len(wanted) >= 6 and identity.startswith(wanted)]
    if not rows and wanted.isdigit():
        rows = [n for n, number in enumerate(units["human_readable_id"].to_pylist()) if number == int(wanted)]
    if len(rows) != 1:
        what = "no text unit" if not rows else f"{len(rows)} text units that begin with"
        raise UsageError(
            f"{request.corpus!r} has {what} {wanted!r}.",
            hint=f"`communitree report {request.corpus} ID` and the citations of `ask --json` name them.",
        )
    unit = units.slice(rows[0], 1).to_pylist()[0]
    found = {k: unit[k] for k in ("id", "human_readable_id", "text", "n_tokens", "document_id", "start", "end")}
    documents = tables[DOCUMENTS]
    at = [n for n, identity in enumerate(documents["id"].to_pylist()) if identity == unit["document_id"]]
    if at:
        document = documents.slice(at[0], 1).to_pylist()[0]
        text, start, end = document["text"] or "", unit["start"], unit["end"]
        found["document"] = {"id": document["id"], "title": document["title"]}
        if 0 <= start < end and text[start:end].strip() and text[start:end] in unit["text"]:
            found["before"] = text[max(0, start - AROUND) : start]
            found["after"] = text[end : end + AROUND]
        elif not text and 0 <= start < end:
            found["before"], found["after"] = around(units, rows[0], AROUND)
    return found


def export(context: UnitContext, request: LookRequest) -> dict[str, Any]:
    """Write the files of an export beside the job's result; return their names and keys."""
    tables = context.read(request.corpus, request.version, *ALL)
    tables[DOCUMENTS] = _with_texts(context, request, tables[DOCUMENTS])
    files = []
    for name, data in export_tables(tables, "all" if request.args.get("own_columns", True) else "graphrag"):
        key = context.keys.job(context.message.job, f"export/{name}")
        context.services.store.put(key, data)
        files.append({"name": name, "key": key, "size": len(data)})
    return {"files": files}


def _with_texts(context: UnitContext, request: LookRequest, documents: pa.Table) -> pa.Table:
    """Return the documents with the texts that are too large for the table as it is stored."""
    store, keys = context.services.store, context.keys
    apart = set(store.keys(keys.texts(request.corpus, request.version)))
    if not apart:
        return documents
    texts = documents["text"].to_pylist()
    for row, identity in enumerate(documents["id"].to_pylist()):
        if (key := keys.text(request.corpus, request.version, identity)) in apart:
            texts[row] = store.get(key).decode()
    return replace(documents, "text", pa.array(texts, pa.string()))


def plan(context: UnitContext, request: LookRequest) -> dict[str, Any]:
    """Return what a question would read and cost."""
    options = QueryOptions.stored(request.args.get("options", {}))
    question = QueryRequest(
        job=request.job, corpus=request.corpus, version=request.version, question=str(request.args.get("question", ""))
    )
    return {"plans": [p.model_dump() for p in plans(context, question, options)]}


def all_corpora(context: UnitContext, request: LookRequest) -> dict[str, Any]:
    """Return all corpora of the tenant."""
    services = context.services
    settings = services.settings.model_copy(update={"tenant": context.message.tenant})
    return {"corpora": corpora(Jobs(settings, services.store, services.ledger, services.publisher))}


OPS: dict[str, Callable[[UnitContext, LookRequest], dict[str, Any]]] = {
    "tree": tree, "report": report, "source": source, "export": export, "plan": plan, CORPORA: all_corpora,
}  # fmt: skip

HANDLERS: dict[str, Handler] = {"communitree.look.v1": look}

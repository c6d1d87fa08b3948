"""The cluster stage's tasks: the community tree, large branches as messages of their own."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from communitree_shared.contract.messages import CorpusRequest, Unit
from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import COMMUNITIES, COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_shared.ledger import Stage, Step
from communitree_workers.cluster.adopt import adopt
from communitree_workers.cluster.core import Prepared, Subtree, assemble, prepare, split_roots, subtree
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.runner import Handler
from communitree_workers.tables import io
from communitree_workers.tables.handover import Extraction, TreeStats

GRAPH = (DOCUMENTS, TEXT_UNITS, ENTITIES, RELATIONSHIPS, COVARIATES)

ROWS = Step("rows", "communitree.corpus.rows.v1")
ASSEMBLE = Step("assemble", "communitree.corpus.assemble.v1")


def cluster(context: UnitContext) -> Outcome:
    """Split the graph into its level-0 communities; a large one gets a message of its own."""
    request, options = context.corpus_request()
    services, keys = context.services, context.keys
    tables = context.read(request.corpus, request.version, *GRAPH, made_by="merge")
    if Extraction.load(services.store, keys, request).kept:
        return _keep(context, request, tables)
    prepared = prepare(tables, options.cluster)
    roots = split_roots(prepared, options.cluster)
    large = [n for n, root in enumerate(roots) if len(root) > options.cluster.spread_above]
    units = []
    for n in large:
        piece = prepared.slice(roots[n]).to_bytes()
        identity = hashlib.sha256(options.cluster.model_dump_json().encode() + piece).hexdigest()[:40]
        services.store.put(keys.build(request.corpus, request.version, f"subgraphs/{n}.npz"), piece)
        units.append(Unit(id=identity, args={"root": n, "corpus": request.corpus, "version": request.version}))
    services.store.put_json(
        keys.build(request.corpus, request.version, "subtrees.json"), {str(u.args["root"]): u.id for u in units}
    )
    if units:
        stage = Stage("subtree", "communitree.corpus.subtree.v1", ASSEMBLE)
        context.open(stage, context.messages(stage, units, local=True))
    else:
        context.step(ASSEMBLE)
    return Outcome(event={"roots": len(roots), "spread": len(large)})


def branch(context: UnitContext) -> Outcome:
    """Build the subtree under one large level-0 community."""
    args, keys = context.args, context.keys
    key = keys.unit(args["corpus"], "subtree", context.unit.id)
    if not context.services.store.exists(key):
        options: ClusterOptions = context.corpus_request()[1].cluster
        data = context.services.store.get(keys.build(args["corpus"], args["version"], f"subgraphs/{args['root']}.npz"))
        piece = Prepared.from_bytes(data)
        context.services.store.put(key, subtree(piece, piece.members, options).to_bytes())
    return Outcome(event={"root": args["root"]})


def put_together(context: UnitContext) -> Outcome:
    """Number the communities, hang up what is left, and write the tree."""
    request, options = context.corpus_request()
    services, keys = context.services, context.keys
    tables = context.read(request.corpus, request.version, *GRAPH, made_by="merge")
    # Cheaper to repeat than to ship: both are functions of the same tables.
    prepared = prepare(tables, options.cluster)
    roots = split_roots(prepared, options.cluster)
    spread = services.store.get_json(keys.build(request.corpus, request.version, "subtrees.json"))
    subtrees = []
    for n, root in enumerate(roots):
        data = services.store.find(keys.unit(request.corpus, "subtree", spread[str(n)])) if str(n) in spread else None
        subtrees.append(Subtree.from_bytes(data) if data else subtree(prepared, root, options.cluster))
    made = assemble(prepared, roots, subtrees, options.cluster)
    return _write(context, request, {**tables, **made.tables}, made.communities, made.stats)


def _keep(context: UnitContext, request: CorpusRequest, tables: io.Tables) -> Outcome:
    key = context.keys.build(request.corpus, request.version, "kept_communities.parquet")
    adopted = adopt(tables, io.from_bytes(context.services.store.get(key)))
    return _write(context, request, {**tables, **adopted.tables}, adopted.communities, adopted.stats)


def _write(
    context: UnitContext, request: CorpusRequest, tables: io.Tables, communities: pa.Table, stats: TreeStats
) -> Outcome:
    context.write(request.corpus, request.version, {**tables, COMMUNITIES: communities}, made_by="cluster")
    stats.save(context.services.store, context.keys, request)
    context.step(ROWS)
    return Outcome(event={"communities": communities.num_rows})


HANDLERS: dict[str, Handler] = {
    "communitree.corpus.cluster.v1": cluster,
    "communitree.corpus.subtree.v1": branch,
    "communitree.corpus.assemble.v1": put_together,
}

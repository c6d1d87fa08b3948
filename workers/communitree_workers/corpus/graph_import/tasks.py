"""The import of a graph: its tables checked and written, its own communities and reports kept where they may be."""

from __future__ import annotations

from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.tables import ENTITIES, TEXT_UNITS
from communitree_shared.ledger import Step
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.corpus import losses
from communitree_workers.corpus.graph_import.read import read_graph
from communitree_workers.corpus.reading.uploads import listed, uploaded
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.tables import io
from communitree_workers.tables.handover import Extraction
from communitree_workers.text.language import language_of

CLUSTER = Step("cluster", "communitree.corpus.cluster.v1")


def import_graph(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, models: dict[str, str], changes: list[str]
) -> Outcome:
    """Write the tables of the graph that was uploaded; clustering follows."""
    services = context.services
    files = {
        d["name"]: uploaded(context, request, d["name"], d["sha256"], int(d["size"])) for d in listed(context, request)
    }
    graph = read_graph(files, options)
    context.write(request.corpus, request.version, graph.tables, made_by="merge")
    keep = graph.communities is not None and not options.cluster.recluster
    warnings = [*losses.of_left_out(request.left_out), *graph.warnings]
    said = [*warnings, *graph.notes]
    Extraction(
        units=[], language=_language(graph.tables), notes=graph.notes, kept=keep, warnings=warnings, model=EXTRACTIVE,
        models=models, changes=changes,
    ).save(services.store, context.keys, request)  # fmt: skip
    for name, table in (("kept_communities", graph.communities), ("kept_reports", graph.reports)):
        if keep and table is not None:
            key = context.keys.build(request.corpus, request.version, f"{name}.parquet")
            services.store.put(key, io.to_bytes(table))
    context.step(CLUSTER)
    counts = {name: table.num_rows for name, table in graph.tables.items()}
    return Outcome(data={"notes": said, **counts}, event={**counts, "notes": "; ".join(said[:5])})


def _language(tables: io.Tables) -> str:
    source = tables[TEXT_UNITS]["text"] if tables[TEXT_UNITS].num_rows else tables[ENTITIES]["description"]
    return language_of(text.as_py() for text in source)

"""The tasks of a corpus job up to its graph, in the order of its life; each room's `tasks.py` has its own."""

from __future__ import annotations

from communitree_workers.corpus.extraction.tasks import extract
from communitree_workers.corpus.merging.tasks import describe, described, merge_shards
from communitree_workers.corpus.text_units.tasks import ingest
from communitree_workers.runtime.runner import Handler

HANDLERS: dict[str, Handler] = {
    "communitree.corpus.ingest.v1": ingest,
    "communitree.corpus.extract.v1": extract,
    "communitree.corpus.merge.v1": merge_shards,
    "communitree.corpus.describe.v1": describe,
    "communitree.corpus.described.v1": described,
}

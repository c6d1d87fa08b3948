"""Wall seconds of a corpus job's stages, from the ledger's records."""

from __future__ import annotations

from communitree_shared import clock
from communitree_shared.contract.results import IndexSeconds
from communitree_shared.ledger import Ledger

_PARTS = {
    "ingest": "ingest", "extract": "extract", "merge": "merge", "describe": "merge",
    "described": "merge", "cluster": "cluster", "subtree": "cluster",
    "assemble": "cluster", "rows": "report", "level": "report", "report": "report",
}  # fmt: skip


def index_seconds(ledger: Ledger, tenant: str, job: str) -> IndexSeconds:
    """Return the seconds from the first opening to the last closing of each part."""
    spans: dict[str, tuple[float, float]] = {}
    now = clock.now() * 1000
    for name in ledger.stage_names(tenant, job):
        part = _PARTS.get(name.split("-")[0])
        record = ledger.stage_record(tenant, job, name)
        if part is None or "opened" not in record:
            continue
        start, end = float(record["opened"]), float(record.get("closed", now))
        known = spans.get(part, (start, end))
        spans[part] = (min(start, known[0]), max(end, known[1]))
    seconds = {part: round(max(0.0, end - start) / 1000, 3) for part, (start, end) in spans.items()}
    created = float(ledger.record(tenant, job).get("created", now))
    return IndexSeconds(**seconds, total=round((now - created) / 1000, 3))

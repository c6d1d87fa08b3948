"""What a version was made of: so that `gc` knows which documents and units the next index will find again."""

from __future__ import annotations

from typing import Any

from communitree_shared.contract.messages import CorpusRequest
from communitree_workers.corpus.reading.uploads import listed
from communitree_workers.runtime.context import UnitContext


def needs(context: UnitContext, request: CorpusRequest, extracted: list[str]) -> dict[str, Any]:
    """Return `{documents: [sha256], units: {stage: [unit id]}}`, read from what the steps left in `build/`.

    `extracted`: ids of the extraction's units.
    """
    store, keys = context.services.store, context.keys

    def built(name: str) -> Any:
        return store.find_json(keys.build(request.corpus, request.version, name))

    reports: list[str] = []
    level = 0
    while index := built(f"reports/level-{level}.json"):
        reports += [entry["unit"] for entry in index]
        level += 1
    units = {
        "extract": extracted,
        "describe": [unit for rows in (built("describe.json") or {}).values() for unit in rows.values()],
        "subtree": (built("subtrees.json") or {}).values(),
        "report": reports,
    }
    return {
        "documents": sorted({str(document["sha256"]) for document in listed(context, request)}),
        "units": {stage: sorted(set(found)) for stage, found in units.items()},
    }

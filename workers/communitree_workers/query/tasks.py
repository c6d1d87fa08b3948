"""The tasks of a question, in the order of its life; each is at the top of its room's `tasks.py`."""

from __future__ import annotations

from communitree_workers.query.map.tasks import map_batch
from communitree_workers.query.planning.tasks import plan, rate, rewrite, walk
from communitree_workers.query.reduce.tasks import reduce
from communitree_workers.runtime.runner import Handler

HANDLERS: dict[str, Handler] = {
    "communitree.query.plan.v1": plan,
    "communitree.query.rewrite.v1": rewrite,
    "communitree.query.rate.v1": rate,
    "communitree.query.walk.v1": walk,
    "communitree.query.map.v1": map_batch,
    "communitree.query.reduce.v1": reduce,
}

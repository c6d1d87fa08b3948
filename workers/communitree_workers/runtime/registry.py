"""Which function works on which task."""

from __future__ import annotations

from communitree_workers.runtime.runner import Handler


def handlers() -> dict[str, Handler]:
    """Return the handlers of all tasks. Imported late: the stages' libraries take a second to load."""
    from communitree_workers.cluster import tasks as cluster
    from communitree_workers.corpus import tasks as corpus
    from communitree_workers.look import tasks as look
    from communitree_workers.publish import finish
    from communitree_workers.publish import tasks as publish
    from communitree_workers.query import tasks as query
    from communitree_workers.report import tasks as report

    modules = (corpus, cluster, report, publish, finish, query, look)
    return {name: handler for module in modules for name, handler in module.HANDLERS.items()}

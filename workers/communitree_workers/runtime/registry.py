"""Which function works on which task."""

from __future__ import annotations

from communitree_workers.runtime.runner import Handler


def handlers() -> dict[str, Handler]:
    """Return the handlers of all tasks. Imported late: the stages' libraries take a second to load."""
    from communitree_workers.cluster import tasks as cluster
    from communitree_workers.corpus import tasks as corpus
    from communitree_workers.query import tasks as query
    from communitree_workers.report import tasks as report
    from communitree_workers.runtime import finish, look

    return {
        **corpus.HANDLERS,
        **cluster.HANDLERS,
        **report.HANDLERS,
        **query.HANDLERS,
        "communitree.job.finish.v1": finish.finish,
        "communitree.look.v1": look.look,
    }

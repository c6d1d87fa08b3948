"""Which function works on which task. Modules are imported when first needed: a worker for models is up at once."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from communitree_shared.contract.messages import TASKS
from communitree_workers.runtime.runner import Handler

#: task (without prefix and version) → module that has it in its HANDLERS
_MODULES = {
    "corpus": "corpus.tasks",
    "corpus.cluster": "cluster.tasks",
    "corpus.subtree": "cluster.tasks",
    "corpus.assemble": "cluster.tasks",
    "corpus.rows": "report.tasks",
    "corpus.level": "report.tasks",
    "corpus.report": "report.tasks",
    "corpus.publish": "publish.tasks",
    "corpus.plan": "publish.index_plan",
    "query": "query.tasks",
    "job.finish": "publish.finish",
    "look": "look.tasks",
}


class Handlers(Mapping[str, Handler]):
    """The handlers of all tasks, by the task's full name."""

    def __init__(self) -> None:
        self._known: dict[str, Handler] = {}

    def __getitem__(self, task: str) -> Handler:
        if task not in self._known:
            self._known.update(importlib.import_module(f"communitree_workers.{module_of(task)}").HANDLERS)
        return self._known[task]

    def __iter__(self) -> Iterator[str]:
        return iter(TASKS)

    def __len__(self) -> int:
        return len(TASKS)

    def preload(self) -> None:
        """Import everything, so that forked children share it."""
        for task in TASKS:
            self[task]


def module_of(task: str) -> str:
    """Return the module of a task, below `communitree_workers`."""
    name = ".".join(task.split(".")[1:-1])
    return _MODULES.get(name) or _MODULES[name.split(".")[0]]

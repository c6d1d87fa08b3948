from __future__ import annotations

from communitree_shared.contract.messages import TASKS
from communitree_workers.runtime.registry import Handlers


def test_every_task_has_a_handler_in_the_module_that_the_registry_names() -> None:
    handlers = Handlers()
    assert all(callable(handlers[task]) for task in TASKS)
    assert set(handlers) == set(TASKS)

from __future__ import annotations

import pytest

from communitree_workers.query.wording.causes import cause_in
from communitree_workers.runtime.deaths import cause_of_death


@pytest.mark.parametrize(
    ("exception", "says"),
    [
        (MemoryError(), "ran out of memory"),
        (RuntimeError("Worker exited prematurely: signal 9 (SIGKILL) Job: 3."), "killed (probably out of memory)"),
        (RuntimeError("Worker exited prematurely: signal 11 (SIGSEGV) Job: 3."), "signal 11"),
        (RuntimeError("x" * 1000), "died: xxx"),
    ],
)
def test_memory_is_called_memory(exception: BaseException, says: str) -> None:
    said = cause_of_death(exception)
    assert says in said
    assert len(said) <= 300


def test_in_chinese_too() -> None:
    assert "内存" in cause_in("zh", cause_of_death("signal 9 (SIGKILL)"))
    assert "内存" in cause_in("zh", cause_of_death(MemoryError()))

"""What is told of a job."""

from __future__ import annotations

from typing import Any

import pytest

from communitree.listing import question_of
from communitree_shared.errors import UsageError
from communitree_shared.objects.keys import Keys


class Kept:
    """What is left of one job: its result and its request, None where it is gone."""

    def __init__(self, result: dict[str, Any] | None, request: dict[str, Any] | None) -> None:
        self.store, self.keys = self, Keys("default", "")
        self.kept, self.request = result, request

    def record(self, job: str) -> dict[str, str]:
        return {"state": "answered"}

    def result(self, job: str) -> dict[str, Any] | None:
        return self.kept

    def find_json(self, key: str) -> dict[str, Any] | None:
        return self.request


@pytest.mark.parametrize(
    ("result", "request_", "question"),
    [
        ({"question": "Why?", "standalone_question": ""}, None, "Why?"),
        ({"question": "And him?", "standalone_question": "What about Tim?"}, None, "What about Tim?"),
        (None, {"kind": "query", "question": "Why?"}, "Why?"),
    ],
)
def test_the_question_of_a_job(result: Any, request_: Any, question: str) -> None:
    assert question_of(Kept(result, request_), "j") == question  # type: ignore[arg-type]


@pytest.mark.parametrize("request_", [None, {"kind": "corpus", "corpus": "c"}])
def test_a_job_without_a_question(request_: Any) -> None:
    with pytest.raises(UsageError, match="no question to ask again"):
        question_of(Kept(None, request_), "j")  # type: ignore[arg-type]

"""The result of a job that ended without writing any."""

from __future__ import annotations

from communitree_shared.contract.results import Answer, Usage
from communitree_shared.ledger.ends import CANCELLED_BY_CALLER, without_result


def test_a_cancelled_question_tells_what_it_has_spent() -> None:
    def used(calls: int, tokens: int) -> dict[str, object]:
        return {"ok": True, "usage": Usage(calls=calls, prompt_tokens=tokens, usd=0.25).model_dump()}

    lost = {"ok": False, "cause": "refused", "usage": Usage(calls=1, prompt_tokens=7, usd=0.25).model_dump()}
    stages = {
        "plan": (1, {"plan": {"ok": True}}),
        "rate-0": (1, {"r0": used(1, 10)}),
        "rate-1": (1, {"r0": used(1, 20)}),
        "map": (8, {"b0": used(1, 100), "b1": used(2, 300), "b2": lost}),
    }
    record = {"kind": "query", "created": "1000", "ended": "3500"}
    answer = without_result("j", "cancelled", CANCELLED_BY_CALLER, record, {"kind": "query", "corpus": "c"}, stages)
    assert isinstance(answer, Answer)
    account = answer.account
    assert (account.batches.total, account.batches.answered, account.batches.failed) == (8, 2, 6)
    assert (account.llm.calls, account.llm.prompt_tokens, account.llm.usd) == (6, 437, 1.25)
    assert {stage: usage.calls for stage, usage in account.llm.by_stage.items()} == {"rate": 2, "map": 4}
    assert account.seconds.total == 2.5

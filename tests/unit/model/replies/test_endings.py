from __future__ import annotations

import pytest

from communitree_workers.model.replies.endings import UNNAMED, Ending, ending, named


@pytest.mark.parametrize(
    ("names", "meaning"),
    [
        ("stop STOP Stop eos EOS_TOKEN end_turn COMPLETE completed stop_sequence STOP-SEQUENCE normal", Ending.WHOLE),
        ("FinishReason.STOP finish_reason_stop", Ending.WHOLE),
        ("length LENGTH max_tokens MAX_TOKENS model_length model_context_window_exceeded incomplete", Ending.CUT),
        ("max-tokens ERROR_LIMIT time_limit FinishReason.MAX_TOKENS", Ending.CUT),
        ("content_filter content-filter SAFETY RECITATION PROHIBITED_CONTENT sensitive refusal", Ending.REFUSED),
        ("guardrail_intervened ERROR_TOXIC SPII", Ending.REFUSED),
        ("error ERROR insufficient_system_resource abort cancelled network_error", Ending.FAILED),
        ("MALFORMED_FUNCTION_CALL", Ending.FAILED),
        ("OTHER tool_calls unknown FINISH_REASON_UNSPECIFIED stopped_by_moon", Ending.UNKNOWN),
    ],
)
def test_what_names_mean(names: str, meaning: Ending) -> None:
    for name in names.split():
        assert ending(name) is meaning, name


def test_no_name_proves_nothing() -> None:
    assert [ending(reason) for reason in (None, "", 0)] == [Ending.UNKNOWN] * 3
    assert named(None) == UNNAMED
    assert named("OTHER") == "OTHER"
    assert len(named("x" * 500)) == 40

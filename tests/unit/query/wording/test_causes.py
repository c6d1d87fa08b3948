"""Causes of failure in the answer's language; a provider's own words stay as they are, in quotation marks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import communitree_shared
import communitree_workers
from communitree_workers.query.answer.account import causes
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.wording import causes as module
from communitree_workers.query.wording.causes import cause_in


@pytest.mark.parametrize(
    ("cause", "english", "chinese"),
    [
        ("deadline", "its deadline passed", "超过了期限"),
        ("lost", "its result is lost", "结果丢失了"),
        (
            "The model endpoint failed: HTTP 401: no key.",
            "The model endpoint failed: HTTP 401: no key",
            "模型端点出错：“HTTP 401: no key”",
        ),
        (
            "The model endpoint failed after 3 tries: HTTP 402: 余额不足",
            "The model endpoint failed after 3 tries: HTTP 402: 余额不足",
            "模型端点在 3 次尝试后仍然出错：“HTTP 402: 余额不足”",
        ),
        (
            "The prompt has about 90 tokens; 'm' takes 80.",
            "The prompt has about 90 tokens; 'm' takes 80",
            "提示词约有 90 个词元，而模型 m 最多接受 80 个",
        ),
        ("The model's reply is empty.", "The model's reply is empty", "模型的回复是空的"),
        (
            "The model condensed the points to nothing.",
            "The model condensed the points to nothing",
            "模型把要点归纳成了空白",
        ),
        (
            "The model's reply holds no score that can be read.",
            "The model's reply holds no score that can be read",
            "模型的回复里没有可读的评分",
        ),
        ("Something {odd}", "Something {odd}", "“Something {odd}”"),
        ("模型失败。", "模型失败", "模型失败"),
        ("", "", ""),
    ],
)
def test_a_cause_in_both_languages(cause: str, english: str, chinese: str) -> None:
    assert cause_in("en", cause) == english
    assert cause_in("zh", cause) == chinese


def test_the_causes_of_batches_are_told_in_the_answers_language() -> None:
    failed = [BatchOutcome("failed", [1], cause="deadline"), BatchOutcome("failed", [2], cause="deadline")]
    odd = BatchOutcome("failed", [3], cause="")
    assert causes([*failed, odd], "zh") == "超过了期限 ×2；不明"
    assert causes([*failed, odd], "en") == "its deadline passed ×2; unknown"


def test_each_message_that_is_translated_is_still_raised_somewhere() -> None:
    packages = [Path(str(package.__file__)).parent for package in (communitree_shared, communitree_workers)]
    files = [file for package in packages for kind in ("*.py", "*.lua") for file in package.rglob(kind)]
    texts = [file.read_text("utf-8") for file in files if file != Path(str(module.__file__))]
    for pattern, _ in module._CHINESE:
        begins = re.split(r"[\\(.?]", pattern.pattern)[0].removesuffix(" after ").removesuffix(": ").removesuffix("'")
        assert any(begins in text for text in texts), begins

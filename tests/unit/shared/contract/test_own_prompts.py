"""Prompts of a caller's own: what they must have, said by name."""

from __future__ import annotations

import pytest

from communitree_shared.contract.own_prompts import check_prompts
from communitree_shared.errors import UsageError
from communitree_workers.prompts import load

NAMES = ("map", "rate", "reduce", "reduce_part", "rewrite")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_built_in_prompts_have_all_that_they_need(language: str) -> None:
    check_prompts({name: load(name, language, {}) for name in NAMES})


@pytest.mark.parametrize(
    ("name", "text", "missing"),
    [
        ("map", "Read it in {language}.", "has no {max_length}"),
        ("reduce", "Write {max_length} words.", "has no {language} and no {response_type}"),
        ("reduce_part", "Write.", "has no {language} and no {max_length}"),
        ("reduce", "{report_data} {response_type}", "has no {max_length}"),
        ("reprot", "Write.", "no prompt 'reprot'"),
    ],
)
def test_what_is_missing_is_named(name: str, text: str, missing: str) -> None:
    with pytest.raises(UsageError, match=missing.replace("{", r"\{")) as caught:
        check_prompts({name: text})
    assert name in caught.value.message


def test_templates_of_graphrag_and_prompts_that_need_nothing_are_taken() -> None:
    check_prompts({
        "map": "{context_data} at most {max_length} words",
        "reduce": "{report_data} {response_type} {max_length}",
        "rate": "Rate.",
        "rewrite": "Rewrite.",
    })  # fmt: skip

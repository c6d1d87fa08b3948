"""`--prompt NAME=FILE`: names that are no prompts, and files that hold none, are refused instead of being passed by."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from communitree.cli.prompts import OF_INDEX, OF_QUESTION, read_prompts
from communitree_shared.errors import UsageError


def test_a_prompt_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("写一份报告", encoding="utf-8")
    assert read_prompts([f"report={tmp_path / 'p.md'}"], OF_INDEX) == {"report": "写一份报告"}


@pytest.mark.parametrize(
    ("given", "text", "said"),
    [
        ("report.en={file}", "words", "no prompt 'report.en'"),
        ("map={file}", "words", "no prompt 'map'"),  # it is one of a question
        ("report={file}", " \n", "is empty"),
        ("report={file}.not", "words", "cannot be read"),
        ("report", "words", "not NAME=FILE"),
    ],
)
def test_what_would_be_ignored_is_refused(tmp_path: Path, given: str, text: str, said: str) -> None:
    file = tmp_path / "p.md"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_prompts([given.format(file=file)], OF_INDEX)
    assert said in str(caught.value)


def test_the_names_are_those_of_the_files() -> None:
    names = {e.name.split(".")[0] for e in files("communitree_workers.prompts").iterdir() if e.name.endswith(".md")}
    assert set(OF_INDEX) | set(OF_QUESTION) == names

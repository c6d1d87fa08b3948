"""Whatever others wrote, nothing of it reaches a terminal or a pipe as a command to the terminal."""

from __future__ import annotations

import io
import json
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from communitree.cli import main
from communitree.cli.many import as_lines, as_text
from communitree.cli.output import say, say_error, show, stderr, to_stdout
from communitree.cli.printing import rewrite, write
from communitree.events import Event
from communitree.render.answer import answer_parts, plan_parts
from communitree.render.index import index_plan, index_result
from communitree.render.lists import corpora_table, job_parts, jobs_table, letters_table
from communitree.render.progress import Progress
from communitree.render.report import report_parts, source_parts
from communitree.render.tree import level_table, tree_view
from communitree_shared.contract.index_plan import IndexPlan
from communitree_shared.contract.job_views import JobRow, JobView
from communitree_shared.contract.results import (
    Account,
    Answer,
    BatchesAccount,
    Citation,
    Coverage,
    IndexResult,
    Plan,
    Point,
    Selection,
    Tree,
    TreeCommunity,
)  # fmt: skip
from communitree_shared.errors import UsageError

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x85\u202egnp\u2066\u2028\r\x08\x00\u200b\ufeff"

#: What must not come out, of a text without any of our own colours.
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def spoilt(value: Any, evil: str) -> Any:
    """Return a value with something hostile behind each of its texts, in whatever place."""
    if isinstance(value, BaseModel):
        new = {
            name: spoilt(getattr(value, name), evil)
            for name, field in type(value).model_fields.items()
            if typing.get_origin(field.annotation) is not typing.Literal
        }
        return value.model_copy(update=new)
    if isinstance(value, dict):
        return {k: spoilt(v, evil) for k, v in value.items()}
    if isinstance(value, list):
        return [spoilt(v, evil) for v in value]
    return value + evil if isinstance(value, str) else value


ANSWER = Answer(
    job_id="j", status="partial", question="q", standalone_question="s", corpus="c",
    answer="Themes [a](http://x/) `code`\n\n- a\n\n```\nblock\n```\n\n| a |\n|---|\n| b |\n", error={"hint": "h"},
    citations=[Citation(report=1, title="t", verified=True, text_units=["u"], documents=["d"])],
    points=[Point(text="p", score=8, batch=0, reports=[1], why_not="w")],
    account=Account(selection=Selection(strategy="auto", why="w"), batches=BatchesAccount(total=1), warnings=["w"]),
)  # fmt: skip
ROW = JobRow(job_id="j", kind="query", status="failed", corpus="c", question="q", created=1, ended=2)
VIEW = JobView(
    **ROW.model_dump(), error={"message": "m", "hint": "h"}, waits={"message": "m", "hint": "h"},
    progress={"stages": [{"stage": "map", "state": "open", "total": 1}]},
    events=[{"seq": 1, "at": 1.0, "type": "warning", "message": "m"}],
)  # fmt: skip
TREE = Tree(
    levels=[], corpus="c", version="v",
    communities=[
        TreeCommunity(
            id=1, key="k", level=0, parent=-1, children=[], title="t", size=1, weight=1, n_tokens=1, is_leaf=True,
            generated_by="g",
        )
    ],
)  # fmt: skip
PLAN = Plan(
    corpus="c", version="v", selection=Selection(strategy="auto", why="w"), batches=1, tokens=1, usd=None,
    coverage=Coverage(),
)  # fmt: skip
INDEX = IndexResult(job_id="j", status="partial", corpus="c", version="v", changes=["x"], notes=["n"], warnings=["w"])
INDEX_PLAN = IndexPlan(job_id="j", corpus="c", graph="given", warnings=["w"])
REPORT = {
    "community": 1, "title": "t", "summary": "s", "findings": [{"summary": "s", "explanation": "e"}], "cause": "c",
    "generated_by": "g", "text_units": ["u"], "evidence": {"reports": ["r"]},
}  # fmt: skip
SOURCE = {"id": "u", "document": {"title": "t"}, "text": "x", "before": "b", "after": "a"}
CORPUS = {"name": "c", "version": "v", "indexing": "j"}
LETTER = {"job": "j", "stage": "s", "unit": "u", "attempts": "1", "why": "w"}

RENDERERS: dict[str, Callable[[str], None]] = {
    "ask": lambda e: show(*answer_parts(spoilt(ANSWER, e), with_points=True)),
    "ask --plan": lambda e: show(*plan_parts([spoilt(PLAN, e)])),
    "ask --plan all": lambda e: show(*plan_parts([spoilt(PLAN, e)] * 2)),
    "ask --file": lambda e: as_text(points=True)("q" + e, spoilt(ANSWER, e)),
    "ask --jsonl": lambda e: as_lines("q" + e, spoilt(ANSWER, e)),
    "ask --stream": lambda e: write("delta" + e),
    "index": lambda e: show(*index_result(spoilt(INDEX, e))),
    "index --plan": lambda e: show(*index_plan(spoilt(INDEX_PLAN, e))),
    "uploads": lambda e: rewrite("uploaded" + e.replace("\n", ""), last=True),
    "corpora": lambda e: show(corpora_table([spoilt(CORPUS, e)])),
    "tree": lambda e: show(level_table(spoilt(TREE, e)), tree_view(spoilt(TREE, e))),
    "report": lambda e: show(*report_parts(spoilt(REPORT, e))),
    "source": lambda e: show(*source_parts(spoilt(SOURCE, e))),
    "jobs": lambda e: show(jobs_table([spoilt(ROW, e)])),
    "job": lambda e: show(*job_parts(spoilt(VIEW, e), with_events=True)),
    "dead-letters": lambda e: show(letters_table([spoilt(LETTER, e)])),
    "a line": lambda e: say("file" + e),
    "strings": lambda e: show("plain" + e),
    "an error": lambda e: say_error(UsageError("wrong" + e, hint="hint" + e), as_json=False),
    "an error as JSON": lambda e: say_error(UsageError("wrong" + e, hint="hint" + e), as_json=True),
    "JSON": lambda e: to_stdout({"answer": e, e: [e]}),
    "progress": lambda e: _progress(e),
}


def _progress(evil: str) -> None:
    progress = Progress()
    progress.take(Event("1-0", 1, "stage.started", 1.0, {"stage": "s" + evil, "kind": "map" + evil, "total": 3}))
    progress.take(Event("2-0", 2, "warning", 2.0, {"message": "w" + evil}))
    stderr().print(progress.table())
    for line in [*progress.new_notes(), progress.where()]:
        say(line)


def printed(render: Callable[[str], None], evil: str, terminal: bool) -> str:
    with pytest.MonkeyPatch.context() as patch:
        out = Stream(terminal)
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", out)
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "500")
        patch.delenv("NO_COLOR", raising=False)
        render(evil)
    return out.getvalue().removeprefix("\r")  # ours, of a line that is written again


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("name", RENDERERS)
def test_nothing_that_a_terminal_would_obey_is_printed(name: str, terminal: bool) -> None:
    said = printed(RENDERERS[name], EVIL, terminal)
    assert "owned" in said, "the text itself is there"
    assert not BAD.findall(COLOURS.sub("", said) if terminal else said)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(
    evil=st.text(st.one_of(st.characters(max_codepoint=0x9F), st.sampled_from(EVIL + "[]a;"), st.characters())),
    name=st.sampled_from(sorted(RENDERERS)), terminal=st.booleans(),
)  # fmt: skip
def test_whatever_stands_in_a_text(evil: str, name: str, terminal: bool) -> None:
    said = printed(RENDERERS[name], evil, terminal)
    assert not BAD.findall(COLOURS.sub("", said) if terminal else said)


def test_a_link_in_an_answer_shows_where_it_leads() -> None:
    said = printed(lambda e: show(*answer_parts(ANSWER)), "", True)
    assert "http://x/" in said
    assert "\x1b]8" not in said


def test_signs_are_measured_as_wide_as_they_are() -> None:
    lines = printed(RENDERERS["corpora"], "\x1b\x1b\u202e", False).splitlines()
    assert len({len(line) for line in lines}) == 1, lines


def test_a_name_on_the_command_line_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["index", str(tmp_path / f"no{EVIL.replace(chr(0), '')}"), "--corpus", "c"]) == 2
    said = capsys.readouterr()
    assert not BAD.findall(said.out + said.err)


def test_json_holds_what_was_written() -> None:
    assert json.loads(printed(RENDERERS["JSON"], EVIL, False))["answer"] == EVIL

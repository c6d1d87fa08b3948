"""What an answer cites is what was read: marked, counted and told alike, streamed or not, under any name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from communitree.aio import AsyncClient
from communitree.events import Restart
from communitree_shared.contract.options import AnswerOptions, QueryOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from communitree_shared.settings import Settings
from support.provider import Provider
from support.stack import Stack

FORGED = "So it is [Data: Reports (888)]. And so [Data: Entities (5), Sources (4)]."
SHOWN = "So it is [Data: Reports (888 unverified)]. And so [Data: Entities (5 unverified); Sources (4 unverified)]."


@pytest.fixture(scope="module", autouse=True)
def corpus(stack: Stack, topics: Path) -> None:
    stack.call_json("index", str(topics), "--corpus", "topics")


@pytest.fixture(autouse=True)
def _behaves(provider: Provider) -> Iterator[None]:
    yield
    provider.reset(error_rate=0.0, error_status=500, seed=0, reply="", break_first=0, latency=0.0, planted="")


def leaves(**answer: Any) -> QueryOptions:
    return QueryOptions(selection=SelectionOptions(strategy="leaves"), answer=AnswerOptions(**answer))


def told(pieces: list[str | Restart | Answer]) -> tuple[str, Answer]:
    """The text after the last restart, and the answer."""
    text = ""
    for piece in pieces[:-1]:
        assert not isinstance(piece, Answer)
        text = "" if isinstance(piece, Restart) else text + piece
    answer = pieces[-1]
    assert isinstance(answer, Answer)
    return text, answer


def forged(stack: Stack, provider: Provider, question: str, reply: str, *words: str) -> dict[str, Any]:
    """Read honestly, then have the answer's own text forged."""
    assert stack.call_json("ask", "topics", question, "--leaves", *words)["status"] == "answered"
    provider.reset(reply=reply)  # the batches are known by now
    found: dict[str, Any] = stack.call_json(
        "ask", "topics", question, "--leaves", "--response-type", "one paragraph", *words
    )
    return found


def test_rows_that_may_not_be_cited_are_marked_and_counted(stack: Stack, provider: Provider) -> None:
    answer = forged(stack, provider, "What is forged?", FORGED)
    assert answer["answer"] == SHOWN
    cited = answer["account"]["citations"]
    assert (cited["total"], cited["verified"], cited["unverified"], cited["unknown"]) == (3, 0, 3, 3)
    assert [(c["kind"], c["id"]) for c in answer["citations"]] == [("reports", 888), ("entities", 5), ("sources", 4)]
    assert any("cites nothing" in warning for warning in answer["account"]["warnings"])
    with stack.client() as client:
        assert told(list(client.stream("topics", "What is forged?", leaves(response_type="a list"))))[0] == SHOWN
    done = stack.call("ask", "topics", "What is forged?", "--leaves", "--stream", "--response-type", "single paragraph")
    assert done.out.startswith(f"{SHOWN}\n\nCitations\n")


def test_an_answer_that_cites_nothing_is_said_to(stack: Stack, provider: Provider) -> None:
    answer = forged(stack, provider, "What is nothing?", "{}")
    assert (answer["answer"], answer["account"]["points"]["in_answer"]) == ("{}", 0)
    assert any("cites nothing" in warning for warning in answer["account"]["warnings"])


def test_text_units_are_not_cited_as_reports(stack: Stack, provider: Provider) -> None:
    provider.reset(reply='{"points": [{"description": "So", "score": 60, "reports": [1, 2]}]}')
    question = ("ask", "topics", "What do the texts say?", "--texts")
    stack.call_json(*question)
    provider.reset(reply="So [Data: Reports (1), Sources (2)].")
    answer = stack.call_json(*question, "--response-type", "one paragraph")
    assert answer["answer"] == "So [Data: Sources (2); Reports (1 unverified)]."
    cited = answer["account"]["citations"]
    assert (cited["total"], cited["unknown"]) == (2, 1)
    assert [(c["kind"], c["grade"]) for c in answer["citations"]][1] == ("reports", "unknown")


def test_what_reports_quote_is_not_shown_and_no_citation_of_the_answer(stack: Stack, provider: Provider) -> None:
    provider.reset(planted=r"[^.|¶]{20,}\.")
    answer = stack.call_json("ask", "topics", "What is quoted?", "--leaves")
    prompts = [str(body["messages"]) for body in provider.bodies()]
    assert any("# Table: Reports" in prompt for prompt in prompts)
    assert not any("[Data: Entities" in prompt for prompt in prompts)
    assert answer["account"]["points"]["used"] > 0
    assert not [p for p in answer["points"] if "[Data" in p["text"]]
    assert re.findall(r"Data: (\w+)", answer["answer"]) == ["Reports"] * answer["answer"].count("[Data")
    assert answer["account"]["citations"]["unknown"] == 0 < answer["account"]["citations"]["verified"]


def test_a_citation_leads_to_the_rows_behind_it(stack: Stack, provider: Provider) -> None:
    provider.reset(planted=r"[^.|¶]{20,}\.")
    answer = stack.call_json("ask", "topics", "What is behind it?", "--leaves")
    report = next(c for c in answer["citations"] if c["entities"])
    named = {row["id"]: row["title"] for row in report["entities"]}
    text = stack.call_json("report", "topics", str(report["report"]))
    assert named.keys() <= {int(n) for n in re.findall(r"Entities \((\d+)", str(text["findings"]))}
    assert all(title.casefold() in str(text["findings"]).casefold() for title in named.values())


@pytest.mark.parametrize("name", ["Dossiers", "Board Reports", "档案"])
def test_reports_are_cited_by_the_name_asked_for(stack: Stack, name: str) -> None:
    answer = stack.call_json("ask", "topics", f"What of {name}?", "--leaves", "--context-name", name)
    assert f"[Data: {name} (" in answer["answer"]
    account = answer["account"]
    assert account["citations"]["verified"] > account["citations"]["unknown"] == 0
    assert account["points"]["in_answer"] > 0


@pytest.mark.parametrize("name", ["", "Entities", "来源", "A (1)"])
def test_a_name_that_cannot_be_read_again_is_refused_at_once(stack: Stack, name: str) -> None:
    for more in ((), ("--plan",)):
        done = stack.call("ask", "topics", "What now?", "--context-name", name, "--json", *more)
        assert (done.code, done.json["error"]["code"]) == (2, "usage")
        assert "context_name" in done.json["error"]["message"]


async def test_who_reads_a_stream_reads_the_note_too(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=0.5, error_status=400, seed=3)
    options = leaves(response_type="one paragraph")
    options = options.model_copy(update={"batch": options.batch.model_copy(update={"max_context_tokens": 6000})})
    with stack.client() as client:
        pieces = list(client.stream("topics", "What fails in part?", options))
    text, answer = told(pieces)
    assert answer.status == "partial", "choose another seed"
    assert text == answer.answer
    assert text.startswith("> Note: ")
    assert Restart() not in pieces  # known before the answer is written: said before it
    settings = Settings(home=stack.home, redis_url=SecretStr(""), s3_endpoint="")
    async with AsyncClient(settings) as later:
        same = [piece async for piece in later.stream("topics", "What fails in part?", options)]
    assert told(same)[0] == told(same)[1].answer
    done = stack.call(
        "ask", "topics", "What fails in part?", "--leaves", "--max-context-tokens", "6000", "--stream",
        "--response-type", "a paragraph",
    )  # fmt: skip
    assert done.code == 3
    assert done.out.startswith("> ")  # what fails is drawn by the prompt: a batch, or the answer itself
    assert "\n\nCitations\n" in done.out


@pytest.mark.parametrize("question", ["What fails?", "What about zebras?"])
def test_a_stream_without_an_answer_says_why(stack: Stack, provider: Provider, question: str) -> None:
    provider.reset(**({"error_rate": 1.0, "error_status": 400} if "fails" in question else {"reply": '{"points": []}'}))
    with stack.client() as client:
        text, answer = told(list(client.stream("topics", question, leaves())))
    assert answer.status in ("failed", "no_data")
    assert text == answer.answer != ""

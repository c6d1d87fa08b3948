"""Failed, partial, empty, late and cancelled are told apart: in the state, in words, in the exit code."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from communitree.events import Restart
from communitree_shared.contract.options import AnswerOptions, QueryOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from support.oracles import sums_close
from support.provider import Provider
from support.stack import Stack
from support.topics import write_chinese
from support.wards import FACT, facts, write_index


@pytest.fixture(scope="module", autouse=True)
def corpus(stack: Stack, topics: Path) -> None:
    stack.call_json("index", str(topics), "--corpus", "topics")


@pytest.fixture(autouse=True)
def _behaves(provider: Provider) -> None:
    provider.reset(
        error_rate=0.0, error_status=500, latency=0.0, reply="", hang_rate=0.0, break_first=0,
        obey_words=False, planted="",
    )  # fmt: skip


def ask(stack: Stack, question: str, *words: str) -> tuple[int, dict[str, Any]]:
    done = stack.call("ask", "topics", question, "--leaves", "--json", *words)
    answer: dict[str, Any] = json.loads(done.out)
    sums_close(answer["account"])
    return done.code, answer


def test_all_batches_fail(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=1.0, error_status=400)
    code, answer = ask(stack, "What fails?")
    assert (code, answer["status"]) == (4, "failed")
    assert answer["account"]["batches"]["failed"] == answer["account"]["batches"]["total"] > 0
    assert "error" in answer["answer"].lower()


def test_some_batches_fail(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=0.5, error_status=400, seed=3)
    code, answer = ask(stack, "What fails in part?", "--max-context-tokens", "6000")
    batches = answer["account"]["batches"]
    assert 0 < batches["failed"] < batches["total"], "choose another seed"
    assert (code, answer["status"]) == (3, "partial")
    assert f"{batches['failed']} of {batches['total']}" in answer["answer"]


def test_nothing_found_makes_no_reduce_call(stack: Stack, provider: Provider) -> None:
    provider.reset(reply='{"points": []}')
    code, answer = ask(stack, "What about zebras?")
    assert (code, answer["status"]) == (0, "no_data")
    assert "reduce" not in answer["account"]["llm"]["by_stage"]
    assert answer["account"]["batches"]["empty"] == answer["account"]["batches"]["total"]


def test_a_deadline_gives_what_came_in_by_then(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=1.0)
    started = time.monotonic()
    code, answer = ask(stack, "What is late?", "--deadline", "5s")
    assert (code, answer["status"]) == (4, "failed")
    assert "deadline" in answer["answer"].lower()
    assert time.monotonic() - started < 60


def test_ctrl_c_stops_the_calls(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=1.0)
    running = stack.start("ask", "topics", "What is stopped?", "--leaves")
    until = time.monotonic() + 60
    while provider.stats()["in_flight"] == 0:
        assert time.monotonic() < until
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 4
    while provider.stats()["in_flight"]:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_reports_that_fail_are_written_by_hand_and_tried_again_by_resume(
    stack: Stack, provider: Provider, tmp_path: Path
) -> None:
    from support.topics import write_topics

    provider.reset(error_rate=0.3, error_status=400, seed=2)
    folder = write_topics(tmp_path / "few", 6)
    done = stack.call("index", str(folder), "--corpus", "mended", "--json")
    first = json.loads(done.out)
    assert (done.code, first["status"]) == (3, "partial")
    generated = first["reports"]["generated"]
    assert any("×" in warning for warning in first["warnings"])
    provider.reset(error_rate=0.0)
    job = stack.call_json("resume", first["job_id"])["job_id"]
    second = stack.call_json("job", job, "--follow")
    assert second["status"] == "published"
    # Only those that failed, and what stands on them, is asked again.
    assert second["reports"]["reused"] > 0
    assert provider.stats()["kinds"]["report"] == second["reports"]["generated"] < generated + 1


# --- a Chinese question on a Chinese corpus, through every state


@pytest.fixture(scope="module")
def harbour(stack: Stack, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> str:
    provider.reset(error_rate=0.0, reply="", hang_rate=0.0)
    stack.call_json("index", str(write_chinese(tmp_path_factory.mktemp("zh") / "港口")), "--corpus", "港口")
    return "港口"


def ask_harbour(stack: Stack, question: str, *words: str) -> tuple[int, dict[str, Any]]:
    # Small batches, so that there are several.
    small = ("--max-context-tokens", "5000", "--overview-tokens", "0")
    done = stack.call("ask", "港口", question, "--leaves", "--json", *small, *words)
    answer: dict[str, Any] = json.loads(done.out)
    sums_close(answer["account"])
    assert answer["question"] == question
    return done.code, answer


@pytest.mark.usefixtures("harbour")
def test_chinese_answered(stack: Stack) -> None:
    code, answer = ask_harbour(stack, "这些报告的主要内容是什么？")
    assert (code, answer["status"]) == (0, "answered")
    assert answer["account"]["batches"]["total"] > 1
    assert answer["account"]["citations"]["verified"] > 0
    cited = next(c for c in answer["citations"] if c["verified"])
    assert cited["documents"][0].startswith("报告-")
    unit = stack.call_json("source", "港口", cited["text_units"][0])
    assert "号报告里" in unit["text"]


@pytest.mark.usefixtures("harbour")
def test_chinese_partial(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=0.5, error_status=400, seed=1)
    code, answer = ask_harbour(stack, "谁说明了防波堤的情况？")
    batches = answer["account"]["batches"]
    assert 0 < batches["failed"] < batches["total"], "choose another seed"
    assert (code, answer["status"]) == (3, "partial")
    assert f"{batches['total']} 批中有 {batches['failed']} 批未能读取" in answer["answer"]


@pytest.mark.usefixtures("harbour")
def test_chinese_no_data(stack: Stack, provider: Provider) -> None:
    provider.reset(reply='{"要点": []}')
    code, answer = ask_harbour(stack, "量子力学讲了什么？")
    assert (code, answer["status"]) == (0, "no_data")
    assert "没有能回答这个问题的内容" in answer["answer"]
    assert "reduce" not in answer["account"]["llm"]["by_stage"]


@pytest.mark.usefixtures("harbour")
def test_chinese_failed(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=1.0, error_status=400)
    code, answer = ask_harbour(stack, "谁管理盐场？")
    assert (code, answer["status"]) == (4, "failed")
    assert answer["answer"].startswith("没有答案")


@pytest.mark.usefixtures("harbour")
def test_chinese_deadline(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=0.5, seed=1)
    code, answer = ask_harbour(stack, "灯塔的情况如何？", "--deadline", "8s")
    batches = answer["account"]["batches"]
    assert 0 < batches["failed"] < batches["total"], "choose another seed"
    assert (code, answer["status"]) == (3, "partial")
    assert "批未能读取" in answer["answer"]


@pytest.mark.usefixtures("harbour")
def test_chinese_cancelled(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=1.0)
    with stack.client() as client:
        job = client.submit("港口", "港口铁路在哪里？").job
        until = time.monotonic() + 60
        while provider.stats()["in_flight"] == 0:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert client.cancel(job) == "cancelled"
        answer = client.wait_answer(job, timeout=60)
    assert (answer.status, answer.question) == ("cancelled", "港口铁路在哪里？")
    assert stack.call("job", job, "--json").json["status"] == "cancelled"


# --- money, and streams that break


def test_a_budget_in_money_pays_for_the_reduce_too(stack: Stack, provider: Provider) -> None:
    _, whole = ask(stack, "What does all of it cost?", "--max-context-tokens", "6000")
    full, batches = whole["account"]["llm"], whole["account"]["batches"]["total"]
    kept = 0.0158  # about what the reduce may cost at the prices of the stack
    budget = kept + full["by_stage"]["map"]["usd"] * 0.75
    provider.reset()
    code, answer = ask(
        stack, "What does a part of it cost?", "--max-context-tokens", "6000", "--budget-usd", f"{budget:.5f}",
        "--map-max-tokens", "400",
    )  # fmt: skip
    account = answer["account"]
    assert account["batches"]["total"] == batches
    assert (code, answer["status"]) == (3, "partial"), account
    assert account["batches"]["failed"] > 0
    assert "budget" in answer["answer"]
    assert account["llm"]["by_stage"]["reduce"]["calls"] == 1
    assert account["llm"]["usd"] <= budget
    assert 0 < account["selection"]["budget"]["usd_kept_for_reduce"] < budget
    code, answer = ask(stack, "What does nothing cost?", "--budget-usd", "0.001")
    assert (code, answer["status"]) == (2, "failed")  # the options are wrong, as the job found out
    assert "does not pay for the answer" in answer["answer"]


def test_a_budget_that_ends_in_the_reduce_arranges_what_was_paid_for(stack: Stack, provider: Provider) -> None:
    _, whole = ask(stack, "What does a long answer cost?", "--max-data-tokens", "600")
    llm = whole["account"]["llm"]
    reading, writing = llm["by_stage"]["map"]["usd"], llm["usd"] - llm["by_stage"]["map"]["usd"]
    provider.reset()
    code, answer = ask(
        stack, "What does a short one cost?", "--max-data-tokens", "600", "--budget-usd", f"{reading + writing / 2:.5f}"
    )
    assert (code, answer["status"]) == (3, "partial"), answer["account"]
    assert "budget does not allow another call" in answer["answer"]
    assert answer["account"]["points"]["in_answer"] > 0
    assert answer["account"]["llm"]["usd"] <= reading + writing / 2


def test_scores_that_cannot_be_read_are_no_sign_of_an_empty_corpus(stack: Stack, provider: Provider) -> None:
    provider.reset(reply='{"points": [{"description": "Ships sail.", "score": "so so", "reports": [1]}]}')
    code, answer = ask(stack, "Which scores are words?")
    assert (code, answer["status"]) == (4, "failed")
    assert "no score that can be read" in answer["answer"]
    provider.reset(reply='{"points": [{"description": "Ships sail.", "score": 80, "reports": []}]}')
    code, answer = ask(stack, "Which points rest on nothing?")
    assert (code, answer["status"]) == (3, "partial")
    assert "none can be used" in answer["answer"]


def test_a_stream_that_breaks_is_taken_back(stack: Stack, provider: Provider) -> None:
    provider.reset(break_first=1, latency=1.5)
    pieces: list[str | Restart] = []
    leaves = QueryOptions(selection=SelectionOptions(strategy="leaves"))
    with stack.client() as client:
        for piece in client.stream("topics", "What is streamed?", leaves):
            if isinstance(piece, Answer):
                answer = piece
            else:
                pieces.append(piece)
    assert answer.status == "answered"
    at = pieces.index(Restart())
    assert at > 0
    assert pieces.count(Restart()) == 1
    told = "".join(piece for piece in pieces[at:] if isinstance(piece, str))
    assert told.split()[:20] == answer.answer.split()[:20]
    done = stack.call("ask", "topics", "What is streamed to a terminal?", "--leaves", "--stream")
    assert "The text above is void" in done.err
    start = done.out[:20]
    assert done.out.count(start) >= 2


# --- nothing is lost in silence


def test_a_sample_of_what_a_walk_pruned_is_read_and_what_was_missed_is_stated(stack: Stack) -> None:
    def walk(*words: str) -> tuple[dict[str, Any], list[str]]:
        answer = stack.call_json("ask", "topics", "What is said of assertions?", "--relevant", *words)
        sums_close(answer["account"])
        return answer, [w for w in answer["account"]["warnings"] if w.startswith("Audit")]

    answer, (warning,) = walk("--audit-pruned", "5%")
    selection, reports = answer["account"]["selection"], answer["account"]["reports"]
    sample = selection["budget"]["audited"]
    assert 0 < len(sample) <= selection["pruned"]["count"]
    assert selection["reports"] == reports["selected"] == sum(selection["levels"].values())
    missed = [p for p in answer["points"] if p["score"] > 0 and set(p["reports"]) & set(sample)]
    assert {c for p in missed for c in p["reports"]} | set(reports["silent"]) >= set(sample), "each of it was read"
    assert warning.startswith(f"Audit: {len(sample)} pruned")
    assert f"; {len(missed)} point" in warning
    _, (warning,) = walk("--audit-pruned", "5%", "--threshold", "0")
    assert "no community was pruned" in warning
    assert walk()[1] == []


@pytest.mark.parametrize("overflow", ["tree", "truncate"])
def test_every_planted_fact_is_told_or_listed_or_in_a_report_named_silent(
    stack: Stack, provider: Provider, tmp_path_factory: pytest.TempPathFactory, overflow: str
) -> None:
    planted = facts(48)
    if not any(c["name"] == "wards" for c in stack.call_json("corpora")["corpora"]):
        folder = write_index(tmp_path_factory.mktemp("wards") / "index", len(planted), facts=planted)
        stack.call_json("index", str(folder), "--graph", "--corpus", "wards")
    provider.reset(obey_words=True, planted=FACT)

    def wards(text: str) -> set[int]:
        return {int(n) for n in re.findall(FACT, text) if planted[int(n)] in text}

    def places(answer: Answer) -> tuple[set[int], set[int], set[int]]:
        sums_close(answer.account.model_dump())
        listed = {w for p in answer.points if not p.in_answer and p.why_not for w in wards(p.text)}
        return wards(answer.answer), listed, set(answer.account.reports.silent)

    # Room for about six facts in a reply, ten in the reduce prompt, four in the answer.
    words = AnswerOptions.model_validate(
        {"map_max_length": 600, "reduce_max_length": 400, "max_data_tokens": 1500, "overflow": overflow}
    )
    options = QueryOptions(selection=SelectionOptions(strategy="leaves"), answer=words)
    with stack.client() as client:
        first = client.ask("wards", "How many sealed ledgers are there?", options)
        said, listed, silent = places(first)
        assert said | listed | silent == set(planted)
        assert said
        assert listed
        assert silent
        silent_ones = QueryOptions(answer=words, again=first.job_id)
        planned = client.plan("wards", "", silent_ones)
        again = client.ask("wards", "How many sealed ledgers are there?", silent_ones)
    assert planned.selection.reports == again.account.selection.reports == len(first.account.reports.silent)
    assert again.account.reports.selected == first.account.reports.selected  # of both, as points and batches
    assert planned.batches == again.account.batches.total - first.account.batches.total
    assert again.account.coverage == first.account.coverage  # its points count here, too
    assert f"ask --again {first.job_id}" in " ".join(first.account.warnings)
    assert "--again" not in " ".join(again.account.warnings)
    more, later, still = places(again)
    assert said | listed < more | later
    assert more | later | still == set(planted)

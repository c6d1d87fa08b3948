"""The command line and the client on a whole stack: one short corpus, one stack for all tests of this file."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree.aio import AsyncClient
from communitree.client import Client
from communitree.embedded.discover import discover
from communitree_shared.contract.options import QueryOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from communitree_shared.errors import BadInput, CommunitreeError, CorpusNotFound, UsageError
from communitree_shared.settings import Settings
from support.stack import COMMAND, Stack, running_stack

STORY = {
    "harbour.txt": "The Harbour Authority of Port Alder signed a contract with Bayline Shipping. Bayline Shipping runs "
    "twelve ships from Port Alder to Rotterdam. The Harbour Authority employs the engineer Maria Chen.",
    "energy.txt": "Maria Chen leads the wind farm of Greenfield Energy. Greenfield Energy sells power to Bayline "
    "Shipping. The wind farm stands north of Port Alder, and Maria Chen lives there.",
    "notes/strike.md": "# Strike\n\nIn March the dockers of Port Alder went on strike. Bayline Shipping lost a week. "
    "Maria Chen spoke for the Harbour Authority.",
}
pytestmark = pytest.mark.timeout(400)

THEMES = "What are the main themes?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("story")
    for name, text in STORY.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(text)
    (top / "photo.png").write_bytes(b"\x89PNG")
    (top / "empty.txt").touch()
    (top / ".hidden.txt").write_text("not for the corpus")
    return top


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[Client]:
    with stack.client() as made:
        yield made


@pytest.fixture(scope="module")
def corpus(stack: Stack, client: Client, folder: Path) -> str:
    done = stack.run("index", str(folder), "--corpus", "story 故事", "--json")
    assert done.code == 0, done.err + stack.logs()
    result = done.json
    assert result["status"] == "published"
    assert result["counts"]["documents"] == 3
    assert "not read, a .png file has no text: photo.png" in done.err
    assert result["warnings"][:2] == ["not read, empty: empty.txt", "not read, a .png file has no text: photo.png"]
    assert result["notes"] == ["not read, hidden: .hidden.txt"]
    assert "\x1b" not in done.err
    return "story 故事"


def test_index_twice_gives_the_same_tree(stack: Stack, corpus: str, folder: Path) -> None:
    again = stack.call_json("index", str(folder), "--corpus", "again")
    trees = [stack.call_json("tree", name)["communities"] for name in (corpus, "again")]
    assert trees[0] == trees[1]
    assert again["counts"]["communities"] == len(trees[0])


def test_ask_answers_with_citations_that_lead_to_their_text(stack: Stack, corpus: str) -> None:
    answer = Answer.model_validate(stack.call_json("ask", corpus, THEMES, "--leaves"))
    assert answer.status == "answered"
    cited = [c for c in answer.citations if c.verified]
    assert cited
    for citation in cited:
        assert stack.call_json("report", corpus, str(citation.report))["community"] == citation.report
    source = stack.call_json("source", corpus, cited[0].text_units[0])
    assert source["document"]["title"] in {Path(name).name for name in STORY} | set(STORY)
    said = stack.call("ask", corpus, THEMES, "--leaves")
    assert f"[Data: Reports ({cited[0].report}" in said.out
    assert "batches:" in said.out
    assert "known" in said.out


def test_a_question_from_a_file_or_stdin(stack: Stack, corpus: str, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text(f"\n{THEMES}\n")
    assert stack.call_json("ask", corpus, "--file", str(tmp_path / "q.txt"))["question"] == THEMES
    piped = stack.call("ask", corpus, "--file", "-", "--json", stdin="Who is Maria Chen?")
    assert piped.json["question"] == "Who is Maria Chen?"


def test_many_questions_one_a_line(stack: Stack, corpus: str, tmp_path: Path) -> None:
    questions = ["Who is Maria Chen?", "What does Bayline Shipping do?", "Who is Maria Chen?"]
    (tmp_path / "q.txt").write_text("\n".join(["", *questions, "  "]))
    done = stack.call("ask", corpus, "--file", str(tmp_path / "q.txt"), "--jsonl")
    assert done.code == 0, done.err
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["question"] for answer in answers] == questions
    assert answers[0]["answer"] == answers[2]["answer"] != ""
    lost = stack.call("ask", "nope", "--file", str(tmp_path / "q.txt"), "--jsonl")
    assert (lost.code, json.loads(lost.out.splitlines()[0])["error"]["code"]) == (2, "corpus_not_found")
    told = stack.call("ask", corpus, "--file", str(tmp_path / "q.txt"))
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    headings = [n for n, line in enumerate(lines) if line in questions]
    assert [lines[n] for n in headings] == questions
    assert headings[0] == 0
    assert [lines[n - 1] for n in headings[1:]] == ["", ""]
    assert told.out.count("batches:") == 3
    refused = stack.call("ask", "nope", "--file", str(tmp_path / "q.txt"))
    assert (refused.code, refused.err.count("no corpus")) == (2, 3)


def test_strict_exits_the_same_whoever_finds_the_fault(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(STORY["harbour.txt"])
    (tmp_path / "noise.json").write_text('{"text": "cut')  # only reading it shows that it is damaged
    done = stack.call("index", str(tmp_path), "--corpus", "strict", "--strict", "--json")
    assert (done.code, done.json["status"], done.json["error"]["code"]) == (2, "failed", "bad_input")
    job = done.json["job_id"]
    for words in (["job", job, "--result"], ["job", job, "--follow"]):
        assert stack.call(*words).code == 2
    small = stack.call("index", str(tmp_path), "--corpus", "strict", "--json")
    assert (small.code, small.json["status"]) == (0, "published")


def test_a_question_that_cannot_be_asked_exits_2_with_the_remedy(stack: Stack, corpus: str) -> None:
    done = stack.call("ask", corpus, THEMES, "--budget-tokens", "1")
    assert done.code == 2
    assert done.out.count("too small to read anything") == 1
    assert "too small" not in done.err  # said once, by the answer
    assert "Raise --budget-tokens" in done.out


def test_text_units_are_not_read_again(stack: Stack, corpus: str) -> None:
    job = stack.call_json("ask", corpus, THEMES, "--texts")["job_id"]
    done = stack.call("ask", corpus, "--again", job)
    assert done.code == 2
    assert f"Job {job} read text units, not reports" in done.err  # before a job was submitted
    assert "with `--texts` and smaller batches" in done.err


def test_a_known_answer_says_so_and_is_counted(stack: Stack, corpus: str, client: Client) -> None:
    def counted() -> int:
        return next(c["answers_from_cache"] for c in client.corpora() if c["name"] == corpus)

    question, before = "Who is asked about twice?", counted()
    first = stack.call_json("ask", corpus, question)
    again = stack.call_json("ask", corpus, question)
    assert (first["cached"], again["cached"]) == (False, True)
    assert first["job_id"] == again["job_id"]
    assert "known: asked before" in stack.call("ask", corpus, question).out
    assert client.ask(corpus, question).cached
    assert not client.ask(corpus, question, QueryOptions(cache=False)).cached
    assert counted() - before == 3


def test_a_deployment_sets_an_option_for_all_questions(stack: Stack, corpus: str, client: Client) -> None:
    settings = client.settings.model_copy(update={"ask": {"budget_reports": 1, "response_type": "prioritized list"}})
    with Client(settings) as other:
        assert other.plan(corpus, THEMES).selection.reports == 1
        assert other.ask(corpus, THEMES).account.selection.strategy == "budget"
        leaves = QueryOptions(selection=SelectionOptions(strategy="leaves"))
        assert other.ask(corpus, THEMES, leaves).account.selection.strategy == "leaves"


def test_a_budget_from_python_is_kept_to_or_refused(client: Client, corpus: str) -> None:
    few = client.ask(corpus, THEMES, QueryOptions(selection=SelectionOptions(budget_reports=1)))
    assert (few.account.selection.strategy, few.account.reports.selected) == ("budget", 1)
    idle = QueryOptions(selection=SelectionOptions(strategy="auto", budget_tokens=9_000))
    before = client.jobs()
    for refused in (client.ask, client.plan, lambda *given: list(client.stream(*given))):
        with pytest.raises(UsageError, match="budget_tokens goes not with strategy='auto'"):
            refused(corpus, THEMES, idle)

    async def asking() -> None:
        async with AsyncClient(client.settings) as other:
            await other.ask(corpus, THEMES, idle)

    with pytest.raises(UsageError, match="budget_tokens goes not with strategy='auto'"):
        asyncio.run(asking())
    assert client.jobs() == before


def test_stream_prints_the_answer_once(stack: Stack, corpus: str) -> None:
    done = stack.call("ask", corpus, THEMES, "--stream", "--no-cache")
    assert done.code == 0, done.err
    answer = stack.call_json("ask", corpus, THEMES)["answer"]
    assert done.out.count(answer.splitlines()[0]) == 1
    assert "batches:" in done.out


def test_plans(stack: Stack, corpus: str) -> None:
    one = stack.call_json("ask", corpus, THEMES, "--plan", "--leaves")
    assert one["selection"]["strategy"] == "leaves"
    every = stack.call_json("ask", corpus, THEMES, "--plan", "all")
    assert len(every) > 5
    assert "leaves" in stack.call("ask", corpus, THEMES, "--plan", "all").out


def test_export(stack: Stack, corpus: str, tmp_path: Path) -> None:
    done = stack.call_json("export", corpus, str(tmp_path / "out"))
    assert {"entities.parquet", "communities.parquet", "community_reports.parquet"} <= set(done["files"])
    assert all((tmp_path / "out" / name).read_bytes()[:4] == b"PAR1" for name in done["files"] if "parquet" in name)
    (tmp_path / "file").write_text("")
    assert stack.call("export", corpus, str(tmp_path / "file")).code == 2


def test_lists(stack: Stack, corpus: str) -> None:
    (entry,) = (c for c in stack.call_json("corpora")["corpora"] if c["name"] == corpus)
    assert entry["version"].startswith("v-")
    assert entry["counts"]["documents"] == 3
    assert entry["indexing"] == ""
    jobs = stack.call_json("jobs")["jobs"]
    assert {job["kind"] for job in jobs} <= {"corpus", "query"}
    view = stack.call_json("job", jobs[-1]["job_id"])
    kinds = [event["type"] for event in view["events"]]
    assert kinds[0] == "job.submitted"
    assert kinds[-1] == "job.ended"
    assert [event["seq"] for event in view["events"]] == sorted(event["seq"] for event in view["events"])
    assert view["progress"]["stages"][0]["stage"] == "ingest"
    assert corpus in stack.call("corpora").out


def test_a_job_says_what_was_asked_and_what_it_took(stack: Stack, corpus: str) -> None:
    question = "Which [names] are in 全书?" + " Say why." * 40
    job = stack.call_json("ask", corpus, question)["job_id"]
    (row,) = (row for row in stack.call_json("jobs")["jobs"] if row["job_id"] == job)
    assert row["question"] == question[:200]
    view = stack.call_json("job", job)
    assert view["question"] == question
    assert view["created"] <= view["started"] <= view["ended"]
    assert (view["llm"]["calls"], view["llm"]["usd"]) == (0, 0.0)
    assert "Which [names] are in 全书?" in " ".join(stack.call("jobs").out.split())
    indexed = next(row for row in stack.call_json("jobs")["jobs"] if row["kind"] == "corpus")
    assert stack.call_json("job", indexed["job_id"])["question"] == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ask", "nope", "q"], "corpus_not_found"),
        (["tree", "nope"], "corpus_not_found"),
        (["export", "nope", "folder"], "corpus_not_found"),
        (["delete", "nope", "--yes"], "corpus_not_found"),
        (["report", "story 故事", "9999"], "usage"),
        (["source", "story 故事", "nope"], "usage"),
        (["job", "nope"], "job_not_found"),
        (["cancel", "nope"], "job_not_found"),
        (["resume", "nope"], "job_not_found"),
        (["ask", "story 故事", "q", "--again", "nope"], "job_not_found"),
        (["tree", ""], "usage"),
    ],
)
@pytest.mark.usefixtures("corpus")
def test_what_is_not_there_is_one_line_and_exit_2(stack: Stack, words: list[str], code: str) -> None:
    done = stack.call(*words, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert "Traceback" not in done.err
    assert not Path("folder").exists()  # nor is a folder made for what is not there


def test_a_second_up_on_the_folder_is_refused_and_harms_nothing(stack: Stack, corpus: str) -> None:
    done = stack.run("up")
    assert done.code == 2
    assert "already runs on" in done.err
    assert stack.call_json("tree", corpus)["communities"]


def test_detach_follow_result_and_busy(stack: Stack, folder: Path) -> None:
    first = stack.call_json("index", str(folder), "--corpus", "detached", "--detach")
    assert first["status"] == "queued"
    followed = stack.call("job", first["job_id"], "--follow", "--json")
    assert followed.code == 0
    assert followed.json["status"] == "published"
    assert stack.call_json("job", first["job_id"], "--result")["corpus"] == "detached"


def test_an_index_of_what_cannot_be_read_fails_in_words(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 64)
    done = stack.call("index", str(tmp_path), "--corpus", "noise")
    assert done.code in {2, 4}
    assert "noise.bin" in done.out + done.err
    assert "Traceback" not in done.out + done.err


def paused(stack: Stack) -> list[int]:
    """Stop the CPU workers with SIGSTOP, so that a job waits for as long as a test wants."""
    pids = [p.pid for worker in stack.workers("cpu") for p in [worker, *worker.children(recursive=True)]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


def until_said(process: subprocess.Popen[str], words: str) -> str:
    assert process.stderr is not None
    said = ""
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def test_ctrl_c_detaches_an_index_and_cancels_a_question(
    stack: Stack, client: Client, corpus: str, folder: Path
) -> None:
    pids = paused(stack)
    try:
        index = stack.start("index", str(folder), "--corpus", "left alone")
        until_said(index, "job ")
        time.sleep(1)
        index.send_signal(signal.SIGINT)
        out, err = index.communicate(timeout=30)
        assert index.returncode == 130, out + err
        assert "communitree job" in err
        job = err.split("communitree job ")[1].split()[0]
        busy = stack.call("index", str(folder), "--corpus", "left alone", "--json")
        assert (busy.code, busy.json["error"]["code"]) == (2, "corpus_busy")

        before = {row.job_id for row in client.jobs()}
        ask = stack.start("ask", corpus, "What does nobody wait for?", "--json")
        while not (new := {row.job_id for row in client.jobs()} - before):
            time.sleep(0.1)
        time.sleep(1)
        ask.send_signal(signal.SIGINT)
        out, err = ask.communicate(timeout=30)
        assert ask.returncode == 4, out + err
        assert json.loads(out)["status"] == "cancelled"
        assert client.job(new.pop()).status == "cancelled"
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert client.wait_index(job, timeout=200).status == "published"


def test_cancel_and_resume(stack: Stack, client: Client, folder: Path) -> None:
    pids = paused(stack)
    try:
        job = client.submit_index(folder, "resumed")
        assert stack.call_json("cancel", job)["status"] == "cancelled"
        assert stack.call("job", job, "--result", "--json").code == 4
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    new = stack.call_json("resume", job)["job_id"]
    assert client.wait_index(new, timeout=200).status == "published"
    with pytest.raises(UsageError, match="nothing left to do"):
        client.resume(new)


def test_a_live_table_only_on_a_terminal(stack: Stack, folder: Path) -> None:
    leader, follower = pty.openpty()
    command = [*COMMAND, "index", str(folder), "--corpus", "live"]
    env = {**stack.env, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=follower, start_new_session=True)
    os.close(follower)
    seen = b""
    try:
        while piece := os.read(leader, 4096):
            seen += piece
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert process.wait(30) == 0
    assert b"\x1b[" in seen
    assert "━".encode() in seen


def test_delete_and_gc(stack: Stack, client: Client, folder: Path) -> None:
    client.index(folder, "gone")
    old = next(c["version"] for c in client.corpora() if c["name"] == "gone")
    client.index(folder, "gone")
    assert stack.call_json("gc", "--dry-run")["versions"] == []  # nothing is a week old
    every = ("gc", "--older-than", "0")
    dry = stack.call_json(*every, "--dry-run")
    assert f"gone/{old}" in dry["versions"]
    assert stack.call_json(*every)["versions"] == dry["versions"]
    assert stack.call_json(*every)["versions"] == []
    assert client.tree("gone").communities
    assert stack.call_json("delete", "gone", "--yes")["objects"] > 10
    with pytest.raises(CorpusNotFound):
        client.tree("gone")
    assert "gone" not in {c["name"] for c in client.corpora()}


def test_the_client_streams_and_raises_by_kind(client: Client, corpus: str) -> None:
    *pieces, answer = client.stream(corpus, THEMES, QueryOptions(cache=False))
    assert isinstance(answer, Answer)
    assert "".join(str(piece) for piece in pieces) == answer.answer
    with pytest.raises(UsageError, match="empty"):
        client.ask(corpus, " ")
    with pytest.raises(CommunitreeError) as error:
        client.report(corpus, 9999)
    assert not isinstance(error.value, BadInput)


async def test_the_async_client_is_the_same(stack: Stack, corpus: str) -> None:
    settings = discover(Settings(home=stack.home))
    async with AsyncClient(settings) as client:
        answer, tree = await asyncio.gather(client.ask(corpus, THEMES), client.tree(corpus))
        assert answer.status == "answered"
        assert {c.report for c in answer.citations} <= {c.id for c in tree.communities}
        kinds = [event.type async for event in client.events(answer.job_id)]
        assert kinds[-1] == "job.ended"
        pieces = [piece async for piece in client.stream(corpus, THEMES)]
        assert isinstance(pieces[-1], Answer)


async def test_cancelling_the_waiting_cancels_the_job(stack: Stack, corpus: str) -> None:
    pids = paused(stack)
    try:
        async with AsyncClient(discover(Settings(home=stack.home))) as client:
            asking = asyncio.create_task(client.ask(corpus, "What is left when I leave?"))
            while not (open_jobs := [row for row in await client.jobs() if row.status == "queued"]):
                await asyncio.sleep(0.05)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (await client.job(open_jobs[0].job_id)).status == "cancelled"
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_nothing_is_left_when_up_is_killed(tmp_path: Path) -> None:
    with running_stack(tmp_path / "home") as own:
        deadline = time.monotonic() + 200
        while not any(worker.children() for worker in own.workers("cpu")):  # the pool's own children are there
            assert time.monotonic() < deadline, own.logs()
            time.sleep(0.1)
        everything = own.processes()
        own.launched.kill()
        end = time.monotonic() + 10
        while left := [p for p in everything if p.is_running() and p.status() != "zombie"]:
            assert time.monotonic() < end, left
            time.sleep(0.1)

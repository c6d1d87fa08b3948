"""`demo`: the whole line once, on text that every machine has, or on the caller's own."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from pydantic import SecretStr

from communitree.cli.follow import exit_code, follow_answer, follow_index
from communitree.cli.output import program, say, show, to_stdout
from communitree.client import Client
from communitree.embedded.launch import launch
from communitree.render.answer import answer_parts
from communitree.render.index import index_result
from communitree.render.numbers import plural
from communitree.render.tree import level_table, tree_view
from communitree.sources import Gathered, gather
from communitree_shared.errors import UsageError
from communitree_shared.settings import Settings

_CORPUS = "demo"


def run_demo(folder: Path | None, question: str, as_json: bool) -> int:
    """Run it and return the answer's exit code; nothing is left running, and nothing on disk but COMMUNITREE_HOME."""
    begun = time.monotonic()
    # before anything is started: there may be nothing to read
    own = None if folder is None else gather([folder], max_bytes=Settings().max_upload_bytes)
    given = Path(os.environ["COMMUNITREE_HOME"]) if os.environ.get("COMMUNITREE_HOME") else None
    with _ending_on_sigterm(), _folder(given) as stack_home:
        say(f"1. Starting Valkey, an S3 server and workers in {stack_home}")
        with launch(stack_home):
            # servers of the caller's own are not touched by a demo
            settings = Settings(home=stack_home, redis_url=SecretStr(""), s3_endpoint="")
            gathered = own or gather([write_topics(stack_home / "demo-corpus")])
            what = "CPython's language reference, as it lies in every Python" if own is None else str(folder)
            with Client(settings) as client:
                code = _tell(client, gathered, what, question, as_json)
            say("5. Stopping everything")
    say(f"Done in {time.monotonic() - begun:.0f} s." + (f" The data is kept in {given}." if given else ""))
    _next_steps(given)
    return code


def _tell(client: Client, gathered: Gathered, what: str, question: str, as_json: bool) -> int:
    say(f"2. Indexing {what}: {plural(len(gathered.documents), 'file')}, {plural(gathered.size, 'byte')}")
    for warning in gathered.warnings():
        say(f"   {warning}")
    job = client.submit_index(gathered, _CORPUS)
    index = follow_index(client, job)
    if index is None:
        raise KeyboardInterrupt
    if index.status in {"failed", "cancelled"}:
        to_stdout(index) if as_json else show(*index_result(index))
        return exit_code(index)
    tree = client.tree(_CORPUS)
    if not as_json:
        show(*index_result(index))
        say("3. The community tree, by level, and its heaviest branches")
        show(level_table(tree), tree_view(tree, depth=2, width=4))
    say(f"4. Asking: {question}")
    answer, _ = follow_answer(client, client.submit(_CORPUS, question).job, stream=False)
    if as_json:
        to_stdout({"index": index.model_dump(mode="json"), "answer": answer.model_dump(mode="json")})
    else:
        show(*answer_parts(answer))
    return exit_code(answer)


def write_topics(folder: Path) -> Path:
    """Write the topics of the language reference that CPython carries for its own help, one file a topic.

    Raises:
        UsageError: this Python comes without them.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise UsageError(
            "This Python comes without pydoc_data.topics, the demo's text.", hint="communitree demo FOLDER"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in topics.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def _next_steps(home: Path | None) -> None:
    command = program()
    if home:
        command = f"COMMUNITREE_HOME={shlex.quote(str(home))} {command}"
    for line in (
        "Next, in two terminals:",
        f"  {command} up",
        f"  {command} index FOLDER --corpus NAME",
        f'  {command} ask NAME "QUESTION"',
        "With a model of your own: set COMMUNITREE_LLM_BASE_URL, COMMUNITREE_LLM_API_KEY and COMMUNITREE_LLM_MODEL.",
    ):
        say(line)


@contextlib.contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given.expanduser().absolute()
        return
    with tempfile.TemporaryDirectory(prefix="communitree-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind as Ctrl-C does, so that the stack and the temporary folder go too."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

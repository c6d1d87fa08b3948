"""Follow a job to its end: a live table on a terminal, plain lines otherwise, always on stderr."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live

from communitree.cli.output import say, stderr
from communitree.cli.printing import write as print_out
from communitree.client import Client
from communitree.events import DELTA_EVENT, RESTART_EVENT, Event
from communitree.outcome import as_error
from communitree.render.progress import Progress
from communitree_shared.contract.index_plan import IndexPlan
from communitree_shared.contract.results import EXIT_CODES, Answer, IndexResult
from communitree_shared.errors import CommunitreeError

#: A job that no worker has taken after so many seconds probably has none (one that just starts needs a few).
_UNTAKEN = 20.0

#: Plain lines tell how far a long stage is no more often than this.
_LINE_SECONDS = 5.0


def exit_code(result: Answer | IndexResult | IndexPlan) -> int:
    """Return the exit code of an ended job: that of its state, or of the error that it failed with."""
    if isinstance(result, IndexPlan) or result.status != "failed" or not result.error:
        return EXIT_CODES.get(result.status, 4)
    return as_error({"error": result.error}, {}, "").exit_code


def follow_index(client: Client, job: str) -> IndexResult | None:
    """Follow a corpus job; None when the caller pressed Ctrl-C (the job goes on)."""
    return client.wait_index(job) if follow_any(client, job) else None


def follow_any(client: Client, job: str) -> bool | None:
    """Follow a job to its end; None when the caller pressed Ctrl-C (the job goes on)."""
    try:
        _watch(client, job)
    except KeyboardInterrupt:
        return None
    return True


def follow_answer(client: Client, job: str, *, stream: bool) -> tuple[Answer, bool]:
    """Follow a query job and return its answer, and whether its text was printed already. Ctrl-C cancels it."""
    written = ""

    def write(event: Event) -> None:
        nonlocal written
        if stream and event.type == DELTA_EVENT:
            written += str(event.fields.get("text", ""))
            print_out(str(event.fields.get("text", "")))
        elif event.type == RESTART_EVENT and written:
            written = ""
            _void("the answer begins again.")

    def shown(answer: Answer) -> tuple[Answer, bool]:
        if written and written != answer.answer:
            _void("the job ended otherwise.")
        elif written:
            print_out("\n\n")
        return answer, bool(written) and written == answer.answer

    try:
        _watch(client, job, write, live=not stream, with_reason=False)
    except KeyboardInterrupt:
        state = client.cancel(job)
        if state in {"queued", "running"}:
            say("Others wait for the same question: the job goes on for them.")
        with contextlib.suppress(KeyboardInterrupt, TimeoutError, CommunitreeError):
            return shown(client.wait_answer(job, timeout=5 if state == "cancelled" else 0.1))
        raise
    return shown(client.wait_answer(job))


def _void(why: str) -> None:
    print_out("\n\n")
    say(f"The text above is void: {why}")


def _watch(
    client: Client, job: str, take: Callable[[Event], None] = lambda event: None, *, live: bool = True,
    with_reason: bool = True,
) -> None:  # fmt: skip
    progress = Progress(with_reason=with_reason)
    console = stderr()
    begun, told = time.monotonic(), False
    with _display(console, progress) if live and console.is_terminal else _lines(progress) as refresh:
        for event in client.events(job):
            if event is not None:
                progress.take(event)
                take(event)
            elif not progress.taken and not told and time.monotonic() - begun > _UNTAKEN:
                told = True
                say("No worker has taken the job yet: is `communitree up` (or `communitree worker`) running?")
            refresh()
        progress.ended = True
        refresh()


@contextlib.contextmanager
def _display(console: Console, progress: Progress) -> Iterator[Callable[[], None]]:
    with Live(console=console, refresh_per_second=8, transient=True) as live:

        def refresh() -> None:
            for line in progress.new_notes():
                live.console.print(line)
            live.update(progress.table())

        yield refresh


@contextlib.contextmanager
def _lines(progress: Progress) -> Iterator[Callable[[], None]]:
    last = time.monotonic()

    def refresh() -> None:
        nonlocal last
        for line in progress.new_notes():
            say(line)
        for line in progress.new_lines():
            say(line)
            last = time.monotonic()
        if time.monotonic() - last > _LINE_SECONDS and (line := progress.where()):
            say(line)
            last = time.monotonic()

    yield refresh

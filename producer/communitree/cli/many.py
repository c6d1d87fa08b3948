"""`ask CORPUS --file QUESTIONS`: one question a line; answers in the order of the questions, as they are there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from communitree.cli.follow import exit_code
from communitree.cli.output import say, say_error, show
from communitree.cli.printing import write_json
from communitree.client import Client
from communitree.render.answer import answer_parts
from communitree.render.text import Text
from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Answer
from communitree_shared.errors import CommunitreeError
from communitree_shared.ledger.jobs import Submitted

#: Questions that are open at a time: enough to keep workers busy, few enough to leave room for others.
_OPEN = 16

#: Tells what became of a question.
Tell = Callable[[str, Answer | CommunitreeError], None]


def ask_many(client: Client, corpus: str, questions: Sequence[str], options: QueryOptions, tell: Tell) -> int:
    """Ask all questions, some at a time; return the worst exit code. Ctrl-C cancels what is open.

    A question that is refused is told as its error; the others go on.
    """
    submitted = ((question, _submit(client, corpus, question, options)) for question in questions)
    open_jobs: deque[tuple[str, Submitted | CommunitreeError]] = deque()
    worst = 0
    try:
        open_jobs.extend(islice(submitted, _OPEN))
        while open_jobs:
            question, job = open_jobs[0]
            ended = client.wait_answer(job) if isinstance(job, Submitted) else job
            tell(question, ended)
            worst = max(worst, exit_code(ended) if isinstance(ended, Answer) else ended.exit_code)
            open_jobs.popleft()
            open_jobs.extend(islice(submitted, 1))
    except KeyboardInterrupt:
        for _, job in open_jobs:
            with suppress(CommunitreeError):
                if isinstance(job, Submitted):
                    client.cancel(job.job)
        say(f"cancelled {len(open_jobs)} open questions")
        return 4
    return worst


def as_lines(question: str, ended: Answer | CommunitreeError) -> None:
    """Tell as one JSON object on a line: the answer, or `{"question", "error"}`."""
    if isinstance(ended, Answer):
        body = ended.model_dump(mode="json")
    else:
        body = {"question": question, "error": ended.as_json()}
    write_json(body)


def as_text(*, points: bool) -> Tell:
    """Tell as text: the question as heading, what `ask` prints of one, a blank line between two."""
    before: list[Text] = []

    def tell(question: str, ended: Answer | CommunitreeError) -> None:
        show(*before, Text(question, "bold"), Text())
        before[:] = [Text()]
        if isinstance(ended, Answer):
            show(*answer_parts(ended, with_points=points))
        else:
            say_error(ended, as_json=False)

    return tell


def _submit(client: Client, corpus: str, question: str, options: QueryOptions) -> Submitted | CommunitreeError:
    try:
        return client.submit(corpus, question, options)
    except CommunitreeError as error:
        return error

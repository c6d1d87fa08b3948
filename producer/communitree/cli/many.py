"""`ask CORPUS --file QUESTIONS --jsonl`: one question a line, one JSON object a line, in the order of the questions."""

from __future__ import annotations

import json
import sys
from collections import deque
from contextlib import suppress
from itertools import islice

from communitree.cli.output import say
from communitree.client import Client
from communitree_shared.errors import CommunitreeError, UsageError
from communitree_shared.options import QueryOptions
from communitree_shared.results import EXIT_CODES

#: Questions that are open at a time: enough to keep workers busy, few enough to leave room for others.
_OPEN = 16


def ask_many(client: Client, corpus: str, text: str, options: QueryOptions) -> int:
    """Ask every line that is not empty; return the worst exit code. Ctrl-C cancels what is open.

    A question that is refused gives `{"question", "error"}`; the others go on.

    Raises:
        UsageError: there is no question.
    """
    questions = [line.strip() for line in text.splitlines() if line.strip()]
    if not questions:
        raise UsageError("The file has no question.", hint="One question a line.")
    submitted = ((question, _submit(client, corpus, question, options)) for question in questions)
    open_jobs: deque[tuple[str, str | CommunitreeError]] = deque()
    worst = 0
    try:
        open_jobs.extend(islice(submitted, _OPEN))
        while open_jobs:
            worst = max(worst, _end(client, *open_jobs[0]))
            open_jobs.popleft()
            open_jobs.extend(islice(submitted, 1))
    except KeyboardInterrupt:
        for _, job in open_jobs:
            with suppress(CommunitreeError):
                if isinstance(job, str):
                    client.cancel(job)
        say(f"cancelled {len(open_jobs)} open questions")
        return 4
    return worst


def _submit(client: Client, corpus: str, question: str, options: QueryOptions) -> str | CommunitreeError:
    try:
        return client.submit_query(corpus, question, options).job
    except CommunitreeError as error:
        return error


def _end(client: Client, question: str, job: str | CommunitreeError) -> int:
    if isinstance(job, str):
        answer = client.wait_answer(job)
        body, code = answer.model_dump(mode="json"), EXIT_CODES[answer.status]
    else:
        body, code = {"question": question, "error": job.as_json()}, job.exit_code
    sys.stdout.write(json.dumps(body, ensure_ascii=False) + "\n")
    sys.stdout.flush()
    return code

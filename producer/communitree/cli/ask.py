"""`ask`: publish a query job and follow it to its answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from communitree.cli import selections
from communitree.cli.flags import Flags, with_flags
from communitree.cli.output import Json, say, show, to_stdout
from communitree.cli.prompts import OF_QUESTION, read_prompts, read_text
from communitree.cli.values import seconds, share
from communitree_shared.contract import ask_defaults
from communitree_shared.contract.options import QueryOptions
from communitree_shared.errors import UsageError

FLAGS = Flags(
    QueryOptions,
    {
        "selection": "Which reports are read",
        "batch": "Batches (map)",
        "answer": "Points and answer",
        "": "The job",
    },
    own={
        **selections.spelled(),
        "selection.stable": "--stable",
        "history": "--history",
        "deadline_seconds": "--deadline",
        "bulk": "--bulk",
        "plan_only": "--plan",
        "again": "--again",
        "prompts": "--prompt",
    },
    parsers={"selection.audit_pruned": share},
    words={
        "selection.strategy": "Which reports are read; a budget or a coverage alone chooses its own.",
        "selection.level": "N of `frontier` and `levels`.",
        "selection.coverage": "The fewest tokens that read this share of the corpus.",
        "selection.stable": "With a budget: only what a larger budget would keep or refine.",
        "history": "Earlier turns of the conversation.",
        "deadline_seconds": "Seconds after which the answer is made of what is there.",
        "bulk": "Not urgent: leave room for others.",
        "plan_only": "Say what would be read and cost.",
        "prompts": "Prompts of your own, by name.",
        "selection.budget_tokens": "The finest reports that fit so many tokens (with a walk by relevance: its limit).",
        "selection.budget_reports": "The finest selection of so many reports.",
        "selection.budget_usd": "So much money, the reduce included: sizes the selection, and is a ceiling.",
        "selection.auto_tokens": "What a question without a selection of its own reads.",
        "selection.threshold": "Walks by relevance: the least rating to go on.",
        "selection.keep_parent": "--dynamic: a parent stays when a child is relevant.",
        "selection.num_repeats": "Walks by relevance: ratings of each report, the most frequent counts.",
        "selection.rate_use_summary": "Walks by relevance: rate summaries, not whole reports.",
        "selection.max_level": "Walks by relevance: while nothing is relevant, whole levels are rated, down to this.",
        "selection.max_depth": "--relevant: the deepest level.",
        "selection.max_rating_calls": "Walks by relevance: so many calls at most; unset: 200 with --relevant.",
        "selection.candidates_per_call": "Walks by relevance: reports rated in one call.",
        "selection.audit_pruned": "--relevant: share of the pruned that is read after all, to see what was missed.",
        "selection.min_community_rank": "Leave out reports of lower rank.",
        "batch.max_context_tokens": "Tokens of a map call, the whole prompt counted.",
        "batch.reserve_tokens": "Of a map call's tokens: kept free for the question.",
        "batch.overview_tokens": "Tokens of the overview before each batch.",
        "batch.anchors": "Rows of the overview that every batch scores.",
        "batch.shuffle_data": "Shuffle reports before they are packed.",
        "batch.random_state": "The shuffle's seed.",
        "batch.use_community_summary": "Read summaries, not whole reports.",
        "batch.include_community_rank": "Show the model each report's rank.",
        "batch.include_community_weight": "Show the model each report's weight.",
        "batch.normalize_community_weight": "Weights as shares of the largest.",
        "batch.context_name": "How reports are named in the prompt and in citations.",
        "batch.column_delimiter": "Between the table's columns.",
        "answer.map_max_tokens": "Limit of a map reply that the endpoint is told.",
        "answer.reduce_max_tokens": "Limit of the answer that the endpoint is told.",
        "answer.map_temperature": "The model's temperature in map calls.",
        "answer.reduce_temperature": "The model's temperature for the answer.",
        "answer.json_mode": "Tell the endpoint that map replies are JSON, where it can; else the prompt alone does.",
        "answer.max_data_tokens": "Tokens of points in the reduce call.",
        "answer.overflow": "When the points do not fit: more rounds, or leave out the lowest.",
        "answer.response_type": "The shape of the answer.",
        "answer.language": "The answer's language; by default the question's.",
        "answer.allow_general_knowledge": "Let the model add what it knows, marked as such.",
        "history_turns": "The newest turns of --history that count.",
        "concurrency": "Calls of this question at a time; by default as many as the workers may make.",
        "cache": "Take a known answer, or join an equal question in flight.",
        "seed": "Passed to the model, where it takes one.",
    },
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ask")(ask)


@with_flags(FLAGS, also=selections.parameters())
def ask(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="The corpus's name.")],
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question; or give it with --file.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Read questions from a file, each line that is not empty is one; - for standard input."),
    ] = None,
    stable: Annotated[
        bool, typer.Option("--stable", help="With a budget: only what a larger budget would keep or refine.")
    ] = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", metavar="[all]", help="Say what would be read and cost; `--plan all` compares all selections."
        ),
    ] = False,
    plan_all: Annotated[bool, typer.Option("--plan-all", hidden=True)] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Print the answer while it is written.")] = False,
    again: Annotated[
        str,
        typer.Option(metavar="JOB", help="Read again what no point of that job cites; without QUESTION, for its own."),
    ] = "",
    deadline: Annotated[
        float | None,
        typer.Option(metavar="TIME", parser=seconds, help="When the answer is due: 30s, 2m. (default: 300s)"),
    ] = None,
    bulk: Annotated[bool, typer.Option("--bulk", help="Not urgent: leave room for others.")] = False,
    history: Annotated[
        Path | None, typer.Option(help='JSON file with earlier turns: [{"role": "user", "content": "…"}, …].')
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE: your own prompt (map, reduce, reduce_part, rate, rewrite). Several times for several."
        ),
    ] = None,
    points: Annotated[bool, typer.Option("--points", help="Also print the points and what became of them.")] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="With --file: print one JSON object a line, one for each question.")
    ] = False,
    as_json: Json = False,
    *,
    options: dict[str, Any],
    **chosen_by: Any,
) -> int:
    """Ask a question about a whole corpus; prints the answer with its citations and its account.

    Ctrl-C cancels the job.
    """
    selection = options.setdefault("selection", {})
    selection.update(selections.take(chosen_by))
    if stable:
        selection["stable"] = True
    # Only what is given: the rest is the settings' to say.
    of_the_command = {
        "again": again, "bulk": bulk, "deadline_seconds": deadline, "prompts": read_prompts(prompt or [], OF_QUESTION),
        "history": None if history is None else _history(history),
    }  # fmt: skip
    options.update({name: value for name, value in of_the_command.items() if value})
    if jsonl and (file is None or plan or plan_all or stream):
        raise UsageError("--jsonl goes with --file, and not with --plan or --stream.")
    own = again and question is None and file is None  # the client knows that job's
    questions = [""] if own else _questions(question, file)
    many = jsonl or len(questions) > 1
    for flag, given in (("--plan", plan or plan_all), ("--stream", stream), ("--json", as_json and not jsonl)):
        if many and given:
            raise UsageError(
                f"{flag} takes one question; {file} has {len(questions)}.",
                hint="--jsonl prints one JSON object for each question.",
            )
    chosen = FLAGS.build(options)
    from communitree_shared.settings import Settings

    # Once, before servers are needed. `--plan all` shows each selection with what it takes.
    ask_defaults.complete(chosen, Settings().ask, side_by_side=plan_all)

    from communitree.cli.follow import exit_code, follow_answer
    from communitree.client import Client
    from communitree.render.answer import answer_parts, plan_parts

    with Client() as client:
        if many:
            from communitree.cli.many import as_lines, as_text, ask_many

            return ask_many(client, corpus, questions, chosen, as_lines if jsonl else as_text(points=points))
        (text,) = questions
        if plan_all or plan:
            plans = client.plans(corpus, text, chosen) if plan_all else [client.plan(corpus, text, chosen)]
            if as_json:
                to_stdout([p.model_dump(mode="json") for p in plans] if plan_all else plans[0])
            else:
                show(*plan_parts(plans))
            if chosen.history:
                say("Planned for the question as it is written: asked, it is first rewritten to stand alone.")
            return 0
        submitted = client.submit(corpus, text, chosen)
        answer, written = follow_answer(client, submitted.job, stream=stream and not as_json)
        answer = answer.model_copy(update={"cached": submitted.cached})
    if as_json:
        to_stdout(answer)
    else:
        show(*answer_parts(answer, with_text=not written, with_points=points))
    return exit_code(answer)


def _questions(question: str | None, file: Path | None) -> list[str]:
    """Return the question, or those of a file: a line each."""
    if (question is None) == (file is None):
        raise UsageError(
            "There is no question." if question is None else "The question was given twice.",
            hint='communitree ask CORPUS "QUESTION", or --file FILE.',
        )
    if file is not None:
        text = sys.stdin.read() if str(file) == "-" else read_text(file, "--file")
        found = [line.strip() for line in text.splitlines() if line.strip()]
        if not found:
            raise UsageError("The file has no question.", hint="One question a line.")
        return found
    assert question is not None
    if not question.strip():
        raise UsageError("The question is empty.", hint='communitree ask CORPUS "What are the main themes?"')
    return [question.strip()]


def _history(path: Path) -> Any:
    import json

    try:
        return json.loads(read_text(path, "--history"))
    except ValueError as error:
        raise UsageError(f"--history: {path} is no JSON: {error}.") from error

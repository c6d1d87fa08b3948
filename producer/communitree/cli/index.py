"""`index`: publish a corpus job and follow it."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from communitree.cli.flags import Flags, with_flags
from communitree.cli.output import INTERRUPTED, Json, command, say, show, to_stdout
from communitree.cli.printing import rewrite
from communitree.cli.prompts import OF_INDEX, read_prompts
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.text_columns import text_columns
from communitree_shared.errors import UsageError

if TYPE_CHECKING:
    from communitree.client import Client
    from communitree.sources import Gathered

FLAGS = Flags(
    IndexOptions,
    {
        "": "This job",
        "read": "Reading documents",
        "extract": "Entities and relationships",
        "cluster": "Community tree",
        "report": "Community reports",
    },
    own={
        "read.text_column": "--text-column",
        "graph": "--graph",
        "cluster.recluster": "--recluster",
        "prompts": "--prompt",
        "plan_only": "--plan",
    },
    words={
        "reset_settings": "Start from the defaults, not from the settings that earlier jobs gave this corpus.",
        "budget_usd": "Call models for so much money (USD) at most; the rest is made without.",
        "budget_tokens": "Call models with so many tokens at most; the rest is made without.",
        "max_failed": "Share of a stage's model units that may fail; above it (and above 2), a better version stays "
        "published.",
        "publish_anyway": "Publish although the model did not succeed; the result says what is missing.",
        "rewrite_reports": "Also write those reports anew that an earlier release's own prompt made.",
        "read.chunk_overlap": "Tokens that neighbouring text units share.",
        "read.chunking": "Cut at tokens, or at the ends of sentences.",
        "read.encoding_model": "The encoding that counts tokens.",
        "read.title_column": "Of tables: the column with the title.",
        "read.id_column": "Of tables: the column with the id.",
        "read.metadata_columns": "Of tables: a column to keep with each document.",
        "read.prepend_metadata": "Put the metadata in front of each text unit.",
        "read.strict": "Fail on the first file or row that cannot be read.",
        "extract.extractor": "A model where one is set (auto), the built-in extractor, or spaCy's.",
        "extract.spacy_model": "An installed pipeline of spaCy's (default: en_core_web_sm).",
        "extract.entity_types": "A type of entity to look for.",
        "extract.max_gleanings": "Times the model is asked what it missed.",
        "extract.claims": "Also extract claims.",
        "extract.claim_description": "What counts as a claim.",
        "extract.max_description_tokens": "Longer descriptions are summarised.",
        "cluster.resolution": "Of the clustering: higher makes smaller communities.",
        "cluster.seed": "Of the clustering.",
        "cluster.iterations": "Rounds of the clustering.",
        "cluster.spread_above": "Level-0 communities with more entities than this are clustered by steps of their own.",
        "report.max_prompt_tokens": "Tokens of the prompt of a report, the whole prompt counted.",
        "report.min_entities": "Communities with fewer entities get a report without a model.",
        "report.language": "The language of the reports; by default the corpus's own.",
        "cluster.use_lcc": "Cluster only the largest component, as GraphRAG does; the rest hangs under one root.",
    },
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("index")(index)


@with_flags(FLAGS)
def index(
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="Files, folders, patterns in quotes, or - for standard input."),
    ],
    corpus: Annotated[
        str, typer.Option(help="The corpus's name; an existing one gets a new version, of these documents alone.")
    ],
    graph: Annotated[bool, typer.Option("--graph", help="SOURCE holds graph tables (GraphRAG's, or edges).")] = False,
    recluster: Annotated[
        bool, typer.Option("--recluster", help="With --graph: build our tree, do not keep the one in SOURCE.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Submit the job and return; it goes on without this command.")
    ] = False,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Say what would be made and cost: no model, no new version."),
    ] = False,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Also follow links that lead out of the folder they are in.")
    ] = False,
    text_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TABLE=]COLUMN",
            help="Of tables: the column with the text; papers.csv=abstract for one table. Several times for several.",
            rich_help_panel="Reading documents",
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE: your own prompt (extract, gleaning, claims, describe, report). Several times for several."
        ),
    ] = None,
    as_json: Json = False,
    *,
    options: dict[str, Any],
) -> int:
    """Index documents: text units, entities, the community tree, a report on each community.

    An existing corpus gets a new version, which replaces the one before: name all documents, not only new ones. What is
    not among them is gone, and the result says so.

    It keeps the settings of its earlier jobs; those given now replace them.

    Follows the job until it is published. Ctrl-C leaves it running, says how to follow it again, and exits with 130.
    """
    options["graph"] = graph
    options.setdefault("cluster", {})["recluster"] = recluster
    options["prompts"] = read_prompts(prompt or [], OF_INDEX)
    if text_column:
        options.setdefault("read", {})["text_column"] = text_column[0] if len(text_column) == 1 else text_column
    chosen = FLAGS.build(options)

    from communitree.cli.follow import exit_code, follow_index
    from communitree.client import Client
    from communitree.render.numbers import plural
    from communitree.sources import gather
    from communitree_shared.contract.results import IndexResult
    from communitree_shared.settings import Settings

    most = Settings().max_upload_bytes
    gathered = gather(source, tables=graph, max_bytes=most, follow_links=follow_links)
    gathered.refuse_losses(chosen.read.strict)
    _refuse_unknown_tables(gathered, chosen)
    for warning in gathered.warnings():
        say(warning)
    say(f"{plural(len(gathered.documents), 'file')}, {plural(gathered.size, 'byte')}")
    with Client() as client:
        for change in client.changed_settings(corpus, chosen):
            say(f"changed: {change}")
        if had := client.replaced(corpus, gathered):
            files = plural(had, "file")
            say(f"{files} of the version before, as they were, are not among these: an index replaces the whole set")
        if plan:
            return _plan(client, gathered, corpus, chosen, as_json)
        job = client.submit_index(gathered, corpus, chosen, progress=_uploaded)
        if detach:
            if as_json:
                to_stdout(IndexResult(job_id=job, status="queued", corpus=corpus))
            else:
                show(f"job {job}")
            say(f"Follow it with `{command(f'job {job} --follow')}`.")
            return 0
        say(f"job {job}")
        result = follow_index(client, job)
    if result is None:  # Ctrl-C
        say(
            f"The job goes on. Follow it with `{command(f'job {job} --follow')}`, "
            f"stop it with `{command(f'cancel {job}')}`."
        )
        if as_json:
            to_stdout(IndexResult(job_id=job, status="running", corpus=corpus))
        return INTERRUPTED
    if as_json:
        to_stdout(result)
    else:
        from communitree.render.index import index_result

        show(*index_result(result))
    return exit_code(result)


def _refuse_unknown_tables(gathered: Gathered, options: IndexOptions) -> None:
    names = {part for document in gathered.documents for part in (document.name, PurePosixPath(document.name).name)}
    for table in text_columns(options.read.text_column)[1]:
        if table not in names:
            raise UsageError(f"--text-column {table}=…: there is no file {table!r} in the sources.")


def _plan(client: Client, gathered: Gathered, corpus: str, options: IndexOptions, as_json: bool) -> int:
    from communitree.cli.follow import follow_any
    from communitree.render.index import index_plan
    from communitree_shared.contract.results import EXIT_CODES

    job = client.submit_index(gathered, corpus, options.model_copy(update={"plan_only": True}), progress=_uploaded)
    if not follow_any(client, job):  # Ctrl-C
        client.cancel(job)
        return EXIT_CODES["cancelled"]
    planned = client.planned(job)
    if as_json:
        to_stdout(planned)
    else:
        show(*index_plan(planned))
    return 0


def _uploaded(ended: int, total: int) -> None:
    if sys.stderr.isatty() and (ended == total or ended % 25 == 0):
        rewrite(f"uploaded {ended:,} of {total:,}", last=ended == total)

"""Lists of corpora, jobs, stages, dead letters."""

from __future__ import annotations

import time
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from communitree.render.numbers import money, plural, seconds, share, shorten
from communitree.render.text import Text
from communitree_shared.contract.job_views import JobRow, JobView
from communitree_shared.ledger.keeping import LOST

#: A job of these states has made its result.
_GOOD = ("answered", "published", "no_data", "done", "partial")

_STYLES = {
    **dict.fromkeys(("answered", "published", "no_data"), "green"),
    **dict.fromkeys(("failed", "lost", "cancelled"), "red"),
    "partial": "yellow",
}


def corpora_table(corpora: list[dict[str, Any]]) -> RenderableType:
    """Return one row a corpus."""
    if not corpora:
        return Text("no corpora yet: communitree index FOLDER --corpus NAME")
    table = Table()
    for name in (
        "corpus",
        "documents",
        "text units",
        "entities",
        "communities",
        "tree holds",
        "answers from cache",
        "version",
    ):
        table.add_column(name, justify="left" if name in {"corpus", "version"} else "right")
    for corpus in corpora:
        counts, held = corpus.get("counts") or {}, (corpus.get("coverage") or {}).get("entities")
        table.add_row(
            Text(corpus["name"]),
            *(f"{counts[k]:,}" if k in counts else "" for k in ("documents", "text_units", "entities", "communities")),
            share(held) if isinstance(held, (int, float)) else "",
            f"{corpus.get('answers_from_cache', 0):,}",
            (corpus["version"] or "not published")
            + (f" (job {corpus['indexing']} {_does(corpus)})" if corpus["indexing"] else ""),
        )
    return table


def _does(corpus: dict[str, Any]) -> str:
    return "is queued" if corpus.get("indexing_state") == "queued" else "runs"


def jobs_table(jobs: list[JobRow]) -> RenderableType:
    """Return one row a job, newest first."""
    if not jobs:
        return Text("no jobs yet")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("job", "status", "submitted", "took"):  # an id is copied: it stays on one line
        table.add_column(name, no_wrap=True)
    table.add_column("corpus: question")
    for job in jobs:
        asked = shorten(job.question) if job.kind == "query" else "(index)"
        table.add_row(
            job.job_id, Text(job.status, _STYLES.get(job.status, "")), _when(job.created, "%m-%d %H:%M"), _took(job),
            Text(f"{job.corpus}: {asked}" if asked else job.corpus),
        )  # fmt: skip
    return table


def job_parts(view: JobView, *, with_events: bool = False) -> list[RenderableType]:
    """Return a job's state, its stages, its events if wanted."""
    parts: list[RenderableType] = [
        Text.assemble(
            (view.status, f"bold {_STYLES.get(view.status, '')}".strip()),
            f"  {view.kind} job {view.job_id}, corpus {view.corpus}",
        )
    ]
    if view.question:
        parts.append(Text(f"asked: {view.question}"))
    told = [f"submitted {_when(view.created)}"] if view.created else []
    told += [f"took {_took(view)}"] if view.ended is not None else []
    told += [f"{plural(view.llm.calls, 'model call')}, {money(view.llm.usd)}"] if view.llm else []
    if told:
        parts.append(Text(", ".join(told), "dim"))
    if view.models:
        parts.append(Text("planned with " + ", ".join(f"{stage}: {m}" for stage, m in view.models.items()), "dim"))
    table = Table("stage", "state", "done", "failed")
    ended = view.status in _GOOD
    for stage in view.progress.get("stages", []):
        total, failed = stage.get("total", 0), stage.get("failed", 0)
        # The last stage ends its job before it is counted itself.
        done = total - failed if ended and stage["state"] == "closed" else stage.get("done", 0)
        table.add_row(stage["stage"], stage["state"], f"{done:,}/{total:,}", f"{failed:,}")
    if table.row_count:
        parts.append(table)
    parts += [Text(f"! {group.line()}", "yellow") for group in view.failures]
    if view.waits:
        parts.append(
            Text(f"! it waits: {view.waits.get('message', '')} {view.waits.get('hint', '')}".rstrip(), "yellow")
        )
    if view.error:
        parts.append(Text(f"! {view.error['message']} {view.error.get('hint', '')}".rstrip(), "red"))
    if with_events:
        for event in view.events:
            rest = "  ".join(f"{k}={v}" for k, v in event.items() if k not in {"seq", "at", "type"})
            parts.append(Text(f"{event['seq']:>6}  {_when(event['at'])}  {event['type']:<16} {rest}"))
    return parts


def letters_table(letters: list[dict[str, Any]]) -> RenderableType:
    """Return one row a unit that was given up."""
    if not letters:
        return Text("no dead letters")
    table = Table("job", "stage", "unit", "attempts", "why")
    for letter in letters:
        if letter.get("type") == LOST:
            letter = {"why": f"{int(letter['count']):,} older ones were dropped: see COMMUNITREE_DEAD_LETTERS_KEEP"}
        table.add_row(*(Text(str(letter.get(name, ""))) for name in ("job", "stage", "unit", "attempts", "why")))
    return table


def _when(unix: float | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return time.strftime(form, time.localtime(unix)) if unix else ""


def _took(job: JobRow | JobView) -> str:
    """Return the time from a job's submission to its end; "" while it runs."""
    return seconds(job.ended - (job.created or job.ended)) if job.ended is not None else ""

"""The result of a corpus job, and the estimate before one."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from communitree.render.numbers import money, plural, seconds, share
from communitree_shared.results import IndexResult


def index_result(result: IndexResult) -> list[RenderableType]:
    """Return what was made, how much of the corpus the tree holds, what it cost."""
    style = {"published": "green", "partial": "yellow"}.get(result.status, "red")
    head = Text.assemble((result.status, f"bold {style}"), f"  corpus {result.corpus}  version {result.version or '–'}")
    counts, coverage = result.counts, result.coverage
    lines = [
        ", ".join(
            (
                plural(counts.documents, "document"),
                plural(counts.text_units, "text unit"),
                plural(counts.entities, "entity", "entities"),
                plural(counts.relationships, "relationship"),
                *((plural(counts.claims, "claim"),) if counts.claims else ()),
                plural(counts.communities, "community", "communities"),
            )
        ),
        f"the tree holds {share(coverage.entities)} of entities, {share(coverage.text_units)} of text units, "
        f"{share(coverage.relationships)} of relationships "
        f"({plural(coverage.between_roots, 'runs', 'run')} between roots)",
        "reports: "
        + ", ".join(f"{n:,} {kind}" for kind, n in result.reports.model_dump().items() if n or kind == "failed"),
    ]
    if result.llm.calls or result.llm.cached:
        llm = result.llm
        lines.append(
            f"model: {plural(llm.calls, 'call')}, {llm.cached:,} from cache, {llm.prompt_tokens:,} prompt and "
            f"{llm.output_tokens:,} output tokens, {money(llm.usd)}"
        )
    parts = {k: v for k, v in result.seconds.model_dump().items() if k != "total" and v}
    lines.append(f"{seconds(result.seconds.total)}" + (f": {_times(parts)}" if parts else ""))
    if result.status == "failed" and not result.counts.documents:
        lines = []
    return [head, *map(Text, lines), *(Text(f"! {w}", "yellow") for w in result.warnings)]


def index_plan(plan: dict[str, Any]) -> list[RenderableType]:
    """Return what an index would read and send."""
    table = Table.grid(padding=(0, 2))
    for name, value in plan.items():
        if name not in {"warnings", "note"}:
            table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    return [table, Text(str(plan.get("note", "")), "dim"), *(Text(f"! {w}", "yellow") for w in plan["warnings"])]


def _times(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds(value)}" for name, value in parts.items())

"""The result of a corpus job, and the estimate before one."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from communitree.render.numbers import money, plural, seconds, share
from communitree.render.text import Text
from communitree_shared.contract.index_plan import IndexPlan
from communitree_shared.contract.results import IndexResult


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
        f"the tree holds {share(coverage.entities)} of entities, {share(coverage.text_units)} of text units"
        + (f", {share(coverage.relationships)} of relationships" if counts.relationships else "")
        + (f" ({plural(coverage.between_roots, 'runs', 'run')} between roots)" if coverage.between_roots else ""),
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
    lines += [f"changed: {line}" for line in result.changes]
    lines += [f"note: {line}" for line in result.notes]
    return [head, *map(Text, lines), *(Text(f"! {w}", "yellow") for w in result.warnings)]


#: What the graph of a plan is.
_GRAPHS = {
    "given": "the graph that was brought",
    "built-in": "the graph of the built-in extractor",
    "stand-in": "estimated on the graph of the built-in extractor: that of the model will differ",
}


def index_plan(plan: IndexPlan) -> list[RenderableType]:
    """Return what an index would make, level by level, and what it would cost."""
    counts = plan.counts
    made = ", ".join(
        (
            plural(counts.documents, "document"),
            plural(counts.text_units, "text unit"),
            plural(counts.entities, "entity", "entities"),
            plural(counts.relationships, "relationship"),
            *((plural(counts.claims, "claim"),) if counts.claims else ()),
            plural(counts.communities, "community", "communities"),
        )
    )
    table = Table("level", "communities", "model calls", "reused", "prompt tokens", box=None, padding=(0, 2))
    for level, row in plan.levels.items():
        table.add_row(level, *(f"{n:,}" for n in (row.communities, row.calls, row.reused, row.prompt_tokens)))
    lines = [
        f"{stage}: {plural(usage.calls, 'call')}, {usage.prompt_tokens:,} prompt and about "
        f"{usage.output_tokens:,} output tokens, {money(usage.usd)}"
        for stage, usage in plan.llm.by_stage.items()
        if usage.calls
    ]
    lines.append(f"in all: {money(plan.llm.usd)}" if lines else "no model would be called: it costs nothing")
    return [
        Text(f"plan  corpus {plan.corpus}  ({_GRAPHS[plan.graph]})", "bold"),
        Text(made),
        table,
        *map(Text, lines),
        *(Text(f"changed: {c}") for c in plan.changes),
        *(Text(f"note: {n}") for n in plan.notes),
        *(Text(f"! {w}", "yellow") for w in plan.warnings),
    ]


def _times(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds(value)}" for name, value in parts.items())

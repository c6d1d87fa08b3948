"""An answer with its account in a few lines; a plan, alone or beside others."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from communitree.render.numbers import listed, money, plural, seconds, share, shorten
from communitree_shared.results import Account, Answer, Citation, Plan, Selection

_STYLES = {"answered": "green", "no_data": "yellow", "partial": "yellow", "failed": "red", "cancelled": "red"}

_CITATIONS_SHOWN = 20

_SINGULAR = {
    "reports": "report", "sources": "source", "entities": "entity", "relationships": "relationship", "claims": "claim",
}  # fmt: skip


def answer_parts(answer: Answer, *, with_text: bool = True, with_points: bool = False) -> list[RenderableType]:
    """Return the answer, its citations with where to look on, its points if wanted, and its account."""
    parts: list[RenderableType] = []
    error = answer.error or {}
    if with_text and answer.answer.strip():
        remedy = [Text(str(error["hint"]))] if error.get("hint") else []
        parts += [_Prose(answer.answer), *remedy, Text()]
    if answer.standalone_question and answer.standalone_question != answer.question:
        parts.append(Text(f"understood as: {answer.standalone_question}", "dim"))
    if answer.citations:
        parts += [Text("Citations", "bold"), _citations(answer.citations), Text()]
    if with_points and answer.points:
        parts += [Text("Points", "bold"), _points(answer), Text()]
    parts.append(
        Text.assemble((answer.status, f"bold {_STYLES.get(answer.status, '')}".strip()), f"  job {answer.job_id}")
    )
    if answer.cached:
        parts.append(Text("known: asked before on the same version, so it cost nothing; the account is of that time"))
    if error and not answer.account.batches.total:  # refused before anything was read: the text says all
        return parts
    return [*parts, *account_lines(answer.account)]


def account_lines(account: Account) -> list[Text]:
    """Return what happened to everything on the way: selection, coverage, batches, points, citations, cost."""
    batches, points, reports, llm = account.batches, account.points, account.reports, account.llm
    what = "text unit" if account.selection.strategy == "texts" else "report"
    lines = [*selection_lines(account.selection, units=reports.selected if what == "text unit" else None)]
    coverage = account.coverage
    lines.append(
        f"covers {share(coverage.entities)} of entities; {share(coverage.text_units_assigned)} of text units are "
        f"assigned to what was read, {share(coverage.text_units_read)} were read"
    )
    extra = [f"{getattr(batches, k):,} {w}" for k, w in _BATCH_WORDS.items() if getattr(batches, k)]
    lines.append(
        f"batches: {batches.answered:,} of {batches.total:,} answered" + (f" ({', '.join(extra)})" if extra else "")
    )
    lines.append(
        f"points: {points.produced:,} = {points.used:,} used + {points.duplicate:,} duplicate "
        f"+ {points.zero:,} irrelevant + {points.dropped:,} dropped; {points.in_answer:,} in the answer"
    )
    silent = f"; silent (no point cites them): {_ids(reports.silent)}" if reports.silent else ""
    lines.append(
        f"citations in the answer: {account.citations.verified:,} verified, {account.citations.unverified:,} not"
    )
    lines.append(f"points cite {reports.cited:,} of {plural(reports.selected, what)}{silent}")
    models = listed(sorted(set(account.settings.models.values())), 3)
    calls = f"{plural(llm.calls, 'call')}{f' to {models}' if models else ''}, {llm.cached:,} from cache, "
    calls += f"{llm.prompt_tokens + llm.output_tokens:,} tokens, {money(llm.usd)}"
    if not llm.calls and not llm.cached:
        calls = f"no model call{f' ({models})' if models else ''}"
    lines.append(f"{calls}; {seconds(account.seconds.total)}")
    return [*(Text(line, "dim") for line in lines), *(Text(f"! {w}", "yellow") for w in account.warnings)]


_BATCH_WORDS = {
    "empty": "found nothing", "failed": "failed", "retried": "tried again", "split": "split",
    "at_limit": "at their word limit", "cached": "from cache",
}  # fmt: skip


def selection_lines(selection: Selection, units: int | None = None) -> list[str]:
    """Return what was chosen and why; what is as fine as it gets; what was pruned or did not fit.

    `units`: so many text units were read, and no reports.
    """
    read = plural(selection.reports, "report") if units is None else plural(units, "text unit")
    levels = ", ".join(f"level {k}: {v:,}" for k, v in sorted(selection.levels.items(), key=lambda i: int(i[0])))
    lines = [f"read {read}, {plural(selection.tokens, 'token')}" + (f"; {levels}" if levels else "")]
    finest = selection.finest_available
    if finest.count:
        few = "1 of these stands" if finest.count == 1 else f"{finest.count:,} of these stand"
        lines.append(f"{few} on a higher level than others: there is nothing finer below")
    # On a line of its own: it is in the question's language.
    lines.append(f"selection {selection.strategy}" + (f": {selection.why}" if selection.why else ""))
    walked = selection.strategy in ("relevant", "dynamic")
    out = (("pruned as irrelevant", selection.pruned), ("left out for the budget", selection.left_out))
    for why, pruned in out if walked else ((_why_left_out(selection), selection.pruned),):
        if pruned.count:
            lines.append(
                f"{why}: {plural(pruned.count, 'community', 'communities')} (in nothing that is read: "
                f"{plural(pruned.text_units, 'text unit')}, {share(pruned.entities)} of entities)"
            )
    return lines


def _why_left_out(selection: Selection) -> str:
    low = selection.budget.get("below_rank", 0)
    if not low:
        return "left out for the budget"
    return "left out for the budget or their rank" if low < selection.pruned.count else "left out for their rank"


def plan_parts(plans: list[Plan]) -> list[RenderableType]:
    """Return one plan in lines, or several side by side."""
    if len(plans) == 1:
        return [Text(line) for line in _plan_lines(plans[0])]
    table = Table(title=Text(f"{plans[0].corpus}: what each selection would read" if plans else "no plans"))
    table.title_justify = "left"
    numbers = ("reports", "batches", "rating calls", "tokens", "cost", "entities", "assigned", "read")
    for name in ("selection", *numbers, "why"):
        table.add_column(name, justify="right" if name in numbers else "left")
    for plan in plans:
        most, coverage = "≤ " if plan.upper_bound else "", plan.coverage
        counts = (plan.selection.reports, plan.batches, plan.rating_calls, plan.tokens)
        shares = (coverage.entities, coverage.text_units_assigned, coverage.text_units_read)
        table.add_row(
            _selection_name(plan.selection),
            *(f"{most}{n:,}" if n else "0" for n in counts),
            money(plan.usd),
            *(share(value) for value in shares),
            Text(shorten(plan.selection.why, 60)),
        )
    return [table]


def _selection_name(selection: Selection) -> str:
    """Return a strategy with the number that it was planned with."""
    budget = selection.budget
    limits = (
        ("level", "{}"),
        ("coverage", "{:.0%}"),
        ("tokens", "{:,} tokens"),
        ("reports", "{:,} reports"),
        ("usd", "${:g}"),
    )
    shown = next((form.format(budget[name]) for name, form in limits if budget.get(name) is not None), "")
    return f"{selection.strategy} {shown}".strip() if selection.strategy != "auto" else "auto"


def _plan_lines(plan: Plan) -> list[str]:
    most = "at most " if plan.upper_bound else ""
    calls = f", {plural(plan.rating_calls, 'rating call')}" if plan.rating_calls else ""
    coverage = plan.coverage
    return [
        *selection_lines(plan.selection),
        f"{most}{plural(plan.batches, 'batch', 'batches')}{calls}, {plan.tokens:,} prompt tokens, {money(plan.usd)}",
        f"covers {share(coverage.entities)} of entities; {share(coverage.text_units_assigned)} of text units assigned, "
        f"{share(coverage.text_units_read)} read",
    ]


class _Prose:
    """Markdown on a terminal; elsewhere the text as it is, so that citations stay in one piece for who parses it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield Markdown(self.text)
        else:
            yield Segment(self.text + "\n")


def _citations(citations: list[Citation]) -> Table:
    table = Table.grid(padding=(0, 2))
    for citation in citations[:_CITATIONS_SHOWN]:
        name = _cited(citation)
        where = [f"level {citation.level}"] if citation.level is not None else []
        where += (
            [f"{plural(len(citation.text_units), 'text unit')} in {listed(citation.documents, 3)}"]
            if citation.documents
            else []
        )
        mark = Text("✓", "green") if citation.verified else Text("not verified", "yellow")
        table.add_row(mark, Text(name, "cyan"), Text(shorten(citation.title, 60)), Text(", ".join(where), "dim"))
    if len(citations) > _CITATIONS_SHOWN:
        table.add_row("", "", Text(f"and {len(citations) - _CITATIONS_SHOWN:,} more", "dim"), "")
    return table


def _cited(citation: Citation) -> str:
    """Return what a citation names, as `report 3`."""
    if citation.report is not None:
        return f"report {citation.report}"
    if citation.id is None:  # a text unit, in an answer that an earlier release has stored
        return "source"
    return f"{_SINGULAR.get(citation.kind, citation.kind)} {citation.id}"


def _points(answer: Answer) -> Table:
    table = Table("score", "batch", "reports", "point", "what became of it")
    for point in sorted(answer.points, key=lambda p: -p.score):
        became = "in the answer" if point.in_answer else point.why_not or ("used" if point.used else "not used")
        table.add_row(
            f"{point.score:g}", str(point.batch), _ids(point.reports), Text(shorten(point.text, 200)), Text(became)
        )
    return table


def _ids(ids: list[int], shown: int = 8) -> str:
    return listed([str(i) for i in ids], shown)

"""An answer with its account in a few lines; a plan, alone or beside others."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table

from communitree.render.numbers import listed, money, seconds, share, shorten
from communitree.render.text import Text
from communitree.render.words import say
from communitree_shared.contract.results import Account, Answer, Citation, Coverage, Plan, Point, Selection
from communitree_shared.contract.strategies import reads_texts, walks
from communitree_shared.languages import language
from communitree_shared.visible import visible

_STYLES = {"answered": "green", "no_data": "yellow", "partial": "yellow", "failed": "red", "cancelled": "red"}

_CITATIONS_SHOWN = 20
_UNREAD_SHOWN = 5

#: Kinds that a citation may name; another is shown as it is.
_KINDS = ("reports", "sources", "entities", "relationships", "claims")

#: What batches are counted by, beside how many answered.
_BATCHES = ("empty", "failed", "retried", "split", "at_limit", "cached")


def answer_parts(answer: Answer, *, with_text: bool = True, with_points: bool = False) -> list[RenderableType]:
    """Return the answer, its citations with where to look on, its points if wanted, and its account."""
    parts: list[RenderableType] = []
    error = answer.error or {}
    zh = _chinese(answer.account.selection, answer.answer)
    if with_text and answer.answer.strip():
        remedy = [Text(str(error["hint"]))] if error.get("hint") else []
        parts += [_Prose(answer.answer), *remedy, Text()]
    if answer.standalone_question and answer.standalone_question != answer.question:
        parts.append(Text(say("understood", zh, question=answer.standalone_question), "dim"))
    if answer.citations:
        parts += [Text(say("citations", zh), "bold"), _citations(answer.citations, zh)]
        parts += [Text(say("legend", zh), "dim"), Text()]
    if with_points and answer.points:
        parts += [Text(say("points", zh), "bold"), *_points(answer.points, zh), Text()]
    state = (say(f"status.{answer.status}", zh), f"bold {_STYLES[answer.status]}")
    parts.append(Text.assemble(state, "  ", say("job", zh, job=answer.job_id)))
    if answer.cached:
        parts.append(Text(say("known", zh)))
    if error and not answer.account.batches.total:  # refused before anything was read: the text says all
        return parts
    if answer.status == "cancelled":
        return [*parts, *_cancelled_lines(answer.account, zh)]
    return [*parts, *account_lines(answer.account, zh)]


def _cancelled_lines(account: Account, zh: bool) -> list[Text]:
    """Return what was done and spent before a question was cancelled."""
    batches = say("batches", zh, answered=account.batches.answered, total=account.batches.total)
    warnings = (Text(f"! {w}", "yellow") for w in account.warnings)
    return [Text(batches, "dim"), Text(_called(account, zh), "dim"), *warnings]


def account_lines(account: Account, zh: bool) -> list[Text]:
    """Return what happened to everything on the way: selection, coverage, batches, points, citations, cost."""
    batches, reports = account.batches, account.reports
    texts = reads_texts(account.selection.strategy)
    extra = [say(f"batch.{k}", zh, n=getattr(batches, k)) for k in _BATCHES if getattr(batches, k)]
    cite = say("cite.texts" if texts else "cite.reports", zh, cited=reports.cited, n=reports.selected)
    lines = [
        *selection_lines(account.selection, zh, reports.selected if texts else None, partly=bool(reports.unread)),
        _covers("covers", account.coverage, zh),
        say("batches", zh, answered=batches.answered, total=batches.total)
        + (say("brackets", zh, inner=say("comma", zh).join(extra)) if extra else ""),
        _points_sum(account, zh),
        _cited_sum(account, zh),
        cite
        + (say("silent", zh, ids=_ids(reports.silent, zh)) if reports.silent else "")
        + (say("unread", zh, ids=_ids(reports.unread, zh)) if reports.unread else ""),
        *(say("unread.because", zh, id=row.report, cause=row.cause) for row in reports.unread_because[:_UNREAD_SHOWN]),
        _called(account, zh),
        *_endings(account, zh),
    ]
    return [*(Text(line, "dim") for line in lines), *(Text(f"! {w}", "yellow") for w in account.warnings)]


def _points_sum(account: Account, zh: bool) -> str:
    points = account.points
    others = (("named", points.named), ("unknown", points.unknown), ("condensed", points.condensed))
    said = "".join(say(f"points.{name}", zh, n=n) for name, n in others if n)
    return say("points.sum", zh, **points.model_dump(), others=said)


def _cited_sum(account: Account, zh: bool) -> str:
    cited = account.citations
    unread = say("cited.unread", zh, n=cited.unread) if cited.unread else ""
    return say("cited", zh, **{**cited.model_dump(), "unread": unread})


def _called(account: Account, zh: bool) -> str:
    llm = account.llm
    models, time = listed(sorted(set(account.settings.models.values())), 3, zh), seconds(account.seconds.total)
    if llm.calls or llm.cached:
        return say(
            "calls", zh, calls=llm.calls, models=say("calls.to", zh, models=models) if models else "",
            cached=llm.cached, tokens=llm.prompt_tokens + llm.output_tokens, usd=_money(llm.usd, zh), time=time,
        )  # fmt: skip
    return say("calls.none", zh, models=say("calls.none_by", zh, models=models) if models else "", time=time)


def _endings(account: Account, zh: bool) -> list[str]:
    """Return a line on how model replies ended that did not end as they should, where there were such."""
    ended = [say("ending", zh, name=name, n=n) for name, n in account.llm.endings.items()]
    return [say("endings", zh, inner=say("comma", zh).join(ended))] if ended else []


def selection_lines(selection: Selection, zh: bool, units: int | None = None, *, partly: bool = False) -> list[str]:
    """Return what was chosen and why; what is as fine as it gets; what was pruned or did not fit.

    `units`: so many text units are chosen, and no reports. `partly`: not all that is chosen was read.
    """
    by_level = sorted(selection.levels.items(), key=lambda i: int(i[0]))
    levels = say("comma", zh).join(say("level", zh, level=k, n=v) for k, v in by_level)
    lines = [
        say(
            "read.reports" if units is None else "read.texts", zh, n=selection.reports if units is None else units,
            did=say("did.chose" if partly else "did.read", zh), tokens=selection.tokens,
            levels=say("semicolon", zh) + levels if levels else "",
        )
    ]  # fmt: skip
    if picks := selection.picks.reports:
        because = say("picks.why", zh, why=selection.picks.why) if selection.picks.why else ""
        lines.append(say("picks", zh, n=len(picks), why=because, reports=_ids(picks, zh)))
    if count := selection.finest_available.count:
        wanted = selection.budget.get("level")
        deepest = wanted if isinstance(wanted, int) else max(map(int, selection.levels), default=0)
        lines.append(say("finest", zh, n=count, level=deepest))
    why = say("colon", zh) + selection.why if selection.why else ""
    lines.append(say("selection", zh, strategy=selection.strategy) + why)
    walked = walks(selection.strategy)
    out = (("out.pruned", selection.pruned), ("out.budget", selection.left_out))
    for key, pruned in out if walked else ((_why_left_out(selection), selection.pruned),):
        if pruned.count:
            lines.append(
                say(
                    "out", zh, why=say(key, zh), n=pruned.count, units=pruned.text_units,
                    entities=share(pruned.entities),
                )
            )  # fmt: skip
    return lines


def _chinese(selection: Selection, said: str = "") -> bool:
    """Say whether what stands around is in Chinese: as why it was chosen, where nothing was, as what is said."""
    return language(selection.why or said) == "zh"


def _covers(key: str, coverage: Coverage, zh: bool) -> str:
    return say(
        key, zh, entities=share(coverage.entities), assigned=share(coverage.text_units_assigned),
        read=share(coverage.text_units_read),
    )  # fmt: skip


def _money(usd: float | None, zh: bool) -> str:
    return say("usd.unknown", zh) if usd is None else money(usd)


def _why_left_out(selection: Selection) -> str:
    low = selection.budget.get("below_rank", 0)
    if not low:
        return "out.budget"
    return "out.budget_or_rank" if low < selection.pruned.count else "out.rank"


def plan_parts(plans: list[Plan]) -> list[RenderableType]:
    """Return one plan in lines, or several side by side."""
    if len(plans) == 1:
        return [Text(line) for line in _plan_lines(plans[0])]
    if not plans:
        return [Text("no plans")]
    zh = _chinese(plans[0].selection)
    table = Table(title=Text(say("plan.table", zh, corpus=plans[0].corpus)), title_justify="left")
    name, *numbers, why = say("plan.columns", zh).split("|")
    for column in (name, *numbers, why):
        table.add_column(column, justify="right" if column in numbers else "left")
    for plan in plans:
        most, coverage = "≤ " if plan.upper_bound else "", plan.coverage
        counts = (plan.selection.reports, plan.batches, plan.rating_calls, plan.tokens)
        shares = (coverage.entities, coverage.text_units_assigned, coverage.text_units_read)
        table.add_row(
            _selection_name(plan.selection),
            *(f"{most}{n:,}" if n else "0" for n in counts),
            _money(plan.usd, zh),
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
    zh = _chinese(plan.selection)
    cost = say(
        "plan.cost", zh, most=say("plan.most", zh) if plan.upper_bound else "", batches=plan.batches,
        calls=say("plan.calls", zh, n=plan.rating_calls) if plan.rating_calls else "", tokens=plan.tokens,
        usd=_money(plan.usd, zh),
    )  # fmt: skip
    return [*selection_lines(plan.selection, zh), cost, _covers("plan.covers", plan.coverage, zh)]


class _Prose:
    """Markdown on a terminal; elsewhere the text as it is, so that citations stay in one piece for who parses it."""

    def __init__(self, text: str) -> None:
        self.text = visible(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield Markdown(self.text, hyperlinks=False)  # an answer's link shows where it leads
        else:
            yield Segment(self.text + "\n")


def _citations(citations: list[Citation], zh: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    for citation in citations[:_CITATIONS_SHOWN]:
        where = [say("citation.level", zh, level=citation.level)] if citation.level is not None else []
        if citation.documents:
            documents = listed(citation.documents, 3, zh)
            where.append(say("citation.units", zh, n=len(citation.text_units), documents=documents))
        supported = citation.grade == "supported"
        mark = Text("✓", "green") if supported else Text(say(f"grade.{citation.grade}", zh), "yellow")
        table.add_row(
            mark, Text(_cited(citation, zh), "cyan"), Text(shorten(citation.title, 60)),
            Text(say("comma", zh).join(where), "dim"),
        )  # fmt: skip
    if len(citations) > _CITATIONS_SHOWN:
        table.add_row("", "", Text(say("more", zh, n=len(citations) - _CITATIONS_SHOWN), "dim"), "")
    return table


def _cited(citation: Citation, zh: bool) -> str:
    """Return what a citation names, as `report 3`."""
    if citation.report is not None:
        return f"{say('kind.reports', zh)} {citation.report}"
    if citation.id is None:  # a text unit, in an answer that an earlier release has stored
        return say("kind.sources", zh)
    return f"{say(f'kind.{citation.kind}', zh) if citation.kind in _KINDS else citation.kind} {citation.id}"


def _points(points: list[Point], zh: bool) -> Iterator[RenderableType]:
    """Yield each point below a line of its numbers and what became of it: a narrow terminal has room for its text."""
    for point in sorted(points, key=lambda p: -p.score):
        became = "point.in_answer" if point.in_answer else "point.used" if point.used else "point.not_used"
        numbers = say("point", zh, score=point.score, batch=point.batch)
        numbers += say("point.reports", zh, reports=_ids(point.reports, zh)) if point.reports else ""
        why = "" if point.in_answer else point.why_not
        yield Text(numbers + say("colon", zh) + (why or say(became, zh)), "dim")
        yield Padding(Text(" ".join(point.text.split())), (0, 0, 0, 2), expand=False)


def _ids(ids: list[int], zh: bool) -> str:
    return listed([str(i) for i in ids], 8, zh)

"""The answer and its account: what happened to every report, batch, point and citation on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from communitree_shared.contract.results import (
    Account,
    Answer,
    BatchesAccount,
    CitationsAccount,
    LlmAccount,
    PointsAccount,
    QuerySeconds,
    QuerySettings,
    QueryStatus,
    Usage,
)
from communitree_shared.contract.strategies import reads_texts
from communitree_shared.languages import is_chinese
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.query.answer.checking import Checked, check
from communitree_workers.query.answer.citations import Resolver, cite, mark_states
from communitree_workers.query.answer.reports import coverage_read, ids_read, reports_account, unread_alone
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.points.gathering import Gathered
from communitree_workers.query.selection.choice import Selected
from communitree_workers.query.wording.causes import cause_in
from communitree_workers.query.wording.phrases import say
from communitree_workers.text.language import in_another_script


@dataclass(frozen=True)
class Reduced:
    """What the reduce gave: the text (None: no reduce call, or it failed for `cause`), shortened points.

    A text and a `cause`: the model failed, and the built-in one has arranged the points instead. `broken`: why the
    text breaks off, where it does. `lost`: points that are not in the text, because condensing them failed for
    `lost_cause`. `unrated`: why the best points could not be rated jointly. `checked`: the text, its citations checked.
    `condensed`: positions of points that the texts of earlier rounds do not state any more.
    """

    text: str | None = None
    cause: str = ""
    broken: str = ""
    unrated: str = ""
    shortened: int = 0
    lost: int = 0
    lost_cause: str = ""
    checked: Checked | None = None
    condensed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Header:
    """What an answer says about its job.

    `again`: the job whose silent reports it has read again; `earlier`: so many of the first batches are that job's.
    """

    job_id: str
    question: str
    corpus: str
    version: str
    standalone_question: str = ""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    seconds: QuerySeconds = field(default_factory=QuerySeconds)
    settings: QuerySettings = field(default_factory=QuerySettings)
    warnings: Sequence[str] = ()
    again: str = ""
    earlier: int = 0


def status_of(outcomes: Sequence[BatchOutcome], *, cancelled: bool = False) -> QueryStatus:
    """Return the state that the batches alone decide: `answered` still needs its reduce to succeed."""
    if cancelled:
        return "cancelled"
    answered = [o for o in outcomes if o.status == "answered"]
    if outcomes and not answered:
        return "failed"
    if len(answered) < len(outcomes) or any(o.unread for o in answered):
        return "partial"
    return "answered" if any(o.result and not o.result.empty for o in answered) else "no_data"


def needs_reduce(outcomes: Sequence[BatchOutcome], gathered: Gathered) -> bool:
    """Say whether there is anything to put together. No reduce call is made without a point."""
    return bool(gathered.order) and status_of(outcomes) in ("answered", "partial")


def build_answer(
    header: Header,
    selected: Selected,
    outcomes: Sequence[BatchOutcome],
    gathered: Gathered,
    reduced: Reduced,
    resolver: Resolver,
    *,
    language: str,
    context: str = "Reports",
    cancelled: bool = False,
) -> Answer:
    """Put an answer together.

    The sums close: answered + failed = batches; used + dropped + zero + duplicate = points; supported + related +
    unsupported + unknown = citations. A failed batch is never an empty success, and states are told apart in words in
    `language`.
    """
    status = status_of(outcomes, cancelled=cancelled)
    wanted = needs_reduce(outcomes, gathered)
    if status in ("answered", "partial") and wanted and reduced.text is None:
        status = "cancelled" if cancelled else "failed"
    if status == "answered" and wanted and (reduced.cause or reduced.lost or reduced.broken):
        status = "partial"
    if status == "answered" and not wanted:
        status = "no_data"
    if status == "no_data" and gathered.dropped:  # something was found, whatever it is worth
        status = "partial"
    checked = Checked("")
    if reduced.text is not None and status in ("answered", "partial") and wanted:
        checked = reduced.checked or check(reduced.text, gathered.points, language, context)
        mark_states(gathered.points, checked, _titles(resolver, selected.kind), reduced.condensed, language)
    else:
        for point in gathered.points:
            if point.used:
                point.why_not = say("not.no_reduce", language)
    citations = cite(checked, resolver, selected.kind, gathered.points)
    states = Counter(point.state for point in gathered.points)
    grades = Counter(citation.grade for citation in citations)
    read = ids_read(outcomes[: header.earlier]) | ids_read(outcomes[header.earlier :])
    account = Account(
        selection=selected.selection,
        coverage=coverage_read(resolver.view, selected, read),
        reports=reports_account(selected, read, gathered, unread_alone(outcomes)),
        batches=_batches(outcomes),
        points=PointsAccount(
            produced=len(gathered.points),
            used=sum(p.used for p in gathered.points),
            zero=gathered.zero,
            duplicate=gathered.duplicate,
            dropped=gathered.dropped,
            in_answer=states["stated"],
            named=states["named"],
            not_stated=states["not stated"],
            unknown=states["unknown"],
            condensed=sum(gathered.points[i].state == "not stated" for i in reduced.condensed),
        ),
        citations=CitationsAccount(
            total=len(citations),
            verified=grades["supported"],
            unverified=len(citations) - grades["supported"],
            supported=grades["supported"],
            related=grades["related"],
            unsupported=grades["unsupported"],
            unknown=grades["unknown"],
            unread=checked.unread,
        ),
        llm=LlmAccount.of(dict(header.usage)),
        seconds=header.seconds,
        settings=header.settings,
    )
    account.warnings = [*selected.warnings, *header.warnings, *_warnings(header, account, reduced, status, language)]
    if alone := sum(point.used and point.overview_only for point in gathered.points):
        account.warnings.append(say("warn.overview_only", language, count=alone))
    return Answer(
        job_id=header.job_id,
        status=status,
        question=header.question,
        standalone_question=header.standalone_question,
        answer=_words(status, outcomes, gathered, reduced, checked, account, language),
        corpus=header.corpus,
        version=header.version,
        citations=citations,
        points=gathered.points,
        account=account,
    )


def _titles(resolver: Resolver, kind: str) -> Callable[[int], str]:
    """Return what gives a cited report's title; text units have none of their own."""
    view = resolver.view
    return lambda id: view.titles[view.node[id]] if kind == "reports" and id in view.node else ""


def _batches(outcomes: Sequence[BatchOutcome]) -> BatchesAccount:
    answered = [o for o in outcomes if o.status == "answered"]
    return BatchesAccount(
        total=len(outcomes),
        answered=len(answered),
        empty=sum(o.result is None or o.result.empty for o in answered),
        failed=len(outcomes) - len(answered),
        retried=sum(o.retried > 0 for o in outcomes),
        split=sum(o.halves > 0 for o in outcomes),
        at_limit=sum(o.at_limit for o in answered),
        cached=sum(o.cached for o in answered),
    )


def causes(outcomes: Sequence[BatchOutcome], language: str) -> str:
    """Return the causes of failed batches, the most frequent first, each once."""
    found = Counter(
        cause_in(language, o.cause) or say("cause.unknown", language) for o in outcomes if o.status == "failed"
    )
    named = [f"{cause} ×{n}" if n > 1 and len(found) > 1 else cause for cause, n in found.most_common(3)]
    return ("；" if is_chinese(language) else "; ").join(named)


def causes_alone(outcomes: Sequence[BatchOutcome], language: str) -> str:
    """Return the causes of reports that could not be read in batches that answered, the most frequent first."""
    found = Counter(cause_in(language, cause) for cause in unread_alone(outcomes).values())
    return ("；" if is_chinese(language) else "; ").join(cause for cause, _ in found.most_common(3))


def opening(outcomes: Sequence[BatchOutcome], reduced: Reduced, language: str) -> str:
    """Return the notes that stand before the text of an answer that is not whole; "" where it is."""
    failed, notes = sum(o.status == "failed" for o in outcomes), []
    if failed:
        values = {"batches": len(outcomes), "failed": failed, "answered": len(outcomes) - failed}
        notes.append(say("state.partial", language, cause=causes(outcomes, language), **values))
    if alone := unread_alone(outcomes):
        values = {"unread": len(alone), "reports": len({id for o in outcomes for id in o.ids})}
        notes.append(say("state.partial_reports", language, cause=causes_alone(outcomes, language), **values))
    if reduced.lost:
        notes.append(
            say("state.reduce_part", language, count=reduced.lost, cause=cause_in(language, reduced.lost_cause))
        )
    if reduced.cause:
        notes.append(say("state.reduce_by_hand", language, cause=cause_in(language, reduced.cause)))
    return "".join(f"> {line}\n" for line in notes) + "\n" if notes else ""


def closing(reduced: Reduced, language: str) -> str:
    """Return the note behind the text of an answer that breaks off; "" where it does not."""
    if not reduced.broken:
        return ""
    return f"\n\n> {say('state.broken', language, cause=cause_in(language, reduced.broken))}\n"


def _words(
    status: QueryStatus,
    outcomes: Sequence[BatchOutcome],
    gathered: Gathered,
    reduced: Reduced,
    checked: Checked,
    account: Account,
    language: str,
) -> str:
    batches = account.batches
    values = {
        "batches": batches.total, "answered": batches.answered, "failed": batches.failed,
        "reports": account.reports.selected, "cause": causes(outcomes, language),
    }  # fmt: skip
    if status == "answered" or (status == "partial" and checked.text):
        return opening(outcomes, reduced, language) + checked.text + closing(reduced, language)
    alone = len(unread_alone(outcomes))
    if status == "partial" and alone and not gathered.dropped and not batches.failed:
        return say("state.partial_reports_nothing", language, unread=alone, reports=values["reports"],
                   cause=causes_alone(outcomes, language))  # fmt: skip
    if status == "partial" and batches.failed:
        return say("state.partial_nothing", language, **values)
    if status == "partial":
        return say("state.unusable", language, dropped=gathered.dropped)
    if status == "no_data":
        read = "state.no_data_texts" if reads_texts(account.selection.strategy) else "state.no_data"
        return say(read if outcomes else "state.empty", language, **values)
    if status == "cancelled":
        return say("state.cancelled", language)
    if batches.answered and reduced.text is None:
        cause = cause_in(language, reduced.cause) or say("cause.unknown", language)
        return say("state.failed_reduce", language, used=len(gathered.order), cause=cause)
    return say("state.failed", language, **values)


def _warnings(header: Header, account: Account, reduced: Reduced, status: QueryStatus, language: str) -> list[str]:
    out = []
    built_in = header.settings.models.get("map") == EXTRACTIVE
    if status == "no_data" and account.batches.total and built_in:
        out.append(say("warn.built_in", language))
    if account.batches.at_limit:
        out.append(say("warn.at_limit", language, count=account.batches.at_limit))
    if account.points.dropped:
        out.append(say("warn.dropped", language, count=account.points.dropped))
    if reduced.unrated:
        out.append(say("warn.rerate", language, cause=cause_in(language, reduced.unrated)))
    if reduced.shortened:
        out.append(say("warn.shortened", language, count=reduced.shortened))
    cited = account.citations
    if cited.unknown:
        out.append(say("warn.unverified", language, count=cited.unknown))
    if cited.unsupported:
        out.append(say("warn.unsupported", language, count=cited.unsupported))
    if cited.unread:
        out.append(say("warn.unread_references", language, count=cited.unread))
    if reduced.text is not None and status in ("answered", "partial") and cited.unknown == cited.total:
        out.append(say("warn.uncited", language))
    if status in ("answered", "partial") and reduced.text and in_another_script(reduced.text, language):
        out.append(say("warn.language", language))
    # No advice where it does not help: the built-in model finds the same again, and text units are not read again.
    helps = not built_in and not header.again and not reads_texts(account.selection.strategy)
    if account.reports.silent and status in ("answered", "partial") and helps:
        out.append(say("warn.silent", language, count=len(account.reports.silent), job=header.job_id))
    if account.reports.unread and status == "partial" and not reads_texts(account.selection.strategy):
        out.append(say("warn.unread", language, count=len(account.reports.unread), job=header.job_id))
    return out

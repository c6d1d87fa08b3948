"""What a job gives back: the contracts of `ask`, `index` and `tree`, each with `--json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

QueryStatus = Literal["answered", "partial", "no_data", "failed", "cancelled"]
#: `supported`: the cited row's own text says so. `related`: it is about that, or its words cannot tell. `unsupported`:
#: it was read, and nothing in it says so. `unknown`: the answer was made of no such row.
Grade = Literal["supported", "related", "unsupported", "unknown"]
#: What became of a used point in the answer; "": it was not used, or there is no answer. `named`: only a title of what
#: it rests on stands there. `unknown`: words cannot tell, as where the answer is translated.
PointState = Literal["", "stated", "named", "not stated", "unknown"]
IndexStatus = Literal["queued", "running", "published", "partial", "failed", "cancelled"]

#: Exit code of the command line for each final state.
EXIT_CODES = {"answered": 0, "no_data": 0, "published": 0, "done": 0, "partial": 3, "failed": 4, "cancelled": 4}


class _Result(BaseModel):
    model_config = ConfigDict(extra="ignore")


class CitedRow(_Result):
    """An entity, or a relationship by what it joins. `id`: its human_readable_id, `Entities (5)` in a report's text."""

    id: int
    title: str


class CitedPassage(_Result):
    """A part of the answer that cites a row, without references, and how far that row's text supports it."""

    text: str
    grade: Grade


class Citation(_Result):
    """One cited report (or text unit, with the selection `texts`), checked and resolved.

    `kind` and `id`: as the text names it, `[Data: Reports (id)]`; a row of another kind than what was read (entities,
    relationships, claims, or a name of none) is `unknown`. `grade`: `supported` where all of `passages` are,
    `unsupported` where one is; `verified`: it is supported. `entities` and `relationships`: the first of those that
    the report's findings behind the citing statements name; `more_…`: how many others they name.
    """

    kind: str = "reports"
    id: int | None = None
    report: int | None = None
    level: int | None = None
    title: str = ""
    verified: bool = False
    grade: Grade = "unknown"
    passages: list[CitedPassage] = []
    entities: list[CitedRow] = []
    more_entities: int = 0
    relationships: list[CitedRow] = []
    more_relationships: int = 0
    text_units: list[str] = []
    documents: list[str] = []

    @model_validator(mode="before")
    @classmethod
    def _graded(cls, data: Any) -> Any:
        if isinstance(data, dict) and "grade" not in data and data.get("verified"):  # an earlier release's answer
            return {**data, "grade": "supported"}
        return data


class Point(_Result):
    """One statement of a map call. `score`: 0–100 as given; `why_not`: why it is not used or not in the answer.

    `in_answer`: its state is `stated`.
    """

    text: str
    score: float
    batch: int
    reports: list[int] = []
    adjusted: float | None = None
    unverified: list[int] = []
    overview_only: bool = False
    used: bool = False
    state: PointState = ""
    in_answer: bool = False
    why_not: str = ""


class FinestAvailable(_Result):
    """Reports that are the finest of their branch, on a higher level than the deepest one that is read."""

    count: int = 0
    heaviest: list[dict[str, Any]] = []


class Pruned(_Result):
    """Communities that are not read, and what nothing that is read holds: `text_units`, a share (0–1) of `entities`."""

    count: int = 0
    text_units: int = 0
    entities: float = 0.0
    heaviest: list[dict[str, Any]] = []


class Picks(_Result):
    """Reports read for the question's words, of any level, beside a cut: one below a report of the cut is no fault."""

    count: int = 0
    reports: list[int] = []
    why: str = ""


class Selection(_Result):
    """The reports a query reads, and why these. `tokens`: of the rows as rendered, without the prompt around.

    `reports`: all of them, the cut's, which `levels` counts, and the picks.

    `pruned`: rated irrelevant; without ratings, what its budget left out. `left_out`: what a walk's budget did.
    """

    strategy: str
    why: str = ""
    budget: dict[str, Any] = {}
    reports: int = 0
    tokens: int = 0
    levels: dict[str, int] = {}
    picks: Picks = Picks()
    finest_available: FinestAvailable = FinestAvailable()
    pruned: Pruned = Pruned()
    left_out: Pruned = Pruned()


class Coverage(_Result):
    """Shares (0–1) of the corpus: held by the selected communities, and read in their raw evidence.

    In an answer's account only what an answered batch held counts.
    """

    entities: float = 0.0
    text_units_assigned: float = 0.0
    text_units_read: float = 0.0


class UnreadReport(_Result):
    """A report that could not be read, or not whole, in a batch that answered: too long for the model, refused …"""

    report: int
    cause: str = ""


class ReportsAccount(_Result):
    """cited + silent + unread = selected. `silent`: read, but no point cites them; `unread`: they could not be read.

    `unread_because`: those with a cause of their own; the others' batches failed. A report of which only a part could
    not be read may be cited, too.
    """

    selected: int = 0
    cited: int = 0
    silent: list[int] = []
    unread: list[int] = []
    unread_because: list[UnreadReport] = []


class BatchesAccount(_Result):
    """answered + failed = total; empty ⊂ answered."""

    total: int = 0
    answered: int = 0
    empty: int = 0
    failed: int = 0
    retried: int = 0
    split: int = 0
    at_limit: int = 0
    cached: int = 0


class PointsAccount(_Result):
    """used + dropped + zero + duplicate = produced; in_answer + named + not_stated + unknown = used, with an answer.

    `condensed`: so many of those not stated were left out by an earlier round of the reduce.
    """

    produced: int = 0
    used: int = 0
    zero: int = 0
    duplicate: int = 0
    dropped: int = 0
    in_answer: int = 0
    named: int = 0
    not_stated: int = 0
    unknown: int = 0
    condensed: int = 0


class CitationsAccount(_Result):
    """supported + related + unsupported + unknown = total = verified + unverified.

    `verified` are the supported ones. `unread`: what looks like a reference in the answer and is not understood.
    """

    total: int = 0
    verified: int = 0
    unverified: int = 0
    supported: int = 0
    related: int = 0
    unsupported: int = 0
    unknown: int = 0
    unread: int = 0

    @model_validator(mode="before")
    @classmethod
    def _graded(cls, data: Any) -> Any:
        if isinstance(data, dict) and "supported" not in data and data.get("total"):  # an earlier release's account
            return {**data, "supported": data.get("verified", 0), "unknown": data.get("unverified", 0)}
        return data


class Usage(_Result):
    """Model calls and their tokens. `usd` is None where a price is unknown; 0 for the built-in models.

    `endings` counts replies that ended otherwise than at their end, under the endpoint's own name for it (`length`,
    `SAFETY` …; `none`: it gave none), and prompts of which the server read less than was sent (`prompt_cut`).
    """

    calls: int = 0
    cached: int = 0
    repaired: int = 0
    prompt_tokens: int = 0
    provider_cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    endings: dict[str, int] = {}

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; an unknown price stays unknown."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        names = [*self.endings, *(name for name in other.endings if name not in self.endings)]
        endings = {name: self.endings.get(name, 0) + other.endings.get(name, 0) for name in names}
        counts = (name for name in Usage.model_fields if name not in ("usd", "endings"))
        return Usage(usd=usd, endings=endings, **{name: getattr(self, name) + getattr(other, name) for name in counts})


class LlmAccount(Usage):
    """The sum, and its parts by stage."""

    by_stage: dict[str, Usage] = {}

    @classmethod
    def of(cls, by_stage: dict[str, Usage]) -> LlmAccount:
        """Sum the stages."""
        total = sum(by_stage.values(), Usage())
        return cls(**total.model_dump(), by_stage=by_stage)


class QuerySeconds(_Result):
    """Wall seconds of a query's phases."""

    queued: float = 0.0
    plan: float = 0.0
    map: float = 0.0
    reduce: float = 0.0
    total: float = 0.0


class QuerySettings(_Result):
    """What the answer was made with. `models`: by stage."""

    models: dict[str, str] = {}
    prompts: dict[str, str] = {}
    seed: int = 0


class Account(_Result):
    """What happened to everything on the way to an answer."""

    selection: Selection
    coverage: Coverage = Coverage()
    reports: ReportsAccount = ReportsAccount()
    batches: BatchesAccount = BatchesAccount()
    points: PointsAccount = PointsAccount()
    citations: CitationsAccount = CitationsAccount()
    llm: LlmAccount = LlmAccount()
    seconds: QuerySeconds = QuerySeconds()
    settings: QuerySettings = QuerySettings()
    warnings: list[str] = []


class Answer(_Result):
    """The result of a query job. `error`: code, message, hint. `cached`: it was known, so free; all is of that job."""

    job_id: str
    status: QueryStatus
    question: str
    standalone_question: str = ""
    cached: bool = False
    answer: str = ""
    corpus: str
    version: str = ""
    citations: list[Citation] = []
    points: list[Point] = []
    account: Account
    error: dict[str, Any] | None = None


class Plan(_Result):
    """What a query would read and cost. `tokens`: of all map prompts; `usd` None: price unknown."""

    corpus: str
    version: str
    selection: Selection
    batches: int
    tokens: int
    usd: float | None
    coverage: Coverage
    rating_calls: int = 0
    upper_bound: bool = False


class IndexCounts(_Result):
    """Rows of the published tables."""

    documents: int = 0
    text_units: int = 0
    entities: int = 0
    relationships: int = 0
    claims: int = 0
    communities: int = 0
    reports: int = 0


class IndexCoverage(_Result):
    """Shares (0–1) held by the tree. Relationships between roots are held by none; `between_roots` counts them."""

    entities: float = 0.0
    relationships: float = 0.0
    text_units: float = 0.0
    between_roots: int = 0


class LevelCounts(_Result):
    """One level of the tree."""

    communities: int = 0
    leaves: int = 0
    entities: int = 0
    tokens: int = 0


class ReportCounts(_Result):
    """generated + reused + extractive + failed + imported = communities."""

    generated: int = 0
    reused: int = 0
    extractive: int = 0
    failed: int = 0
    imported: int = 0


class IndexSeconds(_Result):
    """Wall seconds of a corpus job's stages."""

    ingest: float = 0.0
    extract: float = 0.0
    merge: float = 0.0
    cluster: float = 0.0
    report: float = 0.0
    total: float = 0.0


#: Digits of a cause: a count or an id does not make it another one.
_DIGITS = re.compile(r"\d+")
_EXAMPLES = 3


class Failures(_Result):
    """Units of one stage that failed for one cause. `cause`: its code; `message` and `hint`: of the first of them.

    `examples`: the first few by name: a document and the number of its text unit, the title of a community, or an id.
    """

    stage: str
    cause: str
    message: str
    hint: str = ""
    count: int = 0
    examples: list[str] = []

    def line(self) -> str:
        """Return it as one line: how often, where, why, for example what."""
        return f"{self.count:,} × {self.stage}: {self.message} (for example {', '.join(self.examples)})"

    @classmethod
    def grouped(
        cls, stage: str, outcomes: Mapping[str, Mapping[str, Any]], names: Mapping[str, str] | None = None
    ) -> list[Self]:
        """Return the failed among a stage's outcomes by cause, the most frequent first.

        Messages that differ in their numbers alone are one cause.

        Args:
            stage: its name.
            outcomes: by unit, as the ledger has them: `ok`, and `cause`, `message`, `hint` of those that failed.
            names: of units, for the examples; one that has none is named by its id.
        """
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for unit, outcome in outcomes.items():
            if outcome.get("ok", True):
                continue
            cause = str(outcome.get("cause") or "failed")
            message = str(outcome.get("message") or cause)
            group = found.setdefault(
                (cause, _DIGITS.sub("#", message)),
                {"message": message, "hint": str(outcome.get("hint") or ""), "count": 0, "examples": []},
            )
            group["count"] += 1
            if len(group["examples"]) < _EXAMPLES:
                group["examples"].append((names or {}).get(unit, unit))
        groups = [cls(stage=stage, cause=cause, **group) for (cause, _), group in found.items()]
        return sorted(groups, key=lambda group: (-group.count, group.cause, group.message))


class LeftOutGroup(_Result):
    """What an index did not use, or not as it stands, for one reason: how much, and the first examples.

    `reason`: a word of the readers (`duplicate`, `bad_row`, `empty`, `no_text`, `unreadable`, `limit`, …). `kept`: how
    many of them gave a document all the same.
    """

    reason: str
    count: int
    kept: int = 0
    examples: list[str] = []


class IndexResult(_Result):
    """The result of a corpus job. `changes`: settings that differ from the version before, and what that made anew;
    documents of that version that are gone, as an index replaces the whole set.

    `notes`: what a rule left out (hidden files), and what was done to a graph's tables as a matter of course;
    `warnings`: what is damaged, lost, missing or was not read. `left_out`: what the readers did not use, by reason, all
    of it counted; duplicates last. `failures`: units that failed, by stage and cause. `error`: why the job failed, as
    code, message and hint.
    """

    job_id: str
    status: IndexStatus
    corpus: str
    version: str = ""
    counts: IndexCounts = IndexCounts()
    coverage: IndexCoverage = IndexCoverage()
    levels: dict[str, LevelCounts] = {}
    reports: ReportCounts = ReportCounts()
    llm: LlmAccount = LlmAccount()
    seconds: IndexSeconds = IndexSeconds()
    changes: list[str] = []
    notes: list[str] = []
    warnings: list[str] = []
    failures: list[Failures] = []
    left_out: list[LeftOutGroup] = []
    error: dict[str, Any] | None = None


class TreeCommunity(_Result):
    """One community of `tree --json`."""

    id: int
    key: str
    level: int
    parent: int
    children: list[int]
    title: str
    size: int
    weight: int
    n_tokens: int
    is_leaf: bool
    generated_by: str


class Tree(_Result):
    """The community tree of a version."""

    corpus: str
    version: str
    levels: list[dict[str, Any]]
    communities: list[TreeCommunity]

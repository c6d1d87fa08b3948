"""What a caller may choose for one job: it travels in the job's request and is kept in the manifest.

Names and defaults are GraphRAG's where it has the same knob.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from communitree_shared.contract.citing import check_context_name
from communitree_shared.contract.strategies import STRATEGIES, TAKEN_BY
from communitree_shared.errors import UsageError

if TYPE_CHECKING:
    Strategy = str
else:
    Strategy = Literal[tuple(STRATEGIES)]

#: _Whole numbers that any store, language and endpoint takes.
_MOST = 2**31 - 1
_Count = Annotated[int, Field(ge=1, le=_MOST)]
_Whole = Annotated[int, Field(ge=0, le=_MOST)]
_SomeCount = Annotated[int | None, Field(ge=1, le=_MOST)]
_SomeWhole = Annotated[int | None, Field(ge=0, le=_MOST)]
_Words = Annotated[int, Field(ge=5, le=1_000_000)]
_Temperature = Annotated[float, Field(ge=0, le=2)]


class _Options(BaseModel):
    # Who writes options learns of a misspelt name; what is stored is read by `stored`.
    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def stored(cls, given: Any) -> Self:
        """Return options that lie in a request or a manifest: names of another release are passed over."""
        return cls.model_validate(given, extra="ignore")


class ReadOptions(_Options):
    """How documents are read and cut."""

    chunk_tokens: int = Field(1200, ge=16, description="tokens of a text unit")
    chunk_overlap: int = Field(100, ge=0)
    chunking: Literal["tokens", "sentences"] = "sentences"
    encoding_model: str = "o200k_base"
    text_column: str | list[str] = Field("", description="of tables; TABLE=COLUMN names that of one table")
    title_column: str = ""
    id_column: str = ""
    metadata_columns: list[str] = []
    prepend_metadata: bool = False
    strict: bool = False
    limit: int | None = Field(None, ge=1, description="only the first n documents")


class ExtractOptions(_Options):
    """How entities and relationships are found in text."""

    extractor: Literal["auto", "builtin", "spacy"] = Field(
        "auto", description="auto: the model where one is set, else the built-in one; spacy: needs the extra nlp"
    )
    spacy_model: str = Field("", description="an installed pipeline of spaCy's; '' = en_core_web_sm in any package")
    entity_types: list[str] = ["organization", "person", "geo", "event"]
    max_gleanings: int = Field(1, ge=0)
    claims: bool = False
    claim_description: str = "Any claims or facts that could be relevant to information discovery."
    max_description_tokens: int = 500
    shard_units: int = Field(32, ge=1, description="text units of one shard of the built-in extractor")


class ClusterOptions(_Options):
    """How the community tree is built."""

    max_cluster_size: int = Field(10, ge=2, description="a community larger than this is clustered again")
    resolution: float = Field(1.0, gt=0)
    seed: int = 0xDEADBEEF
    iterations: int = Field(2, ge=1, le=5)
    use_lcc: bool = False
    recluster: bool = False
    spread_above: int = Field(
        20_000, ge=1, description="level-0 communities above this size get a message of their own"
    )


class ReportOptions(_Options):
    """How community reports are written."""

    max_prompt_tokens: int = Field(8000, ge=200, description="the whole prompt counted")
    max_length: int = Field(2000, ge=50, description="words of a report")
    min_entities: int = Field(3, description="communities below this size get an extractive report by design")
    language: str = Field("", description="'' = the corpus's own")


class IndexOptions(_Options):
    """All choices of a corpus job."""

    graph: bool = False
    read: ReadOptions = ReadOptions()
    extract: ExtractOptions = ExtractOptions()
    cluster: ClusterOptions = ClusterOptions()
    report: ReportOptions = ReportOptions()
    prompts: dict[str, str] = Field({}, description="prompt name → text that replaces the built-in one")
    reset_settings: bool = Field(False, description="start from the defaults, not from the settings of the corpus")
    budget_usd: float | None = None
    budget_tokens: int | None = None
    max_failed: float = Field(0.05, ge=0, le=1, description="share of a stage's model units that may fail")
    publish_anyway: bool = Field(False, description="publish although the model did not succeed")
    rewrite_reports: bool = Field(False, description="write reports of earlier built-in prompts anew")
    plan_only: bool = Field(False, description="end with an IndexPlan: no model is called, nothing is published")


class SelectionOptions(_Options):
    """Which reports a query reads."""

    strategy: Strategy = Field("auto", description="left out beside a coverage or a budget: that selection")
    budget_tokens: _SomeCount = None
    budget_reports: _SomeCount = None
    budget_usd: float | None = Field(None, gt=0, le=10**9)
    stable: bool = False
    coverage: float | None = Field(None, gt=0, le=1)
    level: _SomeWhole = Field(None, description="N of frontier and levels; None = all")
    auto_tokens: _Count = 48_000
    # relevant and dynamic
    threshold: int = Field(1, ge=0, le=5)
    keep_parent: bool = False
    num_repeats: int = Field(1, ge=1, le=100)
    rate_use_summary: bool = False
    max_level: _Whole = 2
    max_depth: _SomeWhole = None
    max_rating_calls: _SomeWhole = Field(None, description="None: 200 for relevant, no limit for dynamic")
    candidates_per_call: int = Field(8, ge=1, le=100)
    audit_pruned: float = Field(0.0, ge=0, le=1)
    # what a report must have to be read
    min_community_rank: float = Field(0.0, ge=0, le=10**9)

    @model_validator(mode="before")
    @classmethod
    def _by_size(cls, given: Any) -> Any:
        # A coverage or a budget without a strategy chooses one. What is stored names its strategy.
        if not isinstance(given, dict) or "strategy" in given:
            return given
        sized = [name for name, value in given.items() if value is not None]
        if "coverage" in sized:
            return {**given, "strategy": "coverage"}
        return {**given, "strategy": "budget"} if any(name.startswith("budget_") for name in sized) else given

    def check(self) -> None:
        """Say no to a selection without its number, and to an option beside one that would not keep to it.

        Not a validator: requests that lie in the object store must stay readable.

        Raises:
            UsageError: names both, and the remedy.
        """
        if self.strategy == "coverage" and self.coverage is None:
            raise UsageError("The selection `coverage` needs a share.", hint="For example --coverage 0.8.")
        if self.strategy == "budget" and self.budget_tokens is self.budget_reports is self.budget_usd is None:
            raise UsageError(
                "The selection `budget` needs a budget.", hint="Give --budget-tokens, --budget-reports or --budget-usd."
            )
        for name, strategies in TAKEN_BY.items():
            if self.strategy not in strategies and getattr(self, name) != type(self).model_fields[name].default:
                raise self._ignored(name, strategies)

    def named(self) -> str:
        """Return a flag that says what is read, "" where none does; a budget in money is a ceiling anyhow."""
        given = (n for n in TAKEN_BY if n != "coverage" and getattr(self, n) != type(self).model_fields[n].default)
        found = next(given, "")
        return STRATEGIES[self.strategy].flag or (found and "--" + found.replace("_", "-"))

    def _ignored(self, name: str, strategies: Sequence[Strategy]) -> UsageError:
        flag, choice = "--" + name.replace("_", "-"), "--" + self.strategy
        own_number = any(declared.sets == name for declared in STRATEGIES.values())
        if own_number or (name.startswith("budget_") and self.strategy == "auto"):
            choices = " or ".join(f"strategy={s!r}" for s in strategies)  # no flags say this
            return UsageError(
                f"{name} goes not with strategy={self.strategy!r}, which would ignore it.",
                hint=f"Say {choices}, or leave out {name}; `auto` takes its size from auto_tokens.",
            )
        if name.startswith("budget_"):
            return UsageError(
                f"{flag} goes not with {choice}: that selection reads what it names, whatever it takes.",
                hint=f"Leave out {choice} to read the finest reports that fit, or leave out {flag}; "
                "--relevant takes a budget as its limit, --budget-usd is a ceiling for any selection.",
            )
        others = {"auto": "a question without a selection", "budget": "a budget"}
        takers = " or ".join(others.get(s, f"--{s}") for s in strategies)
        if name == "min_community_rank":
            takers = "reports, not for text units"
        beside = f" with {others.get(self.strategy, choice)}" if self.strategy != "auto" else ""
        return UsageError(f"{flag} is for {takers}: it would be ignored{beside}.", hint=f"Leave out {flag}.")


class BatchOptions(_Options):
    """How the selected reports are packed into map calls."""

    max_context_tokens: int = Field(12_000, ge=500, le=_MOST, description="the whole map prompt counted")
    reserve_tokens: _Whole = Field(2_000, description="kept free for question and history")
    overview_tokens: _Whole = 600
    anchors: _Whole = 5
    shuffle_data: bool = True
    random_state: _Whole = 86
    use_community_summary: bool = False
    include_community_rank: bool = True
    include_community_weight: bool = True
    normalize_community_weight: bool = True
    context_name: str = "Reports"
    column_delimiter: str = "|"

    def check(self) -> None:
        """Say no to a name that citations could not be read by, and to no room; no validator, as for a selection.

        Raises:
            UsageError: says why, and what may be given.
        """
        check_context_name(self.context_name)
        if self.reserve_tokens >= self.max_context_tokens:
            raise UsageError(
                f"--reserve-tokens {self.reserve_tokens:,} leaves nothing of --max-context-tokens "
                f"{self.max_context_tokens:,} to read.",
                hint="Raise --max-context-tokens, or lower --reserve-tokens.",
            )


class AnswerOptions(_Options):
    """How points are made and put together."""

    map_max_length: _Words = Field(1000, description="words of a map reply")
    reduce_max_length: _Words = Field(2000, description="words of the answer")
    map_max_tokens: _SomeCount = None
    reduce_max_tokens: _SomeCount = None
    map_temperature: _Temperature = 0.0
    reduce_temperature: _Temperature = 0.0
    json_mode: bool = True
    max_data_tokens: int = Field(12_000, ge=200, le=_MOST)
    overflow: Literal["tree", "truncate"] = "tree"
    response_type: str = "multiple paragraphs"
    language: str = Field("", description="'' = the question's own")
    allow_general_knowledge: bool = False


class Turn(_Options):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: str


class QueryOptions(_Options):
    """All choices of a query job."""

    selection: SelectionOptions = SelectionOptions()
    batch: BatchOptions = BatchOptions()
    answer: AnswerOptions = AnswerOptions()
    history: list[Turn] = []
    history_turns: _Whole = 5
    deadline_seconds: float = Field(300.0, gt=0, le=30 * 24 * 3600)
    bulk: bool = False
    concurrency: _SomeCount = Field(None, description="calls of this question at a time; None: as many as there may be")
    cache: bool = True
    plan_only: Literal["", "one", "all"] = ""
    again: str = Field("", description="a job whose silent reports are read again")
    seed: _Whole = 0
    prompts: dict[str, str] = {}

    def check(self) -> None:
        """Say no to options that go not together.

        Raises:
            UsageError: names both, and the remedy.
        """
        if self.again and (idle := self.selection.named()):
            raise UsageError(
                f"{idle} goes not with --again, which reads the silent reports of that job.", hint=f"Leave out {idle}."
            )
        self.selection.check()
        self.batch.check()


def field_of(model: type[BaseModel], path: Sequence[str]) -> FieldInfo | None:
    """Return the field that a path of names leads to, None where there is none."""
    for name in path[:-1]:
        kind = model.model_fields[name].annotation if name in model.model_fields else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return None
        model = kind
    return model.model_fields.get(path[-1]) if path else None


def _names(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the names that may stand where a path leads to."""
    if path:
        field = field_of(model, path)
        kind = field.annotation if field is not None else None
        return _names(kind, ()) if isinstance(kind, type) and issubclass(kind, BaseModel) else []
    return list(model.model_fields)


def limits(field: FieldInfo, *, huge: bool = False) -> str:
    """Return a number's range in words, "" where it has none. `huge`: also an end that nobody comes near."""
    words = {"ge": "at least {:,}", "gt": "above {:,}", "le": "at most {:,}", "lt": "below {:,}"}
    bounds = {sign: getattr(part, sign) for part in field.metadata for sign in words if hasattr(part, sign)}
    bounds = {sign: bound for sign, bound in bounds.items() if huge or bound < 10**9}
    if bounds.keys() == {"ge", "le"}:
        return f"{bounds['ge']:,} to {bounds['le']:,}"
    return ", ".join(words[sign].format(bound) for sign, bound in bounds.items())


def fault(model: type[BaseModel], error: ValidationError) -> tuple[tuple[str, ...], str]:
    """Return the path of the first value that a model refused, and what is wrong with it."""
    first = error.errors()[0]
    path = tuple(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        near = get_close_matches(path[-1], _names(model, path[:-1]), n=1)
        return path, "there is no such name" + (f", did you mean {near[0]!r}?" if near else "")
    field = field_of(model, path)
    if field is not None and first["type"].startswith(("greater_than", "less_than")):
        return path, f"{first['input']} is out of range: {limits(field, huge=first['type'].startswith('less'))}"
    return path, str(first["msg"])

"""What a caller may choose for one job: it travels in the job's request and is kept in the manifest.

Names and defaults are GraphRAG's where it has the same knob.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from communitree_shared.errors import UsageError

Strategy = Literal[
    "auto", "budget", "leaves", "coverage", "relevant", "dynamic", "frontier", "levels", "texts"
]  # fmt: skip

#: What sizes a selection, and the strategies that keep to it. A budget in money is a ceiling beside any.
_SIZES: dict[str, tuple[Strategy, ...]] = {
    "budget_tokens": ("budget", "relevant"),
    "budget_reports": ("budget", "relevant"),
    "coverage": ("coverage",),
    "level": ("frontier", "levels"),
}


class _Options(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ReadOptions(_Options):
    """How documents are read and cut."""

    chunk_tokens: int = Field(1200, ge=16, description="tokens of a text unit")
    chunk_overlap: int = Field(100, ge=0)
    chunking: Literal["tokens", "sentences"] = "sentences"
    encoding_model: str = "o200k_base"
    text_column: str = ""
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
    plan_only: bool = Field(False, description="end with an IndexPlan: no model is called, nothing is published")


class SelectionOptions(_Options):
    """Which reports a query reads."""

    strategy: Strategy = Field("auto", description="left out beside a coverage or a budget: that selection")
    budget_tokens: int | None = Field(None, ge=1)
    budget_reports: int | None = Field(None, ge=1)
    budget_usd: float | None = Field(None, gt=0)
    stable: bool = False
    coverage: float | None = Field(None, gt=0, le=1)
    level: int | None = Field(None, ge=0, description="N of frontier and levels; None = all")
    auto_tokens: int = 48_000
    # relevant and dynamic
    threshold: int = 1
    keep_parent: bool = False
    num_repeats: int = 1
    rate_use_summary: bool = False
    max_level: int = 2
    max_depth: int | None = None
    max_rating_calls: int = 200
    candidates_per_call: int = 8
    audit_pruned: float = Field(0.0, ge=0, le=1)
    # what a report must have to be read
    min_community_rank: float = 0.0

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
        """Say no to a budget, coverage or level beside a selection that would not keep to it.

        Not a validator: requests that lie in the object store must stay readable.

        Raises:
            UsageError: names both, and the remedy.
        """
        for name, strategies in _SIZES.items():
            if getattr(self, name) is None or self.strategy in strategies:
                continue
            if self.strategy == "auto" or not name.startswith("budget_"):  # no flags say this
                choices = " or ".join(f"strategy={s!r}" for s in strategies)
                raise UsageError(
                    f"{name} goes not with strategy={self.strategy!r}, which would ignore it.",
                    hint=f"Say {choices}, or leave out {name}; `auto` takes its size from auto_tokens.",
                )
            flag, choice = "--" + name.replace("_", "-"), "--" + self.strategy
            raise UsageError(
                f"{flag} goes not with {choice}: that selection reads what it names, whatever it takes.",
                hint=f"Leave out {choice} to read the finest reports that fit, or leave out {flag}; "
                "--relevant takes a budget as its limit, --budget-usd is a ceiling for any selection.",
            )


class BatchOptions(_Options):
    """How the selected reports are packed into map calls."""

    max_context_tokens: int = Field(12_000, ge=500, description="the whole map prompt counted")
    reserve_tokens: int = Field(2_000, ge=0, description="kept free for question and history")
    overview_tokens: int = 600
    anchors: int = 5
    shuffle_data: bool = True
    random_state: int = 86
    use_community_summary: bool = False
    include_community_rank: bool = True
    include_community_weight: bool = True
    normalize_community_weight: bool = True
    context_name: str = "Reports"
    column_delimiter: str = "|"


class AnswerOptions(_Options):
    """How points are made and put together."""

    map_max_length: int = Field(1000, description="words of a map reply")
    reduce_max_length: int = Field(2000, description="words of the answer")
    map_max_tokens: int | None = None
    reduce_max_tokens: int | None = None
    map_temperature: float = 0.0
    reduce_temperature: float = 0.0
    json_mode: bool = True
    max_data_tokens: int = Field(12_000, ge=200)
    overflow: Literal["tree", "truncate"] = "tree"
    response_type: str = "multiple paragraphs"
    language: str = Field("", description="'' = the question's own")
    allow_general_knowledge: bool = False
    include_reasons: bool = False


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
    history_turns: int = 5
    deadline_seconds: float = Field(300.0, gt=0)
    bulk: bool = False
    cache: bool = True
    plan_only: Literal["", "one", "all"] = ""
    again: str = Field("", description="a job whose silent reports are read again")
    seed: int = 0
    prompts: dict[str, str] = {}

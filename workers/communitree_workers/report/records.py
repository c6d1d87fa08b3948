"""What passes between the stages of reporting: evidence out, a report back, a child's report up.

All three are plain data with compact JSON bytes: evidence and reports are shipped through the object store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

#: The four kinds of evidence, in the order in which a prompt shows them.
KINDS = ("entities", "relationships", "claims", "text_units")

#: The name a citation uses for each kind: `[Data: Entities (1, 2); Reports (12)]`.
LABELS = {
    "entities": "Entities",
    "relationships": "Relationships",
    "claims": "Claims",
    "text_units": "Sources",
    "reports": "Reports",
}

#: At most this many ids of each kind are listed in `omitted`; all are counted.
LISTED = 1000

GENERATED_BY_EXTRACTIVE = "extractive"
GENERATED_BY_IMPORT = "imported"


@dataclass(frozen=True)
class Evidence:
    """What one community's report is written from, and what was left out of it.

    `data` is the text of the tables; `prompt_tokens` counts the whole prompt (instructions and data). `numbers` holds,
    for each kind and for `reports`, the numbers citations may use, in the order of the rows in `data`; `record` is the
    `evidence` JSON of the report's row and `omitted` its `omitted` JSON. `gaps` lists the rows (positions in this
    version's tables) that are omitted or only aggregated: a parent's count needs them. `direct` is the mass read in
    the raw evidence, `share` the community's share of the corpus's mass, `names` its most central entities,
    `words` the length that a report on it may have (0: the option's).
    `hash` covers template, language, options
    that matter and data, but no row numbers, so that it survives their renumbering in a later version.
    `needs_model` is False where no call is worth its price; `cause` then says why, "" when it was planned so.
    """

    community: int
    key: str
    level: int
    size: int
    language: str
    encoding: str
    prompt_tokens: int
    data: str
    needs_model: bool
    cause: str
    hash: str
    direct: int
    share: float
    numbers: dict[str, list[int]]
    record: dict[str, Any]
    omitted: dict[str, Any]
    gaps: dict[str, dict[str, list[int]]]
    names: list[str]
    words: int = 0

    def to_json(self) -> bytes:
        """Return compact JSON."""
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, data: bytes) -> Evidence:
        """Return the evidence that `to_json` wrote."""
        return cls(**orjson.loads(data))


@dataclass(frozen=True)
class Finding:
    """One finding of a report."""

    summary: str
    explanation: str


@dataclass(frozen=True)
class Report:
    """One community's report, with what is known about its evidence.

    `rating` is importance, 0–10. `repairs` counts by name what had to be put right in a model's reply, `citations`
    holds `verified` and `unverified`. `cited` maps kind → number as text → position in the evidence, which is what
    lets a stored report be taken over by a version whose rows bear other numbers (see `attach`). `row_tokens` and
    `title_row_tokens` are the tokens of its two rows in a parent's prompt, after the number; 0: not counted yet.
    """

    community: int
    key: str
    level: int
    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: list[Finding]
    language: str
    generated_by: str = ""
    cause: str = ""
    repairs: dict[str, int] = field(default_factory=dict)
    citations: dict[str, int] = field(default_factory=dict)
    cited: dict[str, dict[str, int]] = field(default_factory=dict)
    full_content: str = ""
    full_content_json: str = ""
    n_tokens: int = 0
    n_tokens_summary: int = 0
    row_tokens: int = 0
    title_row_tokens: int = 0
    evidence_hash: str = ""
    direct: int = 0
    record: dict[str, Any] = field(default_factory=dict)
    omitted: dict[str, Any] = field(default_factory=dict)
    gaps: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return compact JSON: the object stored at `units/report/<hash>`."""
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, data: bytes) -> Report:
        """Return the report that `to_json` wrote; unknown keys are ignored."""
        value = orjson.loads(data)
        known = {name: value[name] for name in cls.__dataclass_fields__ if name in value}
        return cls(**{**known, "findings": [Finding(f["summary"], f["explanation"]) for f in known["findings"]]})


@dataclass(frozen=True)
class ChildReport:
    """What a parent needs of a child's report: its text, and which of its rows it does not tell of."""

    community: int
    title: str
    summary: str
    full_content: str
    n_tokens: int
    n_tokens_summary: int
    row_tokens: int
    title_row_tokens: int
    rank: float
    counts: dict[str, dict[str, int]]
    gaps: dict[str, dict[str, list[int]]]
    hash: str

    @classmethod
    def of(cls, report: Report) -> ChildReport:
        """Return the child's side of a report that is attached to its evidence."""
        return cls(
            community=report.community,
            title=report.title,
            summary=report.summary,
            full_content=report.full_content,
            n_tokens=report.n_tokens,
            n_tokens_summary=report.n_tokens_summary,
            row_tokens=report.row_tokens,
            title_row_tokens=report.title_row_tokens,
            rank=report.rating,
            counts=report.record.get("counts", {}),
            gaps=report.gaps,
            hash=report.evidence_hash,
        )

    def to_json(self) -> bytes:
        """Return compact JSON."""
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, data: bytes) -> ChildReport:
        """Return the child report that `to_json` wrote."""
        return cls(**orjson.loads(data))

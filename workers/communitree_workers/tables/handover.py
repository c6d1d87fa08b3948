"""What the stages of a corpus job tell those after them, besides tables: JSON objects in the version's `build/`.

Both stand in the version's manifest, too, as far as they are its own (`extract`, `tree`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict

from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.results import IndexCoverage, LeftOutGroup, Usage
from communitree_shared.objects.keys import Keys


class Store(Protocol):
    """What is wanted of the object store."""

    def get_json(self, key: str) -> Any:
        """Return an object parsed as JSON; KeyError where there is none."""

    def put_json(self, key: str, value: Any) -> None:
        """Write a value as JSON."""


class _Handover(BaseModel):
    """Only what was set is written, so that an object holds what its stage knows. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    _name: ClassVar[str]

    @classmethod
    def load(cls, store: Store, keys: Keys, request: CorpusRequest) -> Self:
        """Return what an earlier stage of this job wrote.

        Raises:
            KeyError: it wrote nothing.
        """
        return cls.model_validate(store.get_json(keys.build(request.corpus, request.version, cls._name)))

    def save(self, store: Store, keys: Keys, request: CorpusRequest) -> None:
        """Write it for the later stages of this job."""
        store.put_json(keys.build(request.corpus, request.version, self._name), self.as_json())

    def as_json(self, but: set[str] | None = None) -> dict[str, Any]:
        """Return what was set, but for these fields."""
        return self.model_dump(mode="json", exclude_unset=True, exclude=but)


class Extraction(_Handover):
    """Where the graph of a version comes from: written at ingest, completed by the merge and by the summaries.

    Attributes:
        units: ids of the extraction's units, in the order of the text units; none for a graph that was brought.
        language: of the text.
        notes: on encodings of files, or on what was done to a graph's tables.
        left_out: what the readers did not use, by reason.
        model: who extracts: a model's name, or EXTRACTIVE.
        models: model by stage of the whole job.
        changes: settings that differ from the published version's, a line each.
        reused: units that an earlier job had made.
        extraction: calls and tokens of the extraction by a model that a plan does not make; None elsewhere.
        kept: the communities of the graph stay as they were brought.
        failed: units that gave nothing.
        merge: counts of what was merged (see `corpus.merging`).
        warnings: lines for the job's result.
    """

    _name: ClassVar[str] = "extract.json"

    units: list[str] = []
    language: str
    notes: list[str] = []
    left_out: list[LeftOutGroup] = []
    model: str
    models: dict[str, str] = {}
    changes: list[str] = []
    reused: int = 0
    extraction: Usage | None = None
    kept: bool = False
    failed: int = 0
    merge: dict[str, Any] = {}
    warnings: list[str] = []


class TreeLevel(BaseModel):
    """One level of the tree; `size_max`: entities of its largest community."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    communities: int
    leaves: int
    entities: int
    size_max: int


class Listed(BaseModel):
    """Entities of one sort: how many, and the ids of the first thousand."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    count: int
    ids: list[str]


class TreeStats(_Handover):
    """Figures of a finished tree.

    Attributes:
        coverage: shares that the tree holds.
        levels: by level as text, the coarsest "0".
        modularity: by level, and of the leaves: the weighted modularity of the relationships' graph, where a level is
            its communities and the leaves above it. Empty for a tree that was brought.
        warnings, notes: lines for the job's result.
        weak_edges, document_entities, oversize_leaves, oversize_max, attached_roots, residual_roots: of a tree that
            was built: counts, the size of the largest oversize leaf, and small roots by where they went.
        remainders, not_held, held_twice: of a tree that was brought: communities that hold what children miss of their
            parent, entities of no community, entities of two communities of one level.
    """

    _name: ClassVar[str] = "tree.json"

    coverage: IndexCoverage
    levels: dict[str, TreeLevel]
    modularity: dict[str, float] = {}
    warnings: list[str] = []
    notes: list[str] = []
    weak_edges: int = 0
    document_entities: int = 0
    oversize_leaves: int = 0
    oversize_max: int = 0
    attached_roots: int = 0
    residual_roots: int = 0
    remainders: int = 0
    not_held: Listed = Listed(count=0, ids=[])
    held_twice: Listed = Listed(count=0, ids=[])

"""What the two relevance walks share: waves of rating calls, and a state that survives between them as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from communitree_shared.options import BatchOptions, SelectionOptions
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.question import read_question
from communitree_workers.query.select.common import Selected


class Walk(ABC):
    """A walk from the roots that asks for ratings wave by wave.

    `ask()` gives the calls of the next wave, each a list of communities; `tell()` takes their ratings and ends the
    wave: a candidate that was asked for and not told is unknown. `to_state()` and `from_state()` carry it as JSON.
    """

    strategy = ""

    def __init__(
        self,
        view: CorpusView,
        options: SelectionOptions,
        question: str,
        *,
        batch: BatchOptions | None = None,
        language: str = "",
    ) -> None:
        """Start a walk. `language`: of what the account says, '' = the question's."""
        self.view = view
        self.options = options
        self.batch = batch or BatchOptions()
        self.question = read_question(question)
        self.language = language or self.question.language
        self.ratings: dict[int, float | None] = {}
        self.wave: list[int] = []
        self.calls = 0
        self.depth = 0

    @property
    def done(self) -> bool:
        """Whether nothing is left to be rated."""
        return not self.wave

    def ask(self) -> list[list[int]]:
        """Return the calls of this wave."""
        size = max(1, self.options.candidates_per_call)
        return [self.wave[i : i + size] for i in range(0, len(self.wave), size)]

    def tell(self, ratings: Mapping[int, float | None]) -> None:
        """Take the ratings of this wave and go on to the next."""
        self.calls += len(self.ask())
        asked = self.wave
        for community in asked:
            self.ratings[community] = ratings.get(community)
        self.wave = []
        self.depth += 1
        self._advance(asked)

    @abstractmethod
    def _advance(self, asked: list[int]) -> None:
        """Decide, from the ratings of a wave, what comes next."""

    @abstractmethod
    def selected(self) -> Selected:
        """Return what was selected; the walk must be done."""

    def to_state(self) -> dict[str, Any]:
        """Return the walk as plain JSON."""
        return {
            "ratings": [[c, r] for c, r in sorted(self.ratings.items())],
            "wave": self.wave,
            "calls": self.calls,
            "depth": self.depth,
            **self._more_state(),
        }

    def _more_state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `to_state`, made with the same view, options and question."""
        self.ratings = {int(c): r for c, r in state["ratings"]}
        self.wave = [int(c) for c in state["wave"]]
        self.calls, self.depth = int(state["calls"]), int(state["depth"])

    def communities(self, nodes: list[int]) -> list[int]:
        """Return communities of positions."""
        return self.view.community[nodes].tolist() if nodes else []

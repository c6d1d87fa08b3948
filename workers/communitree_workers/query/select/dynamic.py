"""GraphRAG 3.x's dynamic community selection, walk and defaults: the same ratings give the same reports.

A candidate that reaches the threshold is taken, its children are rated next, and (unless `keep_parent`) its parent is
given up. Where a whole wave leaves nothing taken and nothing to rate, all communities of the next level are rated, down
to `max_level`. An unreadable rating counts as 1, as there. What GraphRAG never shows (stand-ins) is never rated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from communitree_shared.options import BatchOptions, SelectionOptions
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.phrases import say
from communitree_workers.query.select.common import Choice, Selected, describe
from communitree_workers.query.select.walk import Walk

#: What GraphRAG takes for a reply it cannot read.
_UNREADABLE = 1.0


class Dynamic(Walk):
    """The walk; see `Walk`."""

    strategy = "dynamic"

    def __init__(
        self,
        view: CorpusView,
        options: SelectionOptions,
        question: str,
        *,
        batch: BatchOptions | None = None,
        language: str = "",
    ) -> None:
        """Start at level 0."""
        super().__init__(view, options, question, batch=batch, language=language)
        self.relevant: set[int] = set()
        self.wave = self._level(0)

    def _level(self, level: int) -> list[int]:
        nodes = np.flatnonzero((self.view.level == level) & self.view.shown)
        return sorted(self.view.community[nodes].tolist())

    def _advance(self, asked: list[int]) -> None:
        view = self.view
        following: list[int] = []
        for community in asked:
            rating = self.ratings[community]
            if (_UNREADABLE if rating is None else rating) < self.options.threshold:
                continue
            self.relevant.add(community)
            node = view.node[community]
            children = view.children(node)
            following += view.community[children[view.shown[children]]].tolist()
            if not self.options.keep_parent and view.parent[node] >= 0:
                self.relevant.discard(int(view.community[view.parent[node]]))
        if not following and not self.relevant and self.depth <= self.options.max_level:
            following = self._level(self.depth)
        self.wave = sorted(following)

    def selected(self) -> Selected:
        """Return the communities taken."""
        nodes = np.array(sorted(self.view.node[c] for c in self.relevant), dtype=np.int64)
        below = [self.view.node[c] for c, r in self.ratings.items() if r is not None and r < self.options.threshold]
        why = say("why.dynamic", self.language, rated=len(self.ratings), calls=self.calls)
        limits = {"threshold": self.options.threshold, "max_level": self.options.max_level, "calls": self.calls}
        choice = Choice(nodes, why, limits, pruned=np.array(sorted(below), dtype=np.int64))
        return describe(
            self.view, self.strategy, choice, min_rank=self.options.min_community_rank, batch=self.batch,
            language=self.language,
        )  # fmt: skip

    def _more_state(self) -> dict[str, Any]:
        return {"relevant": sorted(self.relevant)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `to_state`."""
        super().restore(state)
        self.relevant = {int(c) for c in state["relevant"]}

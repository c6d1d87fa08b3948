"""GraphRAG 3.x's dynamic community selection, walk and defaults: the same ratings give the same reports.

A candidate that reaches the threshold is taken, its children are rated next, and (unless `keep_parent`) its parent is
given up. Where a whole wave leaves nothing taken and nothing to rate, all communities of the next level are rated, down
to `max_level`. An unreadable rating counts as 1, as there. What GraphRAG never shows (stand-ins) is never rated.

GraphRAG rates without a limit, and so does this walk unless one is given. What a limit (or the end of the money or time
for ratings) leaves unasked is kept: its parent is read, or where the parent was given up for another child, it itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe
from communitree_workers.query.selection.walk import Walk, Why
from communitree_workers.query.wording.phrases import say

#: What GraphRAG takes for a reply it cannot read.
_UNREADABLE = 1.0


class Dynamic(Walk):
    """The walk; see `Walk`."""

    def __init__(self, question: Question, price: Price | None = None) -> None:
        """Start at level 0."""
        super().__init__(question, price)
        self.relevant: set[int] = set()
        self.lost: set[int] = set()
        self.wave = self._limited(self._level(0))

    def _level(self, level: int) -> list[int]:
        nodes = np.flatnonzero((self.view.level == level) & self.view.shown)
        return sorted(self.view.community[nodes].tolist())

    def tell(
        self, ratings: Mapping[int, float | None], calls: int | None = None, why: Mapping[int, Why] | None = None
    ) -> None:
        """See `Walk`. What has no reply is kept, whatever the threshold: GraphRAG has no word for it."""
        self.lost.update(why or ())
        super().tell(ratings, calls, why)

    def _keeps(self, community: int) -> bool:
        if community in self.lost:
            return True
        rating = self.ratings.get(community, self.options.threshold)
        return (_UNREADABLE if rating is None else rating) >= self.options.threshold

    def _advance(self, asked: list[int]) -> None:
        view = self.view
        following: list[int] = []
        for community in asked:
            if not self._keeps(community):
                continue
            self.relevant.add(community)
            node = view.node[community]
            following += self._shown_children(node)
            if not self.options.keep_parent and view.parent[node] >= 0:
                self.relevant.discard(int(view.community[view.parent[node]]))
        if not following and not self.relevant | self._unasked() and self.depth <= self.options.max_level:
            following = self._level(self.depth)
        self.wave = self._limited(sorted(following))

    def _shown_children(self, node: int) -> list[int]:
        children = self.view.children(node)
        return [int(c) for c in self.view.community[children[self.view.shown[children]]]]

    def _unasked(self) -> set[int]:
        """Return what nobody asked for and no community that is taken holds."""
        out = {c for c in self._level(0) if c not in self.ratings}
        for community in self.ratings:
            if self._keeps(community) and community not in self.relevant:
                out.update(c for c in self._shown_children(self.view.node[community]) if c not in self.ratings)
        return out

    def selected(self) -> Selected:
        """Return the communities taken."""
        taken = self.relevant | self._unasked()
        nodes = np.array(sorted(self.view.node[c] for c in taken), dtype=np.int64)
        below = {self.view.node[c] for c in self.ratings if not self._keeps(c)}
        below.update(*self._outside(set(nodes.tolist())))  # and what is never shown, where nothing above it is read
        why = say("why.dynamic", self.language, rated=self._said())
        account = {**self._account(), "max_level": self.options.max_level}
        choice = Choice(nodes, why, account, pruned=np.array(sorted(below), dtype=np.int64))
        selected = describe(self.question, choice)
        selected.warnings.extend(self._warnings())
        return selected

    def _more_state(self) -> dict[str, Any]:
        return {"relevant": sorted(self.relevant), "lost": sorted(self.lost)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `to_state`."""
        super().restore(state)
        self.relevant = {int(c) for c in state["relevant"]}
        self.lost = {int(c) for c in state.get("lost", ())}


walk = Dynamic

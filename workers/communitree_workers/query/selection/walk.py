"""What the two relevance walks share: waves of rating calls, and a state that survives between them as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Price, Selected
from communitree_workers.query.wording.phrases import say

#: Why a community has no rating: the limit of calls, the money, the time, a call that failed, a reply that is silent.
Why = Literal["calls", "money", "deadline", "failed", "reply"]


class Walk(ABC):
    """A walk from the roots that asks for ratings wave by wave.

    `ask()` gives the calls of the next wave, each a list of communities; `tell()` takes their ratings and ends the
    wave: a candidate that was asked for and not told is unknown. `stop()` ends the walk where it stands. What stayed
    unrated is kept, and counted by reason. `to_state()` and `restore()` carry a walk as JSON.
    """

    #: Rating calls where the options name no limit; None: no limit.
    usual_calls: int | None = None

    def __init__(self, question: Question, price: Price | None = None) -> None:
        """Start at the roots. `price`: see `select`; needed for a budget in money."""
        self.question, self.price = question, price
        self.view, self.options, self.language = question.view, question.selection, question.language
        self.spent = 0.0  # of the budget in money, by the job, when the selection is made
        self.ratings: dict[int, float | None] = {}
        self.wave: list[int] = []
        self.asked = 0  # calls, as the limit counts them: what is known already takes part
        self.calls = 0  # of the model
        self.depth = 0
        self.unrated: Counter[str] = Counter()

    @property
    def done(self) -> bool:
        """Whether nothing is left to be rated."""
        return not self.wave

    def ask(self) -> list[list[int]]:
        """Return the calls of this wave, each of which is made `num_repeats` times."""
        size = self._per_call
        return [self.wave[i : i + size] for i in range(0, len(self.wave), size)]

    def tell(
        self, ratings: Mapping[int, float | None], calls: int | None = None, why: Mapping[int, Why] | None = None
    ) -> None:
        """Take the ratings of this wave and go on to the next.

        `calls`: model calls that were made, None: all. `why`: reasons of candidates that have no rating.
        """
        planned = len(self.ask()) * self._repeats
        self.asked += planned
        self.calls += planned if calls is None else calls
        asked = self.wave
        for community in asked:
            rating = self.ratings[community] = ratings.get(community)
            if rating is None and self._keeps(community):
                self.unrated[(why or {}).get(community, "reply")] += 1
        self.wave = []
        self.depth += 1
        self._advance(asked)

    def check(self) -> None:
        """Say no, before anything is rated, where nothing could be read; here: where there is nothing to check."""
        return

    def stop(self, why: Why) -> None:
        """Ask for no more ratings."""
        self._leave(self.wave, why)
        self.wave = []

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
            "asked": self.asked,
            "calls": self.calls,
            "depth": self.depth,
            "unrated": dict(self.unrated),
            **self._more_state(),
        }

    def _more_state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `to_state`, made with the same view, options and question."""
        self.ratings = {int(c): r for c, r in state["ratings"]}
        self.wave = [int(c) for c in state["wave"]]
        self.calls, self.depth = int(state["calls"]), int(state["depth"])
        self.asked = int(state.get("asked", self.calls))  # a release before this one counted them as one
        self.unrated = Counter(state.get("unrated", {}))

    def communities(self, nodes: list[int]) -> list[int]:
        """Return communities of positions."""
        return self.view.community[nodes].tolist() if nodes else []

    def _ancestors(self, node: int) -> list[int]:
        out = []
        up = int(self.view.parent[node])
        while up >= 0:
            out.append(up)
            up = int(self.view.parent[up])
        return out

    def _outside(self, read: set[int]) -> tuple[list[int], list[int]]:
        """Return the topmost communities of which nothing is read: in pruned branches, and the others."""
        above = {a for n in read for a in self._ancestors(n)}
        pruned, left = list[int](), list[int]()
        stack = [(n, False) for n in np.flatnonzero(self.view.parent < 0).tolist()]
        while stack:
            node, inside = stack.pop()
            community = int(self.view.community[node])
            inside = not self._keeps(community) if community in self.ratings else inside
            if node in above and node not in read:
                stack += [(child, inside) for child in self.view.children(node).tolist()]
            elif node not in read:
                (pruned if inside else left).append(node)
        return pruned, left

    @property
    def _repeats(self) -> int:
        return max(1, self.options.num_repeats)

    @property
    def _per_call(self) -> int:
        return max(1, self.options.candidates_per_call)

    def _keeps(self, community: int) -> bool:
        """Say whether a community counts as relevant; what has no rating does."""
        rating = self.ratings.get(community)
        return rating is None or rating >= self.options.threshold

    def _limited(self, communities: list[int]) -> list[int]:
        """Cut candidates to the calls that are left."""
        most = self.usual_calls if self.options.max_rating_calls is None else self.options.max_rating_calls
        if most is None:
            return communities
        left = max(0, (most - self.asked) // self._repeats) * self._per_call
        self._leave(communities[left:], "calls")
        return communities[:left]

    def _leave(self, communities: list[int], why: Why) -> None:
        """Count candidates that stay unrated: not those below a pruned parent, which are pruned with it."""
        view = self.view
        above = [int(view.parent[view.node[c]]) for c in communities]
        if kept := sum(up < 0 or self._keeps(int(view.community[up])) for up in above):
            self.unrated[why] += kept

    def _account(self) -> dict[str, Any]:
        return {
            "threshold": self.options.threshold,
            "rated": self._rated(),
            "calls": self.calls,
            "unrated": self.unrated.total(),
            "unrated_because": dict(self.unrated),
        }

    def _rated(self) -> int:
        return sum(rating is not None or not self._keeps(c) for c, rating in self.ratings.items())

    def _said(self) -> str:
        """Return how many communities were rated, in words."""
        rated = self._rated()
        key = "why.rated_none" if not rated else "why.rated" if self.calls else "why.rated_for_nothing"
        words = say(key, self.language, rated=rated, calls=self.calls)
        unrated = self.unrated.total()
        return words + (say("why.unrated", self.language, unrated=unrated) if unrated else "")

    def _warnings(self) -> list[str]:
        return [
            say("warn.unrated", self.language, count=count, cause=say(f"unrated.{why}", self.language))
            for why, count in sorted(self.unrated.items())
        ]

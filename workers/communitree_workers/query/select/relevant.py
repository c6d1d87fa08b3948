"""Our relevance walk: from the roots down, several candidates a call, within hard limits, and nothing pruned unnamed.

An unknown rating keeps a candidate. Where nothing at all is kept, the next level is rated too, down to `max_level`.
A parent is read itself where no child of it is kept, and stays beside its kept children where it was rated above all of
them and lost others. A pruned subtree that holds a rare word of the question gives up the communities that hold it.
Walks the tree, not the reports: a missing report hides nothing.
"""

from __future__ import annotations

import heapq
import random
from typing import Any

import numpy as np

from communitree_shared.options import BatchOptions, SelectionOptions
from communitree_workers.query.corpus_view import CorpusView, IntArray
from communitree_workers.query.phrases import say
from communitree_workers.query.select.auto import best_below
from communitree_workers.query.select.budget import Price
from communitree_workers.query.select.common import Choice, Selected, describe
from communitree_workers.query.select.walk import Walk

#: A word is rare when at most this share of the communities (and at least this many) have it.
_RARE_SHARE, _RARE = 0.02, 3
#: The most communities that one word rescues from one pruned subtree.
_RESCUED = 4


class Relevant(Walk):
    """The walk; see `Walk`. With a budget in the options the selection is the most relevant that fits."""

    strategy = "relevant"

    def __init__(
        self,
        view: CorpusView,
        options: SelectionOptions,
        question: str,
        *,
        batch: BatchOptions | None = None,
        language: str = "",
        price: Price | None = None,
    ) -> None:
        """Start at the roots. `price`: see `select`; needed for a budget in money."""
        super().__init__(view, options, question, batch=batch, language=language)
        self.price = price
        scores = view.lexicon.scores(self.question.terms)
        self._promise = np.maximum(scores, best_below(view, scores))
        self.wave = self._limited(np.flatnonzero(view.parent < 0).tolist())

    def _limited(self, nodes: list[int]) -> list[int]:
        """Order candidates, the most promising first, and cut them to the calls that are left."""
        view = self.view
        nodes.sort(key=lambda n: (-float(self._promise[n]), -int(view.mass[n]), int(view.community[n])))
        left = (self.options.max_rating_calls - self.calls) * max(1, self.options.candidates_per_call)
        if self.options.max_depth is not None and self.depth > self.options.max_depth:
            left = 0
        return self.communities(nodes[: max(0, left)])

    def _advance(self, asked: list[int]) -> None:
        following: list[int] = []
        for community in asked:
            if self._keeps(community):
                following += self.view.children(self.view.node[community]).tolist()
        if not any(map(self._keeps, self.ratings)) and self.depth <= self.options.max_level:
            following = [c for n in asked for c in self.view.children(self.view.node[n]).tolist()]
        self.wave = self._limited(following)

    def _keeps(self, community: int) -> bool:
        rating = self.ratings.get(community)
        return rating is None or rating >= self.options.threshold

    def _kept_below(self, node: int) -> list[int]:
        """Return the children of a kept community that the walk kept; [] where it did not go on below it."""
        children = self.view.children(node).tolist()
        if not any(int(self.view.community[c]) in self.ratings for c in children):
            return []
        return [c for c in children if self._keeps(int(self.view.community[c]))]

    def _reads_itself(self, node: int, kept: list[int]) -> bool:
        """Say whether a kept community is read although children of it are kept."""
        own = self.ratings.get(int(self.view.community[node]))
        if own is None or len(kept) == len(self.view.children(node)):
            return False
        below = [self.ratings.get(int(self.view.community[c])) for c in kept]
        return all(rating is not None and rating < own for rating in below)

    def pruned_nodes(self) -> list[int]:
        """Return the communities that were rated below the threshold, without those below them."""
        return sorted(
            self.view.node[c] for c, r in self.ratings.items() if r is not None and r < self.options.threshold
        )

    def rescued(self) -> list[int]:
        """Return communities inside pruned subtrees that hold a rare word of the question, the deepest holders."""
        view = self.view
        pruned = set(self.pruned_nodes())
        most = max(_RARE, int(_RARE_SHARE * len(view.community)))
        scores = view.lexicon.scores(self.question.specific)
        found: set[int] = set()
        for term in self.question.specific:
            holders = view.lexicon.holders(term).tolist()
            if not 0 < len(holders) <= most:
                continue
            above = {n for h in holders for n in self._ancestors(h)}
            by_subtree: dict[int, list[int]] = {}
            for holder in holders:
                top = next((n for n in (holder, *self._ancestors(holder)) if n in pruned), None)
                if top is not None and holder not in above:
                    by_subtree.setdefault(top, []).append(holder)
            for inside in by_subtree.values():
                inside.sort(key=lambda n: (-float(scores[n]), int(view.community[n])))
                found.update(inside[:_RESCUED])
        return sorted(n for n in found if not any(a in found for a in self._ancestors(n)))

    def _ancestors(self, node: int) -> list[int]:
        out = []
        up = int(self.view.parent[node])
        while up >= 0:
            out.append(up)
            up = int(self.view.parent[up])
        return out

    def selected(self) -> Selected:
        """Return the communities kept, or the most relevant of them within the budget."""
        rescued = self.rescued()
        limit = self._limit()
        if limit is None:
            nodes = self._all()
            words = ""
        else:
            nodes = self._within(limit)
            unit, number = limit
            words = say("why.relevant_budget", self.language, limit=say(f"limit.{unit}", self.language, n=number))
        kept = sorted(set(nodes) | (set(rescued) if limit is None else set(self._room(nodes, rescued, limit))))
        above = {a for n in nodes for a in self._ancestors(n)}
        pruned = [n for n in self.pruned_nodes() if n not in above]
        why = say("why.relevant", self.language, rated=len(self.ratings), calls=self.calls, pruned=len(pruned)) + words
        account: dict[str, Any] = {
            "threshold": self.options.threshold,
            "calls": self.calls,
            "rescued": self.communities(rescued),
            "unrated": sum(r is None for r in self.ratings.values()),
        }
        if limit is not None:
            account[limit[0]] = limit[1]
        choice = Choice(np.array(kept, dtype=np.int64), why, account, pruned=np.array(pruned, dtype=np.int64))
        return describe(
            self.view, self.strategy, choice, min_rank=self.options.min_community_rank, batch=self.batch,
            language=self.language,
        )  # fmt: skip

    def _starts(self) -> list[int]:
        """Return what is kept at the top: roots (unrated ones too), and what was kept below pruned parents."""
        view = self.view
        roots = np.flatnonzero(view.parent < 0).tolist()
        starts = [n for n in roots if self._keeps(int(view.community[n]))]
        for community in sorted(self.ratings):
            node = view.node[community]
            up = int(view.parent[node])
            if up >= 0 and self._keeps(community) and not self._keeps(int(view.community[up])):
                starts.append(node)
        return starts

    def _all(self) -> list[int]:
        out: list[int] = []
        stack = self._starts()
        while stack:
            node = stack.pop()
            kept = self._kept_below(node)
            if not kept or self._reads_itself(node, kept):
                out.append(node)
            stack += kept
        return out

    def _limit(self) -> tuple[str, float] | None:
        options = self.options
        for unit, value in (
            ("tokens", options.budget_tokens), ("reports", options.budget_reports), ("usd", options.budget_usd),
        ):  # fmt: skip
            if value is not None:
                return unit, value
        return None

    def _cost(self, nodes: list[int], unit: str) -> float:
        from communitree_workers.query.select import costs

        if unit == "reports":
            return len(nodes)
        array: IntArray = np.array(nodes, dtype=np.int64)
        if unit == "usd" and self.price is not None:
            return self.price(array)
        return float(costs(self.view, self.batch)[0][array].sum()) if nodes else 0.0

    def _rating(self, node: int) -> float:
        rating = self.ratings.get(int(self.view.community[node]))
        return float(self.options.threshold) if rating is None else rating

    def _room(self, nodes: list[int], more: list[int], limit: tuple[str, float]) -> list[int]:
        out = list(nodes)
        for node in more:
            if self._cost([*out, node], limit[0]) <= limit[1]:
                out.append(node)
        return out

    def _within(self, limit: tuple[str, float]) -> list[int]:
        """Take kept roots, the most relevant first, then go down where the ratings are highest, while it fits."""
        unit, most = limit
        view = self.view
        taken = self._room(
            [], sorted(self._starts(), key=lambda n: (-self._rating(n), -int(view.mass[n]), int(view.community[n]))),
            limit,
        )  # fmt: skip
        queue = [self._entry(node) for node in taken]
        heapq.heapify(queue)
        chosen = set(taken)
        spent = self._cost(sorted(chosen), unit)
        while queue:
            _, _, node = heapq.heappop(queue)
            kept = self._kept_below(node)
            if not kept:
                continue
            tried = chosen | set(kept)
            if not self._reads_itself(node, kept):
                tried.discard(node)
            cost = self._cost(sorted(tried), unit) if unit == "usd" else self._moved(spent, chosen, tried, unit)
            if cost > most:
                continue
            chosen, spent = tried, cost
            for child in kept:
                heapq.heappush(queue, self._entry(child))
        return sorted(chosen)

    def _moved(self, spent: float, before: set[int], after: set[int], unit: str) -> float:
        return spent + self._cost(sorted(after - before), unit) - self._cost(sorted(before - after), unit)

    def _entry(self, node: int) -> tuple[float, int, int]:
        below = [self._rating(c) for c in self._kept_below(node)]
        return (-max(below, default=0.0), int(self.view.community[node]), node)

    def audit_sample(self, seed: int = 0) -> list[int]:
        """Return a sample of the pruned communities, a share `audit_pruned` and at least one, to be read after all."""
        pruned = self.communities(self.pruned_nodes())
        if not pruned or not self.options.audit_pruned:
            return []
        size = max(1, round(self.options.audit_pruned * len(pruned)))
        return sorted(random.Random(seed).sample(sorted(pruned), size))

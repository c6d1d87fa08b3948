"""Our relevance walk: from the roots down, several candidates a call, within hard limits, and nothing pruned unnamed.

An unknown rating keeps a candidate. Where nothing at all is kept, the next level is rated too, down to `max_level`.
A parent is read itself where no child of it is kept, and stays beside its kept children where it was rated above all of
them and lost others. A pruned subtree that holds a rare word of the question gives up the communities that hold it.
Walks the tree, not the reports: a missing report hides nothing.
"""

from __future__ import annotations

import random

import numpy as np

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.auto import best_below
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe
from communitree_workers.query.selection.limits import Limits, check_budget, most_relevant
from communitree_workers.query.selection.walk import Walk
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say

#: A word is rare when at most this share of the communities (and at least this many) have it.
_RARE_SHARE, _RARE = 0.02, 3
#: The most communities that one word rescues from one pruned subtree.
_RESCUED = 4
#: An audit's sample takes at most this share of each limit.
_AUDITED = 0.5


class Relevant(Walk):
    """The walk; see `Walk`. With a budget in the options the selection is the most relevant that fits."""

    usual_calls = 200

    def __init__(self, question: Question, price: Price | None = None) -> None:
        """Start at the roots."""
        super().__init__(question, price)
        view = self.view
        scores = view.lexicon.scores(question.words.terms)
        self._promise = np.maximum(scores, best_below(view, scores))
        self.wave = self._candidates(np.flatnonzero(view.parent < 0).tolist())

    def check(self) -> None:
        """Say no to a budget in which no report at all fits.

        Raises:
            UsageError: says what the least is; or there is a budget in money, and no price.
        """
        check_budget(self.question, self.price)

    def _candidates(self, nodes: list[int]) -> list[int]:
        """Order candidates, the most promising first, and cut them to the calls that are left."""
        view = self.view
        nodes.sort(key=lambda n: (-float(self._promise[n]), -int(view.mass[n]), int(view.community[n])))
        if self.options.max_depth is not None and self.depth > self.options.max_depth:
            return []
        return self._limited(self.communities(nodes))

    def _advance(self, asked: list[int]) -> None:
        following: list[int] = []
        for community in asked:
            if self._keeps(community):
                following += self.view.children(self.view.node[community]).tolist()
        if not any(map(self._keeps, self.ratings)) and self.depth <= self.options.max_level:
            following = [c for n in asked for c in self.view.children(self.view.node[n]).tolist()]
        self.wave = self._candidates(following)

    def kept_below(self, node: int) -> list[int]:
        """Return the children of a kept community that the walk kept; [] where it did not go on below it."""
        children = self.view.children(node).tolist()
        if not any(int(self.view.community[c]) in self.ratings for c in children):
            return []
        return [c for c in children if self._keeps(int(self.view.community[c]))]

    def reads_itself(self, node: int, kept: list[int]) -> bool:
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
        scores = view.lexicon.scores(self.question.words.specific)
        found: set[int] = set()
        for term in self.question.words.specific:
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

    def selected(self) -> Selected:
        """Return the communities kept, or the most relevant of them within the budget, and a sample of the pruned."""
        limits = self._limits()
        whole, rescued = self._all(), self.rescued()
        above = {a for n in whole for a in self._ancestors(n)}
        pruned = [n for n in self.pruned_nodes() if n not in above]
        wanted = self._sample([n for n in pruned if n not in set(rescued)])
        sample = wanted
        if limits.any:
            sample = self._room(wanted, limits)
            nodes = most_relevant(self, rescued, limits, sample)
            if sample and not nodes:  # what is relevant comes first
                sample, nodes = [], most_relevant(self, rescued, limits, [])
        else:
            nodes = sorted({*whole, *rescued})
        out, left = self._outside({*nodes, *sample})
        account = {**self._account(), "rescued": self.communities(sorted(set(rescued) & set(nodes)))}
        account |= self._given()
        if limits.any and not nodes:
            account |= limits.too_small([*self._kept(), *rescued], self.spent)
        if self.options.audit_pruned:
            account |= {"audited": self.communities(sample), "audit_wanted": len(wanted)}
        choice = Choice(
            np.array([*nodes, *sample], dtype=np.int64), self._why(len(pruned), len(sample)), account,
            pruned=np.array(sorted({*pruned, *out}), dtype=np.int64), left=np.array(left, dtype=np.int64),
        )  # fmt: skip
        selected = describe(self.question, choice)
        selected.warnings.extend(self._warnings())
        if len(sample) < len(wanted):
            selected.warnings.append(say("warn.audit_cut", self.language, sample=len(sample), wanted=len(wanted)))
        return selected

    def _why(self, pruned: int, audited: int) -> str:
        language = self.language
        words = say("why.relevant", language, rated=self._said(), pruned=pruned)
        if given := self._given():
            limits = [say(f"limit.{unit}", language, n=number) for unit, number in given.items()]
            words += say("why.relevant_budget", language, limit=say("and", language).join(limits))
        return words + (say("why.relevant_audit", language, count=audited) if audited else "")

    def _given(self) -> dict[str, float]:
        options = self.options
        limits = {"tokens": options.budget_tokens, "reports": options.budget_reports, "usd": options.budget_usd}
        return {unit: number for unit, number in limits.items() if number is not None}

    def _limits(self) -> Limits:
        return Limits.of(self.options, costs(self.view, self.question.batch)[0], self.price, self.spent)

    def _kept(self) -> list[int]:
        """Return everything that was kept, at any depth."""
        out, stack = [], self.starts()
        while stack:
            node = stack.pop()
            out.append(node)
            stack += self.kept_below(node)
        return out

    def starts(self) -> list[int]:
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
        stack = self.starts()
        while stack:
            node = stack.pop()
            kept = self.kept_below(node)
            if not kept or self.reads_itself(node, kept):
                out.append(node)
            stack += kept
        return out

    def rating(self, node: int) -> float:
        """Return a community's rating, the threshold where it has none."""
        rating = self.ratings.get(int(self.view.community[node]))
        return float(self.options.threshold) if rating is None else rating

    def _sample(self, pruned: list[int]) -> list[int]:
        """Return a sample of pruned communities, a share `audit_pruned` and at least one, to be read after all."""
        view, options = self.view, self.options
        pool = [n for n in pruned if view.readable[n] and view.rank[n] >= options.min_community_rank]
        if not pool or not options.audit_pruned:
            return []
        size = max(1, round(options.audit_pruned * len(pool)))
        return sorted(random.Random(self.question.options.seed).sample(pool, size))

    def _room(self, wanted: list[int], limits: Limits) -> list[int]:
        """Return what of a sample fits its part of the budget."""
        sample: list[int] = []
        for node in wanted:
            if limits.fit([*sample, node], _AUDITED):
                sample.append(node)
        return sample


walk = Relevant

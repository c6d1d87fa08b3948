"""The most relevant of what a walk kept, within all limits that were given: tokens, reports, money."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any, Protocol

import numpy as np

from communitree_shared.contract.options import SelectionOptions
from communitree_shared.errors import UsageError
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Price, without_price
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say


class Kept(Protocol):
    """What a walk kept, as positions in its view."""

    view: CorpusView

    def starts(self) -> list[int]:
        """Return the topmost communities that were kept."""

    def kept_below(self, node: int) -> list[int]:
        """Return the children of a kept community that were kept."""

    def reads_itself(self, node: int, kept: list[int]) -> bool:
        """Say whether a kept community is read although children of it are kept."""

    def rating(self, node: int) -> float:
        """Return how relevant a kept community is."""


@dataclass(frozen=True)
class Limits:
    """What a selection may take. `cost`: tokens of each community; `usd`: what is left of the money, None: no limit."""

    cost: IntArray
    tokens: int | None = None
    reports: int | None = None
    usd: float | None = None
    price: Price | None = None

    @classmethod
    def of(cls, options: SelectionOptions, cost: IntArray, price: Price | None, spent: float = 0.0) -> Limits:
        """Return the limits of a selection; `spent`: what the job has paid for already.

        Raises:
            UsageError: there is a budget in money, and no price.
        """
        usd = options.budget_usd
        if usd is not None and price is None:
            raise without_price()
        return cls(cost, options.budget_tokens, options.budget_reports, None if usd is None else usd - spent, price)

    @property
    def any(self) -> bool:
        """Whether there is a limit."""
        return self.tokens is not None or self.reports is not None or self.usd is not None

    def fit(self, nodes: Sequence[int], share: float = 1.0) -> bool:
        """Say whether reading these communities keeps to this share of every limit."""
        return not self.broken(nodes, share)

    def broken(self, nodes: Sequence[int], share: float = 1.0) -> str:
        """Return the first limit that reading these communities breaks, '' for none."""
        array = np.array(sorted(nodes), dtype=np.int64)
        if self.tokens is not None and int(self.cost[array].sum()) > share * self.tokens:
            return "tokens"
        if self.reports is not None and len(array) > share * self.reports:
            return "reports"
        if self.usd is not None and self.price is not None and self.price(array) > share * self.usd:
            return "usd"
        return ""

    def too_small(self, nodes: Sequence[int], spent: float = 0.0) -> dict[str, Any]:
        """Return {} where any of these communities fits, else the limit it breaks, and the least that would do."""
        if not nodes:
            return {}
        cheapest = min(nodes, key=lambda node: (int(self.cost[node]), node))
        unit = self.broken([cheapest])
        if not unit:
            return {}
        if unit == "usd" and self.price is not None:
            return {"binding": unit, "least": spent + self.price(np.array([cheapest], dtype=np.int64))}
        return {"binding": unit, "least": int(self.cost[cheapest]) if unit == "tokens" else 1}


def most_relevant(walk: Kept, rescued: list[int], limits: Limits, beside: list[int]) -> list[int]:
    """Return the most relevant of what a walk kept, within the limits; `beside` is read as well, and takes its part."""
    tokens = math.inf if limits.tokens is None else limits.tokens - int(limits.cost[beside].sum())
    reports = math.inf if limits.reports is None else limits.reports - len(beside)
    found = _fill(walk, rescued, limits.cost, tokens, reports)
    if limits.usd is None or limits.fit([*found, *beside]):
        return found
    # By tokens, each try priced through the real batch plan.
    low, high, best = 0, int(limits.cost[found].sum()), list[int]()
    while high - low > max(1, high // 256):
        middle = (low + high) // 2
        tried = _fill(walk, rescued, limits.cost, middle, reports)
        if limits.fit([*tried, *beside]):
            low, best = middle, tried
        else:
            high = middle
    return best


def _fill(walk: Kept, rescued: list[int], cost: IntArray, tokens: float, reports: float) -> list[int]:
    """Take the highest rated first, at any depth; of equals what covers most comes first, then what takes fewer tokens.

    A rating at a time: first what has it enters, from the top, then what was taken gives way to as highly rated ones
    below it. Nothing that is rated lower takes a token before that.
    """
    filling = _Filling(walk, cost, tokens, reports)
    for rating in sorted({walk.rating(node) for node in _kept(walk)}, reverse=True):
        before = None
        while before != filling.chosen:
            before = set(filling.chosen)
            filling.enter(rating)
            filling.go_down(rating)
    for node in rescued:
        if node not in filling.chosen and filling.pays([node]):
            filling.take([node])
    return sorted(filling.chosen)


def _kept(walk: Kept) -> list[int]:
    out, stack = list[int](), walk.starts()
    while stack:
        node = stack.pop()
        out.append(node)
        stack += walk.kept_below(node)
    return out


class _Filling:
    """What is chosen of a walk so far, and what is left of its limits. `above`: all that has a chosen one below it."""

    def __init__(self, walk: Kept, cost: IntArray, tokens: float, reports: float) -> None:
        self.walk, self.cost, self.left, self.places = walk, cost, tokens, reports
        self.chosen: set[int] = set()
        self.above: set[int] = set()

    def pays(self, fresh: list[int], instead: int | None = None) -> bool:
        """Say whether these fit, where one that is chosen may be given up for them."""
        freed = 0 if instead is None else int(self.cost[instead])
        more = len(fresh) - (instead is not None)
        return int(self.cost[fresh].sum()) - freed <= self.left and more <= self.places

    def take(self, fresh: list[int], instead: int | None = None) -> None:
        """Choose these, and give up one for them."""
        if instead is not None:
            self.chosen.remove(instead)
            self.left, self.places = self.left + int(self.cost[instead]), self.places + 1
        self.chosen.update(fresh)
        self.left, self.places = self.left - int(self.cost[fresh].sum()), self.places - len(fresh)
        for node in fresh:
            up = int(self.walk.view.parent[node])
            while up >= 0 and up not in self.above:
                self.above.add(up)
                up = int(self.walk.view.parent[up])

    def enter(self, rating: float) -> None:
        """Choose, from the top, what is rated so highly and has nothing chosen above it, nor below it if it is not to
        be read beside that.

        Instead of a community that does not fit, what is kept below it is tried.
        """
        queue = list[tuple[tuple[int, int, int], int]]()
        stack = self.walk.starts()
        while stack or queue:
            while stack:
                node = stack.pop()
                kept = self.walk.kept_below(node)
                if node in self.chosen:
                    stack += kept if node in self.above else []
                elif self.walk.rating(node) >= rating and (
                    node not in self.above or self.walk.reads_itself(node, kept)
                ):
                    heapq.heappush(queue, (self._order(node), node))
                else:
                    stack += kept
            if not queue:
                break
            _, node = heapq.heappop(queue)
            if self.pays([node]):
                self.take([node])
            else:
                stack += self.walk.kept_below(node)

    def go_down(self, rating: float) -> None:
        """Replace what is chosen by what is rated so highly below it, where this is no loss.

        One that was rated above all that is kept below it stays until all of that is its turn.
        """
        queue = [(self._order(node), node) for node in self.chosen]
        heapq.heapify(queue)
        while queue:
            _, node = heapq.heappop(queue)
            kept = self.walk.kept_below(node)
            waiting = [child for child in kept if child not in self.chosen and child not in self.above]
            fresh = [child for child in waiting if self.walk.rating(child) >= rating]
            instead = None if self.walk.reads_itself(node, kept) else node
            best = max(map(self.walk.rating, fresh), default=0.0)
            if not fresh or (instead is not None and len(fresh) < len(waiting) and best < self.walk.rating(node)):
                continue
            if self.pays(fresh, instead):
                self.take(fresh, instead)
                for child in fresh:
                    heapq.heappush(queue, (self._order(child), child))

    def _order(self, node: int) -> tuple[int, int, int]:
        view = self.walk.view
        return -int(view.mass[node]), int(self.cost[node]), int(view.community[node])


def too_small(unit: str, given: float, least: float, what: str, flag: str = "budget") -> UsageError:
    """Return the error of a budget in which nothing fits; `least`: what `what`, the cheapest, takes."""
    if unit == "usd":  # upwards, as far as it is printed: who follows the hint has enough
        least = float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(least))
    budget, needed = (say(f"limit.{unit}", "en", n=n) for n in (given, least))
    return UsageError(
        f"A budget of {budget} is too small to read anything: {what} takes {needed}.",
        hint=f"Raise --{flag}-{unit} to that or more.",
    )


def check_budget(question: Question, price: Price | None) -> Limits:
    """Return the limits of a relevance walk, before anything is rated.

    Raises:
        UsageError: no report at all fits; or there is a budget in money, and no price.
    """
    view, options = question.view, question.selection
    limits = Limits.of(options, costs(view, question.batch)[0], price)
    if found := limits.too_small(np.flatnonzero(view.readable).tolist()):
        given = getattr(options, f"budget_{found['binding']}")
        raise too_small(found["binding"], given, found["least"], "the smallest report")
    return limits

"""A dry run: what a query would read and cost, without reading a report or calling a model."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from communitree_shared.contract.options import SelectionOptions
from communitree_shared.contract.results import Plan
from communitree_shared.contract.strategies import STRATEGIES
from communitree_shared.errors import CommunitreeError, UsageError
from communitree_shared.settings import ModelSettings, ModelStage
from communitree_shared.tokens import TOKENS_A_WORD, count
from communitree_workers.query.batches.frame import frame_of
from communitree_workers.query.batches.packing import spans, table_room
from communitree_workers.query.planning.rating import CANDIDATE_TOKENS
from communitree_workers.query.planning.reduce_sizes import RERATED, part_words
from communitree_workers.query.question.question import Question, RowKind
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe, without_price
from communitree_workers.query.selection.limits import Limits, check_budget
from communitree_workers.query.selection.select import must_read, select, usual_calls
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say

#: Tokens of the reduce prompt's rules, about; a point has about sixty, and its joint rating is a fifth of that.
_REDUCE_RULES = 500
_TOKENS_A_RATING = 5
#: The share of the money for rating and reading that ratings may take.
_RATING_SHARE = 0.5
_BUDGETS = ("budget_tokens", "budget_reports", "budget_usd")
#: The stages that call a model for a question.
PAID: tuple[ModelStage, ...] = ("rate", "map", "reduce")


@dataclass(frozen=True)
class Prices:
    """USD per million tokens of prompts and of replies, by stage; None: unknown. Built-in models cost nothing."""

    map: tuple[float | None, float | None] = (0.0, 0.0)
    reduce: tuple[float | None, float | None] = (0.0, 0.0)
    rate: tuple[float | None, float | None] = (0.0, 0.0)

    @classmethod
    def of(cls, model: Callable[[ModelStage], ModelSettings]) -> Prices:
        """Return the prices of the models that a question is read by; `model`: the settings of a stage's."""

        def pair(stage: ModelStage) -> tuple[float | None, float | None]:
            found = model(stage)
            return (0.0, 0.0) if found.built_in else (found.price_input, found.price_output)

        return cls(**{stage: pair(stage) for stage in PAID})


def _usd(prices: tuple[float | None, float | None], prompt: int, reply: int) -> float | None:
    into, out = prices
    return None if into is None or out is None else (prompt * into + reply * out) / 1e6


@dataclass(frozen=True)
class Size:
    """Batches of a selection, the tokens of their prompts with the question, and what is to be expected as replies."""

    batches: int
    tokens: int
    replies: int


class Planner:
    """Sizes and prices of selections of one version under one set of options."""

    def __init__(self, question: Question, prices: Prices | None = None) -> None:
        """Size the question as its options select."""
        self.question, self.prices = question, prices or Prices()
        self.view, self.options, self.selection = question.view, question.options, question.selection
        self._static: dict[RowKind, int] = {}

    def selecting(self, selection: SelectionOptions) -> Planner:
        """Return the planner of the same question with another selection; what both need is counted once."""
        other = copy(self)
        other.question = self.question.selecting(selection)
        other.options, other.selection = other.question.options, selection
        return other

    def static(self, kind: RowKind) -> int:
        """Return the tokens of a map prompt around its table, by what stands in it."""
        if kind not in self._static:
            self._static[kind] = frame_of(self.view, self.options, kind).tokens
        return self._static[kind]

    @cached_property
    def asked(self) -> int:
        """Return the question's tokens."""
        return count(self.question.text, self.view.encoding) if self.question.text else 0

    def size(self, tokens: list[int], kind: RowKind = "reports") -> Size:
        """Return the batches of rows with these token counts, in the order of their ids."""
        batch = self.options.batch
        room = table_room(batch, self.static(kind), self.view.encoding, kind)
        rows: list[int] = []
        for cost in tokens:
            rows += [cost] if cost <= room else [room] * (cost // room) + ([cost % room] if cost % room else [])
        if batch.shuffle_data:
            random.Random(batch.random_state).shuffle(rows)
        found = len(spans(rows, room))
        prompts = sum(rows) + found * (self.static(kind) + self.asked)
        words = self.options.answer.map_max_length
        return Size(found, prompts, int(found * words * TOKENS_A_WORD))

    def usd(self, size: Size) -> float | None:
        """Return the price of reading a selection and of the reduce; None where a price is unknown."""
        reading, writing = _usd(self.prices.map, size.tokens, size.replies), self.writing(size.replies)
        return None if reading is None or writing is None else round(reading + writing, 6)

    def writing(self, replies: int) -> float | None:
        """Return the price of the reduce of replies with so many tokens, all its rounds; None: a price is unknown.

        From above: replies and answer are taken to be as long as they may be.
        """
        answer = self.options.answer
        room = answer.max_data_tokens
        around = _REDUCE_RULES + self.asked
        spent = [_usd(self.prices.reduce, min(room, replies) + around, int(answer.reduce_max_length * TOKENS_A_WORD))]
        if replies > room:
            rated = min(RERATED * room, replies)
            spent.append(_usd(self.prices.rate, rated + around, rated // _TOKENS_A_RATING))
            if answer.overflow == "tree":
                groups = -(-replies // room)
                words = groups * part_words(groups, answer)
                spent.append(_usd(self.prices.reduce, replies + groups * around, int(words * TOKENS_A_WORD)))
        known = [price for price in spent if price is not None]
        return sum(known) if len(known) == len(spent) else None

    def for_reading(self, batches: int | None = None) -> float | None:
        """Return what of the budget in money is for rating and reading; None: there is no such budget.

        The rest is kept for the reduce of so many batches, or of as many points as one call holds: without it the
        points would have been paid for and not be put together.

        Raises:
            UsageError: nothing would be left.
        """
        budget = self.selection.budget_usd
        if budget is None:
            return None
        words = self.options.answer.map_max_length
        replies = self.options.answer.max_data_tokens if batches is None else int(batches * words * TOKENS_A_WORD)
        kept = self.writing(replies)
        if kept is None:
            return budget  # no call is made where its price is unknown
        if kept >= budget:
            raise UsageError(
                f"A budget of {budget:g} USD does not pay for the answer: putting the points together may cost "
                f"{kept:.4f} USD.",
                hint="Raise --budget-usd, or lower --reduce-max-length; --plan says what a question costs.",
            )
        return round(budget - kept, 6)

    def for_rating(self) -> float | None:
        """Return what of the budget in money ratings may spend: the rest is for reading what they choose.

        Raises:
            UsageError: see `for_reading`.
        """
        reading = self.for_reading()
        return None if reading is None else round(_RATING_SHARE * reading, 6)

    def priced(self) -> None:
        """Say no to a budget in money where the price of reading or of the answer is unknown.

        Raises:
            UsageError: names what sets the prices.
        """
        if self.selection.budget_usd is not None and self.usd(Size(0, 0, 0)) is None:
            raise without_price()

    def price(self) -> Price | None:
        """Return what reading some communities would cost, for a budget in money; None where prices are unknown."""
        if self.usd(Size(0, 0, 0)) is None:
            return None
        cost, _ = costs(self.view, self.options.batch)

        def of(nodes: IntArray) -> float:
            order = nodes[np.argsort(self.view.community[nodes], kind="stable")]
            return self.usd(self.size(cost[order].tolist())) or 0.0

        return of

    def plan(self) -> Plan:
        """Return the plan of the selection."""
        self.priced()
        if STRATEGIES[self.selection.strategy].walks:
            return self.of(*self._upper_bound())
        return self.of(must_read(select(self.question, self.price())))

    def of(self, selected: Selected, calls: int = 0) -> Plan:
        """Return the plan of what was selected, with so many rating calls at most.

        Raises:
            UsageError: see `for_reading`; a walk may read less than this, so it is not refused.
        """
        selection, request = self.selection, self.question.request
        size = self.size(self._tokens(selected), selected.kind)
        if selection.budget_usd is not None and not calls:
            self.for_reading(size.batches)
        usd = self.usd(size)
        tokens = size.tokens
        if calls:
            prompt = calls * (selection.candidates_per_call * CANDIDATE_TOKENS + self.asked)
            rating = _usd(self.prices.rate, prompt, calls * selection.candidates_per_call * 12)
            usd = self._with_ratings(usd, rating)
            tokens += prompt
        return Plan(
            corpus=request.corpus, version=request.version, selection=selected.selection, batches=size.batches,
            tokens=tokens, usd=usd, coverage=selected.coverage, rating_calls=calls, upper_bound=calls > 0,
        )  # fmt: skip

    def _with_ratings(self, usd: float | None, rating: float | None) -> float | None:
        """Return the price of a walk from above: within a budget in money, however it falls to its parts."""
        if usd is None or rating is None:
            return None
        budget = self.selection.budget_usd
        if budget is None or (most := self.for_rating()) is None:
            return round(usd + rating, 6)
        whole = round(usd + min(rating, most), 6)
        return min(whole, budget) if self._within_budgets else whole

    def _tokens(self, selected: Selected) -> list[int]:
        view = self.view
        if selected.kind == "sources":
            return [int(view.unit_tokens[view.unit_node[id]]) + 8 for id in selected.ids]
        cost, _ = costs(view, self.options.batch)
        return [int(cost[view.node[id]]) for id in selected.ids]

    @property
    def _within_budgets(self) -> bool:
        """Whether the strategy takes a budget as its limit."""
        return _BUDGETS[0] in STRATEGIES[self.selection.strategy].options

    def _upper_bound(self) -> tuple[Selected, int]:
        """A walk reads at most the finest reports (with their parents: all), or its budget's worth of them.

        Returns that, and the most rating calls that there can be.
        """
        view, question, selection = self.view, self.question, self.selection
        why = say("why.upper_bound", question.language)
        per_call = max(1, selection.candidates_per_call)
        most = int((-(-np.bincount(view.level) // per_call)).sum())  # a wave is a level at most
        if self._within_budgets and any(getattr(selection, name) for name in _BUDGETS):
            limits = check_budget(question, self.price())
            as_budget = question.selecting(selection.model_copy(update={"strategy": "budget"}))
            bound = select(as_budget, self.price())
            if not bound.ids:  # no root fits; a walk tries what is below
                bound = describe(question, Choice(_cheapest(view, limits), why))
            bound.selection.strategy = selection.strategy
        else:
            nodes = np.flatnonzero(view.shown if selection.keep_parent else view.is_leaf)
            bound = describe(question, Choice(nodes, why))
        repeats = max(1, selection.num_repeats)
        limit = usual_calls(selection.strategy) if selection.max_rating_calls is None else selection.max_rating_calls
        return bound, (most if limit is None else min(most, limit // repeats)) * repeats


def _cheapest(view: CorpusView, limits: Limits) -> IntArray:
    """Return the cheapest reports that fit together."""
    nodes: list[int] = []
    for node in np.argsort(limits.cost, kind="stable").tolist():
        if view.readable[node]:
            if not limits.fit([*nodes, node]):
                break
            nodes.append(node)
    return np.array(nodes, dtype=np.int64)


def plan_all(planner: Planner) -> list[Plan]:
    """Return the plans of all selections side by side; parameters that the options give replace the examples'."""
    # What a client sends names every field: only what differs from a default was given by anybody.
    given = planner.selection.model_dump(exclude_defaults=True, exclude={"strategy"})
    out: list[Plan] = []
    deepest = int(planner.view.level.max(initial=0))
    for strategy, example in ((name, e) for name, declared in STRATEGIES.items() for e in declared.examples):
        level = example.get("level")
        if isinstance(level, int) and level > deepest:
            continue
        own = {name: value for name, value in given.items() if name not in ("level", *_BUDGETS)}
        own |= {name: given[name] for name in example if name in given and name != "level"}
        selection = SelectionOptions.model_validate({**example, **own, "strategy": strategy})
        try:
            out.append(planner.selecting(selection).plan())
        except CommunitreeError:
            continue  # a budget in money where prices are unknown
    return out

"""Plans, the table of knobs, and the rewriting of a conversation's question."""

from __future__ import annotations

import pytest
from knobs import KNOBS

from communitree_shared.contract.options import BatchOptions, QueryOptions, SelectionOptions, Turn, field_of
from communitree_shared.errors import UsageError
from communitree_shared.settings import ModelSettings, ModelStage
from communitree_workers.query.planning.planner import Prices
from communitree_workers.query.question.conversation import last_turns, parse_rewrite, rewrite_messages
from support.questions import plan, plan_all, planner_of
from support.views import TreeShape, view_of

PARENT = (-1, -1, *(n // 4 for n in range(8)), *(2 + n // 4 for n in range(32)))
VIEW = view_of(TreeShape(PARENT, (700,) * len(PARENT), (0,) * 10 + (5,) * 32))
PRICES = Prices((1.0, 4.0), (1.0, 4.0), (0.5, 2.0))


def options(**selection: object) -> QueryOptions:
    return QueryOptions(selection=SelectionOptions(**selection))  # type: ignore[arg-type]


def test_a_plan_counts_whole_prompts_and_prices_them() -> None:
    found = plan(VIEW, options(strategy="leaves"), "Why?", PRICES, corpus="c", version="v")
    assert (found.corpus, found.version, found.selection.reports) == ("c", "v", 32)
    assert found.batches >= 32 * 700 // 12_000 + 1
    assert found.tokens > found.selection.tokens == 32 * 700
    assert found.usd is not None
    assert found.usd > found.tokens / 1e6
    assert not found.upper_bound


def test_prices_unknown_and_built_in() -> None:
    unknown = plan(VIEW, options(strategy="leaves"), "Why?", Prices((None, None), (1.0, 1.0)))
    assert unknown.usd is None
    models: dict[ModelStage, ModelSettings] = {
        "map": ModelSettings(),
        "reduce": ModelSettings(),
        "rate": ModelSettings(),
    }
    assert plan(VIEW, options(strategy="leaves"), "Why?", Prices.of(models.__getitem__)).usd == 0
    paid = models | {"map": ModelSettings(model="gpt", price_input=2.0, price_output=8.0)}
    assert Prices.of(paid.__getitem__).map == (2.0, 8.0)


def test_a_walk_is_planned_as_an_upper_bound() -> None:
    walk = plan(VIEW, options(strategy="relevant"), "Why?", PRICES)
    assert walk.upper_bound
    assert walk.rating_calls == -(-len(PARENT) // 8)
    assert walk.selection.reports == 32
    few = plan(VIEW, options(strategy="relevant", budget_tokens=3000, max_rating_calls=2), "Why?", PRICES)
    assert few.rating_calls == 2
    assert few.selection.tokens <= 3000
    parents = plan(VIEW, options(strategy="dynamic", keep_parent=True, num_repeats=3), "Why?")
    assert parents.selection.reports == len(PARENT)
    assert parents.rating_calls == 3 * -(-len(PARENT) // 8)


def test_each_level_of_a_walk_has_calls_of_its_own() -> None:
    shape = TreeShape((-1, 0, 0, 0), (10,) * 4, (0, 5, 5, 5))  # the root alone, then three: two calls of up to eight
    assert plan(view_of(shape), options(strategy="relevant"), "Why?").rating_calls == 2
    tripled = options(strategy="relevant", num_repeats=3, max_rating_calls=10, candidates_per_call=4)
    assert plan(VIEW, tripled, "Why?").rating_calls == 9
    assert plan(VIEW, options(strategy="dynamic", max_rating_calls=3), "Why?").rating_calls == 3


def test_a_walk_is_planned_within_its_budget() -> None:
    for budget in (0.03, 0.04, 0.06, 0.1, 1.0):
        found = plan(VIEW, options(strategy="relevant", budget_usd=budget), "Why?", PRICES)
        assert found.usd is not None
        assert 0 < found.usd <= budget
        assert found.selection.reports > 0
    planner = planner_of(VIEW, options(strategy="relevant", budget_usd=0.1), "Why?", PRICES)
    rating, reading = planner.for_rating() or 0, planner.for_reading() or 0
    assert 0 < rating <= reading / 2 < 0.05
    assert planner_of(VIEW, options(strategy="relevant"), "Why?", PRICES).for_rating() is None
    with pytest.raises(UsageError, match="the smallest report takes 700 tokens"):
        plan(VIEW, options(strategy="relevant", budget_tokens=699), "Why?", PRICES)
    with pytest.raises(UsageError, match="price of the model"):
        plan(VIEW, options(strategy="relevant", budget_usd=1.0), "Why?", Prices((None, None)))
    # No root fits: the walk may read what is below.
    below = view_of(TreeShape((-1, 0, 0, 0), (500, 90, 80, 300), (0, 5, 5, 5)))
    found = plan(below, options(strategy="relevant", budget_tokens=200), "Why?")
    assert (found.selection.reports, found.selection.tokens) == (2, 170)


def test_a_budget_in_money_keeps_to_its_price() -> None:
    prices = planner_of(VIEW, QueryOptions(), "Why?", PRICES)
    dear = plan(VIEW, options(strategy="leaves"), "Why?", PRICES).usd or 0
    for share in (0.5, 0.9, 1.1):
        found = plan(VIEW, options(strategy="budget", budget_usd=dear * share), "Why?", PRICES)
        assert found.usd is not None
        assert found.usd <= dear * share
    assert prices.price() is not None
    with pytest.raises(UsageError, match="price"):
        plan(VIEW, options(strategy="budget", budget_usd=1.0), "Why?", Prices((None, None)))


@pytest.mark.parametrize("strategy", ["leaves", "auto", "relevant", "dynamic", "texts", "budget"])
def test_money_without_a_price_is_refused_by_a_plan_as_by_the_question(strategy: str) -> None:
    chosen = options(strategy=strategy, budget_usd=1.0)
    with pytest.raises(UsageError, match="needs the price"):
        plan(VIEW, chosen, "Why?", Prices((None, None), (1.0, 1.0)))


def test_a_rank_that_leaves_nothing_is_refused_and_one_that_leaves_some_is_the_reason() -> None:
    with pytest.raises(UsageError, match="rank of 11 or more: the highest is 5"):
        plan(VIEW, options(strategy="leaves", min_community_rank=11), "Why?", PRICES)
    assert plan(VIEW, options(strategy="leaves", min_community_rank=5), "Why?", PRICES).selection.reports == 32


def test_too_few_tokens_for_any_report_are_refused_by_auto_as_by_a_budget() -> None:
    with pytest.raises(UsageError, match="budget of 10 tokens is too small to read anything") as caught:
        plan(VIEW, options(auto_tokens=10), "Why?", PRICES)
    assert "--auto-tokens" in caught.value.hint


def test_the_reduce_is_inside_a_budget_in_money() -> None:
    words = int(QueryOptions().answer.reduce_max_length * 1.4)
    planner = planner_of(VIEW, options(strategy="leaves", budget_usd=1.0), "Why?", PRICES)
    one, some, many = (planner.for_reading(batches) or 0 for batches in (1, 8, 40))
    assert 1.0 > one > some > many > 0
    # What is kept pays for the answer's prompt and its words at the reduce's prices.
    assert 1.0 - some >= (8 * 1400 * 1.0 + words * 4.0) / 1e6
    # Points of forty batches are rated jointly and condensed first: every one of them is read once more.
    assert 1.0 - many >= (40 * 1400 * 1.0 + 12_000 * 1.0 + 2 * words * 4.0) / 1e6
    assert planner_of(VIEW, options(strategy="leaves"), "Why?", PRICES).for_reading(3) is None
    with pytest.raises(UsageError, match="does not pay for the answer"):
        planner_of(VIEW, options(strategy="leaves", budget_usd=0.001), "Why?", PRICES).for_reading(1)


@pytest.mark.parametrize("strategy", ["leaves", "auto", "texts"])
def test_money_that_does_not_pay_for_the_answer_is_refused_by_a_plan_as_by_the_question(strategy: str) -> None:
    with pytest.raises(UsageError, match="does not pay for the answer"):
        plan(VIEW, options(strategy=strategy, budget_usd=0.001), "Why?", PRICES)
    assert plan(VIEW, options(strategy=strategy, budget_usd=1.0), "Why?", PRICES).usd
    # Side by side each selection is shown with what it takes.
    seen = [p.selection.strategy for p in plan_all(VIEW, options(strategy=strategy, budget_usd=0.001), "Why?", PRICES)]
    assert {"leaves", "relevant", "dynamic"} <= set(seen)


def test_all_selections_stand_side_by_side() -> None:
    plans = plan_all(VIEW, options(strategy="coverage", coverage=0.3), "Why?", PRICES)
    seen = [p.selection.strategy for p in plans]
    assert set(seen) == {"auto", "budget", "leaves", "coverage", "relevant", "dynamic", "frontier", "levels", "texts"}
    assert next(p for p in plans if p.selection.strategy == "coverage").selection.budget["coverage"] == 0.3
    budgets = [p.selection.budget for p in plans if p.selection.strategy == "budget"]
    assert [sorted(set(b) & {"tokens", "reports"}) for b in budgets] == [["tokens"], ["reports"]]
    # A client's options name every field; those that nobody gave must not stand in an example's way.
    sent = QueryOptions.model_validate(QueryOptions().model_dump())
    assert {p.selection.strategy for p in plan_all(VIEW, sent, "Why?", PRICES)} == set(seen)
    own = plan_all(VIEW, options(budget_tokens=5000), "Why?", PRICES)
    assert any(p.selection.budget.get("tokens") == 5000 for p in own)


def test_no_room_is_an_error_here_too() -> None:
    tight = QueryOptions(batch=BatchOptions(max_context_tokens=900, reserve_tokens=800))
    with pytest.raises(UsageError, match="no room"):
        plan(VIEW, tight, "Why?")


def test_every_knob_names_an_option_and_keeps_its_default() -> None:
    ours = {"dynamic_community_selection", "concurrent_coroutines"}  # another kind of value; no limit
    for knob in KNOBS:
        field = field_of(QueryOptions, knob.path.split("."))
        assert field is not None, knob.name
        if knob.name not in ours:
            assert field.get_default(call_default_factory=True) == knob.default, knob.name
    assert len({knob.name for knob in KNOBS}) == len({knob.path for knob in KNOBS}) == len(KNOBS)


HISTORY = [Turn(role=role, content=f"{role} {i}") for i in range(8) for role in ("user", "assistant")]  # type: ignore[arg-type]


def test_the_newest_turns_are_kept() -> None:
    kept = last_turns(HISTORY, 5)
    assert kept[0].content == "user 3"
    assert kept[-1].content == "assistant 7"
    assert last_turns(HISTORY, 0) == []
    assert last_turns(HISTORY[:2], 5) == HISTORY[:2]
    assert last_turns([Turn(role="assistant", content="hello")], 5) == []


def test_the_rewriting_prompt_and_its_reply() -> None:
    system, user = rewrite_messages("And then?", HISTORY[:2], "en", {})
    assert "Rewrite" in system["content"]
    assert user["content"] == "Question: user 0\n\nAnswer: assistant 0\n\nLatest question: And then?"
    assert "最新的问题" in rewrite_messages("然后呢？", [], "zh", {})[1]["content"]
    assert parse_rewrite('Sure.\nQuestion: "What happened to Tim?"', "And him?") == "What happened to Tim?"
    assert parse_rewrite("问题：林黛玉多大？", "她呢？") == "林黛玉多大？"
    assert parse_rewrite("  ", "And him?") == "And him?"
    assert parse_rewrite("x" * 2000, "And him?") == "And him?"

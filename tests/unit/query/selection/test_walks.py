"""The relevance walks: GraphRAG's to the letter, and ours, which loses nothing unnamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import SelectionOptions
from communitree_shared.errors import UsageError
from communitree_workers.query.planning.rating import parse_ratings, rate_messages, rate_schema, vote
from communitree_workers.query.selection.choice import Selected
from communitree_workers.query.selection.dynamic import Dynamic
from communitree_workers.query.selection.relevant import Relevant
from communitree_workers.query.selection.select import must_read
from communitree_workers.query.selection.walk import Walk, Why
from communitree_workers.query.view.corpus_view import CorpusView
from support.questions import dynamic, question_of, relevant
from support.shapes import shapes
from support.views import TreeShape, is_cut, view_of

Rate = Callable[[int], float | None]
#: Two roots; the first has two children with two leaves each, the second two leaves.
SHAPE = TreeShape((-1, -1, 0, 0, 1, 1, 2, 2, 3, 3), (10,) * 10, (0,) * 4 + (5, 5, 5, 5, 5, 5))


def run(kind: type[Walk], view: CorpusView, rate: Rate, question: str = "q", **options: Any) -> tuple[Walk, Selected]:
    chosen = SelectionOptions(strategy=kind.__name__.lower(), **options)
    asked = question_of(view, question, selection=chosen)
    walk = kind(asked)
    while not walk.done:
        again = kind(asked)  # each wave may run in another process
        again.restore(json.loads(json.dumps(walk.to_state())))
        assert again.ask() == walk.ask()
        walk = again
        assert all(len(call) <= chosen.candidates_per_call for call in walk.ask())
        told = {c: rate(c) for call in walk.ask() for c in call}
        walk.tell({c: r for c, r in told.items() if r is not None})
    return walk, walk.selected()


def graphrags(
    shape: TreeShape, shown: list[bool], rate: Rate, keep_parent: bool, threshold: int, max_level: int
) -> set[int]:
    """What GraphRAG's walk gives, told in its own order of steps."""
    levels: dict[int, list[int]] = {}
    for node, level in enumerate(shape.level):
        if shown[node]:
            levels.setdefault(level, []).append(node)
    queue, level, relevant = list(levels.get(0, [])), 0, set()
    while queue:
        following = []
        for node in queue:
            rating = rate(node)
            if (1 if rating is None else rating) >= threshold:
                relevant.add(node)
                following += [c for c in shape.children[node] if shown[c]]
                if not keep_parent:
                    relevant.discard(shape.parent[node])
        queue = following
        level += 1
        if not queue and not relevant and level in levels and level <= max_level:
            queue = levels[level]
    return relevant


@settings(max_examples=30)
@given(shapes(most=16), st.data())
def test_dynamic_gives_what_graphrag_gives(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2, None]), min_size=n, max_size=n))
    shown = data.draw(st.lists(st.sampled_from([True, True, True, False]), min_size=n, max_size=n))
    keep = data.draw(st.booleans())
    level = data.draw(st.integers(0, 3))
    _, selected = run(
        Dynamic, view_of(shape, shown=shown), ratings.__getitem__, keep_parent=keep, max_level=level, threshold=1
    )
    assert set(selected.ids) == graphrags(shape, shown, ratings.__getitem__, keep, 1, level)


@settings(max_examples=30)
@given(shapes(most=16), st.data())
def test_relevant_keeps_what_is_unknown_and_names_what_it_prunes(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=n, max_size=n))
    calls = data.draw(st.integers(0, 6))
    view = view_of(shape)
    walk, selected = run(
        Relevant, view, ratings.__getitem__, max_rating_calls=calls, candidates_per_call=2, max_level=0
    )
    assert walk.calls <= calls
    ids = set(selected.ids)
    for community in ids:
        rating = walk.ratings.get(community)
        assert rating is None or rating >= 1
    # every leaf's text is read by itself, held by something read, or inside something that is named as pruned
    pruned = {c for c, r in walk.ratings.items() if r is not None and r < 1}
    for leaf in (i for i, c in enumerate(shape.children) if not c):
        line, up = [leaf], shape.parent[leaf]
        while up >= 0:
            line.append(up)
            up = shape.parent[up]
        assert ids & set(line) or pruned & set(line)
    if all(r is None for r in walk.ratings.values()):
        assert is_cut(view, selected.ids)


@settings(max_examples=20)
@given(shapes(most=16), st.data())
def test_relevant_stays_within_a_budget(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    budget = data.draw(st.integers(1, 400))
    _, selected = run(Relevant, view_of(shape), ratings.__getitem__, budget_tokens=budget)
    assert selected.selection.tokens <= budget
    _, few = run(Relevant, view_of(shape), ratings.__getitem__, budget_reports=3)
    assert len(few.ids) <= 3


def by(ratings: Mapping[int, float | None], otherwise: float | None = 0) -> Rate:
    return lambda community: ratings.get(community, otherwise)


def test_dynamic_goes_down_to_its_last_level_while_nothing_is_relevant() -> None:
    for level, found in ((0, []), (1, [3]), (2, [3])):
        _, selected = run(Dynamic, view_of(SHAPE), by({3: 4}), max_level=level)
        assert selected.ids == found
    rated = [len(run(Dynamic, view_of(SHAPE), by({}), max_level=level)[0].ratings) for level in (0, 1, 2, 9)]
    assert rated == [2, 6, 10, 10]


def test_a_relevant_parent_of_irrelevant_children_is_read_itself() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({0: 4, 1: 0}))
    assert selected.ids == [0]
    assert selected.selection.pruned.count == 3


def test_a_parent_stays_beside_its_child_where_it_alone_held_more() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({0: 5, 2: 2, 6: 2, 7: 2}))
    assert selected.ids == [0, 6, 7]
    _, equal = run(Relevant, view_of(SHAPE), by({0: 2, 2: 2, 6: 2, 7: 2}))
    assert equal.ids == [6, 7]
    assert {e["id"] for e in equal.selection.pruned.heaviest} == {1, 3}
    assert equal.selection.pruned.text_units == 4


def test_depth_and_calls_are_hard_limits() -> None:
    deep, selected = run(Relevant, view_of(SHAPE), by({}, 5), max_depth=0)
    assert selected.ids == [0, 1]
    assert deep.calls == 1
    flat, selected = run(Relevant, view_of(SHAPE), by({}, 5), max_rating_calls=1, candidates_per_call=1)
    assert flat.calls == 1
    assert selected.ids == [0, 1], "the unrated root is kept as it is"


def test_all_unknown_reads_everything() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({}, None))
    assert selected.ids == [4, 5, 6, 7, 8, 9]
    assert selected.selection.budget["unrated"] == 10


def test_a_rare_word_of_the_question_rescues_its_community() -> None:
    words = [["common"]] * 9 + [["common", "axolotl"]]
    _, selected = run(Relevant, view_of(SHAPE, words=words), by({1: 3, 4: 3, 5: 3}), question="Where is the axolotl?")
    assert selected.ids == [4, 5, 9]
    assert selected.selection.budget["rescued"] == [9]


def test_nothing_relevant_at_the_top_looks_one_level_deeper() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({3: 4, 8: 4}))
    assert selected.ids == [8] or selected.ids == [3, 8]
    _, nothing = run(Relevant, view_of(SHAPE), by({}))
    assert nothing.ids == []
    assert nothing.selection.pruned.count > 0


def test_a_sample_of_what_was_pruned_can_be_audited() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({0: 4}), audit_pruned=0.5)
    sample = selected.selection.budget["audited"]
    assert run(Relevant, view_of(SHAPE), by({0: 4}), audit_pruned=0.5)[1].selection.budget["audited"] == sample
    assert len(sample) == 2
    assert set(sample) <= {1, 2, 3}
    assert selected.ids == sorted({0, *sample})
    assert "2 pruned communities are read among them" in selected.selection.why
    assert run(Relevant, view_of(SHAPE), by({}, 5), audit_pruned=0.5)[1].selection.budget["audited"] == []


def test_an_audit_is_a_part_of_the_budget_and_of_the_coverage() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({0: 4, 2: 4}), audit_pruned=1.0, budget_tokens=30)
    (audited,) = selected.selection.budget["audited"]  # ten tokens of thirty: no more than half
    assert selected.ids == sorted((2, audited))
    assert (selected.selection.reports, selected.selection.tokens) == (2, 20)
    more = {1: 2, 3: 2}.get(audited, 0)  # the others are held by what is read
    assert selected.coverage.entities == pytest.approx((2 + more) / 6, abs=1e-6)
    assert any("cut to 1 of 4" in warning for warning in selected.warnings)


@settings(max_examples=40)
@given(shapes(most=16), st.data())
def test_all_limits_hold_and_all_that_is_not_read_is_named(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=n, max_size=n))
    tokens, reports = (data.draw(st.one_of(st.none(), st.integers(1, most))) for most in (400, 8))
    usd = data.draw(st.one_of(st.none(), st.floats(0.1, 40.0)))
    audit = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    calls = data.draw(st.integers(1, 6))
    view = view_of(shape)

    def price(nodes: Any) -> float:
        return 0.1 * float(view.tokens[nodes].sum()) + 0.05

    options = SelectionOptions(
        strategy="relevant", budget_tokens=tokens, budget_reports=reports, budget_usd=usd, audit_pruned=audit,
        max_rating_calls=calls, candidates_per_call=2, num_repeats=data.draw(st.integers(1, 2)),
    )  # fmt: skip
    walk = relevant(view, options, "q", price=price, spent=0.02)
    while not walk.done:
        walk.tell({c: ratings[c] for call in walk.ask() for c in call})
    assert walk.calls <= calls
    selected = walk.selected()
    selection = selected.selection
    assert selection.tokens <= (tokens or 10**9)
    assert selection.reports == len(selected.ids) <= (reports or 10**9)
    assert not selected.ids or usd is None or price(np.array(selected.ids)) + 0.02 <= usd + 1e-9
    whole = selected.coverage.entities + selection.pruned.entities + selection.left_out.entities
    assert whole == pytest.approx(1.0, abs=1e-5)
    if tokens is reports is usd is None:
        assert selection.left_out.count == 0
    if not selected.ids and any(walk._keeps(c) for c in walk.ratings):
        with pytest.raises(UsageError, match="the smallest relevant report takes"):
            must_read(selected)


def test_a_budget_is_filled_highest_rating_first_at_any_depth() -> None:
    # Twelve roots rated 1, two leaves below each; six of the leaves are rated 4 and dearer than any root.
    parent = (*[-1] * 12, *[root for root in range(12) for _ in range(2)])
    shape = TreeShape(parent, (*[50] * 12, *[100] * 24), (*[0] * 12, *[5] * 24))
    told = {12 + 2 * root: 4 for root in range(6)}
    _, selected = run(Relevant, view_of(shape), by(told, 1), budget_tokens=620)
    assert set(told) <= set(selected.ids)
    assert selected.selection.tokens == 600
    _, more = run(Relevant, view_of(shape), by(told, 1), budget_tokens=900)
    assert set(told) | set(range(6, 12)) == set(more.ids)  # then the roots of which nothing is read yet


def test_what_is_rated_highly_is_read_in_detail_before_what_is_rated_low() -> None:
    shape = TreeShape((-1, -1, 0, 0, 1, 1), (10, 10, 20, 20, 20, 20), (0, 0, 5, 5, 5, 5))
    _, selected = run(Relevant, view_of(shape), by({0: 4, 2: 4, 3: 4}, 1), budget_tokens=40)
    assert selected.ids == [2, 3]


@settings(max_examples=100)
@given(shapes(most=16), st.data())
def test_a_budget_that_nothing_meets_changes_nothing(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    _, free = run(Relevant, view_of(shape), ratings.__getitem__)
    _, ample = run(Relevant, view_of(shape), ratings.__getitem__, budget_tokens=10**6)
    assert ample.ids == free.ids


@settings(max_examples=100)
@given(shapes(most=16), st.data())
def test_of_what_is_rated_best_something_is_read_wherever_it_fits(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    for node in range(n - 1, -1, -1):  # a rater that sees everything below a community
        if children := shape.children[node]:
            ratings[node] = max(ratings[child] for child in children)
    best = [node for node in range(n) if ratings[node] == max(ratings)]
    budget = data.draw(st.integers(min(shape.tokens[node] for node in best), 500))
    _, selected = run(Relevant, view_of(shape), ratings.__getitem__, budget_tokens=budget)
    assert set(selected.ids) & set(best)


def test_what_the_budget_had_no_room_for_is_named_apart_from_what_is_irrelevant() -> None:
    _, selected = run(Relevant, view_of(SHAPE), by({0: 4, 1: 2, 2: 0, 3: 3, 4: 3, 5: 3, 6: 0, 7: 0}), budget_tokens=10)
    assert selected.ids == [0]
    assert [e["id"] for e in selected.selection.left_out.heaviest] == [1]
    assert selected.selection.left_out.entities == pytest.approx(2 / 6, abs=1e-6)
    assert {e["id"] for e in selected.selection.pruned.heaviest} == {2, 8, 9}
    assert selected.selection.pruned.entities == 0  # the parent that is read holds it


def test_instead_of_a_root_that_does_not_fit_what_was_kept_below_it_is_read() -> None:
    view = view_of(TreeShape((-1, -1, 0, 0, 1), (500, 40, 60, 300, 10), (0, 0, 5, 5, 5)))
    _, selected = run(Relevant, view, by({0: 5, 1: 1, 2: 5, 3: 4, 4: 0}), budget_tokens=110)
    assert selected.ids == [1, 2]
    assert [e["id"] for e in selected.selection.left_out.heaviest] == [3]
    _, nothing = run(Relevant, view, by({0: 5, 2: 0, 3: 0}), budget_tokens=110)
    with pytest.raises(UsageError, match="the smallest relevant report takes 500 tokens"):
        must_read(nothing)


def test_a_budget_in_money_sizes_the_walk() -> None:
    def ask(usd: float, spent: float = 0.0) -> Selected:
        options = SelectionOptions(strategy="relevant", budget_usd=usd)
        walk = relevant(view_of(SHAPE), options, "q", price=lambda nodes: 0.1 * len(nodes), spent=spent)
        while not walk.done:
            walk.tell({c: 3 for call in walk.ask() for c in call})
        return walk.selected()

    assert ask(1.0).ids == [4, 5, 6, 7, 8, 9]
    assert len(ask(0.35).ids) == 3
    assert len(ask(0.55, spent=0.2).ids) == 3, "what ratings have cost is gone"
    with pytest.raises(UsageError, match=r"A budget of 0.25 USD .* takes 0.3001 USD"):  # 0.1 + 0.2 is more than 0.3
        must_read(ask(0.25, spent=0.2))
    with pytest.raises(UsageError, match="price"):
        run(Relevant, view_of(SHAPE), by({}, 3), budget_usd=1.0)


def test_a_limit_of_calls_counts_every_repeat_and_what_it_leaves_is_said() -> None:
    walk, selected = run(Relevant, view_of(SHAPE), by({}, 5), num_repeats=3, max_rating_calls=10, candidates_per_call=1)
    assert walk.calls == 9
    budget = selected.selection.budget
    assert (budget["rated"], budget["calls"], budget["unrated"]) == (3, 9, 5)
    assert budget["unrated_because"] == {"calls": 5}
    assert "3 communities rated in 9 calls, 5 unrated and kept" in selected.selection.why
    assert selected.warnings == ["5 communities kept without a rating: the limit of rating calls was reached."]


def test_dynamic_has_no_limit_of_calls_unless_one_is_given() -> None:
    wide = view_of(TreeShape((-1,) * 300, (10,) * 300, (5,) * 300))
    assert run(Dynamic, wide, by({}, 5), candidates_per_call=1)[0].calls == 300
    assert run(Relevant, wide, by({}, 5), candidates_per_call=1)[0].calls == 200
    walk, selected = run(Dynamic, view_of(SHAPE), by({}, 5), candidates_per_call=1, max_rating_calls=3)
    assert walk.calls == 3
    assert selected.ids == [1, 2, 3], "2 took the place of 0; what nobody asked of 3 is kept; 1 holds what is below it"
    assert selected.selection.budget["unrated_because"] == {"calls": 5}
    assert len(selected.warnings) == 1


@settings(max_examples=30)
@given(shapes(most=16), st.data())
def test_dynamic_prunes_nothing_that_its_limit_left_unasked(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    ratings = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    walk, selected = run(
        Dynamic, view_of(shape), ratings.__getitem__, candidates_per_call=1, max_level=0,
        max_rating_calls=data.draw(st.integers(1, n)), keep_parent=data.draw(st.booleans()),
    )  # fmt: skip
    pruned = {c for c, r in walk.ratings.items() if r == 0}
    for leaf in (i for i, c in enumerate(shape.children) if not c):
        line, up = [leaf], shape.parent[leaf]
        while up >= 0:
            line.append(up)
            up = shape.parent[up]
        assert set(selected.ids) & set(line) or pruned & set(line)
    assert selected.coverage.entities + selected.selection.pruned.entities == pytest.approx(1.0, abs=1e-5)


def test_dynamic_tells_a_reply_that_cannot_be_read_from_a_call_that_was_not_answered() -> None:
    def walk(why: dict[int, Why]) -> Selected:
        found = dynamic(view_of(SHAPE), SelectionOptions(strategy="dynamic", threshold=2, max_level=0), "q")
        found.tell({0: 4}, calls=1, why=why)
        again = dynamic(view_of(SHAPE), found.options, "q")
        again.restore(json.loads(json.dumps(found.to_state())))
        again.tell({2: 0, 3: 0, 4: 0, 5: 0})
        return again.selected()

    unreadable = walk({})  # GraphRAG takes it for a 1, which is below the threshold
    assert unreadable.ids == [0]
    assert 1 in {e["id"] for e in unreadable.selection.pruned.heaviest}
    assert (unreadable.selection.budget["unrated"], unreadable.warnings) == (0, [])
    lost = walk({1: "failed"})
    assert lost.ids == [0, 1]
    assert lost.selection.budget["unrated_because"] == {"failed": 1}
    assert lost.warnings == ["1 community kept without a rating: the rating calls failed."]


def test_what_is_never_shown_is_named_where_nothing_above_it_is_read() -> None:
    shown = [True, True, True, False, *[True] * 6]
    _, selected = run(Dynamic, view_of(SHAPE, shown=shown), by({0: 3, 2: 3, 6: 3, 7: 3}), max_level=0)
    assert selected.ids == [6, 7]
    assert {e["id"] for e in selected.selection.pruned.heaviest} == {1, 3}
    assert selected.coverage.entities + selected.selection.pruned.entities == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("kind", [Relevant, Dynamic])
def test_a_walk_that_is_stopped_keeps_what_it_has_not_asked(kind: type[Walk]) -> None:
    walk = kind(question_of(view_of(SHAPE), "问题？", selection=SelectionOptions(strategy=kind.__name__.lower())))
    walk.tell({0: 4}, calls=1, why={1: "money"})
    walk.stop("money")
    assert walk.done
    selected = walk.selected()
    assert selected.ids == [0, 1]
    assert selected.selection.budget["unrated_because"] == {"money": 5}
    assert selected.selection.budget["rated"] == 1
    assert selected.warnings == ["5 个社区未评分而保留：预算中可用于评分的部分已用完。"]
    assert "1 次调用评了 1 个社区，5 个未评分而保留" in selected.selection.why


def test_ratings_that_cost_no_call_are_said_so() -> None:
    walk = relevant(view_of(SHAPE), SelectionOptions(strategy="relevant"), "q")
    while not walk.done:
        walk.tell({c: 2 for call in walk.ask() for c in call}, calls=0)
    assert "10 communities rated without a model call" in walk.selected().selection.why
    assert walk.selected().selection.budget["calls"] == 0


@pytest.mark.parametrize(
    ("value", "ratings"),
    [
        ({"ratings": [{"id": 1, "rating": 4}, {"id": 2, "rating": "2/5"}]}, {1: 4, 2: 2}),
        ([{"id": "1", "rating": "5"}, {"id": 2, "rating": None}], {1: 5, 2: None}),
        ({"1": 3, "2": 9}, {1: 3, 2: 5}),
        ({"ratings": {"1": 0, "2": 1}}, {1: 0, 2: 1}),
        ([3, 4], {1: 3, 2: 4}),
        ({"评分": [{"编号": 2, "评分": 3}]}, {1: None, 2: 3}),
        ({"reason": "x", "rating": 4}, {1: None, 2: None}),
        (None, {1: None, 2: None}),
        ("nonsense", {1: None, 2: None}),
        ({"ratings": [{"id": 77, "rating": 4}, 5]}, {1: None, 2: None}),
    ],
)
def test_ratings_are_read_each_for_itself(value: Any, ratings: dict[int, float | None]) -> None:
    assert parse_ratings(value, [1, 2]) == ratings


def test_one_candidate_needs_no_id_and_votes_are_counted() -> None:
    assert parse_ratings({"reason": "x", "rating": "4/5"}, [7]) == {7: 4}
    assert vote([3, 5, 5, None]) == 5
    assert vote([2, 4]) == 2
    assert vote([None]) is None


def test_the_rating_prompt() -> None:
    system, user = rate_messages([(7, "Ships\n\nsail"), (8, "x " * 2000)], "Why?", "en", {}, tokens=20)
    assert user["content"].startswith("# Items\n\n[7] Ships ¶ sail\n\n[8] x x")
    assert len(user["content"]) < 150
    assert user["content"].endswith("\n\n# Question\n\nWhy?")
    assert '"rating"' in system["content"]
    assert not any(word in system["content"] for word in ('"points"', '"findings"'))
    assert rate_schema()["required"] == ["ratings"]

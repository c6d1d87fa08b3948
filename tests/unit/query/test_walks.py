"""The relevance walks: GraphRAG's to the letter, and ours, which loses nothing unnamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.options import SelectionOptions
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.rate import parse_ratings, rate_messages, rate_schema, vote
from communitree_workers.query.select.common import Selected, is_cut
from communitree_workers.query.select.dynamic import Dynamic
from communitree_workers.query.select.relevant import Relevant
from communitree_workers.query.select.walk import Walk
from support.shapes import shapes
from support.views import TreeShape, view_of

Rate = Callable[[int], float | None]
#: Two roots; the first has two children with two leaves each, the second two leaves.
SHAPE = TreeShape((-1, -1, 0, 0, 1, 1, 2, 2, 3, 3), (10,) * 10, (0,) * 4 + (5, 5, 5, 5, 5, 5))


def run(kind: type[Walk], view: CorpusView, rate: Rate, question: str = "q", **options: Any) -> tuple[Walk, Selected]:
    chosen = SelectionOptions(strategy=kind.strategy, **options)  # type: ignore[arg-type]
    walk = kind(view, chosen, question)
    while not walk.done:
        again = kind(view, chosen, question)  # each wave may run in another process
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
    walk, _ = run(Relevant, view_of(SHAPE), by({0: 4}), audit_pruned=0.5)
    assert isinstance(walk, Relevant)
    sample = walk.audit_sample(3)
    assert sample == walk.audit_sample(3)
    assert 0 < len(sample) <= 3
    assert set(sample) <= {1, 2, 3}


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
    assert "[7] Ships ¶ sail" in system["content"]
    assert len(system["content"]) < 1500
    assert user["content"] == "Why?"
    assert '"rating"' in system["content"]
    assert not any(word in system["content"] for word in ('"points"', '"findings"'))
    assert rate_schema()["required"] == ["ratings"]

"""From the points of all batches to one list: one scale, nothing counted twice, nothing lost unnamed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.query.map.outcome import BatchOutcome, MapPoint, MapResult
from communitree_workers.query.points.gathering import Gathered, gather_points
from communitree_workers.query.points.scale import shifts


def outcome(*points: tuple[str, float | None, list[int]], overview: dict[int, float] | None = None) -> BatchOutcome:
    made = [MapPoint(text, score, ids) for text, score, ids in points]
    return BatchOutcome("answered", [i for _, _, ids in points for i in ids], MapResult(made, overview or {}))


def closes(gathered: Gathered) -> bool:
    used = sum(p.used for p in gathered.points)
    return used + gathered.dropped + gathered.zero + gathered.duplicate == len(gathered.points)


# -- scores ---------------------------------------------------------------------------------------------------------


def test_a_generous_batch_is_shifted_back() -> None:
    base = {1: 20.0, 2: 50.0, 3: 80.0, 4: 40.0, 5: 60.0}
    off = shifts([base, {a: x + 20 for a, x in base.items()}, base])
    assert off[1] - off[0] == pytest.approx(20, abs=0.01)
    assert sum(off) == pytest.approx(0, abs=1e-9)


def test_noise_is_not_taken_for_generosity() -> None:
    rng = random.Random(3)
    batches = [{a: 50 + rng.gauss(0, 20) for a in range(5)} for _ in range(12)]
    assert max(abs(x) for x in shifts(batches)) < 6
    means = [sum(b.values()) / 5 - 50 for b in batches]
    assert max(abs(m) for m in means) > 10


@pytest.mark.parametrize(
    "anchors",
    [[], [None], [{1: 5.0, 2: 3.0}], [{1: 5.0}, {1: 9.0}], [None, {}, {1: 2.0, 2: 9.0}], [{1: 1.0}, {2: 9.0}]],
)
def test_without_enough_anchors_there_is_no_shift(anchors: list[dict[int, float] | None]) -> None:
    assert shifts(anchors) == [0.0] * len(anchors)


def test_the_shift_orders_points_and_leaves_their_own_scores() -> None:
    base = {1: 20.0, 2: 50.0, 3: 80.0}
    generous = outcome(("apples grow", 70, [1]), overview={a: x + 30 for a, x in base.items()})
    strict = outcome(("pears grow", 60, [2]), overview=base)
    gathered = gather_points([generous, strict])
    assert [gathered.points[i].text for i in gathered.order] == ["pears grow", "apples grow"]
    assert [p.score for p in gathered.points] == [70, 60]


# -- gathering ------------------------------------------------------------------------------------------------------


def test_zero_unreadable_and_empty_points_are_out_and_counted_apart() -> None:
    gathered = gather_points([outcome(("a b", 0, [1]), ("c d", None, [2]), ("  ", 50, [3]), ("e f", 10, [4]))])
    assert (gathered.zero, gathered.dropped, gathered.duplicate) == (1, 2, 0)
    assert gathered.order == [3]
    assert all(p.why_not for p in gathered.points[:3])


FEW = ["harbour", "wall", "not", "storm", "ships", "may"]


@settings(max_examples=150)
@given(st.lists(st.tuples(st.lists(st.sampled_from(FEW), max_size=5), st.integers(1, 9)), max_size=25))
def test_a_point_is_merged_when_an_earlier_kept_one_says_all_of_it(said: list[tuple[list[str], int]]) -> None:
    gathered = gather_points([outcome(*((" ".join(words), score, [n]) for n, (words, score) in enumerate(said)))])
    order = sorted((i for i, (words, _) in enumerate(said) if words), key=lambda i: (-said[i][1], i))
    kept: list[int] = []
    for i in order:
        mine = said[i][0]

        def says(k: int, mine: list[str] = mine) -> bool:
            moods = [sorted(w for w in words if w in ("not", "may")) for words in (mine, said[k][0])]
            rest = iter(w for w in said[k][0] if w not in ("not", "may"))
            plain = [w for w in mine if w not in ("not", "may")]
            return bool(plain) and moods[0] == moods[1] and all(w in rest for w in plain)

        if not any(says(k) for k in kept):
            kept.append(i)
    assert gathered.order == kept
    assert closes(gathered) or not any(p.used for p in gathered.points)


def test_duplicates_are_merged_and_their_citations_united() -> None:
    gathered = gather_points(
        [
            outcome(("The bridge fell in 1907 during a storm.", 80, [1])),
            outcome(("Bridge fell in 1907", 60, [2, 1])),
        ]
    )
    assert gathered.duplicate == 1
    assert gathered.points[0].reports == [1, 2]
    assert gathered.points[1].why_not


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Fact 17: the code of Alice is 4711.", "Fact 18: the code of Alice is 4711."),
        ("Alice beat Bob at chess.", "Bob beat Alice at chess."),
        ("The audit was passed.", "The audit was not passed."),
        ("The mine may close.", "The mine will close."),
        ("贾宝玉喜欢林黛玉。", "林黛玉喜欢贾宝玉。"),
        ("他去了北京。", "他没去北京。"),
    ],
)
def test_facts_that_differ_in_one_word_are_never_merged(one: str, other: str) -> None:
    assert gather_points([outcome((one, 80, [1]), (other, 70, [2]))]).duplicate == 0


def test_ties_go_by_rank_then_batch() -> None:
    batches = [outcome(("one", 50, [1])), outcome(("two", 50, [2])), outcome(("three", 50, [3]))]
    gathered = gather_points(batches, {1: 1.0, 2: 9.0, 3: 1.0})
    assert [gathered.points[i].text for i in gathered.order] == ["two", "one", "three"]


# -- packing --------------------------------------------------------------------------------------------------------

"""Parts of one or two members join a sibling that has room for them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.cluster.crumbs import ENOUGH, without_crumbs

LIMIT = 6


def joined(part: list[int], edges: list[tuple[int, int, int]]) -> list[set[int]]:
    low, high, weight = (np.array([e[i] for e in edges], np.int64) for i in range(3))
    found = without_crumbs(np.unique(part, return_inverse=True)[1], low, high, weight, LIMIT)
    return sorted(({int(i) for i in np.flatnonzero(found == p)} for p in np.unique(found)), key=min)


def test_a_crumb_joins_what_it_is_most_tied_to() -> None:
    part = [0, 0, 0, 1, 1, 1, 2]
    assert joined(part, [(0, 6, 1), (3, 6, 2), (4, 6, 2)]) == [{0, 1, 2}, {3, 4, 5, 6}]
    assert joined(part, [(0, 6, 4), (3, 6, 4)]) == [{0, 1, 2, 6}, {3, 4, 5}]  # equals: the one with the first member


def test_a_crumb_stays_where_nobody_has_room() -> None:
    part = [0] * 6 + [1]
    assert joined(part, [(0, 6, 9)]) == [{0, 1, 2, 3, 4, 5}, {6}]


def test_crumbs_join_each_other() -> None:
    assert joined([0, 1, 2, 3, 4, 4, 4, 4, 4], [(0, 1, 5), (1, 2, 4), (2, 3, 1), (3, 4, 9)]) == [
        {0, 1, 2},
        {3, 4, 5, 6, 7, 8},
    ]


@given(
    st.lists(st.integers(0, 6), min_size=LIMIT + 1, max_size=16),
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(1, 9)), max_size=30),
)
@settings(max_examples=150)
def test_only_crumbs_move_and_none_is_left_that_could(part: list[int], draws: list[tuple[int, int, int]]) -> None:
    edges = [(min(a, b), max(a, b), w) for a, b, w in draws if a != b and max(a, b) < len(part)]
    before = [{i for i, p in enumerate(part) if p == number} for number in set(part)]
    after = joined(part, edges)
    assert sorted(i for p in after for i in p) == list(range(len(part)))
    for old in before:
        assert any(old <= new for new in after)
    for new in after:
        whole = [old for old in before if old <= new]
        assert len(whole) == 1 or len(new) <= LIMIT
        assert sum(len(old) >= ENOUGH for old in whole) <= 1
    if all(len(old) <= LIMIT for old in before):
        assert len(after) > 1 or len(before) == 1
    crumbs = [new for new in after if len(new) < ENOUGH]
    for crumb in crumbs:
        for other in after:
            tied = any((a in crumb and b in other) or (b in crumb and a in other) for a, b, _ in edges)
            # room may have gone to another crumb after this one's turn, never come back
            assert other is crumb or not tied or len(crumb) + len(other) > LIMIT

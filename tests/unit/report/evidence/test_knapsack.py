from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.report.evidence.knapsack import best_subset

ITEMS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 20)), max_size=9)


@given(ITEMS, st.integers(0, 120))
def test_as_good_as_trying_every_subset(items: list[tuple[int, int]], capacity: int) -> None:
    weights, values = [w for w, _ in items], [v for _, v in items]
    chosen = best_subset(weights, values, capacity)
    everything = chain.from_iterable(combinations(range(len(items)), k) for k in range(len(items) + 1))
    fitting = [subset for subset in everything if sum(weights[i] for i in subset) <= capacity]
    best = max((sum(values[i] for i in s), -sum(weights[i] for i in s)) for s in fitting)
    assert sorted(set(chosen)) == chosen
    weight = sum(weights[i] for i in chosen)
    assert weight <= capacity
    if sum(w for w in weights if w <= capacity) > capacity:
        assert (sum(values[i] for i in chosen), -weight) == best
    else:
        assert sum(values[i] for i in chosen) == best[0]


def test_biggest_first_would_lose() -> None:
    assert best_subset([60, 50, 50], [61, 50, 50], 100) == [1, 2]


def test_a_large_capacity_is_no_burden() -> None:
    weights = [10_007 + 13 * i for i in range(60)]
    chosen = best_subset(weights, [1] * 60, 300_000)
    assert chosen == list(range(29))
    assert sum(weights[:30]) > 300_000 >= sum(weights[:29])

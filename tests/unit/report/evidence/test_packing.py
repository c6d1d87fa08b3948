from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.report.evidence.packing import Child, Packed, Pair, Problem, pack
from communitree_workers.report.records import KINDS

HEADS = {"reports": 3, "titles": 3, "pairs": 3, **dict.fromkeys(KINDS, 2)}


@st.composite
def problems(draw: st.DrawFn, inner: bool) -> Problem:
    k = draw(st.integers(1, 4)) if inner else 0
    costs, owners = {}, {}
    for kind in KINDS:
        cost = draw(st.lists(st.integers(1, 40), max_size=8))
        costs[kind] = np.array(cost, dtype=np.int64)
        owner = draw(st.lists(st.integers(-1, k - 1), min_size=len(cost), max_size=len(cost)))
        owners[kind] = np.array(owner, dtype=np.int64)
    report = st.one_of(st.none(), st.integers(2, 60))
    children = []
    for i in range(k):
        tokens = draw(report)
        children.append(Child(i, draw(st.integers(0, 9)), tokens, None if tokens is None else max(1, tokens // 3)))
    edges = len(costs["relationships"])

    def pairs() -> list[Pair]:
        loose = np.flatnonzero(owners["relationships"] < 0)
        return [Pair(0, 1, 4, loose)] if k > 1 and len(loose) and edges else []

    return Problem(draw(st.integers(0, 400)), HEADS, costs, owners, children, pairs)


def spent(problem: Problem, packed: Packed) -> int:
    rows = sum(int(problem.costs[kind][packed.rows[kind]].sum()) for kind in KINDS)
    heads = sum(HEADS[kind] for kind in KINDS if packed.rows[kind].any())
    heads += sum(HEADS[name] for name in ("reports", "titles", "pairs") if getattr(packed, name))
    full = sum(problem.children[i].report or 0 for i in packed.reports)
    short = sum(problem.children[i].title or 0 for i in packed.titles)
    return rows + heads + full + short + sum(pair.cost for pair in packed.pairs)


@settings(max_examples=60)
@given(st.booleans().flatmap(lambda inner: problems(inner)))
def test_never_above_the_room_and_nothing_left_that_fits(problem: Problem) -> None:
    packed = pack(problem)
    total = spent(problem, packed)
    assert total <= problem.room or total == 0
    for kind in KINDS:
        out = problem.costs[kind][~packed.rows[kind]]
        assert not len(out) or packed.left <= 0 or int(out.min()) > packed.left
    for i in packed.reports:
        assert not set(packed.titles) & {i}
        raw = sum(int(problem.costs[kind][problem.owners[kind] == i].sum()) for kind in KINDS)
        assert (problem.children[i].report or 0) < raw, "a child was replaced whose rows cost no more than its report"


@settings(max_examples=40)
@given(problems(inner=True))
def test_all_rows_when_they_fit(problem: Problem) -> None:
    whole = sum(int(cost.sum()) for cost in problem.costs.values())
    whole += sum(HEADS[kind] for kind in KINDS if len(problem.costs[kind]))
    packed = pack(replace(problem, room=whole))
    assert all(mask.all() for mask in packed.rows.values())
    assert not packed.reports
    assert not packed.titles
    if whole:
        tight = pack(replace(problem, room=whole - 1))
        assert not all(mask.all() for mask in tight.rows.values())


@settings(max_examples=40)
@given(problems(inner=True))
def test_the_children_that_stay_raw_are_the_best_choice(problem: Problem) -> None:
    """Against every way of giving each child its rows or its report, where any way leaves the rows between whole."""
    room = problem.room - sum(HEADS[kind] for kind in KINDS if len(problem.costs[kind])) - HEADS["reports"]
    raw = [
        sum(int(problem.costs[k][problem.owners[k] == i].sum()) for k in KINDS) for i in range(len(problem.children))
    ]
    held = [sum(int((problem.owners[k] == i).sum()) for k in KINDS) for i in range(len(problem.children))]
    between = sum(int(problem.costs[k][problem.owners[k] < 0].sum()) for k in KINDS)
    best = None
    for ways in product((True, False), repeat=len(raw)):
        if any(
            not r and (c.report is None or c.report >= raw[i])
            for i, (r, c) in enumerate(zip(ways, problem.children, strict=True))
        ):
            continue
        cost = between + sum(raw[i] if r else problem.children[i].report or 0 for i, r in enumerate(ways))
        if cost <= room:
            rows = sum(held[i] for i, r in enumerate(ways) if r)
            best = rows if best is None else max(best, rows)
    packed = pack(problem)
    if best is None or all(mask.all() for mask in packed.rows.values()):
        return
    kept = sum(held[i] for i in range(len(raw)) if i not in packed.reports)
    assert not packed.pairs
    assert not packed.titles
    assert kept == best
    assert all(packed.rows[k][problem.owners[k] < 0].all() for k in KINDS)


def test_counted_pairs_titles_and_a_quarter_of_rows_between() -> None:
    between = np.full(40, 10, dtype=np.int64)
    costs = {kind: np.zeros(0, dtype=np.int64) for kind in KINDS}
    owners = {kind: np.zeros(0, dtype=np.int64) for kind in KINDS}
    costs["relationships"] = np.concatenate([between, np.full(60, 10, dtype=np.int64)])
    owners["relationships"] = np.array([-1] * 40 + [0] * 30 + [1] * 30)
    children = [Child(7, 5, 100, 20), Child(8, 9, 100, 20)]
    problem = Problem(151, HEADS, costs, owners, children, lambda: [Pair(0, 1, 5, np.arange(40))])
    packed = pack(problem)
    assert [pair.cost for pair in packed.pairs] == [5]
    assert packed.rows["relationships"][:40].sum() >= 3, "a quarter of the room goes to single rows between children"
    assert packed.reports == []
    assert packed.titles == [1, 0], "titles of all children, heaviest first"
    wider = pack(replace(problem, room=211))
    assert wider.reports == [1], "the heaviest child in full"
    assert wider.titles == [0]
    assert spent(problem, wider) <= 211


def test_skips_what_does_not_fit() -> None:
    costs = {kind: np.zeros(0, dtype=np.int64) for kind in KINDS}
    costs["entities"] = np.array([50, 90, 40], dtype=np.int64)
    owners = {kind: np.full(len(cost), -1, dtype=np.int64) for kind, cost in costs.items()}
    packed = pack(Problem(100, HEADS, costs, owners))
    assert packed.rows["entities"].tolist() == [True, False, True]

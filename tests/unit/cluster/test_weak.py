"""Weak edges, against a slow reading of their rule."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import MASS_SCALE
from communitree_workers.cluster import weak
from communitree_workers.cluster.core import prepare
from communitree_workers.cluster.weak import Mentions, weak_edges
from support.graphs import clique, corpus

Case = tuple[list[tuple[int, int]], list[int], list[int], list[bool]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw pairs (member, text unit), the document of each text unit, the component of each member, who is small."""
    members, units = draw(st.integers(1, 14)), draw(st.integers(1, 10))
    pairs = draw(st.sets(st.tuples(st.integers(0, members - 1), st.integers(0, units - 1)), max_size=30))
    document = sorted(draw(st.lists(st.integers(0, 2), min_size=units, max_size=units)))
    leader = draw(st.lists(st.integers(0, members - 1), min_size=members, max_size=members))
    component = [min(i for i in range(members) if leader[i] == leader[j]) for j in range(members)]
    return sorted(pairs), document, component, draw(st.lists(st.booleans(), min_size=members, max_size=members))


def expected(case: Case, weight: int) -> dict[tuple[int, int], int]:
    pairs, document, component, small = case
    who, where = defaultdict(list), defaultdict(list)
    for member, unit in pairs:
        who[unit].append(member)
        where[member].append(unit)
    share = {t: round(Fraction(MASS_SCALE, len(e)) + Fraction(1, 10**9)) for t, e in who.items()}
    mass = {e: sum(share[t] for t in units) for e, units in where.items()}
    out: dict[tuple[int, int], int] = {}
    for e in [i for i, flag in enumerate(small) if flag]:
        shared: dict[int, int] = defaultdict(int)
        for t in where[e]:
            for f in who[t]:
                if component[f] != component[e]:
                    shared[f] += share[t]
        best = sorted(shared, key=lambda f: (-shared[f], -mass[f], f))[:5]
        ties = {f: max(int(np.rint(weight * (shared[f] / MASS_SCALE))), 1) for f in best}
        if not ties:
            options = [
                (abs(t - u), u)
                for t in where[e]
                for u in range(len(document))
                if document[u] == document[t] and any(component[f] != component[e] for f in who[u])
            ]
            if options:
                unit = min(options)[1]
                foreign = [f for f in who[unit] if component[f] != component[e]]
                ties = {min(foreign, key=lambda f: (-mass[f], f)): weight}
        for f, strength in ties.items():
            key = (min(e, f), max(e, f))
            out[key] = max(out.get(key, 0), strength)
    return out


def made(case: Case, weight: int) -> dict[tuple[int, int], int]:
    pairs, document, component, small = case
    member, unit = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
    mentions = Mentions.of(member, unit, len(component), np.array(document, np.int64))
    low, high, strength = weak_edges(mentions, np.array(component, np.int64), np.array(small, bool), weight)
    return {(int(a), int(b)): int(w) for a, b, w in zip(low, high, strength, strict=True)}


@given(cases())
@settings(max_examples=80)
def test_weak_edges_follow_their_rule(case: Case) -> None:
    assert made(case, 100_000) == expected(case, 100_000)


@given(cases())
@settings(max_examples=15)
def test_rounds_of_the_join_change_nothing(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weak, "_ROUND", 3)
        assert made(case, 100_000) == expected(case, 100_000)


def test_a_crowded_text_unit_offers_its_heaviest_only() -> None:
    crowd = 700
    heavy = set(range(crowd - 3, crowd))
    pairs = [(i, 0) for i in range(crowd)] + [(i, 1) for i in heavy]
    edges = made((sorted(pairs), [0, 0], list(range(crowd)), [True] * crowd), 100_000)
    # all ties through the crowded text unit are equal: each takes the heaviest, then the first
    ends = {end for pair in edges for end in pair if end not in heavy}
    assert ends == set(range(crowd - 3))
    assert {b for a, b in edges if a == 100} == heavy
    assert all(a < 6 or b in heavy for a, b in edges)


def test_weak_edges_are_marked_and_no_relationships() -> None:
    names = [f"A{i:02d}" for i in range(12)]
    tables = corpus([*names, "lone"], clique(names, 2.0), [("d", [names[0], "lone"])])
    prepared = prepare(tables, ClusterOptions())
    assert prepared.counts["weak_edges"] == int(prepared.weak.sum()) == 1
    at = int(np.flatnonzero(prepared.weak)[0])
    ends = {prepared.ids[int(prepared.graph.low[at])].as_py(), prepared.ids[int(prepared.graph.high[at])].as_py()}
    assert ends == {"id-A00", "id-lone"}
    assert int(prepared.graph.weight[at]) == 100_000  # 0.1 × the median of 2.0 × a half
    assert prepared.degree.sum() == 2 * 66

"""Clustering again: what was not touched stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import leidenalg
import numpy as np
import pytest

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.errors import IntegrityError
from communitree_workers.cluster.core import Graph, prepare, split_roots
from communitree_workers.cluster.incremental import recluster, touched
from support.graphs import Edge, clique, corpus

OPTIONS = ClusterOptions()
NAMES = [[f"G{g}N{i:02d}" for i in range(12)] for g in range(5)]


def graph(more: list[Edge], extra: list[str] | None = None) -> tuple[Graph, list[str], np.ndarray]:
    """Return the graph of five cliques, its ids, and the part of each member."""
    names = [n for group in NAMES for n in group] + (extra or [])
    prepared = prepare(corpus(names, [e for group in NAMES for e in clique(group)] + more), OPTIONS)
    part = np.empty(prepared.clustered, np.int64)
    for number, root in enumerate(split_roots(prepared, OPTIONS)):
        part[root] = number
    return prepared.graph, prepared.ids.to_pylist(), part


def test_only_touched_members_may_move() -> None:
    old, ids, part = graph([])
    new, new_ids, _ = graph([(NAMES[0][0], n, 9.0) for n in NAMES[1]] + [("NEW", NAMES[2][3], 1.0)], ["NEW"])
    place = {name: i for i, name in enumerate(ids)}
    old_of = np.array([place.get(name, -1) for name in new_ids])
    free = touched(old, new, old_of)
    moved = {new_ids[i] for i in np.flatnonzero(free)}
    assert moved == {"id-NEW", f"id-{NAMES[2][3]}", f"id-{NAMES[0][0]}", *(f"id-{n}" for n in NAMES[1])}
    before = np.where(old_of >= 0, part[old_of], -1)
    after = dict(zip(new_ids, recluster(new, before, free, OPTIONS).tolist(), strict=True))
    assert after[f"id-{NAMES[0][0]}"] == after[f"id-{NAMES[1][5]}"]  # drawn over by its new edges
    assert after["id-NEW"] == after[f"id-{NAMES[2][3]}"]
    for group in NAMES:
        kept = {after[f"id-{n}"] for n in group if f"id-{n}" not in moved}
        assert len(kept) <= 1
    assert np.array_equal(recluster(new, before, free, OPTIONS), recluster(new, before, free, OPTIONS))


def test_removed_and_reweighed_edges_touch_their_ends() -> None:
    old, ids, _ = graph([(NAMES[0][0], NAMES[1][0], 1.0), (NAMES[3][0], NAMES[4][0], 1.0)])
    new, new_ids, _ = graph([(NAMES[3][0], NAMES[4][0], 2.0)])
    assert ids == new_ids
    free = touched(old, new, np.arange(len(ids)))
    assert {ids[i] for i in np.flatnonzero(free)} == {f"id-{NAMES[g][0]}" for g in (0, 1, 3, 4)}


def test_nothing_touched_is_the_old_partition() -> None:
    old, _, part = graph([])
    free = touched(old, old, np.arange(len(old)))
    assert not free.any()
    assert np.array_equal(recluster(old, part, free, OPTIONS), part)


def test_a_graph_without_edges_or_members() -> None:
    none = np.empty(0, np.int64)
    empty = Graph(np.empty(0, np.uint64), none, none, none)
    assert recluster(empty, none, np.empty(0, bool), OPTIONS).tolist() == []
    loose = Graph(np.arange(3, dtype=np.uint64), none, none, none)
    assert recluster(loose, np.array([4, -1, 4]), np.array([False, True, False]), OPTIONS).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda g, p, f: (replace(g, weight=g.weight * 0), p, f), "weight is not above zero"),
        (lambda g, p, f: (g, p * 0 - 1, f & False), "mark new members as free"),
        (lambda g, p, f: (g, p[1:], f), "60 members, but 59 old parts"),
    ],
)
def test_bad_arguments_are_refused(spoil: Callable[..., Any], says: str) -> None:
    old, _, part = graph([])
    with pytest.raises(IntegrityError, match=says):
        recluster(*spoil(old, part, np.ones(len(old), bool)), OPTIONS)


def test_leidenalgs_bare_exception_becomes_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    old, _, part = graph([])

    def refuse(*_: Any, **__: Any) -> None:
        raise BaseException("Could not construct partition")

    monkeypatch.setattr(leidenalg, "RBConfigurationVertexPartition", refuse)
    with pytest.raises(IntegrityError, match="leidenalg refused the graph: Could not construct"):
        recluster(old, part, np.ones(len(old), bool), OPTIONS)

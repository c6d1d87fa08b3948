"""Splits and subtrees: pure functions that another process may carry out."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ClusterOptions
from communitree_workers.cluster.core import Prepared, Subtree, assemble, build, prepare, split_roots, subtree
from communitree_workers.cluster.graph import components, ranges, summed
from communitree_workers.cluster.split import ordered_parts, seed_of, split
from communitree_workers.tables.io import Tables, to_bytes
from support.graphs import clique, corpora, corpus, nested

SMALL = ClusterOptions(max_cluster_size=3)


@given(corpora())
@settings(max_examples=12)
def test_spread_over_processes_gives_the_same_tree(tables: Tables) -> None:
    prepared = prepare(tables, SMALL)
    roots = split_roots(prepared, SMALL)
    trees = []
    for root in roots:
        sent = prepared.slice(root).to_bytes()
        piece = Prepared.from_bytes(sent)
        assert piece.to_bytes() == sent
        trees.append(Subtree.from_bytes(subtree(piece, piece.members, SMALL).to_bytes()))
    spread = assemble(prepared, roots, trees, SMALL)
    whole = build(tables, SMALL)
    assert spread.communities.equals(whole.communities)
    assert spread.stats == whole.stats


def test_a_subtree_depends_on_its_own_members_only() -> None:
    names = [f"A{i}" for i in range(20)]
    edges = [(a, b, 1.0 + (int(a[1:]) * int(b[1:])) % 7) for a, b, _ in clique(names) if (int(a[1:]) + int(b[1:])) % 3]
    alone = prepare(corpus(names, edges), SMALL)
    more = ["0first", *names, "zlast"]
    joined = prepare(corpus(more, [*edges, ("0first", "A3", 4.0), ("A7", "zlast", 4.0)]), SMALL)
    one, two = subtree(alone, np.arange(20), SMALL), subtree(joined, np.arange(1, 21), SMALL)
    assert len(one.start) > 3
    assert one.to_bytes() == two.to_bytes()


def test_a_subtree_is_nested_ranges() -> None:
    prepared = prepare(nested(8, 6), SMALL)
    tree = subtree(prepared, np.arange(48), SMALL)
    assert sorted(tree.order.tolist()) == list(range(48))
    assert len(tree.start) > 8
    for i in range(1, len(tree.start)):
        parent = int(tree.parent[i])
        assert parent < i
        assert tree.level[i] == tree.level[parent] + 1
        assert tree.start[parent] <= tree.start[i] < tree.stop[i] <= tree.stop[parent]


def test_options_and_members_make_the_seed() -> None:
    digests = np.array([5, 6, 7], np.uint64)
    seeds = {
        seed_of(digests, ClusterOptions()),
        seed_of(digests, ClusterOptions(seed=1)),
        seed_of(digests[:2], ClusterOptions()),
        seed_of(digests[::-1], ClusterOptions()),
    }
    assert len(seeds) == 4
    assert seed_of(digests, ClusterOptions()) == seed_of(digests.copy(), ClusterOptions())


def test_a_split_leaves_pythons_own_generator_alone() -> None:
    import random

    prepared = prepare(nested(6, 5), SMALL)
    graph = prepared.graph
    random.seed(3)
    before = random.getstate()
    one = split(graph, SMALL)
    assert random.getstate() == before
    random.seed(4)
    assert np.array_equal(one, split(graph, SMALL))


def test_resolution_decides_how_fine_the_roots_are() -> None:
    prepared = prepare(nested(8, 6), SMALL)
    few, one_each, many = (len(split_roots(prepared, ClusterOptions(resolution=r))) for r in (0.02, 1.0, 20.0))
    assert few < one_each == 8 < many


def mark() -> str:
    """Return a hash of a whole tree."""
    return hashlib.sha256(to_bytes(build(nested(9, 7), SMALL).communities)).hexdigest()


@pytest.mark.slow
def test_another_process_and_hash_seed_give_the_same_bytes() -> None:
    code = (
        "import hashlib; from support.graphs import nested;"
        "from communitree_shared.contract.options import ClusterOptions;"
        "from communitree_workers.cluster.core import build; from communitree_workers.tables.io import to_bytes;"
        "made = build(nested(9, 7), ClusterOptions(max_cluster_size=3));"
        "print(hashlib.sha256(to_bytes(made.communities)).hexdigest())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == mark()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_components_are_those_of_a_walk(pairs: list[tuple[int, int]]) -> None:
    low, high, weight = summed(
        *(np.array([p[i] for p in pairs], np.int64) for i in (0, 1)), np.ones(len(pairs), np.int64), 10
    )
    label = components(10, low, high).tolist()
    expected = list(range(10))
    for _ in range(10):
        for a, b in pairs:
            expected[a] = expected[b] = min(expected[a], expected[b])
    assert label == expected
    real = [(min(p), max(p)) for p in pairs if p[0] != p[1]]
    assert list(zip(low.tolist(), high.tolist(), weight.tolist(), strict=True)) == [
        (*pair, real.count(pair)) for pair in sorted(set(real))
    ]


def test_parts_are_numbered_by_owner_size_and_first_member() -> None:
    owner = np.array([0, 0, 0, 0, 0, 1, 1])
    number, part_owner, sizes = ordered_parts(owner, np.array([7, 3, 3, 9, 9, 3, 1]))
    assert number.tolist() == [2, 0, 0, 1, 1, 3, 4]
    assert part_owner.tolist() == [0, 0, 0, 1, 1]
    assert sizes.tolist() == [2, 2, 1, 1, 1]


def test_ranges_are_put_one_after_another() -> None:
    assert ranges(np.array([3, 0, 7]), np.array([5, 0, 8])).tolist() == [3, 4, 7]
    assert ranges(np.array([2]), np.array([2])).tolist() == []

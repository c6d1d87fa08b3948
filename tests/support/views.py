"""Views of corpora made of bare trees: parents, tokens and masses, no text. For property tests of selections."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from communitree_shared.contract.options import BatchOptions
from communitree_workers.query.batches.rows import ReportRows, Row, Texts
from communitree_workers.query.selection.choice import topmost
from communitree_workers.query.view.blocks import bits, build_blocks
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.query.view.overview import Overview


@dataclass(frozen=True)
class TreeShape:
    """`parent` of each node (-1: root), parents first, by level; `tokens` and leaves' `mass` (inner ones are sums)."""

    parent: tuple[int, ...]
    tokens: tuple[int, ...]
    leaf_mass: tuple[int, ...]

    @property
    def children(self) -> list[list[int]]:
        out: list[list[int]] = [[] for _ in self.parent]
        for node, up in enumerate(self.parent):
            if up >= 0:
                out[up].append(node)
        return out

    @property
    def level(self) -> list[int]:
        out: list[int] = []
        for up in self.parent:
            out.append(0 if up < 0 else out[up] + 1)
        return out

    @property
    def mass(self) -> list[int]:
        out, children = list(self.leaf_mass), self.children
        for node in range(len(out) - 1, -1, -1):
            if children[node]:
                out[node] = sum(out[c] for c in children[node])
        return out


def view_of(
    shape: TreeShape,
    *,
    direct: Sequence[int] | None = None,
    words: Sequence[Sequence[str]] | None = None,
    titles: Sequence[str] | None = None,
    shown: Sequence[bool] | None = None,
    rank: Sequence[float] | None = None,
) -> CorpusView:
    """Return a view of a bare tree; community i is node i, each leaf holds a text unit of its own."""
    n = len(shape.parent)
    parent = np.array(shape.parent, dtype=np.int64)
    mass = np.array(shape.mass, dtype=np.int64)
    tokens = np.array(shape.tokens, dtype=np.int64)
    children = shape.children
    ptr = np.concatenate(([0], np.cumsum([len(c) for c in children]))).astype(np.int64)
    idx = np.array(list(itertools.chain.from_iterable(children)), dtype=np.int64)
    held: list[list[int]] = [[node] if not children[node] else [] for node in range(n)]
    for node in range(n - 1, -1, -1):
        if shape.parent[node] >= 0:
            held[shape.parent[node]] += held[node]
    held_ptr = np.concatenate(([0], np.cumsum([len(h) for h in held]))).astype(np.int64)
    held_idx = np.array(list(itertools.chain.from_iterable(held)), dtype=np.int32)
    size = [len(h) for h in held]
    share = bits(mass, int(mass[parent < 0].sum()))
    keys = [f"{i:06d}" for i in range(n)]
    return CorpusView(
        community=np.arange(n, dtype=np.int64),
        level=np.array(shape.level, dtype=np.int64),
        parent=parent,
        child_ptr=ptr,
        child_idx=idx,
        tokens=tokens,
        tokens_summary=np.maximum(1, tokens // 3),
        mass=mass,
        direct=np.array(direct if direct is not None else [0] * n, dtype=np.int64),
        weight=np.array(size, dtype=np.int64),
        rank=np.array(rank if rank is not None else [5.0] * n),
        size=np.array(size, dtype=np.int64),
        shown=np.array(shown if shown is not None else [True] * n, dtype=bool),
        readable=np.ones(n, dtype=bool),
        bits=share,
        held_ptr=held_ptr,
        held_idx=held_idx,
        read_ptr=held_ptr,
        read_idx=held_idx,
        unit_id=np.arange(n, dtype=np.int64),
        unit_key=[f"t{i}" for i in range(n)],
        unit_tokens=np.full(n, 5, dtype=np.int64),
        unit_document=np.zeros(n, dtype=np.int64),
        by_tokens=build_blocks(parent, tokens, share, keys),
        by_reports=build_blocks(parent, np.ones(n, dtype=np.int64), share, keys),
        lexicon=Lexicon.build(words if words is not None else [[] for _ in range(n)]),
        titles=list(titles) if titles is not None else [f"title {i}" for i in range(n)],
        kinds=["cluster"] * n,
        generated_by=["m"] * n,
        documents=["book.txt"],
        overview=Overview(),
        entities=sum(1 for c in children if not c),
        language="en",
        encoding="o200k_base",
    )


def all_cuts(shape: TreeShape) -> list[tuple[int, ...]]:
    """Return every full cut of a tree."""
    children = shape.children

    def cuts(node: int) -> list[tuple[int, ...]]:
        out: list[tuple[int, ...]] = [(node,)]
        if children[node]:
            out += [tuple(itertools.chain.from_iterable(c)) for c in itertools.product(*map(cuts, children[node]))]
        return out

    roots = [node for node, up in enumerate(shape.parent) if up < 0]
    return [tuple(sorted(itertools.chain.from_iterable(c))) for c in itertools.product(*map(cuts, roots))]


def all_antichains(shape: TreeShape) -> list[tuple[int, ...]]:
    """Return every set of nodes of which none is above another, the empty one included."""
    children = shape.children

    def sets(node: int) -> list[tuple[int, ...]]:
        below = [tuple(itertools.chain.from_iterable(c)) for c in itertools.product(*map(sets, children[node]))]
        return [(node,), *(below or [()])]

    roots = [node for node, up in enumerate(shape.parent) if up < 0]
    return [tuple(sorted(itertools.chain.from_iterable(c))) for c in itertools.product(*map(sets, roots))]


def is_cut(view: CorpusView, ids: list[int]) -> bool:
    """Say whether none of the communities is an ancestor of another."""
    nodes = np.array([view.node[id] for id in ids], dtype=np.int64)
    return len(topmost(view, nodes)) == len(nodes)


def report_rows(view: CorpusView, ids: Sequence[int], contents: Texts, options: BatchOptions) -> list[Row]:
    """Return the rows of `ReportRows`, all at once."""
    return ReportRows(view, ids, contents, options).render(range(len(ids)))

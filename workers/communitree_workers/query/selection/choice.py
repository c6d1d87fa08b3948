"""What all selections give back, and how a set of communities is described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from communitree_shared.contract.options import BatchOptions
from communitree_shared.contract.results import Coverage, FinestAvailable, Picks, Pruned, Selection
from communitree_shared.errors import UsageError
from communitree_workers.query.question.question import Question, RowKind
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import row_costs
from communitree_workers.query.wording.phrases import say

#: How many communities a list of the heaviest names.
HEAVIEST = 20
#: What reading some nodes would cost in money.
Price = Callable[[IntArray], float]


@dataclass(frozen=True)
class Selected:
    """What a query reads. `ids`: communities, or human_readable_ids of text units where `kind` is `sources`."""

    ids: list[int]
    selection: Selection
    coverage: Coverage
    kind: RowKind = "reports"
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Choice:
    """What a strategy decided, before it is described. `wanted`: level up to which finer reports were wanted.

    `pruned`, `left`: see `results.Selection` (`left_out`). `picks`: read beside `nodes`, none of which they are.
    """

    nodes: IntArray
    why: str
    budget: dict[str, Any] = field(default_factory=dict)
    wanted: int | None = None
    pruned: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    left: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    finest: bool = True
    picks: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    why_picks: str = ""


def describe(question: Question, choice: Choice) -> Selected:
    """Leave out what cannot or shall not be read, and say what the rest is.

    Raises:
        UsageError: the rank that is asked for leaves nothing.
    """
    view, batch, language = question.view, question.batch, question.language
    min_rank = question.selection.min_community_rank
    warnings: list[str] = []
    nodes = np.union1d(choice.nodes, choice.picks)
    readable = view.readable[nodes]
    if not readable.all():
        warnings.append(say("warn.missing", language, count=int((~readable).sum())))
    low = readable & (view.rank[nodes] < min_rank)
    if low.any():
        warnings.append(say("warn.rank", language, count=int(low.sum())))
        if not (readable & ~low).any():
            raise UsageError(
                f"No report that would be read has a rank of {min_rank:g} or more: the highest is "
                f"{view.rank[nodes[readable]].max():g}.",
                hint="Lower --min-community-rank.",
            )
        choice.budget["below_rank"] = int(low.sum())
    kept = nodes[readable & ~low]
    left_out = np.concatenate((choice.pruned, nodes[~readable | low]))
    in_cut, picked = np.setdiff1d(kept, choice.picks), np.intersect1d(kept, choice.picks)
    finest = finest_available(view, in_cut, choice.wanted) if choice.finest else FinestAvailable()
    selection = Selection(
        strategy=question.selection.strategy,
        why=choice.why,
        budget=choice.budget,
        reports=len(kept),
        tokens=tokens_of(view, kept, batch),
        levels=levels_of(view, in_cut),
        picks=Picks(count=len(picked), reports=view.community[picked].tolist(), why=choice.why_picks),
        finest_available=finest,
        pruned=pruned(view, left_out, kept),
        left_out=pruned(view, choice.left, np.union1d(kept, left_out)),
    )
    return Selected(view.community[kept].tolist(), selection, coverage(view, kept), warnings=warnings)


def tokens_of(view: CorpusView, nodes: IntArray, batch: BatchOptions) -> int:
    """Return the tokens of these communities' rows as they will be rendered."""
    if batch.include_community_rank and batch.include_community_weight and batch.normalize_community_weight:
        return int((view.tokens_summary if batch.use_community_summary else view.tokens)[nodes].sum())
    costs = row_costs(view, batch)
    return sum(costs[node] for node in nodes.tolist())


def levels_of(view: CorpusView, nodes: IntArray) -> dict[str, int]:
    """Return how many of these communities are on each level."""
    levels, counts = np.unique(view.level[nodes], return_counts=True)
    return {str(level): int(n) for level, n in zip(levels.tolist(), counts.tolist(), strict=True)}


def entry(view: CorpusView, node: int) -> dict[str, Any]:
    """Return how a community is named in a list of the heaviest."""
    return {
        "id": int(view.community[node]),
        "title": view.titles[node],
        "level": int(view.level[node]),
        "weight": int(view.weight[node]),
    }


def heaviest(view: CorpusView, nodes: IntArray) -> list[dict[str, Any]]:
    """Return the heaviest of these communities."""
    order = np.lexsort((view.community[nodes], -view.weight[nodes], -view.mass[nodes]))[:HEAVIEST]
    return [entry(view, node) for node in nodes[order].tolist()]


def finest_available(view: CorpusView, nodes: IntArray, wanted: int | None) -> FinestAvailable:
    """Return the branches that end above the wanted level (None: the deepest level that is read)."""
    if not len(nodes):
        return FinestAvailable()
    level = int(view.level[nodes].max()) if wanted is None else wanted
    ends = nodes[view.is_leaf[nodes] & (view.level[nodes] < level)]
    return FinestAvailable(count=len(ends), heaviest=heaviest(view, ends))


def pruned(view: CorpusView, left_out: IntArray, kept: IntArray) -> Pruned:
    """Return what was left out, and what of the corpus it holds that `kept` does not."""
    if not len(left_out):
        return Pruned()
    left_out = np.unique(left_out)
    lost = view.units_held(left_out) & ~view.units_held(kept)
    entities = _entities(view, np.union1d(kept, left_out)) - _entities(view, kept)
    return Pruned(
        count=len(left_out), text_units=int(lost.sum()), entities=_share(entities, view.entities),
        heaviest=heaviest(view, left_out),
    )  # fmt: skip


def coverage(view: CorpusView, nodes: IntArray) -> Coverage:
    """Return the shares of the corpus that these communities hold, and that their reports read."""
    units = len(view.unit_id)
    return Coverage(
        entities=_share(_entities(view, nodes), view.entities),
        text_units_assigned=_share(int(view.units_held(nodes).sum()), units),
        text_units_read=_share(int(view.units_read(nodes).sum()), units),
    )


def _entities(view: CorpusView, nodes: IntArray) -> int:
    return int(view.size[topmost(view, nodes)].sum())


def _share(part: int, whole: int) -> float:
    return round(min(1.0, part / whole), 6) if whole else 0.0


def topmost(view: CorpusView, nodes: IntArray) -> IntArray:
    """Return those of the nodes that have no ancestor among them."""
    covered = below(view, mask(view, nodes))
    return nodes[~covered[nodes]]


def mask(view: CorpusView, nodes: IntArray) -> NDArray[np.bool_]:
    """Return a boolean array over all communities."""
    out = np.zeros(len(view.community), dtype=bool)
    out[nodes] = True
    return out


def below(view: CorpusView, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which communities have a marked proper ancestor."""
    out = np.zeros(len(marked), dtype=bool)
    for start, end in level_spans(view):
        if start == 0:
            continue
        up = view.parent[start:end]
        out[start:end] = (up >= 0) & (marked[up] | out[up])
    return out


def level_spans(view: CorpusView) -> list[tuple[int, int]]:
    """Return the range of positions of each level; positions are sorted by level."""
    if not len(view.level):
        return []
    starts = [0, *(np.flatnonzero(view.level[1:] != view.level[:-1]) + 1).tolist()]
    return list(zip(starts, [*starts[1:], len(view.level)], strict=True))


def without_price() -> UsageError:
    """Return the error of a budget in money where nobody knows what a call costs."""
    return UsageError(
        "A budget in USD needs the price of the model.",
        hint="Set COMMUNITREE_LLM_PRICE_INPUT and COMMUNITREE_LLM_PRICE_OUTPUT, or give a budget in tokens.",
    )

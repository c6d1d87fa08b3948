"""What reading each community takes, in tokens of its row as a question has rows rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from communitree_shared.contract.options import BatchOptions
from communitree_workers.query.view.blocks import Blocks, build_blocks
from communitree_workers.query.view.cells import number_tokens, rank_cell, weight_cell
from communitree_workers.query.view.corpus_view import IntArray

if TYPE_CHECKING:
    from communitree_workers.query.view.corpus_view import CorpusView


def row_costs(view: CorpusView, options: BatchOptions) -> list[int]:
    """Return the tokens of every community's row, from the stored counts of default rows."""
    tokens: list[int] = (view.tokens_summary if options.use_community_summary else view.tokens).tolist()
    if options.include_community_weight and options.include_community_rank and options.normalize_community_weight:
        return tokens
    default, heaviest = BatchOptions(), view.heaviest
    for node, (weight, rank) in enumerate(zip(view.weight.tolist(), view.rank.tolist(), strict=True)):
        stored = number_tokens(weight_cell(weight, heaviest, default))
        if not options.include_community_weight:
            tokens[node] -= stored + 1
        elif not options.normalize_community_weight:
            tokens[node] += number_tokens(str(weight)) - stored
        if not options.include_community_rank:
            tokens[node] -= number_tokens(rank_cell(rank)) + 1
    return tokens


def costs(view: CorpusView, batch: BatchOptions) -> tuple[IntArray, Blocks]:
    """Return the tokens of each community's row as it will be rendered, and the cut's blocks for these costs.

    The stored blocks are for the default row; other columns or summaries make others, once per view and process.
    """
    plain = batch.include_community_rank and batch.include_community_weight and batch.normalize_community_weight
    if plain and not batch.use_community_summary:
        return view.tokens, view.by_tokens
    key = f"_costs:{plain}:{batch.use_community_summary}:{batch.include_community_rank}:" + (
        f"{batch.include_community_weight}:{batch.normalize_community_weight}"
    )
    cached: tuple[IntArray, Blocks] | None = view.__dict__.get(key)
    if cached is None:
        cost = np.array(row_costs(view, batch), dtype=np.int64)
        cached = cost, build_blocks(view.parent, cost, view.bits, [str(c) for c in view.community.tolist()])
        object.__setattr__(view, key, cached)
    return cached

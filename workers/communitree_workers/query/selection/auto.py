"""`auto`, the default: a coarse cut of everything, and the rest of the budget where the question's words are.

No model call. A question about the whole corpus gets an even cut; one that names something gets half of the budget
for the coarse cut and half for refining, in place, the branches that match.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe, level_spans
from communitree_workers.query.selection.cut import cut
from communitree_workers.query.view.blocks import Blocks
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say

#: A word in more than this share of the reports names nothing in particular.
_COMMON = 0.5
#: A branch is refined first while its best match is at least this share of the best match of all.
_WORTH = 0.25
#: A match at all.
_ANY = 1e-9


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select what to read of a corpus for a question within `auto_tokens`."""
    return describe(question, _choice(question))


def _choice(question: Question) -> Choice:
    view, words, language, budget = question.view, question.words, question.language, question.selection.auto_tokens
    cost, blocks = costs(view, question.batch)
    whole = cut(view, blocks, cost, budget)
    key = ""
    if len(whole.missing) == 0 and view.is_leaf[whole.nodes].all():
        key = "why.themes_whole"
    elif words.general:
        key = "why.themes_general"
    known = [term for term in words.specific if view.lexicon.frequency(term)]
    naming = [term for term in known if view.lexicon.frequency(term) <= _COMMON * max(1, len(view.community))]
    if not key and not known:
        key = "why.themes_unknown"
    if not key and not naming:
        key = "why.themes_common"
    account: dict[str, Any] = {"tokens": budget}
    if not len(whole.nodes) and whole.least:
        account |= {"binding": "tokens", "least": whole.least}
    if key:
        return Choice(whole.nodes, say(key, language), {**account, "mode": "themes"}, pruned=whole.missing)
    scores = view.lexicon.scores(naming)
    nodes, refined, outside = _refine(view, blocks, cost, budget, scores)
    why = say("why.focused", language, count=refined, words=", ".join(naming[:8]))
    return Choice(nodes, why, {**account, "mode": "focused", "refined": refined}, pruned=outside)


def best_below(view: CorpusView, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the highest score among each community's proper descendants, 0 for a leaf."""
    best = np.zeros(len(scores))
    for start, end in reversed(level_spans(view)):
        own = np.maximum(scores[start:end], best[start:end])
        up = view.parent[start:end]
        has = up >= 0
        np.maximum.at(best, up[has], own[has])
    return best


def _refine(
    view: CorpusView, blocks: Blocks, cost: IntArray, budget: int, scores: NDArray[np.float64]
) -> tuple[IntArray, int, IntArray]:
    """Start from the coarse cut of half the budget; replace, best match first, a community by its children.

    A root that the coarse half had no room for enters by its match; without one, when all matches are served.
    Returns the cut, how often it was refined, and the roots still outside.
    """
    coarse = cut(view, blocks, cost, budget // 2)
    left = budget - int(cost[coarse.nodes].sum())
    below = best_below(view, scores)
    best = np.maximum(scores, below)
    chosen = set(coarse.nodes.tolist())
    outside = set(coarse.missing.tolist())
    start = np.concatenate((coarse.nodes, coarse.missing))
    top = float(best[start].max(initial=0.0))
    refined = 0
    # The good matches first, down to the leaves; then whatever matches at all.
    for floor in (max(_WORTH * top, _ANY), _ANY):
        queue = [(-float(below[n]), int(view.community[n]), n) for n in chosen if below[n] >= floor]
        queue += [(-float(best[n]), int(view.community[n]), n) for n in outside if best[n] >= floor]
        heapq.heapify(queue)
        while queue:
            _, _, node = heapq.heappop(queue)
            fresh = [node] if node in outside else view.children(node).tolist()
            price = sum(int(cost[c]) for c in fresh) - (0 if node in outside else int(cost[node]))
            if price > left:
                continue
            left -= price
            if node in outside:
                outside.remove(node)
            else:
                refined += 1
                chosen.remove(node)
            chosen.update(fresh)
            for child in fresh:
                if below[child] >= floor:
                    heapq.heappush(queue, (-float(below[child]), int(view.community[child]), child))
    for node in sorted(outside, key=lambda n: (-int(view.mass[n]) / max(1, int(cost[n])), int(view.community[n]))):
        if cost[node] <= left:
            left -= int(cost[node])
            chosen.add(node)
            outside.remove(node)
    return np.array(sorted(chosen), dtype=np.int64), refined, np.array(sorted(outside), dtype=np.int64)

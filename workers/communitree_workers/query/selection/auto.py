"""`auto`, the default: the reports that match the question, and with the rest of the budget a cut of everything.

No model call. A question about the whole corpus gets an even cut. One that names something gets picks first: the
reports, of any level, whose full text matches best (BM25). How much of the budget they may take grows with the share of
the question's words that are rare; how much they do take is decided by how many match nearly as well as the best one.
The rest goes to the finest cut that it pays for, so that nothing is unseen: a picked report may stand below one of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe, level_spans
from communitree_workers.query.selection.cut import Cut, cut
from communitree_workers.query.view.blocks import Blocks
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say

#: A word in more than this share of the reports names nothing in particular.
_COMMON = 0.5
#: A word is rare in at most this share of the reports, or in so few; what is rare tells best what is meant.
_RARE, _FEW = 0.1, 3
#: The most of the budget that picks take, where none of the question's words is rare, and where all are.
_LEAST, _MOST = 0.5, 0.9
#: A match is picked while its score is at least this share of the best one's.
_PICKED = 0.5
#: How often the cut is made finer with what its own share of the picks has freed.
_AGAIN = 3


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
    ranked = _ranked(question, scores)
    good = ranked[scores[ranked] >= _PICKED * scores.max(initial=0.0)]
    most = int(budget * (_LEAST + (_MOST - _LEAST) * _rare_share(question)))
    if len(good):  # the best match is worth the whole of a small budget
        most = min(budget, max(most, int(cost[good[0]])))
    picks = _that_fit(good, cost, most)
    found = _beside(view, blocks, cost, budget, picks)
    if not len(found.nodes):  # no branch fits beside them: kept for a cut, tokens would be kept for nothing
        picks = _that_fit(ranked, cost, budget)
    # What the cut has no use for, as it is less than another branch takes, reads the next matches.
    read = np.union1d(found.nodes, picks)
    more = _that_fit(ranked[~np.isin(ranked, read)], cost, budget - int(cost[read].sum()))
    picks = np.setdiff1d(np.union1d(picks, more), found.nodes)
    shown = ", ".join(naming[:8])
    account |= {"mode": "focused", "picks": int(cost[picks].sum()), "kept_for_picks": most}
    return Choice(
        found.nodes, say("why.focused", language, count=len(picks), words=shown), account,
        pruned=np.setdiff1d(found.missing, picks), picks=picks, why_picks=say("why.picks", language, words=shown),
    )  # fmt: skip


def _rare_share(question: Question) -> float:
    """Return how much of what the question's words tell, by inverse document frequency, rare words tell.

    What no report holds counts as told by others: where the text has other words, less is staked on the matches.
    """
    lexicon, terms = question.view.lexicon, question.words.specific
    rarest = max(_FEW, _RARE * len(question.view.community))
    rare = sum(lexicon.telling(term) for term in terms if 0 < lexicon.frequency(term) <= rarest)
    return rare / max(rare, sum(map(lexicon.telling, terms)))


def _ranked(question: Question, scores: NDArray[np.float64]) -> IntArray:
    """Return the reports that match and may be read, the best match first."""
    view = question.view
    nodes = np.flatnonzero(view.readable & (view.rank >= question.selection.min_community_rank) & (scores > 0))
    return nodes[np.lexsort((view.community[nodes], -scores[nodes]))]


def _that_fit(nodes: IntArray, cost: IntArray, tokens: int) -> IntArray:
    """Return, in order, what fits so many tokens together; what does not is skipped."""
    taken = list[int]()
    for node in nodes[cost[nodes] <= tokens].tolist():
        if cost[node] <= tokens:
            taken.append(node)
            tokens -= int(cost[node])
    return np.array(taken, dtype=np.int64)


def _beside(view: CorpusView, blocks: Blocks, cost: IntArray, budget: int, picks: IntArray) -> Cut:
    """Return the finest cut found that fits the budget with the picks; what is in both is paid once."""
    found = cut(view, blocks, cost, budget - int(cost[picks].sum()))
    for _ in range(_AGAIN):
        twice = np.intersect1d(picks, found.nodes)
        if not len(twice):
            break
        finer = cut(view, blocks, cost, budget - int(cost[np.setdiff1d(picks, twice)].sum()))
        if int(cost[np.union1d(finer.nodes, picks)].sum()) > budget:
            break
        found = finer
    return found


def best_below(view: CorpusView, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the highest score among each community's proper descendants, 0 for a leaf."""
    best = np.zeros(len(scores))
    for start, end in reversed(level_spans(view)):
        own = np.maximum(scores[start:end], best[start:end])
        up = view.parent[start:end]
        has = up >= 0
        np.maximum.at(best, up[has], own[has])
    return best

"""`frontier`: each entity once, at a level by number; kept for those who know it from GraphRAG 1.x."""

from __future__ import annotations

import numpy as np

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe
from communitree_workers.query.wording.phrases import say


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select the communities at a level (None: the deepest), and the leaves above it."""
    view, level = question.view, question.selection.level
    wanted = int(view.level.max(initial=0)) if level is None else level
    chosen = (view.level == wanted) | (view.is_leaf & (view.level < wanted))
    why = say("why.frontier", question.language, level=wanted)
    return describe(question, Choice(np.flatnonzero(chosen), why, {"level": wanted}, wanted=wanted))

"""`levels`: all reports of levels up to a number, as GraphRAG 2.x and 3.x select."""

from __future__ import annotations

import numpy as np

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe
from communitree_workers.query.wording.phrases import say


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select what is shown on levels up to one, None: on all of them."""
    view, level, language = question.view, question.selection.level, question.language
    chosen = view.shown & (view.level <= level) if level is not None else view.shown
    why = say("why.levels_all", language) if level is None else say("why.levels", language, level=level)
    budget = {"level": "all" if level is None else level}
    return describe(question, Choice(np.flatnonzero(chosen), why, budget, wanted=level))

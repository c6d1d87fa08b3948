"""`leaves`: the finest reports of every branch, whatever they take."""

from __future__ import annotations

import numpy as np

from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe
from communitree_workers.query.wording.phrases import say


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select the communities without children."""
    return describe(question, Choice(np.flatnonzero(question.view.is_leaf), say("why.leaves", question.language)))

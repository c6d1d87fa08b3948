"""`texts`: the text units themselves instead of reports: the paper's baseline TS."""

from __future__ import annotations

import numpy as np

from communitree_shared.contract.results import Coverage, Selection
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Price, Selected
from communitree_workers.query.view.corpus_view import BoolArray
from communitree_workers.query.wording.phrases import say


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select all text units that have tokens."""
    view = question.view
    read = view.unit_tokens > 0
    why = say("why.texts", question.language)
    selection = Selection(strategy=question.selection.strategy, why=why, tokens=int(view.unit_tokens.sum()))
    return Selected(view.unit_id[read].tolist(), selection, texts_coverage(read), kind="sources")


def texts_coverage(read: BoolArray) -> Coverage:
    """Return the shares of the corpus that these of all text units hold."""
    share = round(float(np.mean(read)), 6) if len(read) else 0.0
    return Coverage(entities=share, text_units_assigned=share, text_units_read=share)

"""Selections by level number, kept for compatibility, and the full scans: `frontier`, `levels`, `leaves`."""

from __future__ import annotations

import numpy as np

from communitree_workers.query.selection.choice import Choice
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.query.wording.phrases import say


def frontier(view: CorpusView, level: int | None, language: str) -> Choice:
    """Each entity once: communities at this level and leaves above it (what GraphRAG 1.x meant by a level)."""
    deepest = int(view.level.max(initial=0))
    wanted = deepest if level is None else level
    chosen = (view.level == wanted) | (view.is_leaf & (view.level < wanted))
    why = say("why.frontier", language, level=wanted)
    return Choice(np.flatnonzero(chosen), why, {"level": wanted}, wanted=wanted)


def levels(view: CorpusView, level: int | None, language: str) -> Choice:
    """All reports of levels up to this one (what GraphRAG 2.x and 3.x do), None: all levels."""
    chosen = view.shown & (view.level <= level) if level is not None else view.shown
    why = say("why.levels_all", language) if level is None else say("why.levels", language, level=level)
    return Choice(np.flatnonzero(chosen), why, {"level": "all" if level is None else level}, wanted=level)


def leaves(view: CorpusView, language: str) -> Choice:
    """The finest reports of every branch."""
    return Choice(np.flatnonzero(view.is_leaf), say("why.leaves", language))

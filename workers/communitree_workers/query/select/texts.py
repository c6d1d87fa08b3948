"""The text units themselves instead of reports: the paper's baseline TS."""

from __future__ import annotations

from communitree_shared.results import Coverage, Selection
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.phrases import say
from communitree_workers.query.select.common import Selected


def texts(view: CorpusView, language: str) -> Selected:
    """Select all text units that have tokens."""
    read = view.unit_tokens > 0
    share = round(float(read.mean()), 6) if len(read) else 0.0
    selection = Selection(strategy="texts", why=say("why.texts", language), tokens=int(view.unit_tokens.sum()))
    whole = Coverage(entities=1.0 if read.all() and len(read) else share, text_units_assigned=share,
                     text_units_read=share)  # fmt: skip
    return Selected(view.unit_id[read].tolist(), selection, whole, kind="sources")

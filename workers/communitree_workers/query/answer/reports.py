"""What was really read of a selection, where batches failed; what became of each report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from communitree_shared.contract.results import Coverage, ReportsAccount, UnreadReport
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.points.gathering import Gathered
from communitree_workers.query.selection.choice import Selected, coverage
from communitree_workers.query.selection.texts import texts_coverage
from communitree_workers.query.view.corpus_view import CorpusView


def ids_read(outcomes: Sequence[BatchOutcome]) -> set[int]:
    """Return the reports, or text units, that were read; one that was cut into parts: all of them."""
    unread = {id for o in outcomes for id in (o.ids if o.status == "failed" else o.unread)}
    return {id for o in outcomes if o.status == "answered" for id in o.ids} - unread


def unread_alone(outcomes: Sequence[BatchOutcome]) -> dict[int, str]:
    """Return the reports that could not be read, or not whole, in batches that answered, each with its cause."""
    return {id: cause for o in outcomes if o.status == "answered" for id, cause in o.unread.items()}


def coverage_read(view: CorpusView, selected: Selected, read: set[int]) -> Coverage:
    """Return the shares of what was read: less than what is selected where batches failed."""
    if not read.symmetric_difference(selected.ids):
        return selected.coverage
    if selected.kind == "sources":
        return texts_coverage(np.isin(view.unit_id, list(read)))
    return coverage(view, np.array(sorted(view.node[id] for id in read), dtype=np.int64))


def reports_account(
    selected: Selected, read: set[int], gathered: Gathered, because: Mapping[int, str]
) -> ReportsAccount:
    """Return what became of each report; those of an earlier job count where its batches do.

    `because`: why those could not be read that have a cause of their own.
    """
    cited = {id for point in gathered.points for id in point.reports}
    ids = dict.fromkeys([*selected.ids, *sorted(read.difference(selected.ids))])
    rest = [id for id in ids if id not in cited]
    return ReportsAccount(
        selected=len(ids), cited=len(ids) - len(rest), silent=[id for id in rest if id in read],
        unread=[id for id in rest if id not in read],
        unread_because=[UnreadReport(report=id, cause=cause) for id, cause in because.items() if id not in read],
    )  # fmt: skip

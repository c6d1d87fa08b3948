"""The view of a version as it lies beside its tables: made at publishing, and by a release that finds none."""

from __future__ import annotations

from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_workers.query.view.building import build_view
from communitree_workers.query.view.corpus_view import FORMAT, CorpusView
from communitree_workers.runtime.context import UnitContext
from communitree_workers.runtime.formats import check_format

#: Name of the stored view beside a version's tables. Each format has a name of its own: while an upgrade rolls, workers
#: of two releases read the same version.
VIEW = f"view-{FORMAT}.bin"
#: What the view is made of.
VIEW_TABLES = (COMMUNITIES, COMMUNITY_REPORTS, COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS)


def load_view(context: UnitContext, corpus: str, version: str) -> CorpusView:
    """Return the view of a version, from the process's cache where it is there.

    One that another release published has no view of our format: it is made from the tables, and kept beside the other.

    Raises:
        CorpusNotFound: the version is gone. IntegrityError: its tables cannot be read by this release.
    """
    store, key = context.services.store, context.keys.artifact(corpus, version, VIEW)

    def read() -> tuple[CorpusView, int]:
        data = store.find(key)
        if data is None:
            check_format(context, corpus, version)
            data = build_view(context.read(corpus, version, *VIEW_TABLES)).to_bytes()
            store.put_new(key, data)
        return CorpusView.from_bytes(data), 2 * len(data)

    view: CorpusView = context.services.value(key + "#view", read)
    return view

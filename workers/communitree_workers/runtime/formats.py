"""Versions of a corpus that another release has written: read where they can be, else named with the remedy."""

from __future__ import annotations

from communitree_shared import clock
from communitree_shared.errors import CorpusNotFound, InfrastructureError, IntegrityError
from communitree_workers.runtime.context import UnitContext

#: Format of a version's tables, as its manifest states it: what this release writes, and the oldest that it reads.
TABLES_FORMAT = 1
OLDEST_FORMAT = 1

#: While an upgrade rolls, a newer worker may have published what an older one cannot read: a job waits so many ticks of
#: the reconciler (half a minute, by default) for a worker that can.
PATIENCE = 6


def check_format(context: UnitContext, corpus: str, version: str) -> None:
    """See that this release can read a published version.

    Raises:
        CorpusNotFound: there is no such version any more.
        InfrastructureError: a newer release wrote it; another worker may be able to read it (the unit is given back).
        IntegrityError: no worker could, for a while; or it is too old.
    """
    key = context.keys.manifest(corpus, version)

    def read() -> tuple[int, int]:
        manifest = context.services.store.find_json(key)
        if manifest is None:
            raise CorpusNotFound(
                f"The version {version} of {corpus!r} is gone: it was deleted or indexed anew meanwhile.",
                hint="`communitree corpora` lists what there is.",
            )
        return int(manifest.get("format", 1)), 100

    found = context.services.value(f"{key}#format", read)
    if found < OLDEST_FORMAT:
        raise IntegrityError(
            f"The version {version} of {corpus!r} has tables of format {found}; the oldest read is {OLDEST_FORMAT}.",
            hint=f"Index it again: communitree index … --corpus {corpus}.",
        )
    if found > TABLES_FORMAT:
        said = f"A newer release wrote the version {version} of {corpus!r} (format {found}; known is {TABLES_FORMAT})."
        record = context.services.ledger.record(context.message.tenant, context.message.job)
        patience = PATIENCE * context.services.settings.reconciler_tick
        if clock.now() - float(record.get("created", 0)) / 1000 < patience:
            raise InfrastructureError(said, hint="It waits for a newer worker.")
        raise IntegrityError(said, hint="Upgrade the workers, or index it again with these.")

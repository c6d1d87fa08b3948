"""communitree: the client, its options, results and errors; the command line and the embedded stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from communitree.aio import AsyncClient
    from communitree.client import Client
    from communitree.events import Restart
    from communitree_shared.contract.options import (
        AnswerOptions,
        BatchOptions,
        IndexOptions,
        QueryOptions,
        SelectionOptions,
    )
    from communitree_shared.contract.results import Answer, IndexResult, Plan, Tree
    from communitree_shared.errors import (
        AdmissionRefused,
        BadInput,
        CommunitreeError,
        CorpusBusy,
        CorpusNotFound,
        InfrastructureError,
        JobNotFound,
        ModelError,
        ResultGone,
        StackNotRunning,
        UsageError,
    )
    from communitree_shared.settings import Settings

    __version__: str

__all__ = [
    "AdmissionRefused",
    "Answer",
    "AnswerOptions",
    "AsyncClient",
    "BadInput",
    "BatchOptions",
    "Client",
    "CommunitreeError",
    "CorpusBusy",
    "CorpusNotFound",
    "IndexOptions",
    "IndexResult",
    "InfrastructureError",
    "JobNotFound",
    "ModelError",
    "Plan",
    "QueryOptions",
    "Restart",
    "ResultGone",
    "SelectionOptions",
    "Settings",
    "StackNotRunning",
    "Tree",
    "UsageError",
    "__version__",
]

_WHERE = {
    "AdmissionRefused": "communitree_shared.errors",
    "Answer": "communitree_shared.contract.results",
    "AnswerOptions": "communitree_shared.contract.options",
    "AsyncClient": "communitree.aio",
    "BadInput": "communitree_shared.errors",
    "BatchOptions": "communitree_shared.contract.options",
    "Client": "communitree.client",
    "CommunitreeError": "communitree_shared.errors",
    "CorpusBusy": "communitree_shared.errors",
    "CorpusNotFound": "communitree_shared.errors",
    "IndexOptions": "communitree_shared.contract.options",
    "IndexResult": "communitree_shared.contract.results",
    "InfrastructureError": "communitree_shared.errors",
    "JobNotFound": "communitree_shared.errors",
    "ModelError": "communitree_shared.errors",
    "Plan": "communitree_shared.contract.results",
    "QueryOptions": "communitree_shared.contract.options",
    "Restart": "communitree.events",
    "ResultGone": "communitree_shared.errors",
    "SelectionOptions": "communitree_shared.contract.options",
    "Settings": "communitree_shared.settings",
    "StackNotRunning": "communitree_shared.errors",
    "Tree": "communitree_shared.contract.results",
    "UsageError": "communitree_shared.errors",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `communitree version` should not wait for a client it does not need."""
    import importlib
    import importlib.metadata

    if name == "__version__":
        return importlib.metadata.version("communitree")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    """Name what is imported on first use, too."""
    return sorted({*globals(), *__all__})

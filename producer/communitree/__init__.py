"""communitree: the client, the command line and the embedded stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from communitree.aio import AsyncClient
    from communitree.client import Client
    from communitree.events import Restart
    from communitree_shared.contract.options import IndexOptions, QueryOptions
    from communitree_shared.settings import Settings

__all__ = ["AsyncClient", "Client", "IndexOptions", "QueryOptions", "Restart", "Settings"]

_WHERE = {
    "AsyncClient": "communitree.aio",
    "Client": "communitree.client",
    "IndexOptions": "communitree_shared.contract.options",
    "QueryOptions": "communitree_shared.contract.options",
    "Restart": "communitree.events",
    "Settings": "communitree_shared.settings",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `communitree version` should not wait for a client it does not need."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    """Name what is imported on first use, too."""
    return sorted({*globals(), *__all__})

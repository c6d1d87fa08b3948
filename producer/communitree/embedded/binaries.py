"""Servers that come inside Python packages."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from communitree_shared.errors import InfrastructureError


def find_binary(package: str, name: str) -> str:
    """Return the path of a server that comes inside a Python package.

    Raises:
        InfrastructureError: the package is not installed (or has no server for this system).
    """
    try:
        for file in importlib.metadata.files(package) or ():
            if file.name == name:
                return str(Path(str(file.locate())).resolve(strict=True))
    except (importlib.metadata.PackageNotFoundError, OSError):
        pass
    raise InfrastructureError(
        f"The embedded server `{name}` is not installed (Python package {package}).",
        hint="pip install 'communitree[embedded,workers]', or use servers of your own: set COMMUNITREE_REDIS_URL and "
        "COMMUNITREE_S3_ENDPOINT.",
    )

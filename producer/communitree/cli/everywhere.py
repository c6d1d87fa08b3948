"""The options of every command: before its name or after it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Home = Annotated[Path | None, typer.Option(help="The stack's folder (COMMUNITREE_HOME).", show_default=False)]
Tenant = Annotated[
    str | None,
    typer.Option(help="The tenant: whose corpora and jobs (COMMUNITREE_TENANT).", show_default=False),
]


def everywhere(home: Home = None, tenant: Tenant = None) -> None:
    """Let what follows, in this process and those that it starts, mean this stack and this tenant."""
    if home is not None:
        os.environ["COMMUNITREE_HOME"] = str(home.expanduser().absolute())
    if tenant is not None:
        os.environ["COMMUNITREE_TENANT"] = tenant


def with_everywhere(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take them, too."""
    own = inspect.signature(command, eval_str=True)
    more = inspect.signature(everywhere, eval_str=True).parameters

    def wrapper(**given: Any) -> Any:
        everywhere(**{name: given.pop(name) for name in more})
        return command(**given)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own.parameters.values(), *more.values())]
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper

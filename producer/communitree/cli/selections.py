"""The flags that choose which reports are read: one for each declared selection that has any."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from communitree.cli.values import share
from communitree_shared.contract.strategies import STRATEGIES, Strategy
from communitree_shared.errors import UsageError

#: No tree is as deep.
_DEEPEST = 10_000
_PANEL = "Selection (one of)"
#: What a flag takes → its type, and how typer reads it; what takes nothing is a switch.
_VALUES: dict[str, tuple[Any, dict[str, Any]]] = {
    "share": (float, {"metavar": "SHARE", "parser": share}),
    "number": (int, {"metavar": "N", "min": 0, "max": _DEEPEST}),
    "number or all": (str, {"metavar": "N|all"}),
}
_FLAGGED = {name: declared for name, declared in STRATEGIES.items() if declared.flag}


def parameters() -> list[inspect.Parameter]:
    """Return the flags as parameters of a command."""
    return [_parameter(declared) for declared in _FLAGGED.values()]


def _parameter(declared: Strategy) -> inspect.Parameter:
    kind, more = _VALUES[declared.value] if declared.value else (bool, {})
    option = typer.Option(declared.flag, help=declared.help, rich_help_panel=_PANEL, **more)
    return inspect.Parameter(
        declared.name, inspect.Parameter.KEYWORD_ONLY, default=None if declared.value else False,
        annotation=Annotated[kind | None if declared.value else bool, option],
    )  # fmt: skip


def spelled() -> dict[str, str]:
    """Return option of a query → the flags of selections that set it, as people write them."""
    out: dict[str, list[str]] = {}
    for declared in _FLAGGED.values():
        # A flag whose option is of its own name says what it takes by that.
        value = _VALUES[declared.value][1]["metavar"] if declared.value and declared.sets != declared.name else ""
        out.setdefault(declared.sets or "strategy", []).append(f"{declared.flag} {value}".strip())
    return {f"selection.{option}": ", ".join(flags) for option, flags in out.items()}


def take(given: dict[str, Any]) -> dict[str, Any]:
    """Take the flags of selections out of a command's arguments; return the strategy and its number, {} without any.

    Raises:
        UsageError: two of them are given, or a number is none.
    """
    chosen = {name: value for name in _FLAGGED if (value := given.pop(name)) is not None and value is not False}
    if len(chosen) > 1:
        raise UsageError(
            f"Choose one selection: {', '.join(_FLAGGED[name].flag for name in chosen)} exclude one another."
        )
    return {key: value for name, given in chosen.items() for key, value in _options(_FLAGGED[name], given).items()}


def _options(declared: Strategy, value: Any) -> dict[str, Any]:
    """Return the options that a selection's flag sets."""
    if not declared.value:
        return {"strategy": declared.name}
    if declared.value == "number or all":
        if value != "all" and not (value.isdecimal() and int(value) <= _DEEPEST):
            raise UsageError(f"{declared.flag} {value!r} is neither `all` nor a number from 0 to {_DEEPEST:,}.")
        value = None if value == "all" else int(value)
    return {"strategy": declared.name, declared.sets: value}

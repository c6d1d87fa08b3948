"""Where words go: results to stdout, everything else to stderr; one JSON object and nothing else with `--json`."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from communitree.cli.printing import console, write_json
from communitree_shared.errors import CommunitreeError
from communitree_shared.visible import one_line

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType

#: A command in a hint.
_COMMAND = re.compile(r"`(communitree (?![^`]*--help)[^`]+)`")

#: The flag that every command with a result has.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.", show_default=False)]


def to_stdout(value: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Print one JSON value: an object, except for `--plan all`, which is a list of plans."""
    body = value if isinstance(value, (dict, list)) else value.model_dump(mode="json")
    write_json(body, indent=2 if sys.stdout.isatty() else None)


#: The exit code after Ctrl-C, as shells have it: 128 and the number of the signal.
INTERRUPTED = 130


def show(*what: RenderableType) -> None:
    """Print a result for people."""
    out = stdout()
    for part in what:
        out.print(part, crop=False)


def say(line: str) -> None:
    """Print a line about what happens on stderr."""
    stderr().print(one_line(line), soft_wrap=True)


def say_error(error: CommunitreeError, as_json: bool) -> None:
    """Print an error: as JSON on stdout, or as a line (and one with the remedy) on stderr."""
    if as_json:
        to_stdout({"error": error.as_json()})
        return
    err = stderr()
    err.print("Error:", style="bold red", end=" ")
    err.print(error.message, soft_wrap=True)
    if error.hint:
        # The libraries' hints know of no --home and no --tenant.
        hint = _COMMAND.sub(lambda found: f"`{found[1]}{_where()}`", error.hint)
        err.print(hint, soft_wrap=True)


def program() -> str:
    """Return the command as it was called, for a shell: what a line to copy must begin with."""
    if Path(sys.argv[0]).name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m communitree"
    return shlex.quote(sys.argv[0])


def command(line: str) -> str:
    """Return a command for another terminal, or for later: of the stack and the tenant that this one was for."""
    return f"{program()} {line}{_where()}"


def _where() -> str:
    places = (("--home", "COMMUNITREE_HOME"), ("--tenant", "COMMUNITREE_TENANT"))
    return "".join(f" {flag} {shlex.quote(os.environ[name])}" for flag, name in places if os.environ.get(name))


def stdout() -> Console:
    """Return the console of results."""
    return console(stderr=False)


def stderr() -> Console:
    """Return the console of progress and errors."""
    return console(stderr=True)

"""All commands under one name, and what happens to their errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from itertools import zip_longest

import typer

from communitree.cli import ask, index, look, operate, stack
from communitree.cli.everywhere import everywhere, with_everywhere
from communitree.cli.output import INTERRUPTED, say, say_error, to_stdout
from communitree.cli.printing import write
from communitree_shared.errors import CommunitreeError, InfrastructureError, UsageError

_HELP = """Ask questions about a whole corpus: a tree of communities, a report on each, answers that read the reports.

Start with [bold]communitree demo[/bold], or [bold]communitree up[/bold] and, in another terminal,
[bold]communitree index FOLDER --corpus NAME[/bold] and [bold]communitree ask NAME "QUESTION"[/bold].
"""

#: Options whose value may be left out: the bare form, and what it means with the one value it takes.
_OPTIONAL_VALUES = {("--plan", "all"): "--plan-all"}


def build() -> typer.Typer:
    """Return the whole command line."""
    app = typer.Typer(
        name="communitree",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(everywhere)
    for module in (stack, index, ask, look, operate):
        module.register(app)
    for command in app.registered_commands:
        assert command.callback is not None
        command.callback = with_everywhere(command.callback)
    return app


def _whole_flags() -> None:
    """Let the help fold a flag that a narrow terminal has no room for: cut short, it could not be typed."""
    from rich.highlighter import RegexHighlighter
    from rich.text import Text
    from typer import rich_utils

    class Folding(RegexHighlighter):
        def __call__(self, text: str | Text) -> Text:
            shown = super().__call__(text)
            shown.overflow = "fold"
            return shown

    class Options(Folding, rich_utils.OptionHighlighter): ...

    class Negative(Folding, rich_utils.NegativeOptionHighlighter): ...

    rich_utils.highlighter, rich_utils.negative_highlighter = Options(), Negative()


def run(words: list[str]) -> int:
    """Run one command and return its exit code."""
    as_json = "--json" in words
    if not words or not {"-h", "--help"}.isdisjoint(words):
        _whole_flags()
    try:
        result = build()(list(_joined(words)) or ["--help"], prog_name="communitree", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as ended:
        if ended.exit_code == INTERRUPTED:  # typer's word for Ctrl-C
            say("stopped")
        return ended.exit_code
    except (typer.Abort, KeyboardInterrupt):
        say("stopped")
        return INTERRUPTED
    except CommunitreeError as error:
        say_error(error, as_json)
        return error.exit_code
    except SystemExit as ended:
        if ended.code != 1:
            raise
        raise BrokenPipeError from ended  # rich's word for it; nothing else of ours ends so
    except BrokenPipeError:
        raise
    except Exception as error:
        known = _known(error)
        if known is None:
            write(traceback.format_exc(), stderr=True)
            return 1
        say_error(known, as_json)
        return known.exit_code


def _joined(words: list[str]) -> Iterator[str]:
    skip = False
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if skip:
            skip = False
        elif (word, following) in _OPTIONAL_VALUES:
            skip = True
            yield _OPTIONAL_VALUES[word, following]
        else:
            yield word


def _known(error: Exception) -> CommunitreeError | None:
    """Return an error of a library in our words, None for one that only a traceback explains."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "ClickException" in names:  # the class is private in some versions of typer
        if "NoArgsIsHelpError" in names:
            return UsageError("No command given.", hint="`communitree --help` lists them.")
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        return UsageError(message, hint=f"`{context.command_path} --help` shows how." if context else "")
    if names & {"RedisError", "KombuError", "MinioException", "HTTPError"}:
        return InfrastructureError(f"{type(error).__name__}: {error}")
    return None


__all__ = ["build", "run", "to_stdout"]

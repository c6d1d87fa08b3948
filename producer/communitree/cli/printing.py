"""All that is printed passes here, and is made fit for it (`visible`): no other module writes to a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

from communitree_shared.visible import as_json, visible

if TYPE_CHECKING:
    from rich.console import Console

#: Outside a terminal lines are as long as they are: who reads them may be a program.
_PIPE_WIDTH = 1000


def write(text: str, *, stderr: bool = False) -> None:
    """Print text as it is, at once."""
    _put(sys.stderr if stderr else sys.stdout, visible(text))


def rewrite(line: str, *, last: bool) -> None:
    """Print a line in the place of the one before it, on stderr; the next one goes on below the last."""
    _put(sys.stderr, "\r" + visible(line) + ("\n" if last else ""))


def write_json(value: Any, *, indent: int | None = None) -> None:
    """Print one JSON value on stdout."""
    _put(sys.stdout, as_json(value, indent) + "\n")


def console(*, stderr: bool) -> Console:
    """Return a console of one of the streams, as they are now."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    # No markup: what is printed comes from corpora, questions and errors, where `[b]` and `[#2841]` are text.
    kind: type[Console] = _kind()
    return kind(stderr=stderr, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def _put(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal of another encoding
        stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
    stream.flush()


@cache
def _kind() -> type[Console]:
    """Return the class of consoles: made late, as the library takes long to import."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class Clean(Console):
        """Makes strings fit before they are measured, and whatever is drawn before it is printed."""

        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(visible(text), **more)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text), style, control)

    return Clean

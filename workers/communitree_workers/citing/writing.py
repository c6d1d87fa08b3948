"""References written in their one form: `[Data: Reports (1, 2, +more); Sources (3)]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: The most ids that one reference shows.
SHOWN = 5


def reference(ids: Iterable[int], context: str = "Reports", *, shown: int = SHOWN) -> str:
    """Return a reference to these ids: at most `shown` of them and `+more`; '' without ids."""
    return bracketed([section(context, list(dict.fromkeys(ids)), shown=shown)])


def section(name: str, ids: Sequence[int], *, shown: int = SHOWN, marked: Sequence[str] = ()) -> str:
    """Return one part of a reference: at most `shown` ids, those that carry a mark, `+more`; '' without any."""
    items = [*map(str, ids[:shown]), *marked]
    more = ", +more" if len(ids) > shown else ""
    return f"{name} ({', '.join(items)}{more})" if items else ""


def bracketed(sections: Iterable[str]) -> str:
    """Return a reference of these parts; '' where there are none."""
    present = list(filter(None, sections))
    return f"[Data: {'; '.join(present)}]" if present else ""

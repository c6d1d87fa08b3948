"""Numbers and short texts as people read them."""

from __future__ import annotations


def plural(count: int, one: str, many: str = "") -> str:
    """Return `1 report`, `1,234 reports`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def share(value: float) -> str:
    """Return a share (0–1) in percent; what is not all never reads as 100 %, what is not nothing never as 0 %."""
    percent = 100 * value
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.95 <= percent < 100:
        return ">99.9 %"
    return f"{percent:.0f} %" if percent in (0, 100) else f"{percent:.1f} %"


def money(usd: float | None) -> str:
    """Return an amount; None: the price is unknown."""
    if usd is None:
        return "price unknown"
    return "$0" if usd == 0 else f"${usd:.4f}" if usd < 0.1 else f"${usd:,.2f}"


def seconds(value: float) -> str:
    """Return a duration."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def shorten(text: str, length: int = 80) -> str:
    """Return one line of at most `length` characters, cut at a word where there is one."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > length // 2 else cut).rstrip(" ,;:") + "…"


def listed(names: list[str], shown: int = 5, zh: bool = False) -> str:
    """Return `a, b, c and 7 more`; in Chinese `a、b、c 等 10 项`."""
    more = len(names) - shown
    if zh:
        return "、".join(names[:shown]) + (f" 等 {len(names):,} 项" if more > 0 else "")
    return ", ".join(names[:shown]) + (f" and {more:,} more" if more > 0 else "")

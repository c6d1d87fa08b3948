"""Rows of the report table in a map prompt: one line each, whatever stands in a report.

A row's tokens add up: each row ends with one line break and begins with a digit, and no tokeniser's word runs across
that border. So a selection's tokens are sums of numbers that were counted once, when the version was published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from communitree_shared.errors import UsageError
from communitree_shared.options import BatchOptions
from communitree_shared.tokens import count

if TYPE_CHECKING:
    from communitree_workers.query.corpus_view import CorpusView

#: Stands for a line break inside a cell; one token.
BREAK = "¶"
_SEAM = f" {BREAK} "
#: Rank of a report whose rating is missing: the middle of 0–10.
NEUTRAL_RANK = 5.0
#: The delimiter that a version's stored token counts are for.
DEFAULT_DELIMITER = "|"


class Row(NamedTuple):
    """One line of the table. `order`: place inside a batch, smallest first. `tokens`: of the line with its break."""

    id: int
    line: str
    tokens: int
    order: tuple[float, float, int]


#: Makes a row of its fields without a call of Python.
_tuple = tuple.__new__


def flatten(text: str) -> str:
    """Return a text as one line: line breaks become `¶`."""
    return text.strip() if text.isprintable() else _SEAM.join(_lines(text))  # no line break is printable


def _lines(text: str) -> list[str]:
    # Looking for the rare line breaks one by one is cheap; a split at any of them takes twice as long as at `\n`.
    rare = (
        "\r" in text or "\x0b" in text or "\x0c" in text or "\x1c" in text or "\x1d" in text or "\x1e" in text
        or "\x85" in text or "\u2028" in text or "\u2029" in text
    )  # fmt: skip
    return list(filter(None, map(str.strip, text.splitlines() if rare else text.split("\n"))))


def unflatten(text: str) -> str:
    """Return the paragraphs of a flattened text, one empty line between."""
    return "\n\n".join(part.strip() for part in text.split(BREAK))


def cell(text: str, delimiter: str = DEFAULT_DELIMITER) -> str:
    """Return a text as one cell, quoted as in CSV where it holds a character of the delimiter or a quote."""
    flat = flatten(text)
    if '"' in flat or delimiter in flat or (len(delimiter) > 1 and any(c in flat for c in delimiter)):
        return '"' + flat.replace('"', '""') + '"'
    return flat


def _row_line(front: str, content: str, delimiter: str) -> str:
    """Return a row's line: its first cells, and its content as `cell` gives it, put together in one go."""
    lines = _lines(content)
    if not lines or '"' in content or any(map(content.__contains__, delimiter)):
        return f"{front}{cell(content, delimiter)}\n"
    lines[0] = front + lines[0]
    lines[-1] += "\n"
    return _SEAM.join(lines)


def split_line(line: str, delimiter: str, columns: int) -> list[str]:
    """Return the cells of a rendered line, the inverse of `cell` and a join."""
    cells: list[str] = []
    rest = line.rstrip("\n")
    while len(cells) < columns - 1:
        if rest.startswith('"'):
            end = _closing(rest)
            cells.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 + len(delimiter) :]
        else:
            head, _, rest = rest.partition(delimiter)
            cells.append(head)
    cells.append(rest[1:-1].replace('""', '"') if rest.startswith('"') and len(rest) > 1 else rest)
    return cells


def _closing(text: str) -> int:
    at = 1
    while True:
        at = text.find('"', at)
        if at < 0:
            return len(text)
        if text[at + 1 : at + 2] != '"':
            return at
        at += 2


def columns(options: BatchOptions) -> list[str]:
    """Return the names of the table's columns."""
    names = ["id", "title", "level"]
    if options.include_community_weight:
        names.append("weight")
    if options.include_community_rank:
        names.append("rank")
    return [*names, "content"]


def header(options: BatchOptions) -> str:
    """Return the table's first line.

    Raises:
        UsageError: the delimiter would make the table unreadable.
    """
    check_delimiter(options.column_delimiter)
    return options.column_delimiter.join(columns(options)) + "\n"


def check_delimiter(delimiter: str) -> None:
    """Refuse a delimiter that numbers, quotes or line breaks contain.

    Raises:
        UsageError: with the delimiter named.
    """
    if not delimiter or any(c.isalnum() or c in "\"'.\r\n¶ -" for c in delimiter):
        raise UsageError(
            f"The column delimiter {delimiter!r} cannot be told from what stands in a cell.",
            hint="Use one such as '|', ',' or a tab.",
        )


def weight_cell(weight: int, heaviest: int, options: BatchOptions) -> str:
    """Return a community's weight: its share of the heaviest one, or distinct text units."""
    return f"{weight / max(1, heaviest):.2f}" if options.normalize_community_weight else str(weight)


def rank_cell(rank: float) -> str:
    """Return a report's rank with at most one decimal."""
    return f"{rank:.1f}".removesuffix(".0")


def number_tokens(text: str) -> int:
    """Return the tokens of a plain number: digits go in groups of three, the point is one token."""
    whole, point, fraction = text.partition(".")
    return -(-len(whole) // 3) + (1 + -(-len(fraction) // 3) if point else 0)


def default_tokens(id: int, title: str, level: int, weight: str, rank: str, content: str, encoding: str) -> int:
    """Return the tokens of a row with all columns and the default delimiter."""
    parts = (str(id), cell(title), str(level), weight, rank, cell(content))
    return count(DEFAULT_DELIMITER.join(parts) + "\n", encoding)


def row_costs(view: CorpusView, options: BatchOptions) -> list[int]:
    """Return the tokens of every community's row, from the stored counts of default rows."""
    tokens: list[int] = (view.tokens_summary if options.use_community_summary else view.tokens).tolist()
    if options.include_community_weight and options.include_community_rank and options.normalize_community_weight:
        return tokens
    default, heaviest = BatchOptions(), view.heaviest
    for node, (weight, rank) in enumerate(zip(view.weight.tolist(), view.rank.tolist(), strict=True)):
        stored = number_tokens(weight_cell(weight, heaviest, default))
        if not options.include_community_weight:
            tokens[node] -= stored + 1
        elif not options.normalize_community_weight:
            tokens[node] += number_tokens(str(weight)) - stored
        if not options.include_community_rank:
            tokens[node] -= number_tokens(rank_cell(rank)) + 1
    return tokens


class ReportRows:
    """Renders rows of a version's reports: a few at a time, for the text of all of them may be large."""

    def __init__(self, view: CorpusView, options: BatchOptions) -> None:
        """Prepare what all rows share; raises UsageError for a delimiter that would make them unreadable."""
        check_delimiter(options.column_delimiter)
        self.view, self.delimiter = view, options.column_delimiter
        self.costs = row_costs(view, options)
        self.levels, self.weights, self.ranks = view.level.tolist(), view.weight.tolist(), view.rank.tolist()
        # Few weights and ranks differ: their cells are written once.
        heaviest, weighed, ranked = view.heaviest, options.include_community_weight, options.include_community_rank
        self.weight_cells = {
            w: weight_cell(w, heaviest, options) + self.delimiter if weighed else "" for w in set(self.weights)
        }
        self.rank_cells = {r: rank_cell(r) + self.delimiter if ranked else "" for r in set(self.ranks)}

    def tokens(self, ids: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return (id, tokens of its row) of each report; None where that takes the rows themselves."""
        if self.delimiter != DEFAULT_DELIMITER:
            return None
        node = self.view.node
        return [(id, self.costs[node[id]]) for id in ids]

    def render(self, ids: Sequence[int], contents: Mapping[int, str]) -> list[Row]:
        """Return the rows of these reports. `contents`: full report (or summary) of each."""
        view, delimiter, titles = self.view, self.delimiter, self.view.titles
        recount = delimiter != DEFAULT_DELIMITER
        out: list[Row] = []
        for id in ids:
            node = view.node[id]
            weight, rank = self.weights[node], self.ranks[node]
            front = f"{id}{delimiter}{cell(titles[node], delimiter)}{delimiter}{self.levels[node]}{delimiter}"
            line = _row_line(front + self.weight_cells[weight] + self.rank_cells[rank], contents[id], delimiter)
            tokens = count(line, view.encoding) if recount else self.costs[node]
            out.append(_tuple(Row, (id, line, tokens, (-weight, -rank, id))))
        return out


def report_rows(view: CorpusView, ids: Sequence[int], contents: Mapping[int, str], options: BatchOptions) -> list[Row]:
    """Render the rows of these communities, all at once.

    `contents`: full report (or summary, with `use_community_summary`) of each community.
    """
    return ReportRows(view, options).render(ids, contents)


def text_rows(view: CorpusView, ids: Sequence[int], contents: Mapping[int, str], options: BatchOptions) -> list[Row]:
    """Render rows of text units (`id|title|content`, id = human_readable_id, title = the document's)."""
    delimiter = options.column_delimiter
    check_delimiter(delimiter)
    out: list[Row] = []
    for id in ids:
        unit = view.unit_node[id]
        title = view.documents[int(view.unit_document[unit])] if view.unit_document[unit] >= 0 else ""
        line = delimiter.join((str(id), cell(title, delimiter), cell(contents[id], delimiter))) + "\n"
        out.append(Row(id, line, count(line, view.encoding), (0.0, 0.0, id)))
    return out

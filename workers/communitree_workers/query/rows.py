"""Rows of the report table in a map prompt: one line each, whatever stands in a report.

A row's tokens add up: each row ends with one line break and begins with a digit, and no tokeniser's word runs across
that border. So a selection's tokens are sums of numbers that were counted once, when the version was published.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from communitree_shared.contract.options import BatchOptions
from communitree_shared.errors import UsageError
from communitree_shared.tokens import count

if TYPE_CHECKING:
    from communitree_workers.query.corpus_view import CorpusView

#: Stands for a line break inside a cell; one token.
BREAK = "¶"
_SEAM = f" {BREAK} "
_SEAM_UTF8 = _SEAM.encode()
#: What breaks a line or is blank for `str` but not for `bytes`, or breaks a line and is no `\n`, in ASCII.
_RARE = [bytes([code]) for code in b"\r\x0b\x0c\x1c\x1d\x1e\x1f"]
#: Rank of a report whose rating is missing: the middle of 0–10.
NEUTRAL_RANK = 5.0
#: The delimiter that a version's stored token counts are for.
DEFAULT_DELIMITER = "|"


class Row(NamedTuple):
    """One line of the table, UTF-8. `order`: place in a batch, smallest first. `tokens`: of the line with its break."""

    id: int
    line: bytes
    tokens: int
    order: tuple[float, float, int]


class Texts(Protocol):
    """Texts by their place, UTF-8: a list, or one that makes them when they are asked for."""

    def __getitem__(self, place: int, /) -> bytes:
        """Return the text at a place."""
        ...


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


def cell(text: str, delimiter: str = DEFAULT_DELIMITER) -> str:
    """Return a text as one cell, quoted as in CSV where it holds a character of the delimiter or a quote."""
    flat = flatten(text)
    if '"' in flat or delimiter in flat or (len(delimiter) > 1 and any(c in flat for c in delimiter)):
        return '"' + flat.replace('"', '""') + '"'
    return flat


def cells(texts: Sequence[bytes], delimiter: str = DEFAULT_DELIMITER) -> list[bytes]:
    """Return what `cell` gives for each text, in UTF-8 as the texts are. ASCII, most of them, is never decoded."""
    flat = [_flat_ascii(text) if text.isascii() else _flat(text) for text in texts]
    # What few texts hold is looked for in all of them at once: that is cheaper than in one after the other.
    together = b"".join(flat)
    if any(map(together.__contains__, _RARE)):
        flat = list(map(_flat, texts))
    marks = [b'"', *(char.encode() for char in delimiter)]
    if any(map(together.__contains__, marks)):
        flat = [_quoted(text) if any(map(text.__contains__, marks)) else text for text in flat]
    return flat


def _flat(text: bytes) -> bytes:
    return flatten(text.decode()).encode()


def _flat_ascii(text: bytes) -> bytes:
    """Return the same where nothing of `_RARE` is left in it."""
    return _SEAM_UTF8.join(filter(None, map(bytes.strip, text.split(b"\n"))))


def _quoted(flat: bytes) -> bytes:
    return b'"' + flat.replace(b'"', b'""') + b'"'


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
    """The rows of reports, rendered a few at a time: the text of all of them may be large."""

    def __init__(self, view: CorpusView, ids: Sequence[int], contents: Texts, options: BatchOptions) -> None:
        """Prepare all but the texts.

        `contents`: full report (or summary, with `use_community_summary`) of each id, UTF-8.

        Raises:
            UsageError: the delimiter would make the rows unreadable.
        """
        check_delimiter(options.column_delimiter)
        self.ids, self.contents, self.delimiter, self.encoding = ids, contents, options.column_delimiter, view.encoding
        nodes = list(map(view.node.__getitem__, ids))
        # Arrays, not lists, of what is kept for every row: there may be many.
        self.weights, self.ranks = array("q", view.weight[nodes]), array("d", view.rank[nodes])
        costs, between = row_costs(view, options), self.delimiter
        #: Tokens of each row; None where that takes the rows themselves.
        self.tokens = array("q", (costs[node] for node in nodes)) if between == DEFAULT_DELIMITER else None
        # Few weights and ranks differ: their cells are written once.
        weighed, ranked = options.include_community_weight, options.include_community_rank
        weight = {w: weight_cell(w, view.heaviest, options) + between if weighed else "" for w in set(self.weights)}
        rank = {r: rank_cell(r) + between if ranked else "" for r in set(self.ranks)}
        titles = [view.titles[node] for node in nodes]
        together = "".join(titles)  # as in `cells`
        plain = together.isprintable() and not any(map(together.__contains__, ('"', *between)))
        titles = list(map(str.strip, titles)) if plain else [cell(title, between) for title in titles]
        self._fronts = [
            f"{id}{between}{title}{between}{level}{between}{weight[w]}{rank[r]}".encode()
            for id, title, level, w, r in zip(
                ids, titles, view.level[nodes].tolist(), self.weights, self.ranks, strict=True
            )
        ]

    def render(self, places: Sequence[int]) -> list[Row]:
        """Return the rows of the ids at these places."""
        ids, fronts, weights, ranks = self.ids, self._fronts, self.weights, self.ranks
        out: list[Row] = []
        for place, content in zip(places, cells([self.contents[p] for p in places], self.delimiter), strict=True):
            line = b"".join((fronts[place], content, b"\n"))
            tokens = self.tokens[place] if self.tokens is not None else count(line.decode(), self.encoding)
            id = ids[place]
            out.append(_tuple(Row, (id, line, tokens, (-weights[place], -ranks[place], id))))
        return out


def report_rows(view: CorpusView, ids: Sequence[int], contents: Texts, options: BatchOptions) -> list[Row]:
    """Return the rows of `ReportRows`, all at once."""
    return ReportRows(view, ids, contents, options).render(range(len(ids)))


def text_rows(view: CorpusView, ids: Sequence[int], contents: Texts, options: BatchOptions) -> list[Row]:
    """Render rows of text units (`id|title|content`, id = human_readable_id, title = the document's)."""
    delimiter = options.column_delimiter
    check_delimiter(delimiter)
    out: list[Row] = []
    for id, content in zip(ids, cells([contents[place] for place in range(len(ids))], delimiter), strict=True):
        unit = view.unit_node[id]
        title = view.documents[int(view.unit_document[unit])] if view.unit_document[unit] >= 0 else ""
        line = f"{id}{delimiter}{cell(title, delimiter)}{delimiter}".encode() + content + b"\n"
        out.append(Row(id, line, count(line.decode(), view.encoding), (0.0, 0.0, id)))
    return out

"""Rows of the table in a map prompt, of reports and of text units."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from communitree_shared.contract.options import BatchOptions
from communitree_shared.errors import UsageError
from communitree_shared.tokens import count
from communitree_workers.query.view.cells import DEFAULT_DELIMITER, cell, cells, rank_cell, uncited, weight_cell
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.query.view.costs import row_costs


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
        shown = cells([uncited(self.contents[p]) for p in places], self.delimiter)
        for place, content in zip(places, shown, strict=True):
            line = b"".join((fronts[place], content, b"\n"))
            tokens = self.tokens[place] if self.tokens is not None else count(line.decode(), self.encoding)
            id = ids[place]
            out.append(_tuple(Row, (id, line, tokens, (-weights[place], -ranks[place], id))))
        return out


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

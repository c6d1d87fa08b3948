"""How a row of each kind stands in a report prompt, and how many tokens it costs there.

A row is one line `id,…` of CSV with the row's `human_readable_id` first and a line feed at its end. White space inside
a field is collapsed to single spaces, so a field can neither break out of its line nor start another row. Since every
row starts with a digit after a line feed, a tokenizer's words never reach over a row's edge: the tokens of a table are
exactly the sum of its rows' tokens, and each row needs to be counted only once in the life of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from communitree_shared import tokens
from communitree_shared.contract import tables as names
from communitree_workers.report import citations
from communitree_workers.report.evidence import table_rows
from communitree_workers.tables.io import Tables
from communitree_workers.text.token_lines import count_lines

#: kind → heading and header line of its table in the prompt.
HEADINGS = {
    "reports": "## Reports on sub-communities\nid,title,content\n",
    "titles": "## Sub-communities, title and summary only\nid,title,summary\n",
    "pairs": "## Relationships between sub-communities, counted\nid,other id,count,weight,strongest\n",
    "entities": "## Entities\nid,entity,type,description\n",
    "relationships": "## Relationships\nid,source,target,description\n",
    "claims": "## Claims\nid,subject,object,type,status,start,end,description\n",
    "text_units": "## Sources\nid,text\n",
}

#: What stands at the end of a row that had to be shortened.
SHORTENED = " […]"

_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^,]*)')
_TABLE = {"entities": names.ENTITIES, "relationships": names.RELATIONSHIPS, "claims": names.COVARIATES}


def cell(value: str | None) -> str:
    """Return a field on one line, quoted where CSV needs it."""
    text = value or ""
    if not _tidy(text):
        text = " ".join(text.split())
    return '"' + text.replace('"', '""') + '"' if '"' in text or "," in text else text


def _tidy(text: str) -> bool:
    """Say whether white space needs no collapsing: quick, since nearly every field is so."""
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    return text.isprintable()  # only an ASCII space is both white space and printable


def line(*fields: str | None) -> str:
    """Return fields as the rest of a row, after its number."""
    texts = [field or "" for field in fields]
    joined = "|".join(texts)  # all fields are looked at in one go
    if _tidy(joined) and "| " not in joined and " |" not in joined:
        if "," not in joined and '"' not in joined:
            return ",".join(texts)
        return ",".join(['"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text for text in texts])
    return ",".join([cell(text) for text in texts])


def tails(kind: str, table: pa.Table) -> list[str]:
    """Return each row of a table of this kind as it is rendered, without its number."""
    found: list[str] = table_rows.tails(kind, table).to_pylist()
    return found


def numbered(numbers: Iterable[int], rest: Iterable[str]) -> list[str]:
    """Return whole rows: number, rest, line feed."""
    return [f"{number},{tail}\n" for number, tail in zip(numbers, rest, strict=True)]


def count(rows: Iterable[str], encoding: str) -> list[int]:
    """Return the tokens of each row."""
    encode = tokens.encoding(encoding).encode_ordinary
    return [len(encode(row)) for row in rows]


def count_table(kind: str, table: pa.Table, encoding: str) -> pa.Array:
    """Return the tokens of each row of a table of this kind, as int64."""
    return pa.array(count_lines(table_rows.lines(table["human_readable_id"], table_rows.tails(kind, table)), encoding))


def count_rows(tables: Tables, encoding: str) -> Tables:
    """Return the tables with `n_tokens` of entities, relationships and covariates filled.

    `n_tokens` is the tokens of the row as it stands in a report prompt. Text units keep their own.
    """
    counted = dict(tables)
    for kind, name in _TABLE.items():
        table = tables.get(name)
        if table is not None:
            at = table.column_names.index("n_tokens")
            counted[name] = table.set_column(at, "n_tokens", count_table(kind, table, encoding))
    return counted


def fields(tail: str) -> list[str]:
    """Return the plain fields of a rendered row or of its rest."""
    out = []
    at = 0
    while True:
        match = _FIELD.match(tail, at)
        assert match is not None
        quoted, plain = match.groups()
        out.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at >= len(tail):
            return out
        at += 1
        if at == len(tail):
            return [*out, ""]


def report_tails(title: str, summary: str, full_content: str) -> tuple[str, str]:
    """Return how a child's report stands in its parent's prompt, in full and by title and summary, without its number.

    Its citations are taken out: they name rows that are not in that prompt.
    """
    body = citations.remove(full_content.removeprefix(f"# {title}"))
    return line(title, body), line(title, citations.remove(summary))


def count_tail(tail: str, encoding: str) -> int:
    """Return the tokens of a row after its number: a number before a comma is always a word of its own."""
    return tokens.count(f",{tail}\n", encoding)


def shorten(number: int, tail: str, limit: int, encoding: str) -> str | None:
    """Return the rest of a row cut so that the row has at most `limit` tokens; None if nothing of it fits.

    The last field, which holds the prose, is shortened and marked.
    """
    *head, last = fields(tail)
    room = limit - tokens.count(f"{number},{line(*head, SHORTENED)}\n", encoding)
    while room > 0:
        cut = tokens.truncate(last, room, encoding).rstrip()
        if not cut:
            return None
        rest = line(*head, cut + SHORTENED)
        excess = tokens.count(f"{number},{rest}\n", encoding) - limit
        if excess <= 0:
            return rest
        room -= excess
    return None

import csv
import io
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from communitree_shared import tokens
from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ReportOptions
from communitree_workers.report.evidence import EvidenceBuilder, rows
from communitree_workers.tables.io import Tables, from_rows
from support.reports import ENCODING
from support.trees import Shape, corpora, corpus

AWKWARD = st.text(st.sampled_from("ab 1,\"'\n\r\t\u2028\u3000#|[]（），。汉é"), max_size=30)


@settings(max_examples=40)
@given(st.lists(st.tuples(AWKWARD, AWKWARD, AWKWARD), max_size=6))
def test_a_field_cannot_break_out_of_its_row(fields: list[tuple[str, str, str]]) -> None:
    rendered = rows.numbered(range(len(fields)), [rows.line(*one) for one in fields])
    text = "".join(rendered)
    assert text.count("\n") == len(fields)
    assert len(text.splitlines()) == len(fields)
    plain = [[str(i), *(" ".join(field.split()) for field in one)] for i, one in enumerate(fields)]
    assert list(csv.reader(io.StringIO(text))) == plain
    assert [rows.fields(row[:-1]) for row in rendered] == plain


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 99_999), AWKWARD), max_size=12), st.sampled_from(["o200k_base", "cl100k_base"])
)
def test_tokens_of_a_table_are_the_sum_of_its_rows(parts: list[tuple[int, str]], encoding: str) -> None:
    rendered = [f"{number},{rows.line(text, text)}\n" for number, text in parts]
    pieces = [rows.HEADINGS["entities"], *rendered, rows.HEADINGS["claims"], *rendered]
    assert tokens.count("".join(pieces), encoding) == sum(rows.count(pieces, encoding))


@settings(max_examples=8)
@given(corpora())
def test_count_rows_fills_what_a_row_costs(tables: Tables) -> None:
    counted = rows.count_rows(tables, ENCODING)
    for kind, name in (
        ("entities", names.ENTITIES),
        ("relationships", names.RELATIONSHIPS),
        ("claims", names.COVARIATES),
    ):
        table = counted[name]
        shown = rows.numbered(table["human_readable_id"].to_pylist(), rows.tails(kind, table))
        assert table["n_tokens"].to_pylist() == [tokens.count(row) for row in shown]
        assert table.drop_columns("n_tokens").equals(tables[name].drop_columns("n_tokens"))
    assert counted[names.TEXT_UNITS].equals(tables[names.TEXT_UNITS])


def test_each_row_is_tokenised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = corpus(Shape(entities=20, relationships=40, claims=5, documents=0))
    seen: list[str] = []
    real, real_lines = rows.count, rows.count_lines

    def spy(some: Iterable[str], encoding: str) -> list[int]:
        kept = list(some)
        seen.extend(kept)
        return real(kept, encoding)

    def spy_lines(lines: pa.Array, encoding: str) -> NDArray[np.int64]:
        seen.extend(lines.to_pylist())
        return real_lines(lines, encoding)

    monkeypatch.setattr(rows, "count", spy)
    monkeypatch.setattr(rows, "count_lines", spy_lines)
    counted = rows.count_rows(tables, ENCODING)
    whole = sum(tables[name].num_rows for name in (names.ENTITIES, names.RELATIONSHIPS, names.COVARIATES))
    assert len(seen) == whole
    builder = EvidenceBuilder(counted, ReportOptions(max_prompt_tokens=100_000), ENCODING, "en", {})
    for level in builder.levels():
        builder.build(level, {})
    assert len(seen) == whole, "evidence counts no row again"


@settings(max_examples=40)
@given(AWKWARD, st.text(st.sampled_from('ab ,"汉，é'), min_size=30, max_size=300), st.integers(1, 60))
def test_a_shortened_row_keeps_its_limit_and_says_so(title: str, text: str, limit: int) -> None:
    tail = rows.line(title, "THING", text)
    cut = rows.shorten(7, tail, limit, ENCODING)
    if cut is None:
        assert tokens.count(f"7,{rows.line(title, 'THING', rows.SHORTENED)}\n") + 1 >= limit - 3
        return
    assert tokens.count(f"7,{cut}\n") <= limit
    first, kind, last = rows.fields(cut)
    assert (first, kind) == (" ".join(title.split()), "THING")
    assert last.endswith(rows.SHORTENED.strip())
    assert " ".join(text.split()).startswith(last.removesuffix(rows.SHORTENED.strip()).strip())


def test_claims_leave_out_what_says_nothing() -> None:
    claim = {"subject_id": "A", "object_id": "NONE", "type": "FACT", "status": "TRUE",
             "start_date": "1843-12-01T00:00:00", "end_date": "NONE", "description": "said, so"}  # fmt: skip
    assert rows.tails("claims", from_rows(names.COVARIATES, [claim])) == ['A,,FACT,TRUE,1843-12-01,,"said, so"']

"""Rows and batches: one line a report whatever stands in it, whole prompts within their limit, nothing lost."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import AnswerOptions, BatchOptions
from communitree_shared.errors import UsageError
from communitree_shared.tokens import count
from communitree_workers.query.batches.batch import Batch, can_split, split_batch
from communitree_workers.query.batches.frame import Frame, static_tokens
from communitree_workers.query.batches.packing import iter_batches, make_batches, spans
from communitree_workers.query.batches.rows import Row, header
from communitree_workers.query.map.prompt import map_messages
from communitree_workers.query.view.cells import (
    cell,
    cells,
    default_tokens,
    flatten,
    rank_cell,
    split_line,
    uncited,
    weight_cell,
)
from support.views import TreeShape, report_rows, view_of

HARM = [
    '"',
    '""',
    "|",
    "||",
    ",",
    ";",
    "\t",
    "\n",
    "\r\n",
    "\u2028",
    "\x0b",
    "\r",
    "\x1c",
    "\x1f",
    "\x85",
    "\xa0",
    "\u3000",
    " ",
    "12",
    "# ",
    "¶",
    "。",
    "一二三",
    "abc",
    '"|"',
    " [Data: Entities (1, 2); Reports (3, +more)]",
    "【数据：实体（5）】",
    "[Data: ",
]
NASTY = st.lists(
    st.one_of(st.sampled_from(HARM), st.sampled_from(HARM), st.characters(exclude_categories=["Cs"])), max_size=14
).map("".join)
HEAVIEST = 40


def ascii_of(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


def row(id: int, content: str, *, title: str = "t", weight: int = 3, rank: float = 5.0, options: BatchOptions) -> Row:
    cells = [str(id), cell(title, options.column_delimiter), "1"]
    if options.include_community_weight:
        cells.append(weight_cell(weight, HEAVIEST, options))
    if options.include_community_rank:
        cells.append(rank_cell(rank))
    line = options.column_delimiter.join([*cells, cell(content, options.column_delimiter)]) + "\n"
    return Row(id, line.encode(), count(line), (-weight, -rank, id))


@settings(max_examples=60)
@example("|", "", "||")
@given(NASTY, NASTY, st.sampled_from(["|", ",", "\t", ";", "||"]))
def test_delimiters_quotes_and_line_breaks_do_not_harm_the_table(title: str, content: str, delimiter: str) -> None:
    options = BatchOptions(column_delimiter=delimiter)
    line = row(7, content, title=title, options=options).line.decode()
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    cells = split_line(line, delimiter, 6)
    assert cells == ["7", flatten(title), "1", "0.07", "5", flatten(content)]
    if len(delimiter) == 1:
        assert next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)) == cells


@settings(max_examples=80)
@example("a\x85b\x1cc", "|")
@given(NASTY, st.sampled_from(["|", ",", "\t", "||"]))
def test_a_row_put_together_in_one_go_is_the_join_of_its_cells(content: str, delimiter: str) -> None:
    view = view_of(TreeShape((-1,), (1,), (1,)), titles=[content])
    options = BatchOptions(column_delimiter=delimiter)
    (made,) = report_rows(view, [0], [content.encode()], options)
    numbers = (str(view.level[0]), weight_cell(int(view.weight[0]), view.heaviest, options), rank_cell(5.0))
    cells = ("0", cell(content, delimiter), *numbers, cell(uncited(content.encode()).decode(), delimiter))
    assert made.line.decode() == delimiter.join(cells) + "\n"
    lines = [line for line in map(str.strip, content.splitlines()) if line]
    assert flatten(content) == " ¶ ".join(lines)


@settings(max_examples=300)
@example(["a\r\nb \x0b\x1f\n\x1cc", " a\n\nb "], "|")
@given(st.lists(st.one_of(NASTY, NASTY.map(ascii_of)), max_size=4), st.sampled_from(["|", "¦", "||", "，\t"]))
def test_cells_made_of_bytes_are_those_that_were_counted(texts: list[str], delimiter: str) -> None:
    made = cells([text.encode() for text in texts], delimiter)
    assert made == [cell(text, delimiter).encode() for text in texts]


@settings(max_examples=60)
@example(["\x1e\r\u2028"], "|", "|\n{")
@given(st.lists(NASTY, min_size=1, max_size=4), st.sampled_from(["|", "\t", "||"]), NASTY)
def test_a_stored_batch_is_read_as_it_was(contents: list[str], delimiter: str, overview: str) -> None:
    options = BatchOptions(column_delimiter=delimiter)
    made = [row(i, text, title=text, options=options) for i, text in enumerate(contents)]
    (batch,) = make_batches(made, options, Frame(0, overview, [1]))
    data = batch.to_bytes()
    assert Batch.from_bytes(data) == batch
    assert data.endswith(b"\n" + b"".join(batch.lines))
    assert batch.table == delimiter.join(batch.columns) + "\n" + "".join(line.decode() for line in batch.lines)


@settings(max_examples=40)
@given(st.lists(st.tuples(NASTY, NASTY), min_size=1, max_size=6), st.integers(0, HEAVIEST), st.floats(0, 10))
def test_tokens_of_rows_add_up(texts: list[tuple[str, str]], weight: int, rank: float) -> None:
    made = [row(i, c, title=t, weight=weight, rank=rank, options=BatchOptions()) for i, (t, c) in enumerate(texts)]
    table = header(BatchOptions()) + b"".join(m.line for m in made).decode()
    assert count(table) == count(header(BatchOptions())) + sum(m.tokens for m in made)


@settings(max_examples=30)
@given(NASTY, NASTY, st.integers(0, 1500), st.floats(0, 10), st.booleans(), st.booleans(), st.booleans())
def test_stored_tokens_hold_for_other_columns(
    title: str, content: str, weight: int, rank: float, with_weight: bool, with_rank: bool, normal: bool
) -> None:
    view = view_of(TreeShape((-1,), (1,), (1,)), titles=[title], rank=[rank])
    view.weight[0] = weight
    default = BatchOptions()
    cells = (weight_cell(weight, view.heaviest, default), rank_cell(rank))
    view.tokens[0] = default_tokens(0, title, 0, *cells, content, view.encoding)
    options = BatchOptions(
        include_community_weight=with_weight, include_community_rank=with_rank, normalize_community_weight=normal
    )
    (made,) = report_rows(view, [0], [content.encode()], options)
    assert made.tokens == count(made.line.decode())


@pytest.mark.parametrize("delimiter", ["", "1", '"', ".", "\n", "a", " ", "-"])
def test_a_delimiter_that_would_harm_is_refused(delimiter: str) -> None:
    with pytest.raises(UsageError, match="delimiter"):
        header(BatchOptions(column_delimiter=delimiter))


REPORT = "# T\n\nsummary\n\n" + "\n\n".join(f"## finding {i}\n\n" + f"word{i} said so. " * 30 for i in range(12))


def cut(contents: list[str], options: BatchOptions, static: int = 0) -> list[Batch]:
    made = [row(i, text, weight=i % 5, options=options) for i, text in enumerate(contents)]
    return make_batches(made, options, Frame(static))


@settings(max_examples=40)
@given(st.lists(st.integers(1, 400), max_size=60), st.integers(400, 900))
def test_runs_fit_cover_everything_and_are_as_few_and_as_equal_as_can_be(tokens: list[int], room: int) -> None:
    found = spans(tokens, room)
    assert [i for a, b in found for i in range(a, b)] == list(range(len(tokens)))
    sizes = [sum(tokens[a:b]) for a, b in found]
    assert all(0 < size <= room for size in sizes)
    greedy, left = 0, 0
    for cost in tokens:
        if cost > left:
            greedy, left = greedy + 1, room
        left -= cost
    assert len(found) == greedy
    if len(found) > 1:  # a smaller limit would need one more
        tight, left = 1, max(sizes) - 1
        for cost in tokens:
            if cost > left:
                tight, left = tight + 1, max(sizes) - 1
            left -= cost
        assert tight > len(found) or max(tokens) > max(sizes) - 1


def test_a_last_crumb_is_shared_out() -> None:
    sizes = [b - a for a, b in spans([100] * 11, 1000)]
    assert sorted(sizes) == [5, 6]


@settings(max_examples=8)
@given(st.lists(st.sampled_from(["short", REPORT, REPORT * 2, "一二三四五。" * 400, '"|' * 500]), max_size=6))
def test_whole_prompts_stay_within_the_limit_and_no_row_is_lost(contents: list[str]) -> None:
    options = BatchOptions(max_context_tokens=2600, reserve_tokens=500, overview_tokens=0)
    answer = AnswerOptions()
    static = static_tokens("", [], answer, {}, "Reports", "o200k_base")
    batches = cut(contents, options, static)
    question = "Why " * 480
    asked = count(question)
    for batch in batches:
        for language in ("en", "zh"):
            messages = map_messages(batch, question, answer, language, {})
            assert sum(count(m["content"]) for m in messages) <= options.max_context_tokens
            assert sum(count(m["content"]) for m in messages) - asked <= batch.prompt_tokens + 1
    assert {id for b in batches for id in b.ids} == set(range(len(contents)))
    for i, text in enumerate(contents):
        found = "".join(c["content"] for b in batches for c in b.cells() if c["id"] == str(i))
        said = flatten(text).replace(" ", "").replace("¶", "")
        assert len(found.replace(" ", "").replace("¶", "")) == len(said)


def test_an_oversize_report_is_split_by_findings_under_one_id() -> None:
    options = BatchOptions(max_context_tokens=1500, reserve_tokens=0, overview_tokens=0)
    batches = cut([REPORT, "short"], options)
    parts = [c["content"] for b in batches for c in b.cells() if c["id"] == "0"]
    assert len(parts) > 1
    assert sum(part.count("## finding") for part in parts) == 12
    assert all(part.startswith(("# T", "## finding")) for part in parts)
    assert all(len(set(b.ids)) == len(b.reports) for b in batches)


def test_batches_depend_on_nothing_but_rows_and_options() -> None:
    options = BatchOptions(max_context_tokens=1500, reserve_tokens=0)
    made = [row(i, f"text {i} " * 20, weight=i % 7, rank=i % 3, options=options) for i in range(40)]
    one = make_batches(made, options, Frame(0))
    two = make_batches(made[::-1], options, Frame(0))
    assert [b.hash for b in one] == [b.hash for b in two]
    other = make_batches(made, options.model_copy(update={"random_state": 1}), Frame(0))
    assert [b.hash for b in one] != [b.hash for b in other]
    plain = make_batches(made, options.model_copy(update={"shuffle_data": False}), Frame(0))
    assert sorted(plain[0].ids) == list(range(len(plain[0].ids)))
    assert [Batch.from_bytes(b.to_bytes()) for b in one] == one


def test_batches_made_one_at_a_time_are_the_same_and_hold_the_text_of_one() -> None:
    options = BatchOptions(max_context_tokens=1500, reserve_tokens=0)
    texts = {i: REPORT * 3 if i == 7 else f"text {i} " * 20 for i in range(40)}  # one is larger than a batch
    made = [row(i, text, weight=i % 7, rank=i % 3, options=options) for i, text in texts.items()]
    asked: list[list[int]] = []

    def render(places: Sequence[int]) -> list[Row]:
        asked.append(list(places))
        return [made[i] for i in places]

    lazy = iter_batches([one.tokens for one in made], render, options, Frame(0))
    assert asked == [[7]], "only what must be cut is rendered before the first batch"
    first = next(lazy)
    assert sum(map(len, asked)) <= 1 + len(first.ids)
    whole = make_batches(made[::-1], options, Frame(0))
    assert [first, *lazy] == whole
    assert sum(b.ids.count(7) for b in whole) > 1


def test_inside_a_batch_rows_go_by_weight_then_rank() -> None:
    options = BatchOptions()
    made = [row(i, "x", weight=w, rank=k, options=options) for i, (w, k) in enumerate([(1, 9), (3, 1), (3, 5), (2, 2)])]
    (batch,) = make_batches(made, options, Frame(0))
    assert batch.ids == [2, 1, 3, 0]


def test_no_room_for_the_table_is_an_error_with_numbers() -> None:
    with pytest.raises(UsageError, match=r"max_context_tokens=600.*Give at least|max_context_tokens=600"):
        cut(["x"], BatchOptions(max_context_tokens=600, reserve_tokens=500))


def test_a_batch_splits_in_halves_until_nothing_is_left_to_split() -> None:
    options = BatchOptions()
    (batch,) = cut(["a " * 50, "b " * 60, "c " * 200], options)
    left, right = split_batch(batch)
    assert sorted(left.ids + right.ids) == [0, 1, 2]
    assert left.prompt_tokens < batch.prompt_tokens
    single = cut([REPORT], options)[0]
    one, two = split_batch(single)
    assert one.reports == two.reports == [0]
    assert one.tokens < single.tokens
    (tiny,) = cut(["x"], options)
    assert not can_split(tiny)
    with pytest.raises(UsageError, match="cannot be split"):
        split_batch(tiny)

"""References in the forms that models write, read by one grammar."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.citing.grammar import LONGEST, Grammar, Parsed, Part, Unread, grammar_of, own_kind

GRAMMAR = grammar_of()

FORMS = """
[Data: Reports (12)] | 12
[Data: Reports (12), (13)] | 12 13
[Data: Reports (12)][Data: Reports (13)] | 12 13
[Data: Reports (12; 13)] | 12 13
[Data: Reports (12 and 13)] | 12 13
[Data: Reports (12-14)] | 12 13 14
[Data: Reports (12 to 14)] | 12 13 14
[Data: Reports (12–14, 16)] | 12 13 14 16
[Data: Reports (id 12)] | 12
[Data: Reports (ids: 12, 13)] | 12 13
[**Data: Reports (12)**] | 12
[Data: **Reports** (**12**)] | 12
[Data: Reports ("12")] | 12
[Data: Reports (#12, #13)] | 12 13
[Data: Reports (R12, Report 13)] | 12 13
[Data: Reports (0012)] | 12
[Data: Reports (1, 2, +more); Entities (5)] | 1 2
[Data: Reports (12, +3 more)] | 12
[Data: Reports (12 and 3 others)] | 12
[Data: Reports (12: The harbour, 13: Mills)] | 12 13
[Data: Reports [12, 13]] | 12 13
[Data: Reports (12)（13）] | 12 13
[Data: Reports (12), Entities (5), and Relationships (6)] | 12
[Data: Entities (5) and Reports (12)] | 12
[Data: 12, 13] | 12 13
[Data : Reports ( 12 )] | 12
[DATA: REPORTS (12)] | 12
[Data: [Reports (12)](http://example.net/a)] | 12
[Reports (12)](http://example.net/a) | 12
[12](#r12) | 12
[[Data: Reports (12)]] | 12
([Data: Reports (12)]) | 12
(Data: Reports (12)) | 12
{Data: Reports (12)} | 12
<Data: Reports (12)> | 12
**Data: Reports (12)** | 12
So. Data: Reports (12)] Then | 12
[Data: Reports (12) and then it sailed. | 12
[Data: Reports (12 | 12
[^Data: Reports(12)] | 12
(Reports 12, 13) | 12 13
(Report 12) | 12
(see Reports 12 and 13) | 12 13
(according to Report 12) | 12
[Reports 1, 2 and 3] | 1 2 3
[Community Reports 4 and 5] | 4 5
[Report #12] | 12
[Report-12] | 12
[report_12] | 12
[Report 12: The harbour] | 12
（报告 12） | 12
（见报告12、13） | 12 13
（报告12和报告13） | 12 13
（报告第12号） | 12
[数据: 报告（12、13）] | 12 13
【数据：实体（1、2）；关系（3）和报告（4）】 | 4
［来源：报告（８）］ | 8
[报告12至14] | 12 13 14
[Data: Reports (12等)] | 12
[Source: Reports (12)] | 12
(source: Report 12) | 12
[Source: 12] | 12
[12] | 12
[12, 13] | 12 13
[12][13] | 12 13
[[12]] | 12
中国[12] | 12
_[12]_ | 12
[^12] | 12
[^12^] | 12
^[12] | 12
[#12] | 12
[ref 12] | 12
[R12] | 12
[R12, R13] | 12 13
【12†source】 | 12
\\cite{12} | 12
<sup>12</sup> | 12
far.<sup>12, 13</sup> | 12 13
far.¹² | 12
\\[Data: Reports (12)\\] | 12
\\[12\\] | 12
[Sources (12)] | -
[Data: Entities (999)] | -
[Data: Annexes (9)] | -
[Unverified: Reports (12)] | -
(2012) | -
(12, 13) | -
(2019, 2020) | -
annual reports (2019, 2020) | -
(the report (12) says) | -
(Reports 5 people) | -
[0.5] [12%] [2024-01-15] [12:30] [12th] | -
[x] [ ] [note] [see 7] [Report](page.html) | -
a[1] = b[2][3] | -
m<sup>2</sup> and 10<sup>6</sup> and km² | -
""".strip().splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_each_form_names_its_ids(form: str) -> None:
    text, _, ids = form.rpartition(" | ")
    expected = [] if ids == "-" else [int(id) for id in ids.split()]
    assert GRAMMAR.ids(text) == expected
    assert GRAMMAR.ids(f"船。{text}\nThe end.") == expected
    assert GRAMMAR.ids(f"{text}\n\n{text}") == expected


@pytest.mark.parametrize("form", [form for form in FORMS if not form.endswith("-")])
def test_what_is_read_is_taken_out_whole(form: str) -> None:
    text = form.rpartition(" | ")[0]
    left = GRAMMAR.without(text)
    assert not any(c.isdigit() for c in left)
    assert GRAMMAR.parse(left) == Parsed()


@pytest.mark.parametrize(
    "text",
    [
        "[Data: Reports (twelve)]", "[Data: Reports (十二)]", "[Data: Reports ()]", "[Data: none]",
        "[Data: Reports (-1)]",
        "[Data: Reports (1-500)]", "[Data: Reports (1.5)]", "[Data: Reports (12/13)]", "(Report 2019)", "array[12]",
        "Reports (12)", "`[Data: Reports (12)]`", "(Report 12, finding 3)",
    ],
)  # fmt: skip
def test_what_only_looks_like_one_is_unread(text: str) -> None:
    parsed = GRAMMAR.parse(f"So it is: {text}.")
    assert parsed.references == []
    assert len(parsed.unread) == 1
    found = parsed.unread[0]
    assert f"So it is: {text}."[found.start : found.end] in text


def test_a_reference_that_is_understood_in_part_is_followed_and_counted() -> None:
    parsed = GRAMMAR.parse("[Data: Reports (12, thirteen)]")
    assert [(r.parts, r.whole) for r in parsed.references] == [((Part("reports", (12,), False),), False)]
    assert parsed.unread == [Unread(0, 30)]


def test_prose_and_code_hold_none() -> None:
    text = "In 1990 (the year of the report) he wrote x[0], `y[1]`, f(2)[3] and {4}.\n```\n[Data: 5]\n[6]\n```\n"
    parsed = GRAMMAR.parse(text)
    assert parsed.references == []
    assert [text[u.start : u.end] for u in parsed.unread] == ["```\n[Data: 5]\n[6]\n```"]


def test_each_part_is_of_its_kind() -> None:
    def kinds(text: str) -> list[tuple[str, tuple[int, ...], bool]]:
        return [tuple(part) for found in GRAMMAR.find(text) for part in found.parts]  # type: ignore[misc]

    assert kinds("[Data: Reports (1, +more); Sources (2)]") == [("reports", (1,), True), ("sources", (2,), False)]
    assert kinds("【数据：实体（1、2）；关系（3），声明（4）和来源（5）】") == [
        ("entities", (1, 2), False), ("relationships", (3,), False), ("claims", (4,), False), ("sources", (5,), False),
    ]  # fmt: skip
    assert kinds("[Data: Text Units 1, 2; Covariates 3]") == [("sources", (1, 2), False), ("claims", (3,), False)]
    for length in (30, 500, 5000):
        assert kinds(f"[Data: Reports ({'9' * length})]") == [("reports", (int("9" * 18),), False)]


def test_a_reference_may_run_over_a_line_but_not_over_a_paragraph() -> None:
    assert GRAMMAR.ids("[Data: Reports (1,\n2)]") == [1, 2]
    assert GRAMMAR.ids("[Data: Reports (1,\n\n2)]") == [1]


def test_where_nothing_was_read_by_a_name_bare_numbers_name_nothing() -> None:
    grammar = grammar_of(None)
    assert grammar.ids("[Data: Reports (4)]") == [4]
    parsed = grammar.parse("So [12], <sup>3</sup> and [Data: 5].")
    assert parsed.references == []
    assert [u.start for u in parsed.unread] == [26]
    assert grammar_of(bare=False).parse("So [12], far.<sup>3</sup>") == Parsed()
    assert grammar_of(bare=False).ids("So [Reports 12] [13]") == [12]
    assert [found.bare for found in GRAMMAR.find("[12] [Data: 12] [Reports (12)]")] == [True, False, False]


@pytest.mark.parametrize("name", ["Dossiers", "Board Reports", "档案", "Case files", "Sources"])
def test_rows_go_by_the_name_asked_for(name: str) -> None:
    grammar = Grammar(name)
    assert grammar.own == own_kind(name)
    assert grammar.ids(f"A [Data: {name} (1, 2)] B [{name.lower()} 3] C [4] ({name} 5)") == [1, 2, 3, 4, 5]


PIECES = st.lists(
    st.sampled_from(
        ["ships sail ", "[Data: Reports (1, 2)]", "[Data: Reports (2, +more); Entities (4)]", "[", "]", "\n", " ",
         "船。",
         "【报告（9）】", "[Data: ", "Reports (", "(", "12", ")", "`", "<sup>", "</sup>", "\n\n", "Data: ", "\\",
         "[12]",
         "(http://x)", "R", "^", "```\n", ",", " and "]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=400)
@given(PIECES, st.integers(0, 400))
def test_what_is_settled_reads_the_same_whatever_follows(text: str, cut: int) -> None:
    before, whole = text[:cut], GRAMMAR.parse(text)
    at = GRAMMAR.settled(before)
    part = GRAMMAR.parse(before)
    for name in ("references", "unread"):
        assert [f for f in getattr(part, name) if f.end <= at] == [f for f in getattr(whole, name) if f.end <= at]
    assert not [f for f in whole.references if f.start < at < f.end]


@given(st.text(alphabet="[]()（）【】<>^`\\R12,;:- Datareports报告\n", max_size=80))
def test_any_text_is_read_in_order_and_within_its_bounds(text: str) -> None:
    parsed = GRAMMAR.parse(text)
    at = 0
    for found in parsed.references:
        assert at <= found.start < found.end <= len(text)
        at = found.end
    assert all(0 <= u.start < u.end <= len(text) for u in parsed.unread)


@pytest.mark.parametrize(
    "piece",
    ["[", "(", "[(", "[Data: ", "[Data: Reports (1, ", "(Reports (", "[1, ", "(1(", "`", "``x`", "Data: Reports (1) ",
     "<sup>1", "[R1, ", "[12](http://", "[Data: foo foo ", "(see (see ", "[Reports 1 a b ", "[^", "\\cite{", "]", "[1 ",
     "[Reports 1: title ", "Reports (1", "[Data: Reports 1 a "],
)  # fmt: skip
def test_the_time_is_linear(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        best = 9.0
        for _ in range(3):
            start = time.thread_time()
            GRAMMAR.parse(text)
            GRAMMAR.settled(text)
            best = min(best, time.thread_time() - start)
        return best

    assert seconds(20 * LONGEST) < 6 * seconds(5 * LONGEST) + 0.05

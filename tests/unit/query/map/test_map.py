"""The map prompt, and reading its replies point by point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import AnswerOptions
from communitree_shared.errors import BadInput
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.map.outcome import BatchOutcome, MapPoint, MapResult, joined
from communitree_workers.query.map.prompt import map_messages, map_schema
from communitree_workers.query.map.reply import at_limit, parse_points, unusable
from communitree_workers.query.wording.length import words

BATCH = Batch(
    kind="reports", context_name="Reports", delimiter="|", columns=["id", "title", "content"],
    overview="[90] Ships: about ships\n", anchors=[90, 91, 3], ids=[3, 5, 7],
    lines=[b"3|a|x\n", b"5|b|y\n", b"7|c|z\n"], row_tokens=[5, 5, 5], prompt_tokens=100,
)  # fmt: skip


def point(description: str = "d", score: Any = 50, reports: Any = (3,)) -> dict[str, Any]:
    return {"description": description, "score": score, "reports": list(reports)}


@pytest.mark.parametrize(
    ("given_score", "read"),
    [
        (85, 85), ("85/100", 85), ("90.5", 90.5), (" 70 ", 70), (1000, 100), (-5, 0), ("8/10", 80), ("85%", 85),
        ("85分", 85), ("８５", 85), ([60], 60), (0, 0), ("score: 40", 40),
    ],
)  # fmt: skip
def test_odd_scores_are_read_each_for_itself(given_score: Any, read: float) -> None:
    result = parse_points({"points": [point(score=given_score), point(score=33)]}, BATCH)
    assert [p.score for p in result.points] == [read, 33]


@pytest.mark.parametrize("bad", [None, "so so", "", True, {}, [], "1 or 2", float("nan"), float("inf")])
def test_an_unreadable_score_costs_only_its_own_point(bad: Any) -> None:
    result = parse_points({"points": [point(score=bad), point(score=33)]}, BATCH)
    assert [p.score for p in result.points] == [None, 33]
    assert result.points[0].text == "d"
    assert result.repaired >= 1


def test_references_in_a_description_are_read_by_kind_and_leave_none_behind() -> None:
    quoted = "Ships [Data: Entities (5); Relationships (7)] sail [Data: Sources (5)] [Data: Reports (7)]."
    (read,) = parse_points({"points": [point(quoted)]}, BATCH).points
    assert (read.text, read.reports, read.unverified) == ("Ships sail.", [3, 7], [])
    named = replace(BATCH, context_name="Board Reports")
    (read,) = parse_points({"points": [point("Ships sail [Data: Board Reports (5)].")]}, named).points
    assert (read.text, read.reports) == ("Ships sail.", [3, 5])


def test_titles_that_stand_in_the_table_are_ids() -> None:
    named = replace(BATCH, lines=[b"3|Ships of 1931|x\n", b"5|Gulls|y\n", b"7|gulls|z\n"])
    titles: list[list[Any]] = [["ships  of 1931", 7], ["《Ships of 1931》"], ["Gulls"]]
    read = parse_points({"points": [point(reports=reports) for reports in titles]}, named)
    assert [p.reports for p in read.points] == [[3, 7], [3], []]  # two rows are called Gulls
    assert unusable(read) == 1
    (alone,) = parse_points({"points": [{"description": "d", "score": 9, "reports": "Ships of 1931"}]}, named).points
    assert alone.reports == [3]
    assert [p.reports for p in parse_points({"points": [point(reports=["5, 7"])]}, named).points] == [[5, 7]]


def test_points_that_would_be_lost_are_counted() -> None:
    lost = parse_points({"points": ["words alone", point(score="so so"), point("", 5), point(reports=())]}, BATCH)
    assert unusable(lost) == 4
    kept = parse_points({"points": [point(), point(score=0, reports=()), point(reports=[99])]}, BATCH)
    assert unusable(kept) == 0  # no help is no loss; what is not in the table is told as unverified


def test_an_outcome_is_stored_with_what_could_not_be_read() -> None:
    outcome = BatchOutcome("answered", [3, 5], MapResult([MapPoint("d", 5.0, [3])]), unread={5: "too long"})
    assert BatchOutcome.from_json(orjson.loads(orjson.dumps(outcome.to_json()))) == outcome
    assert "unread" not in replace(outcome, unread={}).to_json()  # an older worker reads it


def test_shares_are_scaled_only_when_the_whole_reply_has_them() -> None:
    scaled = parse_points({"points": [point(score=0.9), point(score=0), point(score=1)]}, BATCH)
    assert [p.score for p in scaled.points] == [90, 0, 100]
    mixed = parse_points({"points": [point(score=0.9), point(score=60)]}, BATCH)
    assert [p.score for p in mixed.points] == [0.9, 60]
    whole = parse_points({"points": [point(score=1), point(score=0)]}, BATCH)
    assert [p.score for p in whole.points] == [1, 0]


@pytest.mark.parametrize(
    "reply",
    [
        {"points": [point()]},
        [point()],
        point(),
        [{"points": [point()]}],
        {"Points": [point()]},
        {"要点": [{"描述": "d", "分数": 50, "报告": [3]}]},
        {"result": {"points": [point()]}},
        {"points": {"1": point()}},
        {"points": point()},
        {"points": [{"text": "d", "importance": "50", "ids": "3"}]},
        {"points": [{"description": "d [Data: Reports (3)]", "score": 50}]},
        '{"points": [{"description": "d", "score": 50, "reports": [3]}]}',
    ],
)
def test_other_shapes_are_accepted(reply: Any) -> None:
    result = parse_points(reply, BATCH)
    assert [(p.text, p.score, p.reports) for p in result.points] == [("d", 50, [3])]


@pytest.mark.parametrize("reply", ["no JSON", 7, None, {"foo": 1}, {"title": "x"}])
def test_a_reply_without_points_is_an_error_not_an_empty_success(reply: Any) -> None:
    with pytest.raises(BadInput):
        parse_points(reply, BATCH)


@pytest.mark.parametrize(
    "reply", [{"points": []}, [], {}, {"points": [], "overview": []}, {"points": None, "overview": []}]
)
def test_no_points_is_an_answer(reply: Any) -> None:
    assert parse_points(reply, BATCH).empty


def test_ids_are_checked_against_the_batch() -> None:
    replies = [
        point("a [Data: Reports (5, 99, +more)].", 10, [3, "Report 7"]),
        point("b", 20, [90]),
        point("c", 30, [90, 5]),
        point("d", 40, [99]),
        point("e", 50, [{"id": 7}, 5.0, None, True]),
    ]
    a, b, c, d, e = parse_points({"points": replies}, BATCH).points
    assert (a.text, a.reports, a.unverified) == ("a.", [3, 7, 5], [99])
    assert (b.reports, b.overview_only) == ([90], True)
    assert (c.reports, c.overview_only) == ([5], False)
    assert (d.reports, d.unverified) == ([], [99])
    assert e.reports == [7, 5]


def test_anchor_scores_are_kept_for_anchors_only() -> None:
    reply = {
        "points": [point()],
        "overview": [{"id": 90, "score": "40"}, {"id": 4, "score": 9}, {"id": 91, "score": 200}],
    }
    assert parse_points(reply, BATCH).overview == {90: 40, 91: 100}
    assert parse_points({"points": [point(score=0.5)], "overview": {"90": 0.25}}, BATCH).overview == {90: 25}


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 2000), st.floats(allow_nan=True), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["points", "description", "score", "reports", "id", "要点", "overview"]), inner
        ),
    ),
    max_leaves=20,
)


@settings(max_examples=60)
@given(JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        result = parse_points(value, BATCH)
    except BadInput:
        return
    for found in result.points:
        assert found.score is None or 0 <= found.score <= 100
        assert set(found.reports) <= {*BATCH.ids, *BATCH.anchors}
        assert not set(found.unverified) & set(BATCH.ids)
    assert MapResult.from_json(result.to_json()) == result


@settings(max_examples=25)
@given(JSON)
def test_an_odd_point_costs_no_other(odd: Any) -> None:
    result = parse_points({"points": [point("first", 10), odd, point("last", 90)]}, BATCH)
    assert [p.text for p in result.points][:1] == ["first"]
    assert [p.text for p in result.points][-1:] == ["last"]
    assert [p.score for p in result.points][-1] == 90


def test_the_prompt_has_the_table_first_and_the_question_last() -> None:
    system, user = map_messages(BATCH, " Why? ", AnswerOptions(), "en", {})
    assert user["content"].startswith("# Overview\n\n[90] Ships: about ships\n\n# Table: Reports\n\nid|title|content\n")
    assert user["content"].endswith("\n7|c|z\n\n# Question\n\nWhy?")
    assert '{"points": [{"description"' in system["content"]
    assert "90, 91, 3" in system["content"]
    assert "Why" not in system["content"]
    assert '"findings"' not in system["content"]
    other = map_messages(BATCH, "Who?", AnswerOptions(), "en", {})
    assert other[0] == system
    assert other[1]["content"].removesuffix("Who?") == user["content"].removesuffix("Why?")


def test_without_rows_to_score_the_prompt_does_not_speak_of_them() -> None:
    for language in ("en", "zh"):
        system, user = map_messages(replace(BATCH, anchors=[], overview=""), "Q", AnswerOptions(), language, {})
        assert "{" not in system["content"].partition('{"points"')[0]
        assert '"overview"' not in system["content"]
        assert system["content"].endswith('"reports": [1, 2]}]}')
        assert user["content"].startswith(("# Table", "# 表格"))
    assert map_schema(anchors=False)["required"] == ["points"]


def test_the_prompt_speaks_the_language_and_takes_an_override() -> None:
    assert "一句陈述" in map_messages(BATCH, "为何？", AnswerOptions(), "zh", {})[0]["content"]
    own = map_messages(BATCH, "Q", AnswerOptions(map_max_length=77), "en", {"map": "Mine, {max_length} words."})
    assert own[0]["content"] == "Mine, 77 words."
    theirs = map_messages(BATCH, "Q", AnswerOptions(), "en", {"map": 'Use:\n{context_data}\n{{"points": {other}}}'})
    assert theirs[0]["content"] == 'Use:\n(see the next message)\n{{"points": {other}}}'


def test_the_schema_names_all_keys() -> None:
    schema = map_schema()
    assert schema["required"] == ["points", "overview"]
    assert schema["properties"]["points"]["items"]["required"] == ["description", "score", "reports"]


def test_words_and_the_limit() -> None:
    assert words("two words, 三个字") == 5
    result = MapResult([MapPoint("x", 1)], words=95)
    assert at_limit(result, AnswerOptions(map_max_length=100))
    assert not at_limit(result, AnswerOptions(map_max_length=1000))


def test_halves_add_up() -> None:
    one = MapResult([MapPoint("a", 1)], {1: 10, 2: 20}, 1, 5)
    two = MapResult([MapPoint("b", 2)], {1: 20}, 2, 9)
    both = joined(one, two)
    assert [p.text for p in both.points] == ["a", "b"]
    assert both.overview == {1: 15, 2: 20}
    assert (both.repaired, both.words) == (3, 9)

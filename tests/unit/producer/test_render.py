from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from communitree.render.answer import account_lines, answer_parts, plan_parts, selection_lines
from communitree.render.index import index_result
from communitree.render.lists import corpora_table, job_parts, jobs_table, letters_table
from communitree.render.numbers import listed, money, plural, seconds, share, shorten
from communitree.render.report import evidence_lines, report_parts, source_parts
from communitree.render.tree import level_table, tree_view
from communitree_shared.contract.job_views import JobRow, JobView
from communitree_shared.contract.results import (
    Account,
    Answer,
    BatchesAccount,
    Citation,
    CitationsAccount,
    Coverage,
    FinestAvailable,
    IndexResult,
    LlmAccount,
    Picks,
    Plan,
    Point,
    PointsAccount,
    Pruned,
    QuerySeconds,
    ReportsAccount,
    Selection,
    Tree,
    UnreadReport,
    Usage,
)


def text(*parts: Any, width: int = 200) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    for part in parts:
        console.print(part, crop=False)
    return console.export_text()


ACCOUNT = Account(
    selection=Selection(strategy="budget", why="fits", reports=12, tokens=3456, levels={"0": 2, "10": 1, "2": 9}),
    coverage=Coverage(entities=1.0, text_units_assigned=0.9999, text_units_read=0.0001),
    reports=ReportsAccount(selected=12, cited=10, silent=[4, 7]),
    batches=BatchesAccount(total=5, answered=4, failed=1, empty=2),
    points=PointsAccount(
        produced=20, used=11, zero=5, duplicate=3, dropped=1, in_answer=7, named=1, not_stated=2, unknown=1, condensed=1
    ),
    citations=CitationsAccount(
        total=8, verified=5, unverified=3, supported=5, related=1, unsupported=1, unknown=1, unread=2
    ),
    warnings=["one batch failed: timeout"],
)
ANSWER = Answer(
    job_id="j-1", status="partial", question="q", corpus="c", answer="Themes. [Data: Reports (12, 7)]\n\n- a\n- b",
    citations=[
        Citation(report=12, level=1, title="Harbour", verified=True, grade="supported", text_units=["t1", "t2"],
                 documents=["a.txt"]),
        Citation(report=13, title="Mills", grade="related"),
        Citation(report=14, title="Dams", grade="unsupported"),
        Citation(report=99, title="Nothing"),
    ],
    points=[Point(text="Ships come.", score=80, batch=0, reports=[12], used=True, in_answer=True),
            Point(text="Old.", score=10, batch=1, reports=[7], why_not="did not fit")],
    account=ACCOUNT,
)  # fmt: skip


def test_an_answer_keeps_its_text_and_citations_as_they_are_outside_a_terminal() -> None:
    said = text(*answer_parts(ANSWER), width=30)
    assert "Themes. [Data: Reports (12, 7)]\n\n- a\n- b\n" in said


def test_an_answer_shows_where_its_citations_lead() -> None:
    said = text(*answer_parts(ANSWER))
    assert "✓              report 12  Harbour  level 1, 2 text units in a.txt" in said
    assert "related        report 13" in said
    assert "not supported  report 14" in said
    assert "unknown        report 99" in said
    assert said.count("✓: the text of what is cited says so") == 1
    assert "partial  job j-1" in said


def test_an_answer_of_an_earlier_release_keeps_its_marks() -> None:
    old = Citation.model_validate({"report": 12, "verified": True})
    assert (old.grade, Citation.model_validate({"report": 12, "verified": False}).grade) == ("supported", "unknown")
    account = CitationsAccount.model_validate({"total": 3, "verified": 2, "unverified": 1})
    assert (account.supported, account.unknown) == (2, 1)


def test_points_say_what_became_of_them() -> None:
    said = text(*answer_parts(ANSWER, with_points=True))
    assert "in the answer" in said
    assert "did not fit" in said
    assert said.index("Ships come.") < said.index("Old.")


@pytest.mark.parametrize("odd", ["[b]first[/i]", "fixes [#2841] of [@Trott]", "[link=x]there", "[医院]门诊"])
def test_brackets_of_a_corpus_or_a_question_are_text(odd: str) -> None:
    points = [Point(text=odd, score=9, batch=0, used=True, why_not=odd), Point(text=odd, score=1, batch=0)]
    citation = Citation(report=1, title=odd, verified=True, text_units=["t"], documents=[odd])
    shown = ANSWER.model_copy(update={"points": points, "citations": [citation], "answer": odd})
    assert text(*answer_parts(shown, with_points=True)).count(odd) == 6
    why = Selection(strategy="auto", why=odd)
    assert text(*plan_parts([plan("auto", corpus=odd, selection=why)] * 2)).count(odd) == 3
    tree = TREE.model_copy(
        update={"corpus": odd, "communities": [TREE.communities[1].model_copy(update={"title": odd})]}
    )
    assert text(level_table(tree), tree_view(tree)).count(odd) == 2


def test_an_account_names_every_loss() -> None:
    said = text(*account_lines(ACCOUNT, False))
    assert "read 12 reports, 3,456 tokens; level 0: 2, level 2: 9, level 10: 1\nselection budget: fits\n" in said
    assert (
        "100 % of entities; >99.9 % of text units are assigned to what was read, rows or text of <0.1 % stand in it"
        in said
    )
    assert "batches: 4 of 5 answered (2 found nothing, 1 failed)" in said
    points = "20 = 11 used + 3 duplicate + 5 irrelevant + 1 dropped; 7 in the answer, 1 named, 1 cannot be told"
    assert f"{points}, 1 condensed away\n" in said
    cited = "8 = 5 supported + 1 related + 1 not supported + 1 unknown; 2 not understood"
    assert f"citations in the answer: {cited}\n" in said
    assert "points cite 10 of 12 reports; silent (no point cites them): 4, 7\n" in said
    assert "! one batch failed: timeout" in said


def test_an_account_tells_what_was_not_read_from_what_is_silent() -> None:
    selection = Selection(strategy="leaves", reports=3, tokens=9)
    because = [UnreadReport(report=2, cause="too long")]
    reports = ReportsAccount(selected=3, silent=[0], unread=[1, 2], unread_because=because)
    llm = LlmAccount(calls=3, endings={"length": 2, "SAFETY": 1})
    said = text(*account_lines(Account(selection=selection, reports=reports, llm=llm), False))
    assert "chose 3 reports, 9 tokens" in said
    assert "read 3" not in said
    assert "0 of 3 reports; silent (no point cites them): 0; not read: 1, 2\n" in said
    assert "report 2: too long\n" in said
    assert "replies that did not end as they should: length 2, SAFETY 1\n" in said


def test_a_cancelled_question_says_what_it_has_cost_and_no_more() -> None:
    usage = Usage(calls=5, prompt_tokens=68_543, output_tokens=100, usd=0.5)
    account = Account(
        selection=Selection(strategy="texts"), batches=BatchesAccount(total=8, answered=5, failed=3),
        llm=LlmAccount.of({"map": usage}), seconds=QuerySeconds(total=2.5), warnings=["cancelled by its caller"],
    )  # fmt: skip
    said = text(*answer_parts(ANSWER.model_copy(update={"status": "cancelled", "account": account})))
    assert "batches: 5 of 8 answered\n5 calls, 0 from cache, 68,643 tokens" in said
    assert "! cancelled by its caller" in said
    assert "covers" not in said
    assert "failed" not in said


def test_an_account_says_what_was_read_and_why_something_was_not() -> None:
    reports = ReportsAccount(selected=146, cited=31, silent=list(range(115)))
    texts = text(*account_lines(Account(selection=Selection(strategy="texts", tokens=9), reports=reports), False))
    assert "read 146 text units, 9 tokens" in texts
    assert "points cite 31 of 146 text units; silent (no point cites them): 0, 1" in texts
    assert "report" not in texts
    left = Pruned(count=3, text_units=2, entities=0.123)
    what = "3 communities (in nothing that is read: 2 text units, 12.3 % of entities)"
    for strategy, words in (("budget", "left out for the budget: "), ("relevant", "pruned as irrelevant: ")):
        assert words + what in text(*selection_lines(Selection(strategy=strategy, pruned=left), False))
    walk = text(*selection_lines(Selection(strategy="relevant", pruned=left, left_out=left), False))
    assert "pruned as irrelevant: " + what in walk
    assert "left out for the budget: " + what in walk


def test_what_is_as_fine_as_it_gets_is_called_leaves_above_the_level_that_was_wanted() -> None:
    levels = {"0": 1, "1": 2, "2": 6}
    for count, budget, words in (
        (1, {}, "1 of these is a leaf on a coarser level than 2: nothing finer is below"),
        (1_234, {"level": "all"}, "1,234 of these are leaves on a coarser level than 2: nothing finer is below"),
        (9, {"level": 9}, "9 of these are leaves on a coarser level than 9: nothing finer is below"),
    ):
        finest = FinestAvailable(count=count)
        selection = Selection(strategy="s", levels=levels, finest_available=finest, budget=budget)
        assert words in selection_lines(selection, False)


def test_picks_stand_beside_the_levels_of_the_cut() -> None:
    picks = Picks(count=2, reports=[7, 1_301], why="searched for Zebra")
    selection = Selection(strategy="auto", reports=4, levels={"0": 2}, picks=picks)
    said = text(*selection_lines(selection, False))
    assert "read 4 reports, 0 tokens; level 0: 2\n2 reports were picked for the question's words" in said
    assert "beside the cut (searched for Zebra): 7, 1301\n" in said
    assert "选出 2 份报告，不计入这一刀（searched for Zebra）：7、1301\n" in text(*selection_lines(selection, True))
    assert "pick" not in text(*selection_lines(selection.model_copy(update={"picks": Picks()}), False))


CHINESE = ANSWER.model_copy(update={
    "answer": "主题。", "question": "主要主题是什么？", "standalone_question": "语料的主要主题是什么？", "cached": True,
    "citations": [Citation(report=12, level=1, title="港口", verified=True, text_units=["t"], documents=["甲", "乙"]),
                  Citation(kind="claims", id=99)],
    "points": [Point(text="船来。", score=80, batch=0, reports=[12], used=True, in_answer=True),
               Point(text="旧。", score=10, batch=1, why_not="与另一条分数更高的要点内容相同")],
    "account": ACCOUNT.model_copy(update={
        "selection": Selection(strategy="auto", why="整个语料最细的一刀也在预算之内", reports=2, levels={"0": 2},
                               finest_available=FinestAvailable(count=1), pruned=Pruned(count=2, text_units=3)),
        "llm": LlmAccount(calls=3, prompt_tokens=1_000, usd=None), "warnings": [],
    }),
})  # fmt: skip


def test_around_a_chinese_answer_everything_is_in_chinese() -> None:
    said = text(*answer_parts(CHINESE, with_points=True))
    for line in (
        "理解为：语料的主要主题是什么？", "引用", "要点", "部分回答  任务 j-1", "读取 2 份报告，0 个词元；第 0 层 2 份",
        "80 分，第 0 批，报告 12：已写入答案", "10 分，第 1 批：与另一条分数更高的要点内容相同",
        "选择方式 auto：整个语料最细的一刀也在预算之内", "批次：5 批中 4 批有回复（2 批没有发现，1 批失败）",
        "要点：20 = 采用 11 + 重复 3 + 无关 5 + 未能采用 1；写入答案 7，只提到名目 1，无法判定 1，归纳时略去 1",
        "答案中的引用：8 = 有依据 5 + 相关 1 + 无依据 1 + 查无此项 1；无法辨认 2", "✓：所引内容的原文如此说",
        "要点引用了 12 份报告中的 10 份；没有要点引用的：4、7",
        "模型调用 3 次，取自缓存 0 次，1,000 个词元，价格未知；0.0 s",
        "因预算而未读：2 个社区（其中 3 个文本单元、0 % 的实体不在所读内容里）",
    ):  # fmt: skip
        assert line in [row.rstrip() for row in said.splitlines()]
    assert "1 个文本单元，见 甲、乙" in said
    assert set(re.findall("[A-Za-z]{2,}", said)) == {"auto"}
    planned = Selection(strategy="auto", why="整个语料最细的一刀也在预算之内", reports=2)
    for plans in ([plan("auto", selection=planned)], [plan("auto", selection=planned)] * 2):
        assert set(re.findall("[A-Za-z]{2,}", text(*plan_parts(plans)))) == {"auto"}


def test_an_answer_that_read_nothing_is_in_the_language_of_what_it_says() -> None:
    account = Account(selection=Selection(strategy="auto"))
    cancelled = Answer(
        job_id="j", status="cancelled", question="q", corpus="c", answer="在写出答案之前已取消。", account=account
    )
    assert "已取消  任务 j" in text(*answer_parts(cancelled))
    assert "cancelled  job j" in text(*answer_parts(cancelled.model_copy(update={"answer": "Cancelled."})))


@pytest.mark.parametrize("said", ["船" * 120, "ship " * 48])
def test_a_point_is_whole_and_as_wide_as_the_terminal(said: str) -> None:
    point = Point(text=said, score=80, batch=3, reports=[12], used=True, in_answer=True)
    lines = text(*answer_parts(ANSWER.model_copy(update={"points": [point]}), with_points=True), width=80).splitlines()
    at = lines.index("score 80, batch 3, reports 12: in the answer")
    assert "".join("".join(lines[at + 1 : at + 5]).split()) == said.replace(" ", "")
    assert lines[at + 5].strip() == ""


def plan(strategy: str, **more: Any) -> Plan:
    body = {"corpus": "c", "version": "v", "batches": 3, "tokens": 1000, "usd": None, "coverage": Coverage()}
    return Plan(**{**body, "selection": Selection(strategy=strategy, reports=5, tokens=900), **more})


def test_plans() -> None:
    assert "3 batches, 1,000 prompt tokens, price unknown" in text(*plan_parts([plan("leaves")]))
    several = text(*plan_parts([plan("leaves", usd=0.0), plan("relevant", upper_bound=True, rating_calls=7)]))
    assert "≤ 1,000" in several
    assert "≤ 7" in several
    assert "$0" in several
    numbered = [plan("frontier", selection=Selection(strategy="frontier", budget={"level": n})) for n in (0, 1)]
    numbered.append(plan("budget", selection=Selection(strategy="budget", budget={"tokens": 48_000, "core": 7})))
    told = text(*plan_parts(numbered))
    assert "frontier 0" in told
    assert "frontier 1" in told
    assert "budget 48,000 tokens" in told


TREE = Tree.model_validate(
    {
        "corpus": "c", "version": "v-1", "levels": [],
        "communities": [
            {"id": i, "key": str(i), "level": level, "parent": parent, "children": children, "title": title,
             "size": size, "weight": weight, "n_tokens": 10, "is_leaf": not children, "generated_by": "extractive"}
            for i, level, parent, children, title, size, weight in [
                (0, 0, -1, [2, 3], "small root", 5, 3), (1, 0, -1, [], "heavy root", 9, 30),
                (2, 1, 0, [4], "child", 3, 2), (3, 1, 0, [], "other child", 2, 1), (4, 2, 2, [], "grandchild", 1, 1),
            ]
        ],
    }
)  # fmt: skip


def test_a_tree_is_shown_heaviest_first_and_says_what_it_does_not_show() -> None:
    said = text(tree_view(TREE, depth=2, width=8))
    assert said.index("heavy root") < said.index("small root") < said.index("2 child") < said.index("3 other child")
    assert "grandchild" not in said
    assert "2 child  3 entities, 2 text units, 1 child below" in said
    assert "and 1 more, 3 text units\n" in text(tree_view(TREE, depth=1, width=1))
    assert "4 grandchild" in text(tree_view(TREE, depth=9, width=0))
    below = text(tree_view(TREE, depth=2, below=2))
    assert "4 grandchild" in below
    assert "heavy root" not in below


def test_what_the_tree_does_not_show_is_not_summed_since_communities_share_text_units() -> None:
    wide = TREE.model_copy(update={"communities": [
        c.model_copy(update={"parent": -1, "children": [], "weight": 5 - (c.id == 4)}) for c in TREE.communities
    ]})  # fmt: skip
    assert "and 4 more, 5 text units each at most" in text(tree_view(wide, width=1))


def test_levels_are_counted_where_the_tree_does_not_bring_them() -> None:
    rows = [" ".join(line.strip("│┃ ").replace("│", " ").split()) for line in text(level_table(TREE)).splitlines()]
    assert "0 2 1 14 20" in rows
    assert "1 2 1 5 20" in rows
    assert "2 1 1 1 10" in rows
    brought = TREE.model_copy(
        update={"levels": [{"level": 0, "communities": 7, "leaves": 6, "entities": 5, "tokens": 4}]}
    )
    assert "7" in text(level_table(brought))


def test_an_index_result_says_what_the_tree_holds_and_what_went_wrong() -> None:
    result = IndexResult.model_validate(
        {"job_id": "j", "status": "partial", "corpus": "c", "version": "v-j", "warnings": ["3 × endpoint away"],
         "counts": {"documents": 1, "text_units": 2, "entities": 3, "relationships": 5, "communities": 4},
         "notes": ["n"],
         "coverage": {"entities": 1, "text_units": 1, "relationships": 0.8, "between_roots": 1},
         "reports": {"generated": 1, "extractive": 3}, "seconds": {"total": 75.2, "report": 70}}
    )  # fmt: skip
    said = text(*index_result(result))
    assert "1 document, 2 text units, 3 entities, 5 relationships, 4 communities" in said
    assert "100 % of entities, 100 % of text units, 80.0 % of relationships (1 runs between roots)" in said
    assert "reports: 1 generated, 3 extractive, 0 failed" in said
    assert "75 s: report 70 s" in said
    assert "note: n\n! 3 × endpoint away" in said
    bare = text(*index_result(IndexResult(job_id="j", status="published", corpus="c", version="v-j")))
    assert "of relationships" not in bare  # there are none that could be held
    assert "roots" not in bare
    failed = text(*index_result(IndexResult(job_id="j", status="failed", corpus="c", warnings=["why"])))
    assert failed == "failed  corpus c  version –\n! why\n"


def test_a_report_shows_evidence_and_omissions() -> None:
    report = {
        "community": 12, "level": 1, "size": 3, "weight": 2, "rank": 7.5, "title": "T", "summary": "S", "parent": 4,
        "children": [20, 21], "generated_by": "extractive", "cause": "endpoint away",
        "findings": [{"summary": "F", "explanation": "E [Data: Entities (1)]"}], "text_units": ["t1", "t2"],
        "evidence": '{"text_units": ["t1"], "reports": [20], "titles": [21], "counts": {"direct":'
        ' {"entities": 3, "claims": 1}, "through": {"relationships": 1000}, "aggregated": {}, "omitted": {"claims":'
        ' 2}}}',
        "omitted": {"reports": [22]},
    }  # fmt: skip
    said = text(*report_parts(report))
    for expected in (
        "12 T", "level 1, 3 entities, 2 text units, rank 7.5, by extractive", "E [Data: Entities (1)]",
        "children: 20, 21", "parent: 4", "in the prompt itself: 3 entities, 1 claim\n",
        "behind child reports in it: 1,000 rel",
        "left out: 2 claims", "child reports in full: 20", "children by title and summary: 21",
        "text units, for `communitree source`: t1, t2",
        "child reports left out: 22", "! fallback: endpoint away",
    ):  # fmt: skip
        assert expected in said
    assert evidence_lines({}, {}) == []
    assert "T" in text(*report_parts({"community": 1, "title": "T", "evidence": "no json", "findings": ["plain"]}))


def test_a_source_shows_its_place() -> None:
    source = {"id": "t", "text": "[bold]as it is[/bold]", "document": {"title": "a.txt"}, "start": 1000, "end": 2000}
    said = text(*source_parts(source))
    assert "a.txt  characters 1,000–2,000" in said
    assert "[bold]as it is[/bold]" in said
    assert "characters" not in text(*source_parts({"id": "t", "text": "x", "start": -1}))


def test_lists() -> None:
    assert "no corpora yet" in text(corpora_table([]))
    row = {
        "name": "[red]c",
        "version": "v",
        "indexing": "j-9",
        "counts": {"documents": 1234},
        "coverage": {"entities": 1},
        "answers_from_cache": 56,
    }
    said = text(corpora_table([row]))
    assert "answers from cache" in said
    assert "56" in said
    assert "[red]c" in said
    assert "1,234" in said
    assert "v (job j-9 runs)" in said
    assert "v (job j-9 is queued)" in text(corpora_table([{**row, "indexing_state": "queued"}]))
    assert "no jobs yet" in text(jobs_table([]))
    job = JobRow(job_id="j", kind="query", corpus="c", status="answered", created=1.0, ended=6.0)
    assert "5.0 s" in text(jobs_table([job]))
    asked = job.model_copy(update={"question": "全书的主题[b]有哪些？"})
    assert "全书的主题[b]有哪些？" in text(jobs_table([asked]))
    assert "(index)" in text(jobs_table([job.model_copy(update={"kind": "corpus"})]))
    view = JobView(
        job_id="j", kind="corpus", status="failed", corpus="c", error={"message": "bad", "hint": "mend"},
        progress={"stages": [{"stage": "report-2", "state": "open", "done": 1, "total": 2, "failed": 0}]},
        events=[{"seq": 1, "at": 0.0, "type": "job.submitted", "corpus": "c"}],
    )  # fmt: skip
    said = text(*job_parts(view, with_events=True))
    for expected in ("failed  corpus job j, corpus c", "report-2", "1/2", "! bad mend", "job.submitted"):
        assert expected in said
    query = JobView(
        job_id="j", kind="query", status="answered", corpus="c", question="Who [i]fell?", created=1.0, ended=6.0,
        llm=Usage(calls=7, usd=0.0123),
    )  # fmt: skip
    said = text(*job_parts(query))
    assert "asked: Who [i]fell?" in said
    assert "took 5.0 s, 7 model calls, $0.0123" in said
    stages = [{"stage": "publish", "state": "closed", "done": 0, "total": 1, "failed": 0}]
    published = view.model_copy(update={"status": "published", "progress": {"stages": stages}})
    assert "1/1" in text(*job_parts(published))  # it ended the job before it was counted
    assert "0/1" in text(*job_parts(published.model_copy(update={"status": "cancelled"})))
    assert "it died" in text(letters_table([{"job": "j", "why": "it died"}]))


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0 %"), (1, "100 %"), (0.99999, ">99.9 %"), (0.00001, "<0.1 %"), (0.5, "50.0 %"), (0.9994, "99.9 %")],
)
def test_a_share_never_claims_all_or_nothing_falsely(value: float, said: str) -> None:
    assert share(value) == said


def test_numbers() -> None:
    assert [plural(1, "entity", "entities"), plural(1234, "report")] == ["1 entity", "1,234 reports"]
    assert [money(None), money(0), money(0.0123), money(1234.5)] == ["price unknown", "$0", "$0.0123", "$1,234.50"]
    assert [seconds(s) for s in (0.04, 75, 185, 7330)] == ["0.0 s", "75 s", "3 min 5 s", "2 h 2 min"]
    assert listed(list("abcdefg"), 3) == "a, b, c and 4 more"
    assert listed(["a"], 3) == "a"


def test_short_texts_fit_and_stay_whole_words_where_there_are_any() -> None:
    assert shorten("a  b\nc") == "a b c"
    assert shorten("one two three four", 12) == "one two…"
    chinese = "红楼梦" * 50
    assert len(shorten(chinese, 40)) == 40

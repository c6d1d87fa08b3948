"""Every planted fact is in the answer, or in a point that is listed with its reason, or in a report named silent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from communitree_shared.contract.options import AnswerOptions, BatchOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from communitree_shared.tokens import count
from communitree_workers.query.answer.account import Header, Reduced, build_answer
from communitree_workers.query.answer.citations import Resolver
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.batches.frame import Frame, static_tokens
from communitree_workers.query.batches.packing import make_batches
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.map.prompt import map_messages
from communitree_workers.query.map.reply import at_limit, parse_points
from communitree_workers.query.points.gathering import gather_points
from communitree_workers.query.reduce.rounds import plan_reduce
from communitree_workers.query.wording.length import words
from support.questions import select
from support.views import TreeShape, report_rows, view_of

FACTS = {i: f"The vault of ward {i} holds {i * 37 + 11} sealed ledgers." for i in range(200)}
VIEW = view_of(TreeShape((-1,) * 200, (1,) * 200, tuple(1 + i for i in range(200))))
OPTIONS = BatchOptions(max_context_tokens=6000)


def fake_map(prompt: str, limit: int) -> dict[str, Any]:
    """An obedient reader: the facts of its table, one point each, until its words are used up."""
    points, left = [], limit
    for id, text in re.findall(r"^(\d+)\|.*?(The vault of ward \d+ holds \d+ sealed ledgers\.)", prompt, re.M):
        if words(text) > left:
            break
        left -= words(text)
        points.append({"description": text, "score": 40 + int(id) % 50, "reports": [int(id)]})
    return {"points": points, "overview": []}


def ask(ids: list[int], answer: AnswerOptions) -> Answer:
    view = VIEW
    contents = [f"# Ward {i}\n\n{'It lies by the river. ' * 20}\n\n## Vault\n\n{FACTS[i]}".encode() for i in ids]
    selected = select(view, SelectionOptions(strategy="leaves"), "q")
    selected.ids[:] = ids
    rows = [row._replace(tokens=count(row.line.decode())) for row in report_rows(view, ids, contents, OPTIONS)]
    static = static_tokens("", [], answer, {}, "Reports", view.encoding)
    outcomes = []
    for batch in make_batches(rows, OPTIONS, Frame(static)):
        result = parse_points(fake_map(_prompt(batch, answer), answer.map_max_length), batch)
        outcomes.append(BatchOutcome("answered", batch.reports, result, at_limit=at_limit(result, answer)))
    gathered = gather_points(outcomes)
    plan = plan_reduce(gathered, answer, "en", rerate=False)
    text, left = [], answer.reduce_max_length  # an obedient writer: each point in turn, until its words are used up
    for block in (plan.blocks[i] for group in plan.groups for i in group):
        sentence = block.split(") ", 1)[1].strip()
        if words(sentence) <= left:
            left -= words(sentence)
            text.append(sentence)
    reduced = Reduced("\n\n".join(text))
    return build_answer(
        Header("j", "q", "c", "v"), selected, outcomes, gathered, reduced, Resolver(view), language="en"
    )


def _prompt(batch: Batch, answer: AnswerOptions) -> str:
    return map_messages(batch, "How many ledgers?", answer, "en", {})[1]["content"]


def places(answer: Answer) -> tuple[set[int], set[int], set[int]]:
    said = {i for i, fact in FACTS.items() if fact in answer.answer}
    listed = {p.reports[0] for p in answer.points if not p.in_answer and p.why_not}
    return said, listed, set(answer.account.reports.silent)


@pytest.mark.parametrize("overflow", ["tree", "truncate"])
@pytest.mark.parametrize("map_words", [60, 1000])
def test_no_fact_is_lost_in_silence(overflow: str, map_words: int) -> None:
    options = AnswerOptions(map_max_length=map_words, reduce_max_length=900, max_data_tokens=2000, overflow=overflow)  # type: ignore[arg-type]
    answer = ask(list(FACTS), options)
    said, listed, silent = places(answer)
    assert said | listed | silent == set(FACTS)
    assert said
    assert said == {p.reports[0] for p in answer.points if p.in_answer}
    assert {c.report for c in answer.citations if c.verified} == said
    if map_words == 60:
        assert silent, "a reader with few words leaves something out"
        assert answer.account.batches.at_limit == answer.account.batches.total
        again = ask(sorted(silent), options)
        more, _, _ = places(again)
        assert more - said
    else:
        assert not silent

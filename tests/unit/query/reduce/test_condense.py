"""The rounds of the tree: a part that fails in any of them takes its points to the dropped ones, by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from communitree_shared.contract.options import AnswerOptions
from communitree_shared.contract.results import Point
from communitree_shared.errors import ModelError
from communitree_workers.query.points.gathering import Gathered
from communitree_workers.query.reduce.rounds import ReducePlan
from communitree_workers.query.reduce.writer import Writer

GROUPS = 40


def reduce_of(fails: Any, language: str = "en") -> tuple[Writer, ReducePlan]:
    points = [Point(text=f"p{i}", score=50, batch=0, used=True) for i in range(GROUPS)]
    made: Any = object.__new__(Writer)
    made.inputs = SimpleNamespace(gathered=Gathered(points, list(range(GROUPS))))
    made.options = SimpleNamespace(answer=AnswerOptions(max_data_tokens=200))
    made.question = SimpleNamespace(view=SimpleNamespace(encoding="o200k_base"), language=language)
    made.why, made.lost = "", 0
    rounds: list[int] = []

    async def part(blocks: list[str], groups: int) -> str:
        if groups not in rounds:
            rounds.append(groups)
        if fails(len(rounds), blocks):
            raise ModelError("refused")
        return " ".join(blocks) + " and more words" * 10

    made._part = part
    return made, ReducePlan(groups=[[i] for i in range(GROUPS)], blocks={i: f"p{i}" for i in range(GROUPS)})


@pytest.mark.parametrize("round_", [1, 2])
async def test_a_part_that_fails_drops_the_points_behind_it(round_: int) -> None:
    made, plan = reduce_of(lambda now, blocks: now == round_ and blocks[0].startswith("p0"))
    left = await made._condense(plan)
    dropped = [p.text for p in made.inputs.gathered.points if not p.used]
    assert "p0" in dropped
    assert made.lost == made.inputs.gathered.dropped == len(dropped) == GROUPS - len(made.inputs.gathered.order)
    assert all(p.why_not == "refused" for p in made.inputs.gathered.points if not p.used)
    assert round_ == 1 or len(dropped) > 1  # the second round condenses several groups of the first
    assert left


async def test_why_a_point_is_not_in_the_answer_is_said_in_its_language() -> None:
    made, plan = reduce_of(lambda now, blocks: now == 1 and blocks[0].startswith("p0"), "zh")
    made._part = _emptied(made._part)  # type: ignore[method-assign]
    await made._condense(plan)
    assert {p.why_not for p in made.inputs.gathered.points if not p.used} == {"模型把要点归纳成了空白"}


def _emptied(part: Any) -> Any:
    """Return a part that the model condenses to nothing where it would have failed."""

    async def empty(blocks: list[str], groups: int) -> str:
        try:
            return str(await part(blocks, groups))
        except ModelError:
            return " "

    return empty


async def test_where_every_part_fails_no_point_is_dropped() -> None:
    made, plan = reduce_of(lambda now, blocks: True)
    with pytest.raises(ModelError, match="refused"):
        await made._condense(plan)
    assert len(made.inputs.gathered.order) == GROUPS  # they are arranged without the model
    assert made.inputs.gathered.dropped == 0


async def test_where_nothing_fails_all_points_stay() -> None:
    made, plan = reduce_of(lambda now, blocks: False)
    assert await made._condense(plan)
    assert len(made.inputs.gathered.order) == GROUPS

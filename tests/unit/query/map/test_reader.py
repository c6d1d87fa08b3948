"""Reading a batch in halves: what cannot be read costs nothing else, is named, and is not kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Usage
from communitree_shared.errors import Cancelled, CommunitreeError, ContentRefused, ContextTooLong, ModelError
from communitree_workers.model.chat import ChatRequest, CutReply, WholeReply
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.map.reader import Reader
from communitree_workers.query.question.question import Question

BATCH = Batch(
    kind="reports", context_name="Reports", delimiter="|", columns=["id", "title", "content"], overview="",
    anchors=[], ids=[1, 2, 3, 4], lines=[f"{n}|t{n}|Text {n}.\n".encode() for n in (1, 2, 3, 4)],
    row_tokens=[5, 5, 5, 5], prompt_tokens=100,
)  # fmt: skip


class Model:
    """Answers a point for each row; `faults`: what a prompt with a row's text gives instead."""

    def __init__(self, faults: dict[int, CommunitreeError | str]) -> None:
        self.faults, self.asked = faults, list[list[int]]()

    async def complete(self, stage: str, chat: ChatRequest, call: Any) -> Any:
        table = str(chat.messages[1]["content"])
        ids = [n for n in (1, 2, 3, 4) if f"\n{n}|" in table]
        self.asked.append(ids)
        for id in ids:
            fault = self.faults.get(id)
            if isinstance(fault, CommunitreeError):
                raise fault
            if fault == "cut":
                return CutReply(part="{", why="it ended with 'length'", model="m")
        points = [{"description": f"point {n}", "score": 50, "reports": [n]} for n in ids]
        return WholeReply(text="", value={"points": points})


def reader_of(model: Model, claimed: list[str] | None = None) -> Reader:
    endpoint = SimpleNamespace(cache=True, model="m")
    services = SimpleNamespace(models=model, settings=SimpleNamespace(model=lambda stage: endpoint))

    async def in_ledger(work: Any, *args: Any) -> Any:
        return work(*args)

    def first_in_job(what: str) -> bool:
        claims = claimed if claimed is not None else []
        claims.append(what)
        return len(claims) == 1

    context = SimpleNamespace(
        services=services, args={"model": "m"}, call=lambda **_: SimpleNamespace(spent=Usage()), in_ledger=in_ledger,
        first_in_job=first_in_job,
    )  # fmt: skip
    question = Question(cast(Any, None), QueryOptions(), "Why?", cast(Any, None))
    return Reader(cast(Any, context), question)


def read(model: Model, claimed: list[str] | None = None, batch: Batch = BATCH) -> tuple[dict[str, Any] | None, Reader]:
    reader = reader_of(model, claimed)
    return asyncio.run(reader.fresh(batch)), reader


@pytest.mark.parametrize(
    "fault", [ContentRefused("refused"), ContextTooLong("too long"), "cut"], ids=["refused", "long", "cut"]
)
def test_one_report_is_named_and_the_others_are_read(fault: Any) -> None:
    kept, reader = read(Model({3: fault}))
    assert kept is None, "another day it may be read"
    batch = reader.outcome["batch"]
    assert [point["reports"] for point in batch["result"]["points"]] == [[1], [2], [4]]
    assert [id for id, _ in batch["unread"]] == [3]
    assert batch["status"] == "answered"


def test_what_is_read_whole_is_kept() -> None:
    kept, reader = read(Model({}))
    assert kept == reader.outcome
    assert "unread" not in kept["batch"]


def test_the_other_half_counts_where_one_fails_for_good() -> None:
    model = Model({1: ContextTooLong("too long"), 2: ModelError("HTTP 500")})
    _, reader = read(model)
    assert {id for id, _ in reader.outcome["batch"]["unread"]} == {1, 2}
    assert [point["reports"] for point in reader.outcome["batch"]["result"]["points"]] == [[3], [4]]


def test_a_batch_of_which_nothing_can_be_read_fails() -> None:
    with pytest.raises(ContentRefused):
        read(Model(dict.fromkeys((1, 2, 3, 4), ContentRefused("refused"))))


def test_a_refusal_without_a_cause_is_halved_once_a_job() -> None:
    claimed: list[str] = []
    first, second = (Model(dict.fromkeys((1, 2, 3, 4), ModelError("Bad", unexplained=True))) for _ in range(2))
    for model in (first, second):
        with pytest.raises(ModelError):
            read(model, claimed)
    assert first.asked == [[1, 2, 3, 4], [1, 2], [3, 4]]
    assert second.asked == [[1, 2, 3, 4]]


def test_a_cancelled_job_is_not_read_on() -> None:
    model = Model({1: ContextTooLong("too long"), 2: Cancelled("cancelled")})
    with pytest.raises(Cancelled):
        read(model, batch=replace(BATCH, ids=[2, 1, 3, 4], lines=[BATCH.lines[i] for i in (1, 0, 2, 3)]))

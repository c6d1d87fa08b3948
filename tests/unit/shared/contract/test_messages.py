from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_shared.broker import publisher
from communitree_shared.contract import messages
from communitree_shared.contract.messages import Message, Unit, message_id, parse_message, queue_of, schemas
from communitree_shared.errors import BadInput, NewerMessage
from communitree_shared.ledger.stages import Stage, Step

IDS = st.from_regex(r"\A[A-Za-z0-9._-]{1,20}\Z")
UNITS = st.lists(IDS, min_size=1, max_size=30, unique=True).map(lambda ids: [Unit(id=i) for i in ids])


def body(**changes: Any) -> dict[str, Any]:
    made = {"v": 1, "task": "communitree.look.v1", "tenant": "t", "job": "j", "stage": "s", "id": "m",
            "units": [{"id": "u"}]}  # fmt: skip
    return {**made, **changes}


def test_a_message_survives_the_wire_and_unknown_fields_are_ignored() -> None:
    message = parse_message(body(news="from a later version"))
    assert parse_message(json.loads(message.dumps())) == message


@pytest.mark.parametrize(
    "changes", [{"v": 2}, {"v": 99, "units": "another shape"}, {"task": "communitree.query.map.v2"}]
)
def test_a_newer_message_is_parked_whatever_its_shape(changes: dict[str, Any]) -> None:
    with pytest.raises(NewerMessage):
        parse_message(body(**changes))


@pytest.mark.parametrize(
    "bad", [None, 3, "text", [], {}, body(units=[]), body(units=[{"id": "a b"}]), body(job=7), body(units=[{}])]
)
def test_what_is_no_message_is_named(bad: Any) -> None:
    with pytest.raises(BadInput, match="Not a message"):
        parse_message(bad)


def test_every_task_has_a_queue_that_a_worker_serves() -> None:
    assert set(messages.TASKS.values()) <= set(messages.QUEUES)
    assert not set(messages.MODEL_QUEUES) & set(messages.CPU_QUEUES)
    for task, queue in messages.TASKS.items():
        assert queue_of(task) == f"communitree.{queue}"
        twin = queue_of(task, local=True).removeprefix("communitree.")
        assert twin == (f"{queue}.local" if queue in messages.MODEL_QUEUES else queue)
        assert twin in messages.CPU_QUEUES


@given(UNITS, st.integers(1, 8))
def test_a_stage_puts_each_unit_into_one_message_in_order(units: list[Unit], size: int) -> None:
    stage = Stage("map", "communitree.query.map.v1", Step("reduce", "communitree.query.reduce.v1"))
    made = stage.messages("t", "j", units, local=False, per_message=size)
    assert [u for _, _, ids, _ in made for u in ids] == [u.id for u in units]
    assert all(1 <= len(ids) <= size for _, _, ids, _ in made)
    for identity, queue, ids, text in made:
        message = parse_message(json.loads(text))
        assert (message.id, [u.id for u in message.units]) == (identity, ids)
        assert queue == "communitree.map"
    assert made == stage.messages("t", "j", units, local=False, per_message=size)
    assert len({identity for identity, *_ in made}) == len(made)


@given(UNITS)
def test_a_message_id_depends_on_stage_and_units(units: list[Unit]) -> None:
    assert message_id("a", units) == message_id("a", list(units))
    assert message_id("a", units) != message_id("b", units)
    if len(units) > 1:
        assert message_id("a", units) != message_id("a", units[1:])


def test_steps_that_follow_are_nested_in_the_specification() -> None:
    spec = Step("one", "communitree.query.plan.v1", then=Step("two", "communitree.query.reduce.v1")).spec("t", "j")
    assert spec["next"]["stage"] == "two"
    assert spec["next"]["queue"] == "communitree.reduce.local"
    assert spec["critical"] is True
    assert "next" not in spec["next"]


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_task_is_found_in_a_body_without_parsing_it(tricky: str, other: str) -> None:
    """The publisher reads it from the text; nothing that a caller chooses stands before it."""
    unit = Unit(id="u", args={"task": tricky, '"task": "x': other})
    message = Message(task="communitree.look.v1", tenant="t", job="j", stage="s", id="m", units=[unit], deadline=1.5)
    assert publisher._task_of(message.dumps()) == "communitree.look.v1"


def test_the_published_schemas_accept_what_is_sent() -> None:
    made = schemas()
    requests = {"message", "stream-request", "corpus-request", "query-request", "look-request"}
    assert set(made) == requests | {"event-entry", "outcome-entry", "end-entry", "lost-entry"}
    for schema in made.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(made["message"])
    validator.validate(body())
    assert not validator.is_valid(body(units=[]))

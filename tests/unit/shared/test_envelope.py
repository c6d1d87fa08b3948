"""Whatever an entry of a queue says: it is a message of ours and nothing more, or it is kept aside with a reason."""

from __future__ import annotations

import base64
import json
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_shared.broker.envelope import DEEPEST, LARGEST_BODY, NEWER, headers, opened, properties, sealed
from communitree_shared.broker.transport import Message
from communitree_shared.contract.messages import parse_message
from support.fuzz import EMBEDDED, HEADERS, PROPERTIES, TOP, hostile

TASK = "communitree.query.map.v1"
QUEUE = "communitree.map"
SOUND: dict[str, Any] = {
    "v": 1, "task": TASK, "tenant": "t", "job": "j", "stage": "map", "id": "m",
    "units": [{"id": "u", "args": {"a": 1}}],
}  # fmt: skip

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def entry(body: Any = None, **changes: Any) -> str:
    made = {
        "body": body if isinstance(body, str) else json.dumps([[SOUND if body is None else body], {}, {}]),
        "content-type": "application/json", "content-encoding": "utf-8", "headers": headers(TASK, "x"),
        "properties": properties(QUEUE, "x"),
    }  # fmt: skip
    return json.dumps({**made, **changes})


def holds(text: bytes | str) -> None:
    """What must be so of any entry, and of what stands for it in the books and comes back from there."""
    read = opened(text)
    made = Message((QUEUE, text))
    assert made.headers == headers(read.task, made.delivery_tag)
    assert made.properties == properties(QUEUE, made.delivery_tag)
    assert made.delivery_info == {"exchange": "", "routing_key": QUEUE}
    assert made.payload == {"args": [read.body], "kwargs": {}}
    if read.fault:
        assert read.body is None
    else:
        assert parse_message(read.body).task == read.task
        pickle.dumps(read.body)
    again = opened(json.dumps(sealed(read, QUEUE, "tag")))
    assert again.fault == read.fault
    assert (again.task, again.body) == (read.task, read.body) or read.body != read.body or "NaN" in read.text
    json.dumps(made._raw).encode()


@given(st.randoms(use_true_random=False))
def test_what_celery_reads_of_an_envelope_is_not_believed(rng: random.Random) -> None:
    holds(hostile(rng, QUEUE, SOUND))


@given(st.data())
def test_any_value_may_stand_anywhere(data: st.DataObject) -> None:
    raw: dict[str, Any] = json.loads(entry())
    for part, names in ((raw, TOP), (raw["headers"], HEADERS), (raw["properties"], PROPERTIES)):
        if data.draw(st.booleans()):
            part[data.draw(st.sampled_from(sorted([*names, *part])))] = data.draw(JSON)
    if data.draw(st.booleans()):
        options = {data.draw(st.sampled_from(sorted(EMBEDDED))): data.draw(JSON)}
        message = {**SOUND, **data.draw(st.just({}) | st.dictionaries(st.sampled_from(sorted(SOUND)), JSON))}
        raw["body"] = json.dumps([[message], data.draw(st.just({}) | JSON), options])
    holds(json.dumps(raw))


@given(JSON | st.binary(max_size=60) | st.text(max_size=60))
def test_what_is_no_envelope_is_kept_aside(value: Any) -> None:
    text = value if isinstance(value, (str, bytes)) else json.dumps(value)
    holds(text)
    assert opened(text).fault


@pytest.mark.parametrize("kind", [HEADERS, PROPERTIES, EMBEDDED])
def test_a_message_runs_by_our_rules_whatever_stands_beside_it(kind: dict[str, tuple[Any, ...]]) -> None:
    """Only what asks for a time, or cannot be read as it says, is kept aside."""
    meant = {"eta", "expires", "compression", "fault", "body_encoding"}
    for name in set(kind) - meant:
        for value in kind[name]:
            body = json.dumps([[SOUND], {}, {name: value} if kind is EMBEDDED else {}])
            said = {**headers(TASK, "x"), **({name: value} if kind is HEADERS else {})}
            beside = {**properties(QUEUE, "x"), **({name: value} if kind is PROPERTIES else {})}
            read = opened(entry(body, headers=said, properties=beside))
            assert (read.fault, read.body) == ("", SOUND), (name, value)


DEEP: Any = {}
for _ in range(DEEPEST):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no message"),
        ("[]", "no envelope"),
        ("[" * 100_000, "RecursionError"),
        ("1" * 5000, "no message"),
        ('"' + "x" * 3 * LARGEST_BODY + '"', "larger than"),
        (entry("x" * (LARGEST_BODY + 1)), "larger than"),
        (entry(headers={}), "names no task"),
        (entry(headers={"task": "os.system"}), "not ours"),
        (entry(headers={"task": "communitree.look.v1"}), "its header says"),
        (entry(headers={**headers(TASK, "x"), "eta": "2030-01-01T00:00:00Z"}), "asks for a time"),
        (entry(headers={**headers(TASK, "x"), "compression": "zlib"}), "compressed"),
        (entry(**{"content-type": "application/x-python-serialize"}), "not JSON"),
        (entry(properties={"body_encoding": "zlib"}), "encoding"),
        (entry("%%", properties={"body_encoding": "base64"}), "base64"),
        (entry(json.dumps({"args": [SOUND], "kwargs": {}, "task": TASK})), "one argument"),
        (entry(json.dumps([[SOUND, 1], {}, {}])), "one argument"),
        (entry(json.dumps([[SOUND], {"a": 1}, {}])), "named arguments"),
        (entry({**SOUND, "job": "a|b"}), "job"),
        (entry({**SOUND, "tenant": ""}), "tenant"),
        (entry({**SOUND, "deadline": float("nan")}), "deadline"),
        (entry({**SOUND, "units": [{"id": "u", "args": DEEP}]}), "nested"),
        (entry({**SOUND, "units": [{"id": "\ud800"}]}), "units.0.id"),
    ],
)  # fmt: skip
def test_what_is_kept_aside_says_why(text: str, why: str) -> None:
    assert why in opened(text).fault
    holds(text)


@pytest.mark.parametrize(
    "text", [entry(headers=headers("communitree.query.map.v9", "x")), entry({**SOUND, "v": 2, "units": "other"})]
)
def test_a_newer_message_waits_with_its_body(text: str) -> None:
    read = opened(text)
    assert read.fault == NEWER
    assert json.loads(read.text) == json.loads(json.loads(text)["body"])
    holds(text)


def test_a_body_in_base64_is_read_as_one_that_is_not() -> None:
    body = json.dumps([[SOUND], {}, {}])
    coded = entry(base64.b64encode(body.encode()).decode(), properties={"body_encoding": "base64"})
    assert opened(coded) == opened(entry(body)) == opened(entry(body).encode())

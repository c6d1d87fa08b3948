"""What an entry of a queue may say. Whoever may write into Redis may write anything there: little of it is believed.

An entry is Celery's message (protocol 2) in kombu's envelope. Believed are the name of the task, the encoding of the
body, and in the body the one argument, which must be a message of ours (`messages.parse_message`). Everything else is
dropped before kombu or Celery see it: time limits, callbacks, chords, groups, reply queues, priorities, stamps, ids and
delivery tags. What asks for a time, is compressed, or is no message of ours is kept aside, with the reason.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from communitree_shared.contract.messages import QUEUE_PREFIX, TASKS, parse_message
from communitree_shared.errors import BadInput, NewerMessage

#: A message carries ids and keys: one larger than this (bytes) is none of ours.
LARGEST_BODY = 2**20

#: So deep may a message's arguments be nested; ours are two or three levels deep.
DEEPEST = 16

NEWER = "its task is newer than this worker"

#: What reading raises over an entry that is none.
RUBBISH = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)

_EMBEDDED = '{"callbacks":null,"errbacks":null,"chain":null,"chord":null}'


@dataclass(frozen=True)
class Envelope:
    """An entry as it was read.

    `task` is named by its header, `body` is its one argument: both sound where `fault` is "". `text` is its body as it
    came, of one that is none the entry. `fault`: why it is kept aside; NEWER where a newer worker may know it.
    """

    task: str
    body: Any
    text: str
    fault: str


class _Fault(Exception):
    """Why an entry is kept aside."""


def headers(task: str, identity: str) -> dict[str, Any]:
    """Return the headers of a message of ours."""
    return {"lang": "py", "task": task, "id": identity, "root_id": identity, "argsrepr": "", "retries": 0}


def wrapped(body: str) -> str:
    """Return the body of an entry for a message (JSON): its one argument."""
    return f"[[{body}],{{}},{_EMBEDDED}]"


def sealed(envelope: Envelope, queue: str, tag: str) -> dict[str, Any]:
    """Return the entry for an envelope that was read, to be put back into its queue: read again, it says the same."""
    fault = {"fault": envelope.fault} if envelope.fault not in {"", NEWER} else {}
    return {
        "body": envelope.text,
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {**headers(envelope.task, tag), **fault},
        "properties": properties(queue, tag),
    }


def properties(queue: str, tag: str) -> dict[str, Any]:
    """Return the properties of an entry for a queue."""
    where = {"exchange": "", "routing_key": queue}
    return {
        "delivery_tag": tag, "delivery_mode": 2, "body_encoding": "utf-8", "priority": 0, "delivery_info": where,
    }  # fmt: skip


def opened(entry: bytes | str) -> Envelope:
    """Read an entry of a queue. Never raises."""
    text = entry.decode(errors="replace") if isinstance(entry, bytes) else str(entry)
    task = body = ""
    try:
        if len(text) > 2 * LARGEST_BODY:
            raise _Fault(f"it is larger than {2 * LARGEST_BODY} bytes")
        raw = json.loads(text)
        if not isinstance(raw, dict):
            raise _Fault("it is no envelope")
        said = _mapping(raw.get("headers"))
        task = said["task"] if isinstance(said.get("task"), str) else ""
        body = text = _body(raw)
        return Envelope(task, _argument(raw, said, task, body), text, "")
    except (_Fault, BadInput) as fault:
        return Envelope(task[:200], None, text, str(fault))
    except NewerMessage:
        return Envelope(task, None, body, NEWER)
    except RUBBISH as error:
        return Envelope(task[:200], None, text, f"it is no message: {type(error).__name__}: {error}"[:300])


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _body(raw: dict[str, Any]) -> str:
    body, encoding = raw.get("body"), _mapping(raw.get("properties")).get("body_encoding")
    if not isinstance(body, str):
        raise _Fault("its body is no text")
    if encoding == "base64":
        try:
            body = base64.b64decode(body, validate=True).decode()
        except (binascii.Error, ValueError):
            raise _Fault("its body is no text in base64") from None
    elif encoding not in (None, "utf-8"):
        raise _Fault("its body has an encoding that we do not use")
    if len(body) > LARGEST_BODY:
        raise _Fault(f"it is larger than {LARGEST_BODY} bytes")
    return body


def _argument(raw: dict[str, Any], said: dict[str, Any], task: str, body: str) -> dict[str, Any]:
    """Return the message in an entry's body.

    Raises:
        _Fault, BadInput: it is none of ours. NewerMessage: a newer worker may know it. Any of RUBBISH: as reading does.
    """
    if isinstance(said.get("fault"), str) and said["fault"]:  # it was kept aside before, and could not be told of
        raise _Fault(said["fault"][:300])
    if not task:
        raise _Fault("it names no task")
    if said.get("eta") or said.get("expires"):
        raise _Fault("it asks for a time, which this transport cannot keep")
    if said.get("compression"):
        raise _Fault("it is compressed")
    if task not in TASKS:
        if task.startswith(QUEUE_PREFIX):
            raise NewerMessage(task)
        raise _Fault(f"its task {task[:100]!r} is not ours")
    if raw.get("content-type") != "application/json" or raw.get("content-encoding") not in ("utf-8", None):
        raise _Fault("its body is not JSON")
    parts = json.loads(body)
    if not (isinstance(parts, list) and len(parts) == 3 and isinstance(parts[0], list) and len(parts[0]) == 1):
        raise _Fault("it has not one argument")
    if parts[1]:
        raise _Fault("it has named arguments")
    (argument,) = parts[0]
    message = parse_message(argument)
    if message.task != task:
        raise _Fault(f"its header says {task}, its body {message.task[:100]}")
    if not _within(argument, DEEPEST):
        raise _Fault("its arguments are nested too deeply")
    found: dict[str, Any] = argument
    return found


def _within(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels >= 0 and all(_within(v, levels - 1) for v in inside if isinstance(v, (dict, list)))

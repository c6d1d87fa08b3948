"""What a worker's main process reads of a message before, and beside, its work: is it ours, whose units are in it."""

from __future__ import annotations

import math
from typing import Any

from communitree_shared.contract.messages import QUEUE_PREFIX, TASKS

#: A message carries ids and keys: one larger than this is none of ours.
LARGEST_BODY = 2**20

NEWER = "its task is newer than this worker"


def fault_of(message: Any) -> str:
    """Return what is wrong with a message's envelope, NEWER where only its task is unknown, or "" """
    headers = message.headers
    if not isinstance(headers, dict) or not isinstance(headers.get("task"), str):
        return "it names no task"
    if not isinstance(headers.get("id"), str) or not headers["id"]:
        return "it has no id"
    if headers.get("eta") or headers.get("expires"):
        return "it asks for a time, which this transport cannot keep"
    if not isinstance(message.body, (str, bytes)):
        return "its body is no text"
    if len(message.body) > LARGEST_BODY:
        return f"it is larger than {LARGEST_BODY} bytes"
    if headers["task"] not in TASKS:
        return NEWER if headers["task"].startswith(QUEUE_PREFIX) else f"its task {headers['task']!r} is not ours"
    return ""


def deadline_of(args: Any) -> float:
    """Return when the units of a task's arguments count as failed (unix seconds); infinite where never."""
    try:
        return float(args[0].get("deadline") or math.inf)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        return math.inf


def members_of(args: Any) -> list[str]:
    """Return the ledger's names of a task's units: `tenant|job|stage|unit`."""
    try:
        body = args[0]
        return [f"{body['tenant']}|{body['job']}|{body['stage']}|{unit['id']}" for unit in body["units"]]
    except (IndexError, KeyError, TypeError):
        return []

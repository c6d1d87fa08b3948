"""A worker process whose handlers only write down that they ran: `python -m support.stub_worker KIND`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import Any

from communitree_shared.errors import BadInput
from communitree_shared.settings import Settings
from communitree_workers.__main__ import leave
from communitree_workers.runtime.consume import Worker
from communitree_workers.runtime.context import Outcome, UnitContext


def _note(context: UnitContext, what: str) -> None:
    line = f"{what} {context.unit.id} {context.attempt} {os.getpid()} {time.time():.3f}"
    context.services.ledger.redis.rpush("stub:log", line)


def compute(context: UnitContext) -> Outcome:
    _note(context, "start")
    args: dict[str, Any] = context.args
    if args.get("kill") and context.attempt <= args["kill"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if args.get("fail"):
        raise BadInput("this unit is bad")
    if args.get("error") and context.attempt <= args["error"]:
        raise ValueError("an unexpected error")
    time.sleep(args.get("seconds", 0))
    _note(context, "end")
    return Outcome(data={"unit": context.unit.id})


async def wait(context: UnitContext) -> Outcome:
    _note(context, "start")
    try:
        await asyncio.sleep(context.args.get("seconds", 0))
    except asyncio.CancelledError:
        _note(context, "cancelled")
        raise
    _note(context, "end")
    return Outcome(data={"unit": context.unit.id})


def done(context: UnitContext) -> Outcome:
    _note(context, "reduce")
    time.sleep(context.args.get("seconds", 0))
    context.finish("answered", {}, ttl=60)
    return Outcome()


HANDLERS: dict[str, Any] = {
    "communitree.query.plan.v1": lambda context: Outcome(),
    "communitree.query.map.v1": wait,
    "communitree.corpus.subtree.v1": compute,
    "communitree.query.reduce.v1": done,
    "communitree.job.finish.v1": done,
}

if __name__ == "__main__":
    import logging

    logging.basicConfig(level="INFO", stream=sys.stderr)
    leave(Worker(Settings(), sys.argv[1:], HANDLERS).run())

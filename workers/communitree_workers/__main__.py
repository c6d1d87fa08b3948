"""Run a worker process: `python -P -m communitree_workers worker [QUEUE…]`."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import threading
from typing import NoReturn

from communitree_shared.alive import Pulse
from communitree_shared.errors import CommunitreeError
from communitree_shared.settings import MODEL_STAGES, Settings
from communitree_shared.visible import OneLine


def _warm() -> None:
    """Import and load what the first call needs, while nothing waits for it: together more than a second."""
    from communitree_shared import tokens
    from communitree_workers.model import client  # noqa: F401
    from communitree_workers.query import tasks as query  # noqa: F401
    from communitree_workers.report import tasks as report  # noqa: F401

    tokens.encoding()
    gc.freeze()


def main(argv: list[str]) -> int:
    """Serve the queues named in `argv` (`models`, `cpu`, or single queues); returns the exit code."""
    names = [a for a in argv if a != "worker"] or ["models"]
    logging.basicConfig(level="INFO", stream=sys.stderr)
    logging.getLogger().handlers[0].setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    try:
        settings = Settings()
        settings.look_as_worker()
    except CommunitreeError as error:
        logging.getLogger("communitree").error("%s %s", error.message, error.hint)
        return error.exit_code
    logging.getLogger().setLevel(settings.log_level)
    for noisy in ("celery", "kombu", "urllib3", "amqp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        from communitree_workers.runtime.consume import Worker, queues_of
    except ModuleNotFoundError as missing:
        logging.getLogger("communitree").error(
            "The package %s is missing: workers need the extra, pip install 'communitree[workers]'.", missing.name
        )
        return 4
    from communitree_workers.runtime.registry import Handlers

    try:
        kind, _ = queues_of(names)
        if kind == "models" and all(settings.model(stage).built_in for stage in MODEL_STAGES):
            logging.getLogger("communitree").warning(
                "No model is set (COMMUNITREE_LLM_MODEL): this worker has nothing to do, and more of them change "
                "nothing. The built-in model's work is that of `communitree worker cpu` (in compose: `local`)."
            )
        handlers = Handlers()
        if kind == "cpu":
            handlers.preload()
        # Nearly all of a worker's objects live as long as it does. Looking through all of them for cycles in the middle
        # of an answer costs 30 to 60 ms; the young ones are still looked at.
        gc.freeze()
        gc.set_threshold(20_000, 25, 50)
        if kind == "models" and any(not settings.model(stage).built_in for stage in MODEL_STAGES):
            threading.Thread(target=_warm, name="warm", daemon=True).start()
        worker = Worker(settings, names, handlers)
        with Pulse(settings.home, [*names, *worker.queues], worker.sound):
            return worker.run()
    except CommunitreeError as error:
        logging.getLogger("communitree").error("%s %s", error.message, error.hint)
        return error.exit_code
    except Exception:
        logging.getLogger("communitree").exception("the worker ends")
        return 1


def leave(code: int) -> NoReturn:
    """End the process without taking the interpreter down: threads that nobody waits for may be in C code just now.

    What matters is ended by then: the pool, the event loop, the connections to the broker (`Worker.run`).
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))

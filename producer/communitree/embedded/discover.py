"""How other commands find a running stack: `stack.json` in its folder says where, `credentials.json` how to get in."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from communitree.embedded.home import Home
from communitree.embedded.servers import Endpoints
from communitree_shared.errors import InfrastructureError, StackNotRunning, UsageError
from communitree_shared.settings import Settings

_FORMAT = 1


def describe(settings: Settings, endpoints: Endpoints, workers: Sequence[str]) -> dict[str, Any]:
    """Return the content of `stack.json`: no secrets."""
    home = Home(settings.home)
    return {
        "format": _FORMAT,
        "pid": os.getpid(),
        "home": str(home.folder),
        "redis_port": endpoints.redis_port,
        "s3_endpoint": endpoints.s3_endpoint,
        "s3_bucket": settings.s3_bucket,
        "workers": list(workers),
        "logs": str(home.folder / "logs"),
    }


def discover(settings: Settings) -> Settings:
    """Return settings with the connection fields filled: those given, else those of the stack that runs on `home`.

    Raises:
        StackNotRunning: no servers are set and no stack runs on `home` (a `stack.json` left by a killed one is seen
            through: its lock is gone).
        UsageError: only one of the two servers is set.
    """
    redis, s3 = bool(settings.redis_url.get_secret_value()), bool(settings.s3_endpoint)
    if redis and s3:
        return settings
    if redis or s3:
        given, missing = ("COMMUNITREE_REDIS_URL", "COMMUNITREE_S3_ENDPOINT")[:: 1 if redis else -1]
        raise UsageError(
            f"{given} is set, but {missing} is not.",
            hint="Set both to use servers of your own, or neither to use the embedded stack.",
        )
    home = Home(settings.home)
    owner = home.owner()
    if not owner:
        raise StackNotRunning(
            f"No stack is running on {home.folder}.",
            hint="Start one with `communitree up` (in another terminal), or set COMMUNITREE_REDIS_URL and "
            "COMMUNITREE_S3_ENDPOINT to use servers of your own.",
        )
    stack = read_stack(home)
    if stack.get("pid") != owner:  # none yet, or one left by an earlier, killed stack
        raise StackNotRunning(f"The stack on {home.folder} is starting or stopping.", hint="Try again in a moment.")
    try:
        port, endpoint, bucket = int(stack["redis_port"]), str(stack["s3_endpoint"]), str(stack["s3_bucket"])
    except (ValueError, KeyError, TypeError) as error:
        raise InfrastructureError(
            f"{home.stack_file} is damaged: {error!r}.", hint="Stop `communitree up` and start it again."
        ) from error
    credentials = home.read_credentials()
    found = Endpoints(port, endpoint, credentials["redis"], credentials["s3_access"], credentials["s3_secret"])
    filled = found.into(settings)
    return filled if "s3_bucket" in settings.model_fields_set else filled.model_copy(update={"s3_bucket": bucket})


def read_stack(home: Home) -> dict[str, Any]:
    """Return the content of `stack.json`; {} when there is none or it is damaged."""
    try:
        stack = json.loads(home.stack_file.read_text())
    except (OSError, ValueError):
        return {}
    return stack if isinstance(stack, dict) else {}

"""`python -m support.fake_provider [--port N] [--latency 0.5] …`: prints its base URL and serves until it is ended."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses

from support.fake_provider.behaviour import Behaviour
from support.fake_provider.server import running_provider


async def _serve(behaviour: Behaviour, port: int, seconds: float) -> None:
    async with running_provider(behaviour, port) as provider:
        print(provider.url, flush=True)
        await asyncio.sleep(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="support.fake_provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--max-seconds", type=float, default=3600.0)
    defaults = Behaviour()
    for field in dataclasses.fields(Behaviour):
        value = getattr(defaults, field.name)
        name = "--" + field.name.replace("_", "-")
        if isinstance(value, bool):
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=value)
        elif isinstance(value, tuple):
            parser.add_argument(name, nargs="*", default=list(value))
        else:
            parser.add_argument(name, type=type(value), default=value)
    args = vars(parser.parse_args())
    port, seconds = args.pop("port"), args.pop("max_seconds")
    args = {key: tuple(value) if isinstance(value, list) else value for key, value in args.items()}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(Behaviour(**args), port, seconds))


if __name__ == "__main__":
    main()

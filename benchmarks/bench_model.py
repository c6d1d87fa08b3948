"""CPU of a model call: communitree's client and litellm's, side by side in one run, against the fake provider.

    python benchmarks/bench_model.py [--calls 3000] [--in-flight 300] [--latency 0.3]

The provider runs in a process of its own; each client runs in a process of its own, one after the other, three rounds,
and its CPU seconds (user and system) are divided by its calls. communitree runs twice: without Redis, and with the
limits in a Valkey. Each call has a prompt of about 1,500 tokens and a JSON reply that is parsed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

ROWS = "\n".join(
    f"{i}|Report {i}|0|0.5|5|Finding {i}: the council of ward {i} met the harbour board. " * 3 for i in range(40)
)
PROMPT = (
    'Reply with JSON: {"points": [{"description", "score", "reports"}]}\n\nid|title|level|weight|rank|content\n' + ROWS
)
SYSTEM = "You read community reports and list what they say about a question."

LIMITS = {"llm_concurrency": 5000, "llm_requests_per_minute": 6_000_000, "llm_tokens_per_minute": 10**10}


async def drive(call: Callable[[int], Awaitable[None]], calls: int, in_flight: int) -> dict[str, float]:
    """Make the calls, so many at a time; return CPU milliseconds per call and wall seconds."""
    for i in range(20):
        await call(-i)
    gate = asyncio.Semaphore(in_flight)

    async def one(i: int) -> None:
        async with gate:
            await call(i)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one(i) for i in range(calls)))
    return {"cpu_ms": (time.process_time() - cpu) * 1000 / calls, "seconds": time.perf_counter() - wall}


async def communitree(url: str, calls: int, in_flight: int, valkey: str) -> dict[str, float]:
    import redis.asyncio

    from communitree_shared.settings import Settings
    from communitree_workers.model.client import CallContext, ChatRequest, ModelClient

    settings = Settings.model_validate(
        {
            "llm_base_url": url, "llm_model": "fake", "llm_api_key": "sk-bench-000000",
            **(LIMITS if valkey else {}),
        }
    )  # fmt: skip
    shared = redis.asyncio.Redis.from_url(valkey, decode_responses=True) if valkey else None
    client = ModelClient(settings, shared, "communitree")

    async def call(i: int) -> None:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{PROMPT}\nQuestion {i}"}]
        context = CallContext("default", "job", deadline=time.time() + 300, cancelled=lambda: False)
        done = await client.complete(
            "map", ChatRequest(messages, schema={"type": "object"}, prompt_tokens=1500), context
        )
        assert done.whole().value["points"]

    try:
        return await drive(call, calls, in_flight)
    finally:
        await client.close()
        if shared is not None:
            await shared.aclose()


async def litellm_client(url: str, calls: int, in_flight: int, _: str) -> dict[str, float]:
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False

    async def call(i: int) -> None:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{PROMPT}\nQuestion {i}"}]
        done = await litellm.acompletion(
            model="openai/fake", api_base=url, api_key="sk-bench-000000", messages=messages, timeout=120,
            response_format={"type": "json_object"}, num_retries=0,
        )  # fmt: skip
        assert json.loads(done.choices[0].message.content)["points"]

    return await drive(call, calls, in_flight)


CLIENTS = {"communitree": communitree, "communitree, limits in Valkey": communitree, "litellm": litellm_client}


def measure(name: str, url: str, valkey: str, args: argparse.Namespace) -> dict[str, float]:
    """Run one client in a process of its own."""
    words = [sys.executable, __file__, "--client", name, "--url", url, "--valkey", valkey if "Valkey" in name else ""]
    words += ["--calls", str(args.calls), "--in-flight", str(args.in_flight)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "LITELLM_LOG": "ERROR"})
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--in-flight", type=int, default=300)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", default="", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--valkey", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        print(json.dumps(asyncio.run(CLIENTS[args.client](args.url, args.calls, args.in_flight, args.valkey))))
        return
    from support.valkey import running_valkey

    names = [name for name in CLIENTS if name != "litellm" or importlib.util.find_spec("litellm")]
    if "litellm" not in names:
        print("litellm is not installed: no peer to compare with (pip install litellm).")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        valkey = stack.enter_context(running_valkey(folder))
        words = [sys.executable, "-m", "support.fake_provider", "--latency", str(args.latency), "--points", "5"]
        provider = subprocess.Popen(words, cwd=TESTS, stdout=subprocess.PIPE, text=True)
        stack.callback(provider.wait)
        stack.callback(provider.terminate)
        assert provider.stdout is not None
        url = provider.stdout.readline().strip()
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for _ in range(args.rounds):
            for name in names:
                rounds[name].append(measure(name, url, valkey.url, args))
        print(
            f"{args.calls} calls, {args.in_flight} in flight, provider latency {args.latency} s, "
            f"median of {args.rounds} rounds"
        )
        medians = {name: statistics.median(r["cpu_ms"] for r in found) for name, found in rounds.items()}
        for name in names:
            seconds = statistics.median(r["seconds"] for r in rounds[name])
            share = f", {medians[name] / medians['litellm']:.0%} of litellm" if "litellm" in medians else ""
            print(f"{name:32} {medians[name]:6.2f} ms CPU a call, {args.calls / seconds:6.0f} calls/s{share}")


if __name__ == "__main__":
    main()

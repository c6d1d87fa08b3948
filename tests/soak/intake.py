"""Thousands of requests in any language, some malformed, some sent twice, while the intake is killed: one outcome each.

The consumer group of their sender is away meanwhile, and the results are trimmed as the reconciler does; it then reads
them all, some at a time, and each is there.

`python tests/soak/intake.py [--requests 11000] [--kills 8] [--seed 1]`
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from communitree.embedded.servers import Servers
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.keeping import trim_all
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

T = "default"
GROUP = "sender"
TESTS = Path(__file__).resolve().parents[1]


def fill(client: Any, number: int, rng: random.Random) -> dict[str, str]:
    """Add the requests; return what each must come to: `accepted`, `rejected`, or the key of a pair."""
    expected: dict[str, str] = {}
    spoiled = ("{", "[]", '{"kind": "shell"}', '{"kind": "query", "corpus": "c", "question": ""}', "\x00")

    def add(text: str, what: str) -> None:
        expected[str(client.xadd(rk.requests(T), {"request": text}))] = what

    n = 0
    while len(expected) < number:
        n += 1
        draw = rng.random()
        if draw < 0.05:
            add(rng.choice(spoiled), "rejected")
            continue
        request = {"kind": "query", "corpus": "c", "question": f"Question {n}?", "idempotency_key": f"k{n}"}
        twice = draw < 0.075  # two entries each: five in a hundred
        for _ in range(1 + twice):
            add(json.dumps(request), f"pair {n}" if twice else "accepted")
    return expected


def read(client: Any, ledger: Ledger, settings: Settings) -> list[dict[str, str]]:
    """Read all that waits for the group, and acknowledge it; return the outcomes."""
    told: list[dict[str, str]] = []
    while found := client.xreadgroup(GROUP, "me", {rk.results(T): ">"}, count=500):
        told += [fields for _, fields in found[0][1]]
        client.xack(rk.results(T), GROUP, *(entry for entry, _ in found[0][1]))
        trim_all(ledger, settings)
    assert not [fields for fields in told if fields.get("type") == "lost"]
    return [fields for fields in told if "request" in fields]


def main(words: list[str] | None = None) -> list[str]:
    """Run; print the figures and return what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=11_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words)
    rng = random.Random(asked.seed)
    with tempfile.TemporaryDirectory(prefix="soak-intake-") as folder, Servers(Path(folder)) as endpoints:
        settings = endpoints.into(Settings(home=Path(folder)))
        store, client = Store(settings, patience=30), redis_client(settings)
        store.ensure_bucket()
        store.put_json(Keys(T, settings.s3_prefix).current("c"), {"version": "v-1", "corpus": "c"})
        client.xgroup_create(rk.results(T), GROUP, id="0", mkstream=True)
        ledger = Ledger(client, patience=5)
        expected = fill(client, asked.requests, rng)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("COMMUNITREE_")}
        env = {**clean, **endpoints.environment(), "PYTHONPATH": str(TESTS), "COMMUNITREE_LEASE": "1",
               "COMMUNITREE_S3_BUCKET": settings.s3_bucket, "COMMUNITREE_MAX_OPEN_JOBS": "1000000"}  # fmt: skip

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen([sys.executable, "-P", "-m", "support.intake_process"], env=env)

        began, kills = time.monotonic(), 0
        running = [start(), start()]
        try:
            while left := int(client.xlen(rk.requests(T))):  # type: ignore[arg-type]
                if time.monotonic() - began > 1800:
                    break
                if left < asked.requests * (1 - (kills + 0.5) / asked.kills):
                    for n, process in enumerate(running):  # whoever serves: both
                        process.kill()
                        process.wait()
                        running[n] = start()
                    client.delete(rk.INTAKE)  # its lease of 10 s would run out all the same
                    kills += 1
                trim_all(ledger, settings)
                time.sleep(0.02)
        finally:
            for process in running:
                process.kill()
                process.wait()
        told = read(client, ledger, settings)
        jobs = int(client.zcard(rk.OPEN_JOBS))  # type: ignore[arg-type]
        client.close()
    outcomes = Counter(f["request"] for f in told)
    wrong = [f"{e}: {outcomes[e]} outcomes" for e in expected if outcomes[e] != 1]
    by_entry = {f["request"]: f for f in told}
    wrong += [f"{e}: {by_entry[e]['type']}, not {what}" for e, what in expected.items()
              if e in by_entry and by_entry[e]["type"] != what.split(" ")[0].replace("pair", "accepted")]  # fmt: skip
    pairs: dict[str, set[str]] = {}
    for e, what in expected.items():
        if what.startswith("pair") and e in by_entry:
            pairs.setdefault(what, set()).add(by_entry[e].get("job", ""))
    wrong += [f"{pair}: {len(found)} jobs" for pair, found in pairs.items() if len(found) != 1]
    wanted = len({what if what.startswith("pair") else e for e, what in expected.items() if what != "rejected"})
    wrong += [] if jobs == wanted else [f"{jobs} jobs, not {wanted}"]
    malformed = sum(what == "rejected" for what in expected.values())
    seconds = time.monotonic() - began
    print(f"{len(expected)} requests ({malformed} malformed, {2 * len(pairs)} in pairs), {kills} kills of the intakes,")
    print(f"  {seconds:.0f} s: {len(outcomes)} have an outcome, {len(wrong)} a wrong one {wrong[:5] or ''}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))

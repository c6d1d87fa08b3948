"""Random calls of the ledger's scripts from many threads on one job, and what must hold whatever their order was."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from typing import Any

from communitree_shared.contract.messages import Unit
from communitree_shared.ledger import Ledger, Stage, Step
from communitree_shared.ledger.client import Arrival
from communitree_shared.ledger.entry import finish_spec
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

T = "default"
PLAN = Step("plan", "communitree.query.plan.v1")
REDUCE = Step("reduce", "communitree.query.reduce.v1")
ALLOWED = 4


class Race:
    """One job after another, each worked on by eight threads that do things in any order and too often."""

    def __init__(self, settings: Settings, threads: int = 8) -> None:
        self.ledgers = [Ledger(redis_client(settings), patience=10) for _ in range(threads)]
        self.calls = 0

    def close(self) -> None:
        """Close the connections."""
        for ledger in self.ledgers:
            ledger.redis.close()

    def run(self, seed: int) -> None:
        """Run one job through random calls to its end; raise AssertionError where a rule was broken."""
        rng = random.Random(seed)
        job, units = f"race-{seed}", rng.randint(1, 24)
        first = self.ledgers[0]
        record = {"kind": "query", "corpus": "c", "on_failure": finish_spec(T, job)}
        flight = rk.in_flight(T, job)
        first.submit(T, job, record, PLAN, in_flight=flight)
        stage = Stage("map", "communitree.query.map.v1", REDUCE, window=rng.randint(1, units + 2))
        made = stage.messages(
            T, job, [Unit(id=f"u{n}") for n in range(units)], local=False, per_message=rng.randint(1, 4)
        )
        ends = rng.choice(["", "", "", "expire", "cancel", "finish"])
        new: list[tuple[str, str]] = []
        ended: list[str] = []
        errors: list[BaseException] = []
        begun: Counter[str] = Counter()
        lock = threading.Lock()

        def work(n: int, ledger: Ledger) -> None:
            mine = random.Random(seed * 31 + n)
            for step in range(mine.randint(20, 40)):
                with lock:
                    self.calls += 1
                act = mine.random()
                identity, _, ids, _ = mine.choice(made)
                unit = mine.choice(ids)
                if act < 0.05:
                    assert ledger.open(T, job, stage, made)[0] in {"ok", "exists", "gone"}
                elif act < 0.10:
                    ledger.submit(T, f"{job}-{n}-{step}", {"kind": "query"}, PLAN, in_flight=flight)
                    ledger.finish(T, f"{job}-{n}-{step}", "failed", {}, 60)  # where it became a job of its own
                elif act < 0.45:
                    lease, direct = mine.choice([0.001, 5.0]), mine.random() < 0.3
                    found = ledger.begin(T, job, "map", identity, ids, lease, ALLOWED, direct=direct)
                    with lock:
                        begun.update(u for u, verdict in found.verdicts.items() if verdict == "go")
                elif act < 0.75:
                    several = mine.choices([u for _, _, them, _ in made for u in them], k=mine.randint(1, 6))
                    ends_of = [
                        Arrival(u, mine.random() < 0.8, {"by": f"{n}-{step}-{i}"}, {}) for i, u in enumerate(several)
                    ]
                    statuses, _ = ledger.arrive_all(T, job, "map", ends_of)
                    with lock:
                        new.extend(
                            (end.unit, end.outcome["by"])
                            for end, status in zip(ends_of, statuses, strict=True)
                            if status == "new"
                        )
                elif act < 0.82:
                    dead = mine.choice(["", "a child:1"])  # which may have had it in its hands and not begun it
                    ledger.give_back(
                        T, job, "map", unit, delay_s=0, refund=mine.random() < 0.5, why="again", owner=dead
                    )
                elif act < 0.88:
                    ledger.renew([f"{T}|{job}|map|{u}" for u in ids], 0.01)
                elif act < 0.96:
                    for _, outgoing in ledger.overdue(0.001, 0.001, 50, 0.001):
                        ledger.published([outgoing])
                elif step > 15 and ends == "expire":
                    ledger.expire(T, job, "map", "deadline")
                elif step > 15 and ends == "cancel":
                    ledger.cancel(T, job, f"call-{n}", 60)
                elif step > 15 and ends == "finish":
                    status, _ = ledger.finish(T, job, "failed", {}, 60)
                    with lock:
                        ended.extend([status] if status == "ok" else [])

        def guarded(n: int, ledger: Ledger) -> None:
            try:
                work(n, ledger)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=each) for each in enumerate(self.ledgers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        self._finish(job, stage, made, new)
        self._check(job, units, new, ended, begun)

    def _finish(self, job: str, stage: Stage, made: list[Any], new: list[tuple[str, str]]) -> None:
        """Do in order what is left to do."""
        ledger = self.ledgers[0]
        ledger.open(T, job, stage, made)
        for _, _, ids, _ in made:
            for unit in ids:
                status, _ = ledger.arrive(T, job, "map", unit, ok=True, outcome={"by": "last"}, event={})
                new += [(unit, "last")] if status == "new" else []
        if ledger.record(T, job)["state"] in {"queued", "running"}:
            assert ledger.stage_record(T, job, "map")["state"] == "closed"
            assert "reduce" in ledger.stage_names(T, job)
            ledger.finish(T, job, "answered", {}, 60)

    def _check(self, job: str, units: int, new: list[tuple[str, str]], ended: list[str], begun: Counter[str]) -> None:
        ledger = self.ledgers[0]
        events = [fields for _, fields in ledger.events(T, job)]
        types = Counter(e["type"] for e in events)
        outcomes = ledger.outcomes(T, job, "map")
        record = ledger.stage_record(T, job, "map")
        told = Counter(e["unit"] for e in events if e["type"] == "unit.ended" and e["stage"] == "map")
        assert types["job.ended"] == 1, types
        assert len(ended) <= 1
        assert set(told.values()) <= {1}, told
        assert set(told) == set(outcomes), "an outcome was not told"
        for unit, by in new:  # the first outcome won, and its caller alone was told so
            assert outcomes[unit]["by"] == by, (unit, by, outcomes[unit])
        assert len({unit for unit, _ in new}) == len(new)
        closes = sum(e["type"] == "stage.ended" and e["stage"] == "map" for e in events)
        assert types["reduce.started"] == closes <= 1
        if record:
            assert int(record["done"]) == len(outcomes) <= int(record["total"]) == units
            assert int(record["failed"]) == sum(not o["ok"] for o in outcomes.values())
            assert closes == (len(outcomes) == units)
        sequence = [int(e["seq"]) for e in events]
        assert sequence == list(range(1, len(events) + 1)), "events out of order"
        assert not (left := self.left(job)), left

    def left(self, job: str) -> list[str]:
        """Return what an ended job has left behind: keys without a time to live, members of the sets of all jobs."""
        client: Any = self.ledgers[0].redis
        found = []
        for key in map(str, client.scan_iter("communitree:*")):
            if job in key:
                found += [key] if client.ttl(key) == -1 else []
                continue
            kind = client.type(key)
            members: list[Any] = {
                "zset": lambda k: client.zrange(k, 0, -1), "hash": client.hkeys,
                "list": lambda k: client.lrange(k, 0, -1),
            }.get(kind, lambda k: [])(key)  # fmt: skip
            if not key.startswith(rk.jobs(T)) and key != rk.UNWRITTEN:  # which no reconciler empties here
                found += [f"{key}: {m}" for m in members if f"|{job}|" in str(m) or str(m).endswith(f"|{job}")]
        return found

    def at_rest(self) -> list[str]:
        """Return which of the sets of all jobs still hold anything."""
        client: Any = self.ledgers[0].redis
        names = [rk.LEASES, rk.OWNERS, rk.SENT, rk.OUTBOX, rk.REPUBLISHED, rk.OPEN_JOBS, rk.DEADLINES]
        names += [str(k) for pattern in ("ready:*", "turn:*", "flight:*", "staging:*")
                  for k in client.scan_iter(rk.PREFIX + pattern)]  # fmt: skip
        waiting = json.dumps(client.hgetall(rk.WAITING))
        busy = [name for name in names if client.exists(name)]
        return busy + ([f"waiting {waiting}"] if waiting not in ("{}", '{"*": "0"}') else [])

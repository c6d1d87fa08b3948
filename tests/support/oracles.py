"""What must hold for every job, whatever happened while it ran."""

from __future__ import annotations

from typing import Any


def sums_close(account: dict[str, Any]) -> None:
    batches, points, citations = account["batches"], account["points"], account["citations"]
    assert batches["answered"] + batches["failed"] == batches["total"]
    assert batches["empty"] <= batches["answered"]
    assert points["used"] + points["dropped"] + points["zero"] + points["duplicate"] == points["produced"]
    assert points["in_answer"] + points["named"] + points["not_stated"] + points["unknown"] in (0, points["used"])
    assert points["condensed"] <= points["not_stated"]
    assert citations["verified"] + citations["unverified"] == citations["total"]
    assert sum(citations[grade] for grade in ("supported", "related", "unsupported", "unknown")) == citations["total"]
    reports = account["reports"]
    assert reports["cited"] + len(reports["silent"]) + len(reports["unread"]) == reports["selected"]


def reports_close(result: dict[str, Any]) -> None:
    reports = result["reports"]
    assert sum(reports.values()) == result["counts"]["communities"] == result["counts"]["reports"]
    assert reports["failed"] == 0
    assert result["coverage"]["entities"] == result["coverage"]["text_units"] == 1.0


def levels_in_order(events: list[dict[str, Any]]) -> None:
    """No report of a level starts before the last one of the level below has ended."""
    open_levels: set[int] = set()
    seen: list[int] = []
    for event in events:
        if event["type"] == "level.started":
            assert not open_levels, event
            open_levels.add(event["level"])
            seen.append(event["level"])
        if event["type"] == "level.ended":
            open_levels.remove(event["level"])
        if event["type"] == "unit.ended" and str(event.get("stage", "")).startswith("report-"):
            assert event["level"] in open_levels, event
    assert seen == sorted(seen, reverse=True)
    assert seen
    assert seen[-1] == 0


def one_commit(events: list[dict[str, Any]]) -> None:
    types = [event["type"] for event in events]
    assert types.count("reduce.committed") == 1
    assert types.count("job.ended") == 1


def shape(tree: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    """What two trees of one corpus must share: key, level, number and title of every community."""
    return [(c["key"], c["level"], c["id"], c["title"]) for c in tree["communities"]]


#: Keys that live without a TTL while nothing runs: counters, and streams and sets that are trimmed as they grow.
_LASTING = (
    "communitree:epoch", "communitree:watermark", "communitree:lanes", "communitree:waiting", "communitree:jobs:",
    "communitree:results:", "communitree:dead:", "communitree:requests:", "communitree:bucket", "communitree:binding",
    "communitree:models", "communitree:streams",
)  # fmt: skip


def unowned(redis: Any) -> list[str]:
    """At rest every key has a time to live, or is one of the few that last; return the others."""
    return [k for k in map(str, redis.scan_iter("*")) if redis.ttl(k) == -1 and not k.startswith(_LASTING)]

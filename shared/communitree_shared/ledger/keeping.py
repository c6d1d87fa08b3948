"""How long results and dead letters stay in their streams, which others read at a pace of their own.

Nothing is dropped before all consumer groups of a stream have acknowledged it, unless it is too much or too old: a
group that never comes back must not fill Redis. What is dropped unread is told by an entry of the same stream, `lost`,
with how many entries went and up to which id. The reconciler looks at each tick; it reads only what it drops.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import redis

from communitree_shared import clock
from communitree_shared.ledger.client import Ledger
from communitree_shared.ledger.stages import compact
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings

log = logging.getLogger(__name__)

#: The type of the entry that tells of a loss.
LOST = "lost"

#: Unread entries are dropped when they are so much beyond a limit, down to the limit: so that a stream of which much is
#: lost has few entries that say so.
SLACK_NUMBER, SLACK_TIME = 1.1, 1.05

#: So many entries go at one look. So many are read first (often none may go), and so many in each further go.
AT_ONCE, FEW, PAGE = 20_000, 10, 1_000

#: The id of a stream's entry, as numbers: milliseconds of the Redis server's clock, and a number within these.
Id = tuple[int, int]


@dataclass(frozen=True)
class Rule:
    """What stays: the newest `number` entries, up to `unread` of which a group has not acknowledged, for `seconds`."""

    number: int
    unread: int
    seconds: float


#: What stays of the messages that no publisher of ours made.
FOREIGN = Rule(1_000, 1_000, 30 * 24 * 3600.0)


@dataclass(frozen=True)
class Cut:
    """What may go: entries up to `until` (included); `lost` of them were read by no group or not by all."""

    until: Id
    lost: int = 0
    #: Whether anything but the news of an earlier loss is lost.
    news: bool = False


def rule_of(stream: str, settings: Settings) -> Rule:
    """Return the rule of one of the streams that are trimmed."""
    if stream == rk.dead_letters(rk.FOREIGN):
        return FOREIGN
    if stream.startswith(rk.dead_letters("")):
        return Rule(settings.dead_letters_keep, settings.dead_letters_keep, settings.dead_letters_keep_seconds)
    kept = settings.results_keep
    return Rule(kept, max(kept, settings.results_keep_unread), settings.results_keep_seconds)


def trim_all(ledger: Ledger, settings: Settings) -> int:
    """Trim every stream that is longer or older than its rule; return how many unread entries were lost."""
    members: Any = ledger.redis.smembers(rk.STREAMS)
    return trim(ledger, {stream: rule_of(stream, settings) for stream in sorted(map(str, members))})


def trim(ledger: Ledger, rules: Mapping[str, Rule]) -> int:
    """Trim those of these streams that are longer or older than their rules; return how many entries were lost."""
    client = ledger.redis
    pipe = client.pipeline(transaction=False)
    for stream in rules:
        pipe.xlen(stream)
        pipe.xrange(stream, count=1)
    found, now = pipe.execute(), clock.now_of(client)
    return sum(
        _trim(ledger, stream, rule, length, str(first[0][0]), now)
        for (stream, rule), length, first in zip(rules.items(), found[::2], found[1::2], strict=True)
        if first and _due(length, _id(first[0][0]), rule, now)
    )


def _trim(ledger: Ledger, stream: str, rule: Rule, length: int, first: str, now: float) -> int:
    groups = _read_up_to(ledger.redis, stream)
    if not groups:
        rule = replace(rule, unread=rule.number)
    read = min(groups.values(), default=(0, 0))
    cut = cut_of(entries(ledger.redis, stream), length, rule, read, now)
    if cut is None:
        return 0
    told: dict[str, Any] = {}
    if cut.lost and (groups or cut.news):
        behind = sorted(group for group, up_to in groups.items() if up_to <= cut.until)
        told = {"type": LOST, "count": cut.lost, "until": _text(cut.until), "at": f"{now:.3f}"}
        told |= {"groups": ",".join(behind)} if behind else {}
    fields = compact([str(part) for pair in told.items() for part in pair])
    stays = _text((cut.until[0], cut.until[1] + 1))
    if int(ledger._run("trim", stream, first, stays, fields)) < 0 or not told:
        return 0
    log.warning("%s: %d entries that nobody had read were dropped, up to %s", stream, cut.lost, told["until"])
    return cut.lost


def cut_of(found: Iterator[tuple[str, dict[str, str]]], length: int, rule: Rule, read: Id, now: float) -> Cut | None:
    """Return what may go of a stream's entries, the oldest first; None where all stay.

    Args:
        found: id and fields of the entries, in order; as many are taken as go.
        length: how many there are.
        rule: what stays. Where there are no groups, `unread` is `number`.
        read: the first id that not all groups have acknowledged; (0, 0) where nobody has read anything.
        now: unix seconds, by the clock of Redis.
    """
    oldest = (now - rule.seconds) * 1000
    cut: Cut | None = None
    may_lose: bool | None = None
    for gone, (entry, fields) in enumerate(found):
        this = _id(entry)
        acknowledged = this < read
        if not acknowledged and may_lose is None:
            too_old = this[0] < (now - SLACK_TIME * rule.seconds) * 1000
            may_lose = too_old or length - gone > SLACK_NUMBER * rule.unread
        stays = this[0] >= oldest and length - gone <= (rule.number if acknowledged else rule.unread)
        if stays or gone == AT_ONCE or not (acknowledged or may_lose):
            break
        lost, news = (cut.lost, cut.news) if cut else (0, False)
        if not acknowledged:
            told = fields.get("type") == LOST
            lost, news = lost + (int(fields.get("count", 1)) if told else 1), news or not told
        cut = Cut(this, lost, news)
    return cut


def entries(client: redis.Redis, stream: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield id and fields of a stream's entries, the oldest first."""
    start, count = "-", FEW
    while True:
        page: Any = client.xrange(stream, start, count=count)
        yield from page
        if len(page) < count:
            return
        start, count = f"({page[-1][0]}", PAGE


def _due(length: int, first: Id, rule: Rule, now: float) -> bool:
    return length > SLACK_NUMBER * rule.number or first[0] < (now - SLACK_TIME * rule.seconds) * 1000


def _read_up_to(client: redis.Redis, stream: str) -> dict[str, Id]:
    """Return, for each consumer group, the first id that it has not acknowledged."""
    try:
        groups: Sequence[dict[str, Any]] = client.xinfo_groups(stream)
        found = {}
        for group in groups:
            name, (ms, n) = str(group["name"]), _id(str(group["last-delivered-id"]))
            waits: Any = client.xpending(stream, name) if group["pending"] else {}
            found[name] = _id(str(waits["min"])) if waits.get("min") else (ms, n + 1)
    except redis.exceptions.NoPermissionError as error:
        # The rights are those of an older release. Then nobody is known to have read anything.
        log.warning("%s is kept as if nobody had read it: %s", stream, error)
        return {"?": (0, 0)}
    return found


def _id(text: str) -> Id:
    ms, _, n = text.partition("-")
    return int(ms), int(n or 0)


def _text(entry: Id) -> str:
    return f"{entry[0]}-{entry[1]}"

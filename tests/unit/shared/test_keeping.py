"""What may go of a stream, and how many of its readers lose something: a function of ids, numbers and times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from communitree_shared.ledger.keeping import AT_ONCE, FOREIGN, Cut, Rule, cut_of, rule_of
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings

NOW = 1_800_000_000.0
WEEK = 7 * 24 * 3600.0
RULE = Rule(10, 100, WEEK)


def stream(length: int, *, ended: float = NOW, lost_at: dict[int, int] | None = None) -> list[Any]:
    """Entries a millisecond apart, the last one now; `lost_at`: those that tell of a loss."""
    found = []
    for n in range(length):
        told = (lost_at or {}).get(n)
        fields = {"type": "lost", "count": str(told)} if told else {"job": f"j{n}"}
        found.append((f"{int(ended * 1000) - length + n}-0", fields))
    return found


def at(entries: list[Any], n: int) -> tuple[int, int]:
    return int(entries[n][0].split("-")[0]), 0


def cut(entries: list[Any], rule: Rule = RULE, read: tuple[int, int] = (0, 0), now: float = NOW) -> Cut | None:
    return cut_of(iter(entries), len(entries), rule, read, now)


def test_what_all_groups_have_read_goes_down_to_the_number() -> None:
    entries = stream(50)
    assert cut(entries, read=at(entries, 30)) == Cut(at(entries, 29))
    assert cut(entries, read=at(entries, 45)) == Cut(at(entries, 39))


def test_what_a_group_has_not_read_stays() -> None:
    entries = stream(100)
    assert cut(entries) is None
    assert cut(entries, read=at(entries, 1)) == Cut(at(entries, 0))


def test_too_many_unread_entries_are_lost_and_counted_but_not_one_at_a_time() -> None:
    assert cut(stream(110)) is None
    entries = stream(111)
    assert cut(entries) == Cut(at(entries, 10), 11, news=True)
    assert cut(entries, read=at(entries, 4)) == Cut(at(entries, 3))  # 107 are left then
    entries = stream(150)
    assert cut(entries, read=at(entries, 4)) == Cut(at(entries, 49), 46, news=True)


@pytest.mark.parametrize(("age", "goes"), [(WEEK * 1.04, False), (WEEK * 1.06, True)])
def test_what_is_too_old_is_lost_too(age: float, goes: bool) -> None:
    entries = stream(5, ended=NOW - age) + stream(3)
    found = cut(entries, now=NOW)
    assert found == (Cut(at(entries, 4), 5, news=True) if goes else None)
    assert cut(entries, read=at(entries, 6)) == Cut(at(entries, 4))  # read: nothing is lost


def test_the_news_of_an_earlier_loss_is_carried_on() -> None:
    entries = stream(111, lost_at={0: 500, 3: 7})
    assert cut(entries) == Cut(at(entries, 10), 500 + 7 + 9, news=True)
    only = stream(2, ended=NOW - 2 * WEEK, lost_at={0: 3, 1: 4})
    assert cut(only) == Cut(at(only, 1), 7, news=False)


def test_so_many_go_at_one_look_and_no_more_are_read() -> None:
    def endless() -> Iterator[tuple[str, dict[str, str]]]:
        n = 0
        while True:
            assert n <= AT_ONCE
            yield f"{int(NOW * 1000)}-{n}", {}
            n += 1

    found = cut_of(endless(), 10**9, RULE, (0, 0), NOW)
    assert found == Cut((int(NOW * 1000), AT_ONCE - 1), AT_ONCE, news=True)


def test_each_stream_has_its_rule() -> None:
    settings = Settings(results_keep=5, results_keep_unread=3, dead_letters_keep=7, dead_letters_keep_seconds=60)
    assert rule_of(rk.results("a"), settings) == Rule(5, 5, WEEK)  # never fewer than stay in any case
    assert rule_of(rk.dead_letters("a"), settings) == Rule(7, 7, 60)
    assert rule_of(rk.dead_letters(rk.FOREIGN), settings) == FOREIGN

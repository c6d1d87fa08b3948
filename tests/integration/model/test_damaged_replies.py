"""Thousands of damaged replies: no exception, no damaged text, every loss counted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from communitree_shared.errors import BadInput
from communitree_workers.model.replies.reading import read
from support.damaged import DAMAGES, damaged, prefix_of

#: What surrounds a reply may come with anything that is wrong inside it.
AROUND = ("fence", "think", "prose", "chinese prose", "bom")
INSIDE = [name for name in DAMAGES if name not in (*AROUND, "open fence", "orphan think end", "unclosed", "none")]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def test_one_damage_each() -> None:
    for name in DAMAGES:
        for seed in range(150):
            value, raw = damaged(random.Random(f"{name} {seed}"), name)
            assert read(raw).value == value, f"{name}: {raw}"


def test_a_damage_inside_and_one_around() -> None:
    for inside in INSIDE:
        for around in AROUND:
            for seed in range(25):
                value, raw = damaged(random.Random(f"{inside} {around} {seed}"), inside, around)
                assert read(raw).value == value, f"{inside}, {around}: {raw}"


def test_cut_anywhere() -> None:
    for seed in range(3000):
        rng = random.Random(seed)
        value, raw = damaged(rng, "none")
        reading = read(raw[: rng.randrange(raw.index('"') + 1, len(raw))])
        assert reading.repairs > 0
        assert prefix_of(reading.value, value), raw


def test_characters_lost_doubled_or_changed() -> None:
    """Nobody can know what was meant: no exception, and a reading that lost a text says that it was repaired."""
    for seed in range(4000):
        rng = random.Random(seed)
        value, raw = damaged(rng, "none")
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(raw))
            raw = raw[:at] + rng.choice(["", raw[at] * 2, rng.choice("{}[]\",:'“”\\ \n，")]) + raw[at + 1 :]
        try:
            reading = read(raw)
        except BadInput:
            continue
        missing = set(texts(value)) - set(texts(reading.value))
        assert reading.repairs > 0 or not missing or _strict(raw)


def _strict(raw: str) -> bool:
    """Whether the change left valid JSON, which nobody can tell from what was meant."""
    import orjson

    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True

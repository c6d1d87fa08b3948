"""Which entities of a model's results are one, by the aliases that it gave: "Captain Brook" where one is "Ada Brook".

Conservative: an alias unites only where it is the title of another entity of the same type (or of one that has no type,
as the ends of relationships have none), and where no second entity claims it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

#: Rows of entities (key, type), a part at a time, as often as it is asked for.
Parts = Callable[[], Iterable[pa.Table]]


class Aliases:
    """What entities are also called. Keys are unified titles."""

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}

    def add(self, owner: str, alias: str) -> None:
        """Note that an entity is also called so."""
        if alias and alias != owner:
            self._owners.setdefault(alias, set()).add(owner)

    def same(self, parts: Parts) -> dict[str, str]:
        """Return for each title that is another entity's alias the title of that entity.

        Where entities name each other, or in a ring, the one with the most rows gives its title, the first of equals.
        """
        sole = {alias: next(iter(owners)) for alias, owners in self._owners.items() if len(owners) == 1}
        if not sole:
            return {}
        types, rows = _counted(parts, {*sole, *sole.values()})
        links = {
            alias: owner
            for alias, owner in sole.items()
            if rows[alias] and (not types.get(alias) or types.get(alias) == types.get(owner))
        }
        return {alias: root for alias in links if (root := _root(alias, links, rows)) != alias}


def _counted(parts: Parts, wanted: set[str]) -> tuple[dict[str, str], Counter[str]]:
    """Return the commonest type of each of these titles, "" left out, and how many rows each has."""
    keys = pa.array(sorted(wanted), pa.string())
    found: Counter[tuple[str, str]] = Counter()
    for part in parts():
        some = part.filter(pc.is_in(part["key"], value_set=keys))
        found.update(zip(some["key"].to_pylist(), some["type"].to_pylist(), strict=True))
    rows: Counter[str] = Counter()
    types: dict[str, str] = {}
    for (key, kind), n in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        rows[key] += n
        if kind:
            types.setdefault(key, kind)
    return types, rows


def _root(alias: str, links: dict[str, str], rows: Counter[str]) -> str:
    """Return where a chain of aliases ends."""
    path = [alias]
    while path[-1] in links:
        following = links[path[-1]]
        if following in path:
            return min(path[path.index(following) :], key=lambda key: (-rows[key], key))
        path.append(following)
    return path[-1]

"""The rooms of the corpus and the report stage: small, named apart, and none looks at one that comes after it."""

from __future__ import annotations

import pytest

from support.house import PACKAGES, ROOT, Module, modules

WORKERS = "communitree_workers"
#: Stage → its rooms from below upwards: a room imports itself and those before it. What stands beside the rooms is
#: either read by them (first) or puts them together (last).
ROOMS: dict[str, tuple[str, ...]] = {
    "corpus": (
        *("export", "disk", "reading", "losses"),
        *("extraction", "graph_import", "text_units", "merging"),
        "tasks",
    ),
    "report": ("records", "citations", "evidence", "writing", "table", "tasks"),
}
EACH = pytest.mark.parametrize(("stage", "room"), [(s, r) for s, rooms in ROOMS.items() for r in rooms])
MOST_MODULES = 15
#: Endings that make two names of one word.
ENDINGS = ("ings", "ing", "ers", "er", "ed", "es", "e", "s")


def inside(stage: str, room: str) -> list[Module]:
    prefix = f"{WORKERS}.{stage}.{room}"
    return [m for m in modules() if m.name == prefix or m.name.startswith(f"{prefix}.")]


@pytest.mark.parametrize("stage", ROOMS)
def test_every_room_has_a_place_in_the_order(stage: str) -> None:
    folder = PACKAGES[WORKERS] / stage
    names = {path.stem for path in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")}
    assert names == {*ROOMS[stage], "__init__"}


@EACH
def test_a_room_imports_none_that_comes_later(stage: str, room: str) -> None:
    rooms, prefix = ROOMS[stage], f"{WORKERS}.{stage}."
    later = {prefix + name for name in rooms[rooms.index(room) + 1 :]}
    found = [f"{m.name} → {t}" for m in inside(stage, room) for t in m.imports if ".".join(t.split(".")[:3]) in later]
    assert not found


@EACH
def test_a_room_is_small_and_its_modules_are_named_apart(stage: str, room: str) -> None:
    names = [m.path.stem for m in inside(stage, room) if m.path.name != "__init__.py"]
    assert len(names) <= MOST_MODULES
    endings = [next((e for e in ENDINGS if n.endswith(e) and len(n) - len(e) >= 3), "") for n in names]
    assert len({n.removesuffix(e) for n, e in zip(names, endings, strict=True)}) == len(names)


@pytest.mark.parametrize("stage", ROOMS)
def test_unit_tests_stand_in_the_same_rooms(stage: str) -> None:
    rooms = {path.name for path in (ROOT / "tests/unit" / stage).iterdir() if any(path.glob("test_*.py"))}
    assert rooms == {p.parent.name for p in (PACKAGES[WORKERS] / stage).glob("*/__init__.py")}

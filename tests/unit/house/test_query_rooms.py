"""The rooms of the query stage: their folders stand in the order of a question's life, and nothing looks ahead."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

import pytest

from support.house import PACKAGES, ROOT, modules

QUERY = "communitree_workers.query"
FOLDER = PACKAGES["communitree_workers"] / "query"
#: From below upwards: a room imports itself and those before it.
ROOMS = (
    "wording",
    "view",
    "question",
    "selection",
    "batches",
    "builtin",
    "planning",
    "map",
    "points",
    "answer",
    "reduce",
)
MOST_MODULES = 15
#: Endings that make two names of one word.
ENDINGS = ("ings", "ing", "ers", "er", "ed", "es", "e", "s")

ALL = [m for m in modules() if m.name.startswith(f"{QUERY}.")]


def room_of(name: str) -> str:
    return name.removeprefix(f"{QUERY}.").split(".")[0]


def test_every_folder_is_a_room_with_a_place_in_the_order() -> None:
    assert {path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists()} == set(ROOMS)
    assert {path.name for path in FOLDER.glob("*.py")} == {"__init__.py", "tasks.py"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_small_and_imports_none_that_comes_later(room: str) -> None:
    inside = [m for m in ALL if room_of(m.name) == room and m.path.name != "__init__.py"]
    assert 1 < len(inside) <= MOST_MODULES
    later = {*ROOMS[ROOMS.index(room) + 1 :], "tasks"}
    assert not [f"{m.name} → {t}" for m in inside for t in m.imports if t.startswith(QUERY) and room_of(t) in later]


def test_no_two_modules_of_a_room_have_names_of_one_word() -> None:
    def stem(word: str) -> str:
        ending = next((e for e in ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
        return word.removesuffix(ending)

    stems = [(m.path.parent.name, stem(m.path.stem)) for m in ALL if m.path.name != "__init__.py"]
    assert len(set(stems)) == len(stems)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {m.name: {t for t in (*m.imports, *(t.rpartition(".")[0] for t in m.imports)) if t != m.name} for m in ALL}
    assert not circle(graph)
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {"a", "b", "c", "d"}


def circle(graph: Mapping[str, set[str]]) -> set[str]:
    """Return what is left when everything that imports nothing of the rest is taken out again and again."""
    left = set(graph)
    while out := {name for name in left if not graph[name] & left}:
        left -= out
    return left


def test_unit_tests_stand_in_the_same_rooms() -> None:
    tests = {path.name for path in (ROOT / "tests/unit/query").iterdir() if any(path.glob("test_*.py"))}
    assert tests == set(ROOMS)


def test_the_life_of_a_question_is_told_by_stops_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    told = re.search(r"^## Life of a question\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert told is not None
    stops = re.findall(r"^- `([^`]+\.py)` `([\w.]+)`: ", told[1], re.MULTILINE)
    assert len(stops) == len(re.findall("^- ", told[1], re.MULTILINE))
    assert 6 <= len(stops) <= 12
    assert [stop for stop in stops if not stands(*stop)] == []
    assert not stands("workers/communitree_workers/query/reduce/writer.py", "Writer.gone")


def stands(path: str, name: str) -> bool:
    """Say whether a file has a function, or a class a method."""
    if not (ROOT / path).exists():
        return False
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text("utf-8")).body
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [node for node in body if isinstance(node, kinds) and node.name == part]
        if not found:
            return False
        body = found[0].body
    return True

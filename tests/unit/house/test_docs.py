"""The documentation says what the code does: generated parts are fresh, names exist, links lead somewhere."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys

import pytest

from communitree_shared.contract import messages
from communitree_shared.objects import keys
from communitree_shared.redis_server import rediskeys
from communitree_shared.settings import Settings
from support.house import ROOT
from support.settings_list import variables

PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_generated_parts_are_fresh() -> None:
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True, env=environ, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_option_is_cut_off_in_the_reference() -> None:
    text = read("docs/commands.md")
    assert text.count("--json") > 10
    assert not re.findall(r"--[a-z-]+…", text)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "docs/commands.md"])
def test_commands_and_options_in_the_text_exist(name: str) -> None:
    reference = read("docs/commands.md")
    commands = set(re.findall(r"^## communitree ([a-z-]+)$", reference, re.MULTILINE))
    text = re.sub(r"<!-- generated.*?<!-- end -->", "", read(name), flags=re.DOTALL)
    called = set(re.findall(r"(?:`|bin/|^)communitree ([a-z][a-z-]+)", text, re.MULTILINE))
    assert called <= commands
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    others = {"--scale", "--help", "--rm", "--no-deps"}
    assert options <= others | set(re.findall(r"--[a-z][a-z-]+", reference))


def test_architecture_names_every_queue_and_key() -> None:
    text = read("ARCHITECTURE.md")
    words = set(re.findall(r"[\w.]+", text))
    assert set(messages.QUEUES) <= words
    for name, value in vars(rediskeys).items():
        a_key = name.isupper() and name != "PREFIX" and str(value).startswith(rediskeys.PREFIX)
        if a_key or inspect.isfunction(value):
            assert f"`{name}`" in text, name
    for name, method in vars(keys.Keys).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            assert name in words, name


def test_every_task_is_described() -> None:
    text = read("docs/messages.md")
    rows = dict(re.findall(r"^\| `(communitree\.[a-z0-9.]+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    assert set(rows) == set(messages.TASKS)
    assert all(does.strip() for does in rows.values())


def test_architecture_stays_one_page() -> None:
    assert len(read("ARCHITECTURE.md").splitlines()) <= 200


def test_messages_name_every_event() -> None:
    scripts = (ROOT / "shared/communitree_shared/ledger/scripts").glob("*.lua")
    told = {kind for script in scripts for kind in re.findall(r"event\(t, j, '([a-z._]+)'", script.read_text())}
    for path in (ROOT / "workers").rglob("*.py"):
        told |= set(re.findall(r"\.tell\(\s*\"([a-z._]+)\"", path.read_text(encoding="utf-8")))
    assert len(told) > 8
    assert told <= set(re.findall(r"`([a-z._]+)`", read("docs/messages.md")))


@pytest.mark.parametrize("name", NAMES)
def test_settings_in_the_text_exist(name: str) -> None:
    named = set(re.findall(r"\bCOMMUNITREE_[A-Z0-9_]*[A-Z0-9]\b", read(name)))
    assert {setting.removesuffix("_FILE") for setting in named} <= variables() | {"COMMUNITREE_LLM"}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for target in LINK.findall(read(name)):
        if "://" not in target:
            assert ((ROOT / name).parent / target).exists(), target


@pytest.mark.parametrize("name", NAMES)
def test_make_targets_in_the_text_exist(name: str) -> None:
    makefile = read("Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    targets |= {"bench-" + p.stem.removeprefix("bench_") for p in (ROOT / "benchmarks").glob("bench_*.py")}
    assert set(re.findall(r"(?:`|^)make ([a-z][a-z-]+)", read(name), re.MULTILINE)) <= targets


def test_every_setting_is_described() -> None:
    text = read("docs/operations.md")
    missing = [f for f in Settings.model_fields if f"| `COMMUNITREE_{f.upper()}` |" not in text]
    assert not missing


@pytest.mark.parametrize("name", sorted((ROOT / "docs/decisions").glob("*.md")), ids=lambda p: p.stem)
def test_decisions_are_numbered_and_short(name: object) -> None:
    path = ROOT / str(name)
    number, _, _ = path.stem.partition("-")
    text = path.read_text()
    assert text.startswith(f"# {number}: ")
    assert len(text.splitlines()) <= 24


def test_decisions_have_no_gap() -> None:
    numbers = sorted(int(p.name[:3]) for p in (ROOT / "docs/decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_paths_in_the_architecture_exist() -> None:
    """A path stands below a package (`workers/…/`, `shared/…/`, `producer/…/`), or a bare name beside the last one."""
    files = {
        p.relative_to(ROOT).as_posix() for top in ("shared", "producer", "workers") for p in (ROOT / top).rglob("*")
    }
    named = set(re.findall(r"`((?:[\w…-]+/)*[\w-]+\.(?:py|lua))`", read("ARCHITECTURE.md")))
    assert len(named) > 20
    assert not [n for n in named if not any(f"/{f}".endswith("/" + n.split("…/")[-1]) for f in files)]

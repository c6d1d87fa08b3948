"""The repository names the product alone: no machine's paths, no package index's hosts, no leftovers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.house import ROOT

FOLDERS = ("producer", "shared", "workers", "tests", "benchmarks", "docs", ".ci")
#: Put together here, so that this file does not hold what it looks for.
HOSTS = ["pypi" + ".org", "python" + "hosted", "npm" + "js", "debian" + ".org", "proxy." + "golang"]
PATHS = ["/ro" + "ot/", "/wo" + "rk/", "/home/" + "user"]
LEFTOVERS = ["X" * 3, "FIX" + "ME", "TO" + "DO", "<<<" + "<<<<", ">>>" + ">>>>"]


def files() -> Iterator[Path]:
    """Yield the text files of the repository: those git knows, or where there is no git, those of its folders."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if done.returncode == 0 and done.stdout:
        found = [ROOT / name.decode() for name in done.stdout.split(b"\0") if name]
    else:
        found = [p for p in ROOT.iterdir() if p.is_file()]
        found += [p for f in FOLDERS for p in (ROOT / f).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    for path in found:
        if path.is_file() and path.name != "LICENSE":
            data = path.read_bytes()
            if b"\0" not in data[:4096]:
                yield path


@pytest.mark.parametrize("words", [HOSTS, PATHS, LEFTOVERS], ids=["hosts", "paths", "leftovers"])
def test_no_file_names_what_is_not_the_product(words: list[str]) -> None:
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(w)}" if w[0].isalpha() else re.escape(w) for w in words))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found[:20])


def test_text_files_end_with_one_newline_and_have_no_tabs_or_trailing_spaces() -> None:
    found = []
    for path in files():
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix in {".py", ".md", ".toml", ".yml", ".lua", ".json"} and text:
            if not text.endswith("\n") or text.endswith("\n\n"):
                found.append(f"{path.relative_to(ROOT)}: its end")
            if path.suffix != ".md" and re.search(r"[ \t]+$", text, re.MULTILINE):
                found.append(f"{path.relative_to(ROOT)}: spaces at the end of a line")
    assert not found, "\n".join(found[:20])


def test_no_secret_or_local_file_is_tracked() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in files()}
    assert not {n for n in names if Path(n).name == ".env" or n.startswith((".venv", "dist/", "build/"))}

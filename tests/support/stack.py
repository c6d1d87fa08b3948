"""A whole stack with real workers in a folder of its own, and the command line that talks to it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import unittest.mock
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pydantic import SecretStr

from communitree.cli import main
from communitree.client import Client
from communitree.embedded.launch import Launched, launch
from communitree_shared.settings import Settings

COMMAND = (sys.executable, "-P", "-m", "communitree")

#: The same rules in a tenth of the time.
FAST = {
    "COMMUNITREE_VISIBILITY_TIMEOUT": "10",
    "COMMUNITREE_LEASE": "2",
    "COMMUNITREE_LEASE_RENEWAL": "0.5",
    "COMMUNITREE_RECONCILER_TICK": "0.5",
    "COMMUNITREE_CPU_SLOTS": "2",
    "COMMUNITREE_MODEL_SLOTS": "40",
}


@dataclass(frozen=True)
class Done:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)


class _Captured(io.StringIO):
    """A stream that is no terminal."""

    def fileno(self) -> int:
        raise OSError("a string has no descriptor")


@dataclass
class Stack:
    """A running `communitree up`; `env` is what its workers and commands run with."""

    home: Path
    env: Mapping[str, str]
    launched: Launched

    def call(self, *words: str, stdin: str = "") -> Done:
        """Run a command in this process, one at a time: the same words and code, without seconds of imports."""
        out, err = _Captured(), _Captured()
        typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        with (
            unittest.mock.patch.dict(os.environ, self.env, clear=True),
            unittest.mock.patch("sys.stdin", typed),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(words)
        return Done(code, out.getvalue(), err.getvalue())

    def run(self, *words: str, stdin: str | None = None, timeout: float = 300) -> Done:
        """Run a command as a process of its own, to its end."""
        done = subprocess.run(
            [*COMMAND, *words], env=dict(self.env), capture_output=True, text=True, input=stdin, timeout=timeout
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command; the caller waits for it (signals go to it alone)."""
        return subprocess.Popen(
            [*COMMAND, *words], env=dict(self.env), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    def json(self, *words: str, timeout: float = 300) -> Any:
        """Run a command with `--json`; it must end well."""
        return self._well(self.run(*words, "--json", timeout=timeout), words)

    def call_json(self, *words: str) -> Any:
        """The same in this process, one at a time."""
        return self._well(self.call(*words, "--json"), words)

    def _well(self, done: Done, words: tuple[str, ...]) -> Any:
        assert done.code == 0, f"{' '.join(words)}: exit {done.code}\n{done.out}\n{done.err}\n{self.logs()}"
        return done.json

    def client(self) -> Client:
        """Return a client of this stack; the caller closes it."""
        return Client(Settings(home=self.home, redis_url=SecretStr(""), s3_endpoint=""))

    def workers(self, kind: str = "") -> list[psutil.Process]:
        """Return the worker processes (main processes only), or those of one kind."""
        found = []
        for process in psutil.Process(self.launched.pid).children():
            with contextlib.suppress(psutil.Error):
                line = process.cmdline()
                if "communitree_workers" in line and (not kind or kind in line):
                    found.append(process)
        return found

    def processes(self) -> list[psutil.Process]:
        """Return everything that runs for this stack."""
        return [psutil.Process(self.launched.pid), *psutil.Process(self.launched.pid).children(recursive=True)]

    def logs(self, characters: int = 3000) -> str:
        """Return the end of each log, for a failing test."""
        logs = sorted((self.home / "logs").glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-characters:]}" for log in logs)


@contextlib.contextmanager
def running_stack(home: Path, env: Mapping[str, str] | None = None, *arguments: str) -> Iterator[Stack]:
    """Run `communitree up ARGUMENTS…` on a folder, with no setting but those of `env`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COMMUNITREE_")}
    environment = {**clean, "COMMUNITREE_HOME": str(home), **(env or {})}
    with launch(home, environment, arguments) as launched:
        yield Stack(home, environment, launched)

"""The fake provider as a process of its own, as workers see a real one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Provider:
    """A running fake provider."""

    url: str

    def settings(self, stage: str = "") -> dict[str, str]:
        """Return the environment that makes workers use it, for all stages or one."""
        middle = f"{stage.upper()}_" if stage else ""
        names = {"BASE_URL": self.url, "API_KEY": "key-of-the-fake", "MODEL": "fake"}
        return {f"COMMUNITREE_LLM_{middle}{name}": value for name, value in names.items()}

    def stats(self) -> dict[str, Any]:
        """Return its counters."""
        return self._call("stats")

    def bodies(self) -> list[dict[str, Any]]:
        """Return the last requests that it got."""
        found: Any = self._call("bodies")
        return list(found)

    def reset(self, **changes: Any) -> None:
        """Zero the counters and change its behaviour."""
        self._call("reset", changes)

    def _call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url.removesuffix("/v1") + "/" + path, data, headers)
        with urllib.request.urlopen(request, timeout=10) as reply:
            found: dict[str, Any] = json.load(reply)
            return found


@contextlib.contextmanager
def fake_provider(**behaviour: Any) -> Iterator[Provider]:
    """Run the fake provider; its behaviour is given by name (see `fake_provider.Behaviour`)."""
    words = [w for name, value in behaviour.items() for w in (f"--{name.replace('_', '-')}", str(value))]
    process = subprocess.Popen(
        [sys.executable, "-m", "support.fake_provider", *words],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        yield Provider(url if url.endswith("/v1") else url + "/v1")
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()

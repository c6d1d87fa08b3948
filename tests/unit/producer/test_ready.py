"""Children tell that they serve; a listener that does not listen keeps none of them from it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from communitree.embedded.ready import Ready
from communitree_shared.notify import tell_ready


def test_what_nobody_reads_blocks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Ready(tmp_path)
    for name, value in ready.environment.items():
        monkeypatch.setenv(name, value)
    telling = threading.Thread(target=lambda: [tell_ready() for _ in range(30)], daemon=True)
    telling.start()
    telling.join(20)
    assert not telling.is_alive()
    assert ready.hear() == {os.getpid()}
    ready.close()
    tell_ready()  # to nobody

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from communitree import upload as module
from communitree.sources import gather
from communitree.upload import upload
from communitree_shared.errors import UsageError
from communitree_shared.keys import Keys


class Objects:
    """A store in memory; `on_put` is called before each write."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.in_parts = 0
        self.on_put: Any = lambda: None

    def keys(self, prefix: str) -> list[str]:
        return [key for key in self.held if key.startswith(prefix)]

    def put(self, key: str, data: bytes) -> None:
        self.on_put()
        self.held[key] = data

    def put_file(self, key: str, path: str) -> None:
        self.on_put()
        self.in_parts += 1
        self.held[key] = Path(path).read_bytes()

    def delete(self, key: str) -> None:
        self.held.pop(key, None)


def ignore(_ended: int, _all: int) -> None:
    """Progress that nobody follows."""


def send(store: Any, folder: Path) -> int:
    return upload(store, Keys("default"), "c", gather([folder]).documents, ignore)


def test_each_content_goes_up_once_and_large_files_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", 10)
    for name, text in (("a.txt", "small"), ("b.txt", "small"), ("c.txt", "larger than ten bytes")):
        (tmp_path / name).write_text(text)
    store = Objects()
    assert (send(store, tmp_path), store.in_parts) == (2, 1)
    assert sorted(store.held.values()) == [b"larger than ten bytes", b"small"]
    assert send(store, tmp_path) == 0


@pytest.mark.parametrize("limit", [10, 1000])
def test_a_file_that_changes_on_its_way_is_not_left_at_its_old_hash(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", limit)
    path = tmp_path / "log.txt"
    path.write_text("the first text of the file")
    documents = gather([tmp_path]).documents
    store: Any = Objects()
    if limit == 10:
        store.on_put = lambda: path.write_text("the first text of the file, and more")
    else:
        path.write_text("the first text of the file, and more")
    with pytest.raises(UsageError, match="changed while it was read"):
        upload(store, Keys("default"), "c", documents, ignore)
    assert not store.held

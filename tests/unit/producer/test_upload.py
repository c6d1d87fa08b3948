from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from communitree import upload as module
from communitree.sources import gather
from communitree.upload import upload
from communitree_shared.errors import UsageError
from communitree_shared.objects.keys import Keys


class Objects:
    """A store in memory; `on_put` is called before each write."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.in_parts, self.tries = 0, 1
        self.on_put: Any = lambda: None

    def keys(self, prefix: str) -> list[str]:
        return [key for key in self.held if key.startswith(prefix)]

    def put(self, key: str, data: bytes) -> None:
        self.on_put()
        self.held[key] = data

    def put_file(self, key: str, file: Any, size: int) -> None:
        self.in_parts += 1
        for _ in range(self.tries):
            file.seek(0)
            data = file.read(7)
            self.on_put()
            data += file.read(size - 7)
        self.held[key] = data


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
@pytest.mark.parametrize("later", ["another text of that file.", "the first text", ""])
def test_a_file_that_changed_never_stands_at_its_old_hash(
    limit: int, later: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", limit)
    path = tmp_path / "log.txt"
    path.write_text("the first text of the file")
    documents = gather([tmp_path]).documents
    path.write_text(later)
    store: Any = Objects()
    with pytest.raises(UsageError, match="changed while it was read"):
        upload(store, Keys("default"), "c", documents, ignore)
    assert not store.held


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("the first text of the fi1e")])
def test_a_large_file_that_changes_on_its_way_leaves_what_an_equal_index_sent(
    change: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", 10)
    path, text = tmp_path / "log.txt", "the first text of the file"
    path.write_text(text)
    documents = gather([tmp_path]).documents
    keys = Keys("default")
    store: Any = Objects()
    key = keys.document("c", documents[0].sha256)

    def meanwhile() -> None:
        store.held[key] = text.encode()
        change(path)

    store.on_put = meanwhile
    with suppress(UsageError):
        upload(store, keys, "c", documents, ignore)
    assert store.held == {key: text.encode()}


def test_a_large_file_is_sent_again_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", 10)
    (tmp_path / "log.txt").write_text("the first text of the file")
    store = Objects()
    store.tries = 3
    assert send(store, tmp_path) == 1
    assert list(store.held.values()) == [b"the first text of the file"]


def test_a_large_file_that_has_grown_is_sent_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", 10)
    path = tmp_path / "log.txt"
    path.write_text("the first text of the file")
    documents = gather([tmp_path]).documents
    path.write_text("the first text of the file, and more")
    store: Any = Objects()
    upload(store, Keys("default"), "c", documents, ignore)
    assert list(store.held.values()) == [b"the first text of the file"]


def test_a_file_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_PARTS", 10)
    path = tmp_path / "log.txt"
    path.write_text("the first text of the file")
    documents = gather([tmp_path]).documents
    path.unlink()
    store: Any = Objects()
    with pytest.raises(UsageError, match=r"log\.txt cannot be read any more"):
        upload(store, Keys("default"), "c", documents, ignore)
    assert not store.held

"""Lists of documents: read in blocks, and what is wrong is named with its line and the remedy."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from communitree_shared.contract.messages import DocumentList, ListObject
from communitree_shared.errors import BadInput
from communitree_shared.objects import document_lists
from communitree_shared.objects.document_lists import LARGEST, LONGEST_LINE, checked, parsed

SHA = "0123456789abcdef" * 4


def line(name: str = "a.txt", **more: Any) -> bytes:
    return json.dumps({"name": name, "sha256": SHA, "size": 5, **more}).encode()


def of(data: bytes) -> ListObject:
    return ListObject(sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, length: data[offset : offset + length]


def names(data: bytes, said: ListObject | None = None) -> list[str]:
    return [d.name for d in parsed(reader(data), "t/lists/x", said or of(data))]


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("block", [1, 7, 64, 4096])
def test_lines_are_read_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch, end: bytes, block: int) -> None:
    monkeypatch.setattr(document_lists, "_BLOCK", block)
    assert names(line("红楼梦.txt") + b"\n" + line("b") + end) == ["红楼梦.txt", "b"]
    assert names(line() + b"\r\n" + line("b") + end) == ["a.txt", "b"]


@pytest.mark.parametrize(
    ("data", "where", "words", "remedy"),
    [
        (b"", "", "is empty", "Each line is"),
        (line() + b"\n{", "Line 2", "Invalid JSON", "Each line is"),
        (line() + b"\n[1]", "Line 2", "object", "Each line is"),
        (line() + b"\n\n" + line() + b"\n", "Line 2", "it is blank", "Remove it"),
        (line() + b"\n" + line() + b"\n\n", "Line 3", "it is blank", "Remove it"),
        (b"\xef\xbb\xbf" + line(), "Line 1", "byte order mark", "UTF-8 without one"),
        (line() + b"\n" + line().replace(b"a.txt", b"\xff\xfe"), "Line 2", "", "Each line is"),
        (line(sha256=SHA.upper()), "Line 1", "sha256", "Each line is"),
        (line(sha256="../" + SHA[3:]), "Line 1", "sha256", "Each line is"),
        (line(name=""), "Line 1", "name", "Each line is"),
        (line(name="x" * 5001), "Line 1", "name", "Each line is"),
        (line(size=-1), "Line 1", "size", "Each line is"),
        (line(size="many"), "Line 1", "size", "Each line is"),
        (line(nam="x"), "Line 1", "did you mean 'name'?", "Each line is"),
        (b'{"name": "a", "sha256": "' + SHA.encode() + b'"}', "Line 1", "size", "Each line is"),
        (line().replace(b"a.txt", b"\\ud800"), "Line 1", "", "Each line is"),
        (b"[" + b", ".join([line()] * 500) + b"]", "Line 1", f"more than {LONGEST_LINE:,} bytes", "line feed"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_remedy(data: bytes, where: str, words: str, remedy: str) -> None:
    with pytest.raises(BadInput) as told:
        names(data)
    assert where in told.value.message
    assert "t/lists/x" in told.value.message
    assert words in told.value.message
    assert remedy in told.value.hint


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (ListObject(sha256=SHA, size=len(line())), "is not the one"),
        (of(line()).model_copy(update={"size": len(line()) + 1}), "does not have the"),
        (of(line()).model_copy(update={"size": len(line()) - 1}), "does not have the"),
        (of(line()).model_copy(update={"size": LARGEST + 1}), "are allowed"),
    ],
)
def test_a_list_that_is_not_what_the_request_says_is_refused(said: ListObject, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        names(line(), said)


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    asked = []

    def endless(offset: int, length: int) -> bytes:
        asked.append(length)
        return b"x" * length

    with pytest.raises(BadInput, match=r"Line 1 .* more than"):
        list(parsed(endless, "x", ListObject(sha256=SHA, size=LARGEST)))
    assert len(asked) == 1


def test_what_a_request_says_of_it_counts_equal_documents_once() -> None:
    data = b"".join(line(f"{n}", sha256=f"{n % 3:064x}"[::-1], size=10 + n % 3) + b"\n" for n in range(10))
    assert checked(reader(data), "x", of(data)) == DocumentList(**of(data).model_dump(), count=10, bytes=10 + 11 + 12)


def test_a_long_list_is_never_held_as_a_whole_and_others_have_their_turn() -> None:
    part = b"".join(line(f"document-{n}.txt") + b"\n" for n in range(1000))
    length, digest, beats = 200 * len(part), hashlib.sha256(), []
    for _ in range(200):
        digest.update(part)

    def read(offset: int, size: int) -> bytes:
        size = min(size, length - offset)
        at = offset % len(part)
        return (part * (size // len(part) + 2))[at : at + size]

    tracemalloc.start()
    try:
        found = checked(read, "x", ListObject(sha256=digest.hexdigest(), size=length), lambda: beats.append(1))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.count == 200_000
    assert len(beats) == 10
    assert length > 20_000_000
    assert most < 25_000_000  # two blocks and the lines of one

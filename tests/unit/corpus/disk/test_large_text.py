from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.disk import large_text
from communitree_workers.corpus.disk.large_text import LargeText, Shelf
from communitree_workers.corpus.reading import plain_text
from communitree_workers.corpus.reading.documents import document
from communitree_workers.corpus.reading.formats import read_documents
from communitree_workers.corpus.text_units import tables as ingest_module
from communitree_workers.corpus.text_units.tables import InMemory, ingest, ingest_into
from support.sources import read, source


@settings(max_examples=60)
@given(st.text(alphabet="ab \n汉é😀", max_size=60), st.integers(0, 70), st.integers(0, 70), st.integers(1, 9))
def test_it_is_cut_like_a_string(text: str, start: int, stop: int, stride: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_text, "_STRIDE", stride)
        large = LargeText([text[:7], text[7:]])
        assert len(large) == len(text)
        assert large[start:stop] == text[start:stop]
        assert "".join(large.pieces(5)) == text
        assert large.isspace() == (not text or text.isspace())


def test_a_large_file_gives_the_tables_of_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Mara met Oskar at the quay. 王晓明在上海工作。😀 " * 40
    small, _ = read(("a.txt", "\ufeff" + text.replace("quay. ", "quay.\r\n")))
    monkeypatch.setattr(plain_text, "_LARGE", 10)
    monkeypatch.setattr(plain_text, "_PIECE", 7)
    large, _ = read(("a.txt", "\ufeff" + text.replace("quay. ", "quay.\r\n")))
    assert isinstance(large[0].text, LargeText)
    assert (small[0].id, small[0].encoding) == (large[0].id, large[0].encoding)
    options = ReadOptions(chunk_tokens=40, chunk_overlap=8)
    one, other = ingest(small, options)[0], ingest(large, options)[0]
    assert one["text_units"].num_rows > 10
    assert all(one[name].equals(other[name]) for name in one)


def test_an_empty_large_file_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "_LARGE", 2)
    documents, problems = read(("a.txt", " \n\u3000 \n"))
    assert not documents
    assert [p.reason for p in problems] == ["empty"]


def test_documents_of_both_kinds_stand_in_one_table() -> None:
    tables, report = ingest([document("small", "a", "a"), document(LargeText(["lä", "rge"]), "b", "b")], ReadOptions())
    assert tables["documents"]["text"].to_pylist() == ["small", "lärge"]
    assert report.characters == 10


def test_texts_are_put_away_and_taken_down_in_any_order() -> None:
    shelf = Shelf()
    large = LargeText(["long", "er"])
    numbers = [shelf.put(text) for text in ("one", "", "zwei é", large, "三")]
    assert [shelf.take(n)[:] for n in reversed(numbers)] == ["三", "longer", "zwei é", "", "one"]


def test_a_large_text_is_the_same_on_the_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_text, "_STRIDE", 8)
    monkeypatch.setattr(large_text, "_COPIED", 5)
    shelf, text = Shelf(), "汉é😀 ab " * 5
    first = LargeText([text])
    numbers = [shelf.put("before"), shelf.put(first), shelf.put(LargeText([text[::-1]])), shelf.put("behind")]
    taken = shelf.take(numbers[1])
    assert isinstance(taken, LargeText)
    assert (taken.sha256, len(taken), taken[3:20]) == (first.sha256, len(text), text[3:20])
    assert taken.file().read() == text.encode()
    assert shelf.take(numbers[2])[:] == text[::-1]
    assert shelf.take(numbers[3]) == "behind"


def test_two_thousand_large_texts_need_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "_LARGE", 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(used + 20, hard), hard))
    try:
        sources = [source(f"{n:04}.txt", f"Text number {n}.") for n in range(2000)]
        tables, report = ingest(read_documents(sources, ReadOptions()), ReadOptions())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not report.problems
    assert tables["documents"]["text"].to_pylist()[1999] == "Text number 1999."
    assert tables["text_units"].num_rows == 2000


_KILLED = """
import os, signal
from communitree_workers.corpus.disk.downloads import into_file
from communitree_workers.corpus.disk.large_text import LargeText, Shelf
from communitree_workers.tables.io import TableFile, from_rows

data = b"x" * 3_000_000
text, opened, shelf, table = LargeText([data.decode()]), into_file(lambda at, n: data[at:at + n], len(data)), Shelf(), \
    TableFile("text_units")
shelf.put(text)
table.add(from_rows("text_units", [{"id": "u", "text": data.decode()}]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_on_disk_by_a_process_that_is_killed(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _KILLED], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


class Apart(InMemory):
    """A sink that keeps large texts elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.sizes: list[int] = []

    def units(self, part: pa.Table) -> None:
        super().units(part)
        self.sizes.append(part.num_rows)

    def text(self, document: str, text: LargeText) -> str:
        self.texts[document] = "".join(text.pieces())
        return ""


def test_large_texts_may_stand_elsewhere_and_rows_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "_BATCH", 3)
    large = document(LargeText(["Mara met Oskar at the quay. " * 60]), "b", "b")
    sink = Apart()
    report = ingest_into(sink, [large, document("small", "a", "a")], ReadOptions(chunk_tokens=40, chunk_overlap=8))
    tables = sink.tables()
    assert tables["documents"]["text"].to_pylist() == ["small", ""]
    assert sink.texts == {large.id: "Mara met Oskar at the quay. " * 60}
    assert len(sink.sizes) > 3
    assert report.text_units == tables["text_units"].num_rows
    assert tables["documents"]["text_unit_ids"].to_pylist()[1] == tables["text_units"]["id"].to_pylist()[1:]
    assert tables["text_units"]["human_readable_id"].to_pylist() == list(range(report.text_units))


def test_small_documents_share_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "_BATCH", 10)
    monkeypatch.setattr(ingest_module, "_CHARACTERS", 200)
    sink = Apart()
    small = [document(f"Text {n}.", f"{n:03}", "a") for n in range(95)]
    long = [document(f"A text of a hundred characters: {n}. ".ljust(101, "x"), f"z{n}", "a") for n in range(6)]
    ingest_into(sink, [*small, *long], ReadOptions())
    assert sink.sizes == [10] * 9 + [7, 2, 2]
    assert sink.tables()["documents"]["title"].to_pylist() == [d.title for d in [*small, *long]]

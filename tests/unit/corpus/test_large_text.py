from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.options import ReadOptions
from communitree_workers.corpus import ingest as ingest_module
from communitree_workers.corpus import large_text, read_text
from communitree_workers.corpus.documents import document
from communitree_workers.corpus.ingest import InMemory, ingest, ingest_into
from communitree_workers.corpus.large_text import LargeText, Shelf
from support.sources import read


@settings(max_examples=60, deadline=None)
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
    monkeypatch.setattr(read_text, "_LARGE", 10)
    monkeypatch.setattr(read_text, "_PIECE", 7)
    large, _ = read(("a.txt", "\ufeff" + text.replace("quay. ", "quay.\r\n")))
    assert isinstance(large[0].text, LargeText)
    assert (small[0].id, small[0].encoding) == (large[0].id, large[0].encoding)
    options = ReadOptions(chunk_tokens=40, chunk_overlap=8)
    one, other = ingest(small, options)[0], ingest(large, options)[0]
    assert one["text_units"].num_rows > 10
    assert all(one[name].equals(other[name]) for name in one)


def test_an_empty_large_file_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_text, "_LARGE", 2)
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
    assert [shelf.take(n) for n in reversed(numbers)] == ["三", large, "zwei é", "", "one"]


class Apart(InMemory):
    """A sink that keeps large texts elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.parts = 0

    def units(self, part: pa.Table) -> None:
        super().units(part)
        self.parts += 1

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
    assert sink.parts > 3
    assert report.text_units == tables["text_units"].num_rows
    assert tables["documents"]["text_unit_ids"].to_pylist()[1] == tables["text_units"]["id"].to_pylist()[1:]
    assert tables["text_units"]["human_readable_id"].to_pylist() == list(range(report.text_units))

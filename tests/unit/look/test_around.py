from __future__ import annotations

import pyarrow as pa
import pytest

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.reading.documents import document
from communitree_workers.corpus.text_units.tables import ingest
from communitree_workers.look.around import around

TEXT = " ".join(f"Sentence {n} says what happened at the quay." for n in range(40))


def units(**options: object) -> pa.Table:
    documents = [document(TEXT, "b", "b"), document("Before it.", "a", "a"), document("After it.", "c", "c")]
    return ingest(documents, ReadOptions(chunk_tokens=40, **options))[0]["text_units"]


@pytest.mark.parametrize("options", [{"chunk_overlap": 12}, {"chunk_overlap": 0}, {"prepend_metadata": True}])
def test_it_is_what_stands_there(options: dict[str, object]) -> None:
    table = units(**options)
    rows = table.to_pylist()
    assert len(rows) > 8
    for n in range(1, len(rows) - 1):
        before, after = around(table, n, 150)
        start, end = rows[n]["start"], rows[n]["end"]
        assert before.split() == TEXT[max(0, start - 150) : start].split()[-len(before.split()) :]
        assert after.split() == TEXT[end : end + 150].split()[: len(after.split())]
        assert len(before) >= min(150, start) - 1
        assert len(after) >= min(150, len(TEXT) - end) - 1


def test_another_document_is_not_around_it() -> None:
    table = units()
    assert around(table, 0, 100) == ("", "")
    assert around(table, 1, 100)[0] == ""

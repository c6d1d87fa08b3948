import json
import random

import pytest

from communitree_shared.contract.options import ReadOptions
from communitree_shared.errors import BadInput
from communitree_shared.tokens import count
from communitree_workers.corpus.reading.documents import Problem, document
from communitree_workers.corpus.text_units.tables import ingest
from communitree_workers.tables.io import schema


def items():
    documents = [document(f"Text of document {n}. " * 40, f"doc {n % 5}", f"{n}.txt") for n in range(12)]
    return [
        *documents,
        document("Text of document 3. " * 40, "copy", "copy.txt"),
        Problem("x.png", "binary", "no text"),
    ]


def test_tables_and_report():
    tables, report = ingest(items(), ReadOptions(chunk_tokens=100, chunk_overlap=10))
    documents, units = tables["documents"], tables["text_units"]
    assert documents.schema == schema("documents")
    assert units.schema == schema("text_units")
    assert documents["human_readable_id"].to_pylist() == list(range(12))
    assert units["human_readable_id"].to_pylist() == list(range(units.num_rows))
    assert [i for ids in documents["text_unit_ids"].to_pylist() for i in ids] == units["id"].to_pylist()
    rows = zip(documents["n_tokens"].to_pylist(), documents["text"].to_pylist(), strict=True)
    assert all(n == count(text) for n, text in rows)
    body = report.as_json()
    assert body["problem_counts"] == {"binary": 1, "duplicate": 1}
    assert (body["documents"], body["text_units"]) == (12, units.num_rows)
    assert body["encodings"] == {"utf-8": 12}
    json.dumps(body)


def test_the_copy_with_the_first_title_is_kept_and_the_other_named():
    tables, report = ingest(items(), ReadOptions())
    assert "copy" in tables["documents"]["title"].to_pylist()
    duplicate = next(p for p in report.problems if p.reason == "duplicate")
    assert duplicate.source == "3.txt"
    assert "the same text as copy" in duplicate.message


def test_the_order_of_the_input_changes_nothing():
    expected, report = ingest(items(), ReadOptions(chunk_tokens=100))
    for seed in range(5):
        shuffled = items()
        random.Random(seed).shuffle(shuffled)
        tables, again = ingest(shuffled, ReadOptions(chunk_tokens=100))
        assert all(tables[name].equals(expected[name]) for name in expected)
        assert again.as_json() == report.as_json()


def test_two_texts_under_one_given_id():
    two = [document("one", "a", "a", given_id="7"), document("two", "b", "b", given_id="7")]
    tables, report = ingest(two, ReadOptions())
    assert tables["documents"]["id"].to_pylist() == ["7"]
    assert "another text under the id of a" in report.problems[0].message


def test_nothing_gives_empty_tables():
    tables, report = ingest([], ReadOptions())
    assert [tables[n].num_rows for n in ("documents", "text_units")] == [0, 0]
    assert report.documents == 0


def test_strict_refuses_duplicates():
    with pytest.raises(BadInput, match="the same text as"):
        ingest(items()[:-1], ReadOptions(strict=True))


def test_metadata_is_kept_as_json():
    tables, _ = ingest([document("x", "a", "a", metadata={"year": 1999, "tags": ["b"]})], ReadOptions())
    assert json.loads(tables["documents"]["raw_data"][0].as_py()) == {"tags": '["b"]', "year": "1999"}

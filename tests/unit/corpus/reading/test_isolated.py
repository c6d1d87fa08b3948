from __future__ import annotations

import io
import time
import zipfile

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from communitree_shared.contract.options import ReadOptions
from communitree_shared.errors import InfrastructureError
from communitree_workers.corpus.reading import formats, wire
from communitree_workers.corpus.reading.documents import Document, Problem, Source
from communitree_workers.corpus.reading.isolated import IsolatedReader
from support.sources import source

GOOD = ("good.html", "<p>The mill stands by the river.</p>")


def items(*files, **options):
    with IsolatedReader() as reader:
        return list(formats.read_documents([source(*f) for f in files], ReadOptions(**options), reader))


def docx(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_what_is_read_is_what_the_readers_of_this_process_give():
    files = [
        GOOD, ("a.csv", "text,title\nOne,T\n汉字,题\n"), ("b.jsonl", '{"text": "x"}\n{\n'), ("c.json", '["p", "q"]'),
        ("d.txt", "plain"), ("e.parquet", b"PAR1 no"), ("f.html", ""), ("g.tsv", "text\tid\nr\t1\n"),
        ("h.json", '[{"text": "t", "title": "\\ud800"}]'),
    ]  # fmt: skip
    here = list(formats.read_documents([source(*f) for f in files], ReadOptions()))
    assert items(*files) == here
    assert len(here) == 12


def test_a_file_that_takes_too_long_is_left_out_and_the_next_one_is_read(monkeypatch):
    monkeypatch.setattr(wire, "seconds_for", lambda size: 2.0 if size > 1000 else 30.0)
    began = time.monotonic()
    slow, good = items(("slow.html", "<svg>" * 60_000 + "</nav>" * 60_000), GOOD)
    assert time.monotonic() - began < 15
    assert isinstance(slow, Problem)
    assert (slow.source, slow.reason) == ("slow.html", "limit")
    assert "more than 2 s" in slow.message
    assert isinstance(good, Document)


def test_a_word_file_that_unpacks_to_gigabytes_of_tree_is_left_out():
    body = b"<w:p/>" * 30_000_000
    space = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    types = (
        b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/d.xml" '
        b'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    rels = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" '
        b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="d.xml"/>'
        b"</Relationships>"
    )
    document = b'<w:document xmlns:w="%s"><w:body>%s</w:body></w:document>' % (space, body)
    bomb = docx({"[Content_Types].xml": types, "_rels/.rels": rels, "d.xml": document})
    assert len(bomb) < 1_000_000
    bad, good = items(("bomb.docx", bomb), GOOD)
    assert isinstance(bad, Problem)
    assert bad.source == "bomb.docx"
    assert isinstance(good, Document)


def test_a_table_that_unpacks_to_much_more_than_it_is_stops_at_a_limit():
    out = io.BytesIO()
    pq.write_table(pa.table({"text": ["word " * 6_000] * 4_000}), out, compression="zstd")
    *kept, bad, good = items(("bomb.parquet", out.getvalue()), GOOD)
    assert isinstance(bad, Problem)
    assert bad.reason == "limit"
    assert "unpacks to more than" in bad.message
    assert f"the {len(kept):,} documents before that are kept" in bad.message
    assert isinstance(good, Document)


def test_a_process_that_is_killed_costs_one_file(monkeypatch):
    with IsolatedReader() as reader:
        assert [type(i) for i in reader(source(*GOOD), ReadOptions())] == [Document]
        assert reader._child is not None
        reader._child.kill()
        (bad,) = reader(source(*GOOD), ReadOptions())
        assert "ended by signal 9" in bad.message
        assert [type(i) for i in reader(source(*GOOD), ReadOptions())] == [Document]


def test_a_consumer_that_has_enough_leaves_nothing_for_the_next_file():
    with IsolatedReader() as reader:
        rows = reader(source("a.jsonl", '"row"\n' * 100_000), ReadOptions())
        next(rows)
        rows.close()
        (good,) = reader(source(*GOOD), ReadOptions())
        assert good.title == "good.html"


def test_a_store_that_is_away_is_no_fault_of_the_file():
    def away():
        raise InfrastructureError("away")

    with IsolatedReader() as reader, pytest.raises(InfrastructureError):
        list(reader(Source("a.html", away, 5), ReadOptions()))


def test_the_process_sees_no_keys(monkeypatch):
    monkeypatch.setenv("COMMUNITREE_S3_SECRET_KEY", "secret")
    with IsolatedReader() as reader:
        list(reader(source(*GOOD), ReadOptions()))
        assert reader._child is not None
        environment = psutil.Process(reader._child.pid).environ()
    assert "PATH" in environment
    assert "secret" not in environment.values()

import io
import json
import sys
import types
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from communitree_shared.contract.options import ReadOptions
from communitree_shared.errors import BadInput
from communitree_workers.corpus.reading.documents import Source
from communitree_workers.corpus.reading.formats import read_documents
from support.sources import read, source


def texts(documents):
    return [(d.title, d.text) for d in documents]


def test_plain_text_keeps_its_words_and_unifies_line_ends():
    documents, problems = read(("a.txt", "one\r\ntwo\rthree"), ("b.md", "# T\n\nx"), ("c.py", "print(1)"))
    assert texts(documents) == [("a.txt", "one\ntwo\nthree"), ("b.md", "# T\n\nx"), ("c.py", "print(1)")]
    assert problems == []


def test_the_id_is_the_hash_of_the_text_whatever_its_encoding():
    text = "却说雨村忙回头看时，不是别人。"
    documents, _ = read(("a.txt", text), ("b.txt", text.encode("utf-16")), ("c.txt", text.encode("gb18030")))
    assert len({d.id for d in documents}) == 1
    assert [d.encoding for d in documents] == ["utf-8", "utf-16", "gb18030"]


def test_faults_are_named_and_the_rest_goes_on():
    bad = source("gone.txt", "x")

    def away():
        raise OSError("no such object")

    items = list(
        read_documents(
            [
                source("empty.txt", ""),
                source("blank.txt", " \n\t"),
                source("picture.png", bytes(range(256)) * 4),
                Source("gone.txt", away, bad.size),
                source("bad.txt", "汉字".encode() * 20 + b"\xff" + "汉字".encode() * 20),
                source("broken.json", "{"),
                source("broken.parquet", "PAR1 no"),
                source("good.txt", "good"),
            ],
            ReadOptions(),
        )
    )
    reasons = [(i.source, getattr(i, "reason", "document"), getattr(i, "offset", None)) for i in items]
    assert reasons == [
        ("empty.txt", "empty", None),
        ("blank.txt", "empty", None),
        ("picture.png", "binary", None),
        ("gone.txt", "unreadable", None),
        ("bad.txt", "bad_bytes", 120),
        ("bad.txt", "document", None),
        ("broken.json", "unreadable", None),
        ("broken.parquet", "unreadable", None),
        ("good.txt", "document", None),
    ]
    assert "no such object" in items[3].message


def test_strict_stops_at_the_first_fault_and_names_its_place():
    with pytest.raises(BadInput, match=r"bad\.txt, byte 120: "):
        read(("good.txt", "x"), ("bad.txt", "汉字".encode() * 20 + b"\xff" + b"y" * 90), strict=True)


def test_limit_counts_different_texts():
    documents, _ = read(*((f"{n}.txt", t) for n, t in enumerate("aabcd")), limit=2)
    assert [d.text for d in documents] == ["a", "a", "b"]


def test_html_gives_its_visible_text():
    page = """<html><head><title>T</title><style>p {}</style></head><body><h1>Head</h1><script>x()</script>
    <p>One &amp; <b>two</b>.</p><ul><li>first<li>second</ul><pre>a
  b</pre></body></html>"""
    documents, _ = read(("a.html", page))
    assert documents[0].text == "Head\n\nOne & two.\n\n- first\n- second\n\n    a\n      b"


def test_html_is_read_in_its_declared_encoding():
    page = '<meta charset="windows-1251"><p>Привет, мир</p>'
    documents, _ = read(("a.htm", page.encode("windows-1251")))
    assert (documents[0].text, documents[0].encoding) == ("Привет, мир", "cp1251")


def test_csv_rows_are_documents_with_metadata():
    table = 'id,title,text,year\n7,"A","line one\nline two",1999\n8,,second,\n9,C," ",\n'
    documents, problems = read(("t.csv", table), id_column="id", metadata_columns=["year"])
    assert [(d.id, d.title, d.text, dict(d.metadata)) for d in documents] == [
        ("7", "A", "line one\nline two", {"year": "1999"}),
        ("8", "t.csv#2", "second", {"year": ""}),
    ]
    assert [(p.reason, p.row) for p in problems] == [("empty", 3)]


@pytest.mark.parametrize(
    ("name", "table"),
    [("t.tsv", "title\ttext\nA\tx, y"), ("t.csv", "title;text\nA;x, y"), ("t.csv", '\ufefftitle,Text\nA,"x, y"')],
)
def test_separators_and_marks(name, table):
    documents, problems = read((name, table))
    assert (texts(documents), problems) == ([("A", "x, y")], [])


def test_a_row_with_too_many_cells_is_a_bad_row():
    documents, problems = read(("t.csv", "title,text\nA,x,y\nB,z"))
    assert texts(documents) == [("B", "z")]
    assert [(p.reason, p.row) for p in problems] == [("bad_row", 1)]


def test_a_missing_text_column_names_what_there_is():
    for name, data in (("t.csv", "a,b\n1,2\n3,4"), ("t.json", '[{"a": 1, "b": 2}]'), ("t.jsonl", '{"a": 1, "b": 2}')):
        documents, problems = read((name, data))
        assert documents == []
        assert [p.reason for p in problems] == ["no_text_column"]
        assert "a, b" in problems[0].message


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"text": "x"}, [("t.json", "x")]),
        ({"title": "A", "content": "x"}, [("A", "x")]),
        ([{"text": "x"}, {"text": "y", "title": "B"}], [("t.json#1", "x"), ("B", "y")]),
        (["x", "y"], [("t.json#1", "x"), ("t.json#2", "y")]),
        ({"documents": [{"text": "x"}], "count": 1}, [("t.json#1", "x")]),
        ({"正文": "你好", "标题": "书"}, [("书", "你好")]),
    ],
)
def test_json(data, expected):
    documents, problems = read(("t.json", json.dumps(data)))
    assert (texts(documents), problems) == (expected, [])


def test_json_lines_lose_only_what_is_broken():
    documents, problems = read(("t.jsonl", '{"text": "x"}\n\nnonsense\n3\n"y"\n{"text": "\\ud800z"}\n'))
    assert [d.text for d in documents] == ["x", "y", "?z"]
    assert [(p.reason, p.row) for p in problems] == [("bad_row", 3), ("bad_row", 4)]


def test_parquet():
    sink = io.BytesIO()
    pq.write_table(pa.table({"Text": ["x", None], "title": ["A", "B"], "n": [1, 2]}), sink)
    documents, problems = read(("t.parquet", sink.getvalue()), metadata_columns=["n"])
    assert [(d.title, d.text, dict(d.metadata)) for d in documents] == [("A", "x", {"n": "1"})]
    assert [p.reason for p in problems] == ["empty"]


def test_a_column_may_be_named_for_one_table():
    given = ["body", "sub/a.csv=abstract", "b.csv=notes"]
    for name, header in (("sub/a.csv", "abstract,body"), ("x/b.csv", "notes,abstract"), ("c.csv", "body,abstract")):
        documents, problems = read((name, f"{header}\nyes,no"), text_column=given)
        assert ([d.text for d in documents], problems) == (["yes"], [])
    documents, _ = read(("t.jsonl", '{"a=b": "yes", "text": "no"}'), text_column="a=b")
    assert [d.text for d in documents] == ["yes"]


def test_named_columns_win():
    documents, _ = read(("t.jsonl", '{"text": "no", "body": "yes", "h": "T"}'), text_column="body", title_column="h")
    assert texts(documents) == [("T", "yes")]


@pytest.mark.parametrize(("name", "module"), [("a.docx", "docx"), ("a.pdf", "pypdf")])
def test_a_missing_library_names_the_extra(monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    documents, problems = read((name, b"%PDF"))
    assert documents == []
    assert problems[0].reason == "missing_library"
    assert "communitree[documents]" in problems[0].message


def test_pdf_pages_that_fail_are_named(monkeypatch):
    def page(text):
        def extract():
            if text is None:
                raise ValueError("damaged font")
            return text

        return types.SimpleNamespace(extract_text=extract)

    fake = types.ModuleType("pypdf")
    fake.PdfReader = lambda stream: types.SimpleNamespace(is_encrypted=False, pages=[page("one"), page(None), page("")])
    monkeypatch.setitem(sys.modules, "pypdf", fake)
    documents, problems = read(("a.pdf", b"%PDF"))
    assert texts(documents) == [("a.pdf", "one")]
    assert [(p.reason, p.row, p.kept) for p in problems] == [("unreadable", 2, True)]


def test_word_files_keep_the_order_of_paragraphs_and_tables(monkeypatch):
    def cells(*names):
        return types.SimpleNamespace(cells=[types.SimpleNamespace(text=n) for n in names])

    blocks = [types.SimpleNamespace(text="first"), types.SimpleNamespace(rows=[cells("a", "b"), cells("c", "d")])]
    fake = types.ModuleType("docx")
    fake.Document = lambda stream: types.SimpleNamespace(iter_inner_content=lambda: iter(blocks))
    monkeypatch.setitem(sys.modules, "docx", fake)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as parts:
        parts.writestr("word/document.xml", "<w:document/>")
    documents, _ = read(("a.docx", archive.getvalue()))
    assert documents[0].text == "first\n\na\tb\nc\td"

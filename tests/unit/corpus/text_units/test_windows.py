from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ReadOptions
from communitree_shared.tokens import count
from communitree_workers.corpus.reading.documents import document
from communitree_workers.corpus.text_units import windows
from communitree_workers.corpus.text_units.windows import text_units

PROSE = "".join(f"Sentence number {n} speaks of ship {n % 7} in the harbour. " for n in range(400))
CHINESE = "".join(f"第{n}句说的是港口里的船，还有码头上的人。" for n in range(300))


def units(text, **options):
    return text_units(document(text, "t", "t"), ReadOptions(**options))


def check(text, rows, limit, overlap):
    assert all(text[r["start"] : r["end"]] == r["text"] for r in rows)
    assert all(r["n_tokens"] == count(r["text"]) for r in rows)
    assert all(r["n_tokens"] <= limit or len(r["text"]) == 1 for r in rows)
    assert all(a["start"] < b["start"] and a["end"] < b["end"] for a, b in pairwise(rows))
    covered = {i for r in rows for i in range(r["start"], r["end"])}
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered
    for a, b in pairwise(rows):
        assert count(text[b["start"] : a["end"]]) <= overlap + 2  # a cut text may have a token more at each end


@pytest.mark.parametrize("mode", ["sentences", "tokens"])
@pytest.mark.parametrize("text", [PROSE, CHINESE, PROSE[:4000] + CHINESE[:2000] + "🙂" * 300 + "x" * 5000])
def test_units_hold_the_whole_text_within_their_limits(mode, text):
    rows = units(text, chunk_tokens=64, chunk_overlap=16, chunking=mode)
    check(text, rows, 64, 16)
    assert len(rows) > 10


@pytest.mark.parametrize("mode", ["sentences", "tokens"])
def test_units_do_not_show_where_blocks_meet(monkeypatch, mode):
    options = {"chunk_tokens": 64, "chunk_overlap": 16, "chunking": mode}
    whole = units(PROSE, **options)
    monkeypatch.setattr(windows, "_BLOCK", 3000)
    parts = units(PROSE, **options)
    check(PROSE, parts, 64, 16)
    assert sum(r["n_tokens"] < 40 for r in parts[:-1]) == sum(r["n_tokens"] < 40 for r in whole[:-1])


def test_sentences_stay_whole():
    rows = units(PROSE, chunk_tokens=64, chunk_overlap=16)
    assert all(r["text"].startswith("Sentence") and r["text"].endswith(".") for r in rows)
    assert all(b["start"] < a["end"] for a, b in pairwise(rows))


def test_a_sentence_longer_than_a_unit_is_cut_at_white_space():
    text = "word " * 1000
    rows = units(text, chunk_tokens=50, chunk_overlap=0)
    check(text, rows, 50, 0)
    assert all(r["text"].split()[0] == "word" and r["text"].split()[-1] == "word" for r in rows)


def test_metadata_stands_before_the_text():
    d = document(PROSE, "The book", "t", metadata={"year": "1999"})
    rows = text_units(d, ReadOptions(chunk_tokens=64, chunk_overlap=8, prepend_metadata=True))
    assert all(r["text"] == "title: The book\nyear: 1999\n\n" + PROSE[r["start"] : r["end"]] for r in rows)
    assert all(r["n_tokens"] == count(r["text"]) <= 66 for r in rows)


def test_endless_metadata_leaves_half_a_unit_for_text():
    d = document(PROSE, "title " * 500, "t")
    rows = text_units(d, ReadOptions(chunk_tokens=64, chunk_overlap=8, prepend_metadata=True))
    assert all(r["n_tokens"] <= 66 for r in rows)
    assert rows[-1]["end"] == len(PROSE.rstrip())


def test_ids_are_hashes_of_document_place_and_text():
    one, other = units(PROSE), text_units(document(PROSE + "More.", "t", "t"), ReadOptions())
    assert len({r["id"] for r in one + other}) == len(one) + len(other)
    assert one == units(PROSE)
    assert all(len(r["id"]) == 32 for r in one)


def test_special_tokens_are_plain_text():
    assert units("before <|endoftext|> after")[0]["text"] == "before <|endoftext|> after"


def test_a_character_of_several_tokens_counts_whole_at_the_start_of_a_sentence():
    text = "👩a.éa👩a👩a.👩👩"  # 17 tokens in one sentence; the first character has two
    rows = units(text, chunk_tokens=16, chunk_overlap=0)
    check(text, rows, 16, 0)
    assert len(rows) == 2


@settings(max_examples=60)
@given(
    st.text(alphabet="ab c.\n。汉é🙂👩‍💻\u3000", min_size=1, max_size=400),
    st.sampled_from(["sentences", "tokens"]),
    st.integers(16, 40),
    st.integers(0, 30),
)
def test_any_text(text, mode, limit, overlap):
    rows = units(text, chunk_tokens=limit, chunk_overlap=overlap, chunking=mode)
    check(text, rows, limit, max(overlap, 0))

import pyarrow as pa

from communitree_shared.contract.options import ExtractOptions
from communitree_workers.corpus.extraction.builtin import extract_units
from communitree_workers.corpus.extraction.shards import Shard
from support.stories import CHINESE, ENGLISH


def units(*texts):
    return pa.table({"id": [f"u{n}" for n in range(len(texts))], "text": list(texts)})


def titles(shard):
    return set(shard.forms["title"].to_pylist())


def test_both_languages_side_by_side():
    shard = extract_units(units(*ENGLISH, *CHINESE), ExtractOptions())
    assert {"Mara Lindqvist", "Bayline Shipping", "storm surge", "sea wall"} <= titles(shard)
    assert {"王晓明", "清华大学", "上海港务集团"} <= titles(shard)


def test_sentences_point_into_their_text():
    table = units(*ENGLISH)
    shard = extract_units(table, ExtractOptions())
    texts = table["text"].to_pylist()
    forms = shard.forms["title"].to_pylist()
    for row in shard.sentences.to_pylist():
        sentence = texts[row["unit"]][row["start"] : row["end"]]
        assert all(forms[f] in sentence for f in row["forms"])


def test_bytes_and_back():
    shard = extract_units(units(*ENGLISH), ExtractOptions())
    again = Shard.from_bytes(shard.to_bytes())
    assert again.units.equals(shard.units)
    assert again.forms.equals(shard.forms)
    assert again.sentences.equals(shard.sentences)
    assert again.to_bytes() == shard.to_bytes()


def test_text_without_anything():
    shard = extract_units(units("", "12 + 3", "..."), ExtractOptions())
    assert (shard.units.num_rows, shard.forms.num_rows, shard.sentences.num_rows) == (3, 0, 0)
    assert Shard.from_bytes(shard.to_bytes()).units["id"].to_pylist() == ["u0", "u1", "u2"]


def test_a_stray_chinese_word_leaves_an_english_sentence_english():
    text = "The word 道 is used by Mara Lindqvist for the harbour road."
    assert "Mara Lindqvist" in titles(extract_units(units(text), ExtractOptions(), "en"))

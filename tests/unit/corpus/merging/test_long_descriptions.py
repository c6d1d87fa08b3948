from communitree_shared.contract.options import ExtractOptions
from communitree_shared.tokens import count
from communitree_workers.corpus.merging.long_descriptions import cut_to_limit, long_descriptions, with_summaries
from communitree_workers.tables.io import from_rows

OPTIONS = ExtractOptions(max_description_tokens=20)
LONG = "\n".join(f"Statement number {n} about the harbour." for n in range(6))


def tables():
    entities = [{"id": "a", "title": "A", "description": LONG}, {"id": "b", "title": "B", "description": "short"}]
    edge = {"id": "r", "source": "A", "target": "B", "description": "word " * 60}
    return {"entities": from_rows("entities", entities), "relationships": from_rows("relationships", [edge])}


def test_long_ones_are_found_with_their_parts():
    found = long_descriptions(tables(), OPTIONS)
    assert [(f.table, f.id, f.title, len(f.descriptions)) for f in found] == (
        [("entities", "a", "A", 6), ("relationships", "r", "A — B", 1)]
    )


def test_summaries_replace_and_the_rest_is_cut_between_statements():
    before = tables()
    edges, cut = with_summaries(before["relationships"], {"r": "They trade."}, OPTIONS)
    assert (edges["description"].to_pylist(), cut) == (["They trade."], 0)
    entities, cut = with_summaries(before["entities"], {"c": "Another table's."}, OPTIONS)
    assert cut == 1
    kept, short = entities["description"].to_pylist()
    assert (short, kept.split("\n")) == ("short", LONG.split("\n")[: len(kept.split("\n"))])
    assert 0 < count(kept) <= 20
    assert cut_to_limit(before["entities"]["description"], OPTIONS)[0].to_pylist() == [kept, short]


def test_a_summary_that_was_not_written_is_no_summary():
    entities, cut = with_summaries(tables()["entities"], {"a": ""}, OPTIONS)
    assert cut == 1
    assert count(entities["description"][0].as_py()) <= 20


def test_a_single_giant_is_cut():
    texts, cut = cut_to_limit(tables()["relationships"]["description"], OPTIONS)
    assert cut == 1
    assert 0 < count(texts[0].as_py()) <= 20


def test_nothing_long_nothing_changed():
    before = tables()["entities"]
    options = ExtractOptions(max_description_tokens=500)
    assert cut_to_limit(before["description"], options) == (before["description"].chunk(0), 0)
    assert with_summaries(before, {}, options) == (before, 0)

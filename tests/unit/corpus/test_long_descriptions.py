from communitree_shared.options import ExtractOptions
from communitree_shared.tokens import count
from communitree_workers.corpus.long_descriptions import long_descriptions, with_descriptions
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
    out, cut = with_descriptions(tables(), {"r": "They trade."}, OPTIONS)
    assert cut == 1
    assert out["relationships"]["description"].to_pylist() == ["They trade."]
    kept, short = out["entities"]["description"].to_pylist()
    assert (short, kept.split("\n")) == ("short", LONG.split("\n")[: len(kept.split("\n"))])
    assert 0 < count(kept) <= 20


def test_a_single_giant_is_cut():
    out, cut = with_descriptions(tables(), {}, OPTIONS)
    assert cut == 2
    assert 0 < count(out["relationships"]["description"][0].as_py()) <= 20


def test_nothing_long_nothing_changed():
    before = tables()
    out, cut = with_descriptions(before, {}, ExtractOptions(max_description_tokens=500))
    assert cut == 0
    assert out["entities"] is before["entities"]

import hashlib
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ExtractOptions, ReadOptions
from communitree_shared.errors import IntegrityError
from communitree_workers.corpus.extraction.builtin import extract_units
from communitree_workers.corpus.extraction.titles import entity_id, unify
from communitree_workers.corpus.merging import builtin_graph, descriptions, pairs, vocabulary
from communitree_workers.corpus.merging.graph import CLAIM_WORDS
from communitree_workers.corpus.merging.merge import merge, merge_compact
from communitree_workers.corpus.reading.documents import document
from communitree_workers.corpus.text_units.tables import ingest
from communitree_workers.tables.io import conform, from_rows, schema
from support.stories import CHINESE, ENGLISH

OPTIONS = ExtractOptions()


def corpus(texts, **options):
    options = {"chunk_tokens": 48, "chunk_overlap": 12, **options}
    tables, _ = ingest([document(t, f"d{n}", f"d{n}") for n, t in enumerate(texts)], ReadOptions(**options))
    return tables


def shards(tables, size):
    units = tables["text_units"]
    return [extract_units(units.slice(at, size), OPTIONS).to_bytes() for at in range(0, units.num_rows, size)]


def equal(one, other):
    return all(one[name].equals(other[name]) for name in one)


def whole(tables):
    """Ids resolve, both ways, and numbers are what they say."""
    entities, edges, units = (tables[n].to_pylist() for n in ("entities", "relationships", "text_units"))
    claims = tables["covariates"].to_pylist()
    by_id = {e["id"]: e for e in entities}
    degree = dict.fromkeys(by_id, 0)
    for r in edges:
        assert r["source_id"] != r["target_id"]
        ends = "|".join(sorted((r["source_id"], r["target_id"])))
        assert r["id"] == hashlib.sha256(ends.encode()).hexdigest()[:32]
        assert (by_id[r["source_id"]]["title"], by_id[r["target_id"]]["title"]) == (r["source"], r["target"])
        degree[r["source_id"]] += 1
        degree[r["target_id"]] += 1
    assert len({r["id"] for r in edges}) == len(edges)
    assert all(e["degree"] == degree[e["id"]] and e["frequency"] == len(e["text_unit_ids"]) for e in entities)
    assert all(r["combined_degree"] == degree[r["source_id"]] + degree[r["target_id"]] for r in edges)
    for rows, column in ((entities, "entity_ids"), (edges, "relationship_ids")):
        there = {(row["id"], unit) for row in rows for unit in row["text_unit_ids"]}
        back = {(identity, unit["id"]) for unit in units for identity in unit[column]}
        assert there == back
    assert {(c["id"], c["text_unit_id"]) for c in claims} == {(i, u["id"]) for u in units for i in u["covariate_ids"]}
    assert all(c["entity_id"] in by_id for c in claims)
    for rows in (entities, edges, claims):
        assert [row["human_readable_id"] for row in rows] == list(range(len(rows)))


# The built-in extractor


def test_the_english_story():
    tables, stats = merge(corpus(ENGLISH), shards(corpus(ENGLISH), 2), OPTIONS)
    whole(tables)
    rows = {e["title"]: e for e in tables["entities"].to_pylist()}
    expected = {"Mara Lindqvist", "Bayline Shipping", "Port Alder Harbour Authority", "University of Tallow"}
    assert expected | {"storm surge", "sea wall", "fish market", "container terminal", "tugboats"} <= set(rows)
    assert rows["University of Tallow"]["type"] == "organization"
    assert "Bayline Shipping operates nine tugboats." in rows["Bayline Shipping"]["description"]
    ends = {frozenset((r["source"], r["target"])) for r in tables["relationships"].to_pylist()}
    assert frozenset(("Bayline Shipping", "tugboats")) in ends
    for r in tables["relationships"].to_pylist():
        assert all(end.lower() in r["description"].lower() for end in (r["source"], r["target"]))
    assert stats["entities"] == len(rows)
    assert stats["most_connected"][0][0] in rows


def test_the_chinese_story():
    tables, _ = merge(corpus(CHINESE), shards(corpus(CHINESE), 1), OPTIONS)
    whole(tables)
    rows = {e["title"]: e for e in tables["entities"].to_pylist()}
    assert {"王晓明", "李建国", "清华大学", "上海港务集团"} <= set(rows)
    assert rows["王晓明"]["type"] == "person"
    assert "王晓明是上海港务集团的总工程师。" in rows["王晓明"]["description"]


def test_columns_are_the_agreed_ones():
    tables, _ = merge(corpus(ENGLISH), shards(corpus(ENGLISH), 2), OPTIONS)
    assert all(tables[name].schema == schema(name) for name in tables)


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE, ENGLISH + CHINESE])
def test_any_sharding_in_any_order_gives_the_same_tables(texts):
    tables = corpus(texts)
    expected, stats = merge(tables, shards(tables, 100), OPTIONS)
    assert expected["relationships"].num_rows > 4
    for size in (1, 2, 3):
        parts = shards(tables, size)
        random.Random(size).shuffle(parts)
        again, counted = merge(tables, parts, OPTIONS)
        assert equal(again, expected)
        assert counted == stats


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE, ["用API的人说API很好。API网关和API。王API来了。" * 3, *ENGLISH]])
def test_so_many_at_a_time_changes_nothing(texts, monkeypatch):
    tables = corpus(texts)
    expected, stats = merge(tables, shards(tables, 2), OPTIONS)
    monkeypatch.setattr(vocabulary, "_SLICE", 3)
    monkeypatch.setattr(descriptions, "_BLOCK", 2)
    monkeypatch.setattr(descriptions, "_PROBES", 3)
    monkeypatch.setattr(builtin_graph, "_PROBES", 3)
    monkeypatch.setattr(pairs, "_CELLS", 5)
    again, counted = merge(tables, shards(tables, 2), OPTIONS)
    assert equal(again, expected)
    assert counted == stats


def test_a_phrase_that_is_too_rare_falls_back_on_its_longest_part():
    text = "The old harbour wall fell. The harbour wall was long. They saw the harbour wall and the harbour. "
    filler = [f"Nothing was said about {n} on that day. " * 12 for n in range(50)]  # a corpus that drops what is rare
    tables = corpus([text, *filler])
    out, _ = merge(tables, shards(tables, 4), OPTIONS)
    rows = {e["title"]: e for e in out["entities"].to_pylist()}
    assert "old harbour wall" not in rows
    assert rows["harbour wall"]["description"].startswith("The old harbour wall fell.")


def test_the_order_of_documents_changes_nothing():
    documents = [document(t, f"d{n}", "") for n, t in enumerate(ENGLISH)]
    one, _ = ingest(documents, ReadOptions())
    two, _ = ingest(documents[::-1], ReadOptions())
    assert equal(merge(one, shards(one, 1), OPTIONS)[0], merge(two, shards(two, 2), OPTIONS)[0])


def test_a_sentence_in_two_overlapping_units_counts_once():
    noise = [f"This is line {n} of many that all say nothing. " for n in range(30)]
    text = "".join([*noise[:15], "They walked to the brewery. ", "Behind the brewery there was nothing. ", *noise[15:]])
    once, twice = (corpus([text], chunk_tokens=100, chunk_overlap=overlap) for overlap in (0, 50))
    held = [u for u in twice["text_units"]["text"].to_pylist() if "brewery" in u]
    assert len(held) > 1
    tables = [merge(t, shards(t, 2), OPTIONS)[0]["entities"]["title"].to_pylist() for t in (once, twice)]
    assert "brewery" not in tables[0]  # a lone common word needs three occurrences
    assert tables[0] == tables[1]


def test_glued_and_surnamed_forms_are_one_person():
    text = "黛玉道：“好。”黛玉笑了。林黛玉来了。黛玉走进屋里。宝玉看见黛玉。黛玉又说了一遍。众人看着黛玉。"
    tables = corpus([text * 2, text + "后来宝玉走了。"])
    out, _ = merge(tables, shards(tables, 1), OPTIONS)
    titles = out["entities"]["title"].to_pylist()
    assert [t for t in titles if "黛玉" in t] == ["黛玉"]


def test_glue_that_is_commoner_than_the_given_name_alone_comes_off():
    text = "子兴道：“请。”子兴道：“不敢。”雨村笑了。子兴道：“正是。”"
    tables = corpus([text * 3, "冷子兴来了。冷子兴是古董商。冷子兴走了。子兴说了一句。子兴又说了一句。"])
    out, _ = merge(tables, shards(tables, 1), OPTIONS)
    titles = out["entities"]["title"].to_pylist()
    assert "子兴道" not in titles
    assert "冷子兴" in titles


def test_two_names_side_by_side_are_not_a_third():
    tables = corpus(["贾珍来了。贾珍走了。贾珍坐下。" * 12, "贾珍尤氏都来了。贾珍尤氏都走了。贾珍尤氏坐下。"])
    out, _ = merge(tables, shards(tables, 1), OPTIONS)
    titles = out["entities"]["title"].to_pylist()
    assert "贾珍" in titles
    assert "贾珍尤" not in titles


def test_nothing_found_is_a_valid_empty_graph():
    tables = corpus(["1 + 2 = 3"])
    out, stats = merge(tables, shards(tables, 1), OPTIONS)
    whole(out)
    assert (out["entities"].num_rows, stats["text_units_without_entities"]) == (0, 1)
    out, _ = merge(tables, [], OPTIONS)
    assert out["text_units"]["entity_ids"].to_pylist() == [[]]


def test_aliases_are_other_spellings():
    tables = corpus(["The TUGBOAT left. A tugboat came. The tugboats and the tugboats met in the harbour of Tallow."])
    out, _ = merge(tables, shards(tables, 1), OPTIONS)
    (row,) = [e for e in out["entities"].to_pylist() if e["title"].lower().startswith("tugboat")]
    assert (row["title"], set(row["aliases"])) == ("tugboats", {"TUGBOAT", "tugboat"})


# Results of a model


def units(n):
    rows = [{"id": f"u{i}", "human_readable_id": i, "text": f"text {i}", "document_id": "d"} for i in range(n)]
    documents = [{"id": "d", "title": "d", "text": "", "text_unit_ids": [r["id"] for r in rows]}]
    return {"documents": from_rows("documents", documents), "text_units": from_rows("text_units", rows)}


def result(unit, entities=(), relationships=(), claims=(), **counts):
    names = ("subject", "object", "type", "status", "start_date", "end_date", "description", "source_text")
    return {
        "unit": unit,
        "entities": [dict(zip(("title", "type", "description"), e, strict=True)) for e in entities],
        "relationships": [
            dict(zip(("source", "target", "description", "strength"), r, strict=True)) for r in relationships
        ],
        "claims": [{**dict.fromkeys(names, ""), **c} for c in claims],
        **counts,
    }


def test_titles_unite_edges_add_up_and_ends_become_entities():
    results = [
        result("u0", [("ALICE", "person", "A girl."), ("Bob", "person", "")], [("Alice", "BOB", "friends", 3.0)]),
        result("u1", [("Alice", "person", "Likes tea.")], [("bob", "Alice", "friends", 50.0), ("Alice", "Zoo", "", 1)]),
        result("u2", [("Alice", "girl", "A girl.")], [("Alice", "alice", "itself", 2)], lost=2, calls=3),
    ]
    out, stats = merge(units(3), results, OPTIONS)
    whole(out)
    rows = {e["title"]: e for e in out["entities"].to_pylist()}
    assert set(rows) == {"Alice", "Bob", "Zoo"}
    assert rows["Alice"]["id"] == entity_id("alice")
    assert (rows["Alice"]["description"], rows["Alice"]["type"]) == ("A girl.\nLikes tea.", "person")
    assert rows["Alice"]["aliases"] == ["ALICE"]
    assert rows["Bob"]["text_unit_ids"] == ["u0", "u1"]
    edges = {(r["source"], r["target"]): r for r in out["relationships"].to_pylist()}
    assert set(edges) == {("Alice", "Bob"), ("Alice", "Zoo")}
    assert edges["Alice", "Bob"]["weight"] == 53.0
    assert edges["Alice", "Bob"]["text_unit_ids"] == ["u0", "u1"]
    assert edges["Alice", "Bob"]["description"] == "friends"
    assert {k: stats[k] for k in ("lost", "calls", "unnamed_ends", "loops")} == (
        {"lost": 2, "calls": 3, "unnamed_ends": 2, "loops": 1}
    )


def test_claims_become_covariates_of_their_subject():
    claim = {"subject": "alice", "object": "Mill", "type": "debt", "status": "TRUE", "description": "Owes."}
    results = [
        result("u1", [("Alice", "person", "")], claims=[claim, claim, {**claim, "object": "", "subject": "New"}])
    ]
    out, _ = merge(units(2), results, OPTIONS)
    whole(out)
    rows = out["covariates"].to_pylist()
    assert [(c["subject_id"], c["object_id"], c["text_unit_id"]) for c in rows] == (
        [("Alice", "Mill", "u1"), ("New", "NONE", "u1")]
    )
    assert rows[0]["entity_id"] == entity_id("alice")
    assert set(out["entities"]["title"].to_pylist()) == {"Alice", "Mill", "New"}


def test_a_second_or_stray_result_is_counted_not_mixed_in():
    results = [result("u0", [("A", "", "")]), result("u0", [("A", "", "")]), result("gone", [("B", "", "")])]
    out, stats = merge(units(1), results, OPTIONS)
    assert out["entities"]["title"].to_pylist() == ["A"]
    assert stats["strays"] == 2


def test_both_kinds_at_once_are_refused():
    tables = corpus(ENGLISH)
    with pytest.raises(IntegrityError):
        merge(tables, [*shards(tables, 4), result(tables["text_units"]["id"][0].as_py())], OPTIONS)


NAMES = st.sampled_from(["Ann", "ANN", "ann's", "Bob", "“Bob”", "Cleo", "贾宝玉", "贾 宝玉", "Dora"])
ENTITY = st.tuples(NAMES, st.sampled_from(["person", "place", ""]), st.sampled_from(["", "x", "y", "z"]))
EDGE = st.tuples(NAMES, NAMES, st.sampled_from(["", "p", "q"]), st.sampled_from([1.0, 0.1, 0.7, 9.3, 3.0]))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.lists(ENTITY, max_size=4), st.lists(EDGE, max_size=5)), max_size=5), st.randoms())
def test_the_order_of_results_changes_nothing(parts, rng):
    results = [result(f"u{n}", entities, edges) for n, (entities, edges) in enumerate(parts)]
    expected, stats = merge(units(5), results, OPTIONS)
    whole(expected)
    rng.shuffle(results)
    again, counted = merge(units(5), results, OPTIONS)
    assert equal(again, expected)
    assert counted == stats


@settings(max_examples=40)
@given(st.lists(st.tuples(st.lists(ENTITY, max_size=4), st.lists(EDGE, max_size=5)), max_size=6), st.randoms())
def test_rows_that_go_through_files_give_the_same_tables(parts, rng):
    claim = {"subject": "Ann", "object": "Bob", "description": "owes", "type": "debt"}
    results = [result(f"u{n}", entities, edges, [claim] * (n % 2)) for n, (entities, edges) in enumerate(parts)]
    expected, stats = merge(units(6), results, OPTIONS)
    rng.shuffle(results)
    spilled, counted = merge_compact(units(6), results, OPTIONS, held=2)
    assert equal({name: conform(name, table) for name, table in spilled.items()}, expected)
    assert counted == stats


def test_stored_bytes_and_objects_are_one_input():
    results = [result("u0", [("Ann", "person", "x")], [("Ann", "Bob", "y", 2)]), result("u1", [("贾 宝玉", "", "z")])]
    stored = (json.dumps(r, ensure_ascii=False).encode() for r in results)
    assert equal(merge(units(2), stored, OPTIONS)[0], merge(units(2), results, OPTIONS)[0])


def called(title, *aliases, kind="person"):
    return {"title": title, "type": kind, "description": f"{title} is told of.", "aliases": list(aliases)}


@pytest.mark.parametrize(
    ("full", "ranked", "other"),
    [("Ada Brook", "Captain Brook", "Tom Reed"), ("李卫国", "李局长", "王晓明")],
)
@pytest.mark.parametrize("held", [2, 400_000])
def test_a_name_with_a_rank_is_the_entity_that_gives_it_as_an_alias(full, ranked, other, held):
    tables = corpus(["One." * 60, "Two." * 60])
    ids = tables["text_units"]["id"].to_pylist()
    first = {"unit": ids[0], "entities": [called(full, ranked), called(other)], "relationships": [edge(full, other)]}
    later = [edge(ranked, other), edge(full, ranked)]
    second = {"unit": ids[1], "entities": [called(ranked), called(other)], "relationships": later}
    second["claims"] = [{**dict.fromkeys(CLAIM_WORDS, "x"), "subject": ranked, "object": other}]
    merged, stats = merge_compact(tables, [first, second], OPTIONS, held=held)
    entities = {e["title"]: e for e in merged["entities"].to_pylist()}
    assert set(entities) == {full, other}
    assert (entities[full]["id"], entities[full]["aliases"]) == (entity_id(unify(full)), [ranked])
    assert sorted(entities[full]["text_unit_ids"]) == sorted(ids[:2])
    (tie,) = merged["relationships"].to_pylist()
    assert (tie["weight"], stats["loops"]) == (4.0, 1)
    (claim,) = merged["covariates"].to_pylist()
    assert claim["entity_id"] == entities[full]["id"]
    whole({name: conform(name, table) for name, table in merged.items()})


def test_an_alias_that_two_claim_or_of_another_type_unites_nothing():
    tables = corpus(["One." * 60])
    unit = tables["text_units"]["id"][0].as_py()
    entities = [called("Ada Brook", "The Captain"), called("Tom Reed", "The Captain"), called("The Captain")]
    entities += [called("Port of Brook", "Brook", kind="geo"), called("Brook", kind="person")]
    merged, _ = merge(tables, [{"unit": unit, "entities": entities}], OPTIONS)
    assert merged["entities"].num_rows == 5


def test_entities_that_name_each_other_are_one_under_the_commoner_title():
    tables = corpus(["One." * 60, "Two." * 60])
    ids = tables["text_units"]["id"].to_pylist()
    first = {"unit": ids[0], "entities": [called("Ada Brook", "A. Brook"), called("A. Brook", "Ada Brook")]}
    second = {"unit": ids[1], "entities": [called("Ada Brook")]}
    merged, _ = merge(tables, [first, second], OPTIONS)
    assert merged["entities"]["title"].to_pylist() == ["Ada Brook"]


def edge(source, target):
    return {"source": source, "target": target, "description": "met", "strength": 2}

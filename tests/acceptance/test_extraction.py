"""Extraction by a model through a real stack: gleanings, claims, damage, refusals; each loss is counted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from communitree.sources import gather
from communitree_shared.contract.options import ExtractOptions, IndexOptions, ReadOptions
from communitree_shared.tokens import count
from support.provider import Provider
from support.stack import FAST, Stack, running_stack

SURNAMES = ("Lindqvist", "Petrov", "Fontaine", "Okafor", "Weiss", "Adeyemi", "Marsh", "Stone")
GIVEN = ("Mara", "Oskar", "Ines", "Tomas", "Hanna", "Paul")
DOCUMENTS = 16
HOUSES = ("Harbour House", "Iron Bridge", "Salt Works", "Tallow Mill", "North Quay", "Silver Point")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Stack]:
    """A stack whose workers extract with the fake provider and write reports themselves."""
    with running_stack(tmp_path_factory.mktemp("home"), {**FAST, **provider.settings("extract")}) as running:
        yield running


def person(n: int) -> str:
    return f"{GIVEN[n % 6]} {SURNAMES[n * 3 % 8]}"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of a text unit each, with eleven names; the provider can be told to refuse the seventh."""
    folder = tmp_path_factory.mktemp("people")
    for n in range(DOCUMENTS):
        names = [*(person(n + k) for k in range(6)), *(HOUSES[(n + k) % 6] for k in range(5))]
        text = " ".join(f"Here {name} is told of, and what came of it in year {n}." for name in names)
        (folder / f"{n:02}.txt").write_text(f"{text} {'The Forbidden Ledger was read. ' if n == 7 else ''}")
    return folder


def index(stack: Stack, *words: str) -> dict[str, Any]:
    done = stack.call("index", *words, "--json")
    assert done.code in {0, 3}, done.out + done.err
    return dict(done.json)


def table(stack: Stack, corpus: str, name: str, folder: Path) -> list[dict[str, Any]]:
    if not (folder / f"{name}.parquet").exists():
        stack.call_json("export", corpus, str(folder))
    return list(pq.read_table(folder / f"{name}.parquet").to_pylist())


def test_each_loss_is_counted_and_its_text_is_held(
    stack: Stack, provider: Provider, people: Path, tmp_path: Path
) -> None:
    provider.reset(error_rate=0.05, rate_429=0.05, malformed_rate=0.25, refused_text=r"in year 7\b")
    few_tokens = ("--max-description-tokens", "60")
    first = index(stack, str(people), "--corpus", "people", "--claims", "--max-gleanings", "2", *few_tokens)
    assert first["status"] == "partial"
    assert first["counts"]["text_units"] == DOCUMENTS
    assert (first["coverage"]["entities"], first["coverage"]["text_units"]) == (1.0, 1.0)
    assert any(w.startswith("1 extraction unit") for w in first["warnings"])
    # Replies that were damaged or ended inside were read, or asked for once more: none of their rows is lost.
    assert not any("damaged" in w for w in first["warnings"])
    assert first["llm"]["by_stage"]["extract"]["repaired"] > 0
    faults = provider.stats()["outcomes"]
    assert min(faults["error"], faults["429"], faults["malformed"]) > 0, "choose another seed"
    # What was refused is held by an entity that stands for its document.
    units = table(stack, "people", "text_units", tmp_path)
    (refused,) = [u for u in units if "Forbidden Ledger" in u["text"]]
    (holder,) = [e for e in table(stack, "people", "entities", tmp_path) if refused["id"] in e["text_unit_ids"]]
    assert holder["type"] == "document"
    held = {u for c in table(stack, "people", "communities", tmp_path) for u in c["text_unit_ids"]}
    assert held == {u["id"] for u in units}
    # A gleaning's names are there, and claims hang on what they are about.
    ids = {e["id"] for e in table(stack, "people", "entities", tmp_path)}
    claims = table(stack, "people", "covariates", tmp_path)
    assert len(claims) == first["counts"]["claims"] > 50
    assert {c["entity_id"] for c in claims} <= ids
    assert first["counts"]["entities"] >= len({person(n) for n in range(DOCUMENTS + 6)})
    # Descriptions that grew over the limit were summarised.
    assert provider.stats()["kinds"]["text"] > 0
    assert max(count(e["description"]) for e in table(stack, "people", "entities", tmp_path)) <= 100
    calls = first["llm"]["by_stage"]["extract"]
    assert calls["calls"] >= 3 * (DOCUMENTS - 1)
    assert sum(n for kind, n in provider.stats()["kinds"].items()) >= calls["calls"]
    # Afterwards only what failed is asked again, with the settings that the corpus has.
    provider.reset(error_rate=0.0, rate_429=0.0, malformed_rate=0.0, refused_text="")
    second = index(stack, str(people), "--corpus", "people")
    assert second["status"] == "published"
    assert second["changes"] == []
    asked = provider.stats()["kinds"]
    assert (asked["extract"], asked["claims"]) == (3, 1)


def test_settings_are_kept_and_a_changed_one_says_what_it_makes_anew(
    stack: Stack, provider: Provider, people: Path
) -> None:
    provider.reset()
    index(stack, str(people), "--corpus", "kept", "--max-gleanings", "0", "--entity-type", "person")
    assert provider.stats()["kinds"] == {"extract": DOCUMENTS}
    provider.reset()
    wanted = ("index", str(people), "--corpus", "kept", "--max-cluster-size", "5")
    line = "max_cluster_size 10 → 5: the tree and reports are made anew"
    done = stack.call(*wanted, "--json")
    assert line in done.err
    assert done.json["changes"] == [line]
    assert provider.stats()["requests"] == 0, "the extraction is the same"
    reset = stack.call_json(
        "index", str(people), "--corpus", "kept", "--reset-settings", "--max-gleanings", "0", "--plan"
    )
    assert reset["changes"] == [
        "entity_types person → organization, person, geo, event: extraction, the tree and reports are made anew",
        "max_cluster_size 5 → 10: the tree and reports are made anew",
    ]
    assert reset["llm"]["by_stage"]["extract"]["calls"] == DOCUMENTS


def test_a_prompt_of_the_caller_in_chinese_answered_in_tuples(stack: Stack, provider: Provider, tmp_path: Path) -> None:
    provider.reset()
    prompt = tmp_path / "extract.md"
    prompt.write_text('用 ("entity"<|>名称<|>类型<|>描述) 的格式列出 {types}。\nPASSAGE:', encoding="utf-8")
    folder = tmp_path / "text"
    folder.mkdir()
    for n in range(6):
        text = "王晓明在上海港务集团工作，李建国和王晓明说起清华大学的往事。"
        text += f"第{n}章，林黛玉与贾宝玉在园中说话，张德海是医生。"
        (folder / f"{n}.txt").write_text(text, encoding="utf-8")
    made = index(stack, str(folder), "--corpus", "章回", "--prompt", f"extract={prompt}", "--max-gleanings", "0")
    assert made["status"] == "published", made
    titles = {e["title"] for e in table(stack, "章回", "entities", tmp_path / "out")}
    assert {"王晓明", "李建国", "林黛玉", "贾宝玉", "清华大学"} <= titles
    # The prompt is a setting of the corpus: nothing is asked again without it.
    provider.reset()
    assert index(stack, str(folder), "--corpus", "章回")["changes"] == []
    assert provider.stats()["requests"] == 0


def test_the_built_in_extractor_beside_a_model(stack: Stack, provider: Provider, people: Path) -> None:
    provider.reset()
    made = index(stack, str(people), "--corpus", "builtin", "--extractor", "builtin")
    assert made["status"] == "published"
    assert made["counts"]["entities"] > 10
    assert provider.stats()["requests"] == 0


def test_spacy_that_is_not_installed_is_said_with_its_remedy(stack: Stack, people: Path) -> None:
    done = stack.call("index", str(people), "--corpus", "parsed", "--extractor", "spacy", "--json")
    assert done.code == 2
    assert "spaCy" in json.dumps(done.json)
    assert "communitree[nlp]" in json.dumps(done.json)


def test_order_shards_and_workers_change_no_table(stack: Stack, topics: Path, tmp_path: Path) -> None:
    gathered = gather([topics])
    corpora = []
    with stack.client() as client:
        for corpus, shard_units in (("in-order", 32), ("shuffled", 1)):
            options = IndexOptions(
                read=ReadOptions(chunk_tokens=200, chunk_overlap=40),
                extract=ExtractOptions(extractor="builtin", shard_units=shard_units),
            )
            result = client.wait_index(client.submit_index(gathered, corpus, options))
            assert result.status == "published"
            files = client.export(corpus, tmp_path / corpus)
            corpora.append({path.name: pq.read_table(path) for path in files if path.suffix == ".parquet"})
            random.Random(5).shuffle(gathered.documents)
            if corpus == "in-order":
                more = stack.start("worker", "cpu")
    more.terminate()
    more.communicate(timeout=60)
    one, other = corpora
    assert one["text_units.parquet"].num_rows > 40
    assert one["community_reports.parquet"].num_rows > 10
    assert one.keys() == other.keys()
    assert [name for name, table in one.items() if not table.equals(other[name])] == []

"""`index --plan`: what an index would make and cost, against what it then makes and costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.provider import Provider
from support.stack import FAST, Stack, running_stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Stack]:
    """A stack that would extract with a model, too."""
    with running_stack(tmp_path_factory.mktemp("home"), {**FAST, **provider.settings()}) as running:
        yield running


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """Six clusters of twelve entities, each a wheel, joined in a ring: two levels of communities."""
    rows = ["source,target,weight,description"]
    for c in range(6):
        rows += [f"n{c}-{i},n{c}-{(i + 1) % 12},3,they meet in hall {c}.{i}" for i in range(12)]
        rows += [f"n{c}-0,n{c}-{i},2,they trade goods of kind {i}" for i in range(2, 11)]
        rows.append(f"n{c}-0,n{(c + 1) % 6}-6,1,neighbours")
    folder = tmp_path / "edges"
    folder.mkdir()
    (folder / "edges.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture
def people(tmp_path: Path) -> Path:
    folder = tmp_path / "people"
    folder.mkdir()
    names = ["Ann Lee", "Ben Cole", "Cara Voss", "Dan Hale", "Eve Stone", "Finn Marsh", "Gwen Frost", "Hugo Pike"]
    for n in range(16):
        a, b, c = names[n % 8], names[(n * 3 + 1) % 8], names[(n * 5 + 2) % 8]
        text = f"{a} met {b} at Harbour House. Later {b} wrote to {c} about the Iron Bridge of Norham. " * 12
        (folder / f"{n:02}.txt").write_text(f"Chapter {n}. {text}")
    return folder


def test_a_plan_calls_no_model_and_publishes_nothing(stack: Stack, people: Path, provider: Provider) -> None:
    provider.reset()
    plan = stack.call_json("index", str(people), "--corpus", "planned", "--plan")
    assert provider.stats()["requests"] == 0
    assert plan["status"] == "done"
    assert plan["graph"] == "stand-in"  # a model extracts here
    assert plan["counts"]["documents"] == 16
    stages = plan["llm"]["by_stage"]
    assert stages["extract"]["calls"] == 2 * plan["counts"]["text_units"]  # each with a gleaning
    assert stages["report"]["calls"] == sum(level["calls"] for level in plan["levels"].values()) > 0
    assert plan["llm"]["prompt_tokens"] > 0
    assert plan["llm"]["usd"] is None  # the price of `fake` is unknown
    assert stack.call_json("job", plan["job_id"], "--result") == plan
    assert [c["version"] for c in stack.call_json("corpora")["corpora"] if c["name"] == "planned"] in ([], [""])


def test_the_plan_of_a_graph_is_what_the_index_then_does(stack: Stack, edges: Path, provider: Provider) -> None:
    wanted = ("index", str(edges), "--graph", "--recluster", "--corpus", "planned-graph")
    plan = stack.call_json(*wanted, "--plan")
    assert plan["graph"] == "given"
    provider.reset()
    made = stack.call_json(*wanted)
    assert plan["counts"] == made["counts"]
    assert plan["notes"] == made["notes"]
    assert any("72 entities were made" in note for note in made["notes"])
    assert {k: v["communities"] for k, v in plan["levels"].items()} == {
        k: v["communities"] for k, v in made["levels"].items()
    }
    paid = made["llm"]["by_stage"]["report"]
    planned = plan["llm"]["by_stage"]["report"]
    assert planned["calls"] == paid["calls"] == made["reports"]["generated"] > 0
    assert provider.stats()["kinds"]["report"] == planned["calls"]
    assert sum(level["prompt_tokens"] for level in plan["levels"].values()) == planned["prompt_tokens"] > 0
    # Afterwards every report is known.
    again = stack.call_json(*wanted, "--plan")
    assert sum(level["reused"] for level in again["levels"].values()) == made["reports"]["generated"]
    assert again["llm"]["calls"] == 0


def test_documents_that_are_gone_are_named_before_and_after(stack: Stack, people: Path) -> None:
    first = stack.call_json("index", str(people), "--corpus", "replaced", "--extractor", "builtin")
    assert first["changes"] == []
    again = stack.call_json("index", str(people), "--corpus", "replaced")
    assert (again["changes"], again["counts"]["documents"]) == ([], 16)
    names = ", ".join(f"{n:02}.txt" for n in range(16) if n != 3)
    line = f"15 documents of the version before are gone, as an index replaces the whole set: {names}"
    planned = stack.call_json("index", str(people / "03.txt"), "--corpus", "replaced", "--plan")
    assert planned["changes"] == [line]
    made = stack.call("index", str(people / "03.txt"), "--corpus", "replaced")
    assert made.code == 0
    assert line in " ".join(made.out.split())
    assert "15 files of the version before, as they were, are not among these" in " ".join(made.err.split())

"""An endpoint that refuses puts no shell over a good version; a good one takes up what it left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from communitree_shared.contract.options import IndexOptions
from communitree_workers.report.evidence import EvidenceBuilder
from communitree_workers.report.evidence.rows import count_rows
from communitree_workers.report.tasks import unit_id
from support.provider import Provider
from support.stack import FAST, Stack, running_stack

REFUSALS = ("no_key", "no_access", "no_model", "no_money")
NAMES = ("Mara Lindqvist", "Oskar Petrov", "Ines Fontaine", "Tomas Okafor", "Hanna Weiss", "Paul Marsh")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Stack]:
    """A stack whose workers extract and write reports with the fake provider."""
    stages = {**provider.settings("extract"), **provider.settings("report")}
    with running_stack(tmp_path_factory.mktemp("home"), {**FAST, **stages}) as running:
        yield running


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    for n in range(4):
        write(tmp_path, n, f"in the year {n}")
    return tmp_path


def write(folder: Path, n: int, when: str) -> None:
    told = " ".join(f"{name} met {NAMES[(k + 1) % 6]} {when}." for k, name in enumerate(NAMES))
    (folder / f"{n}.txt").write_text(told)


def index(stack: Stack, code: int, folder: Path, corpus: str, *words: str) -> dict[str, Any]:
    done = stack.call("index", str(folder), "--corpus", corpus, "--max-gleanings", "0", "--json", *words)
    assert done.code == code, done.out + done.err
    return dict(json.loads(done.out))


def version(stack: Stack, corpus: str) -> str:
    (found,) = [c for c in stack.call_json("corpora")["corpora"] if c["name"] == corpus]
    return str(found["version"])


def resumed(stack: Stack, job: str) -> dict[str, Any]:
    new = stack.call_json("resume", job)["job_id"]
    stack.call("job", new, "--follow")
    return dict(stack.call_json("job", new, "--result"))


@pytest.mark.parametrize("habit", REFUSALS)
def test_a_refusing_endpoint_leaves_the_good_version(
    stack: Stack, provider: Provider, letters: Path, habit: str
) -> None:
    corpus = f"kept-{habit}"
    provider.reset(habit="")
    first = index(stack, 0, letters, corpus)
    assert version(stack, corpus) == first["version"]
    provider.reset(habit=habit)
    write(letters, 0, "once more, at the harbour")
    refused = index(stack, 4, letters, corpus)
    assert (refused["status"], refused["version"], refused["error"]["code"]) == ("failed", "", "model")
    assert "communitree resume" in refused["error"]["hint"]
    assert version(stack, corpus) == first["version"]
    (cause,) = [group for group in refused["failures"] if group["stage"] == "extract"]
    assert (cause["count"], cause["examples"]) == (1, ["0.txt, text unit 0"])
    told = stack.call_json("job", refused["job_id"])
    assert told["failures"] == refused["failures"]
    provider.reset(habit="")
    second = resumed(stack, refused["job_id"])
    assert (second["status"], second["failures"]) == ("published", [])
    assert version(stack, corpus) == second["version"] != first["version"]
    assert provider.stats()["kinds"]["extract"] == 1


def test_a_first_version_is_published_as_partial_and_a_better_one_replaces_it(
    stack: Stack, provider: Provider, letters: Path
) -> None:
    provider.reset(habit="no_key")
    first = index(stack, 3, letters, "first")
    assert (first["status"], version(stack, "first")) == ("partial", first["version"])
    again = index(stack, 3, letters, "first")
    assert (again["status"], version(stack, "first")) == ("partial", again["version"])
    provider.reset(habit="")
    good = resumed(stack, again["job_id"])
    assert (good["status"], version(stack, "first")) == ("published", good["version"])


def test_it_is_published_anyway_where_that_is_asked_for(stack: Stack, provider: Provider, letters: Path) -> None:
    provider.reset(habit="")
    index(stack, 0, letters, "anyway")
    provider.reset(habit="no_money")
    for n in range(4):
        write(letters, n, f"never again after {n}")
    made = index(stack, 3, letters, "anyway", "--publish-anyway")
    assert version(stack, "anyway") == made["version"]
    assert any("published anyway" in w and "extract: 4 of 4 failed" in w for w in made["warnings"])


def test_reports_that_fail_are_enough(stack: Stack, provider: Provider, letters: Path) -> None:
    provider.reset(habit="")
    first = index(stack, 0, letters, "reports")
    assert first["reports"]["generated"] > 0
    provider.reset(habit="no_key", habit_kinds=["report"])
    write(letters, 1, "at the mill")
    failed = index(stack, 4, letters, "reports")
    assert {group["stage"] for group in failed["failures"]} == {"report"}
    assert version(stack, "reports") == first["version"]
    provider.reset(habit="", habit_kinds=[])
    good = resumed(stack, failed["job_id"])
    assert (good["status"], good["reports"]["extractive"]) == ("published", first["reports"]["extractive"])
    assert "extract" not in provider.stats()["kinds"]


def test_one_text_that_a_filter_refuses_does_not_keep_the_rest(stack: Stack, provider: Provider, letters: Path) -> None:
    provider.reset(habit="")
    index(stack, 0, letters, "filter")
    provider.reset(habit="filtered", habit_kinds=["extract"])
    write(letters, 2, "where nobody may read it")
    made = index(stack, 3, letters, "filter")
    assert [(group["cause"], group["count"]) for group in made["failures"]] == [("content_refused", 1)]
    assert version(stack, "filter") == made["version"]
    provider.reset(habit="", habit_kinds=[])


def test_a_cut_report_keeps_its_whole_findings_and_is_written_anew_next_time(
    stack: Stack, provider: Provider, letters: Path
) -> None:
    provider.reset(habit="filtered", habit_kinds=["report"])
    index(stack, 3, letters, "cut")
    provider.reset(habit="", habit_kinds=[], cut_rate=1.0)  # and so is what goes on with a report
    cut = index(stack, 3, letters, "cut")
    assert (cut["reports"]["generated"], cut["llm"]["by_stage"]["report"]["calls"]) == (1, 2)
    (told,) = cut["warnings"]
    assert "cut: it ended with 'length'" in told
    report = stack.call_json("report", "cut", "0")
    found = len(report["findings"])
    assert report["cause"].startswith(f"{found} finding"), report["cause"]
    assert report["generated_by"] == "fake"
    provider.reset(cut_rate=0.0)
    whole = index(stack, 0, letters, "cut")
    assert (whole["status"], whole["reports"]["reused"]) == ("published", 0)
    assert len(stack.call_json("report", "cut", "0")["findings"]) >= found


def test_one_refused_half_of_a_text_costs_that_half_and_is_named(
    stack: Stack, provider: Provider, letters: Path
) -> None:
    (letters / "4.txt").write_text((letters / "0.txt").read_text() + " " * 3 + "The Forbidden Ledger lay there. ")
    provider.reset(habit="filtered", habit_kinds=["extract"], habit_match="Forbidden Ledger")
    made = index(stack, 3, letters, "half")
    (group,) = made["failures"]
    assert (group["cause"], group["count"]) == ("content_refused", 1)
    assert group["examples"][0].startswith("4.txt, text unit ")
    assert any(w.startswith("1 part of a text unit gave nothing") for w in made["warnings"])
    provider.reset(habit="", habit_kinds=[], habit_match="")
    index(stack, 3, letters, "half")
    assert "extract" not in provider.stats()["kinds"], "what a filter refuses is not asked again"


def test_a_report_by_the_prompt_before_is_kept_until_it_is_to_be_rewritten(
    stack: Stack, provider: Provider, letters: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    provider.reset()
    first = index(stack, 0, letters, "older")
    # What an older release left: the report under the hash of the prompt that it had, and a manifest that counts none.
    folder = tmp_path_factory.mktemp("tables")
    stack.call_json("export", "older", str(folder))
    tables = {path.stem: pq.read_table(path) for path in folder.glob("*.parquet")}
    options = IndexOptions()
    counted = count_rows(tables, options.read.encoding_model)
    builder = EvidenceBuilder(counted, options.report, options.read.encoding_model, "en", {})
    ((now,), (before,)) = (made.build(0, {}) for made in (builder, builder.earlier()))
    with stack.client() as client:
        store, keys = client._jobs.store, client._jobs.keys
        new, old = (keys.unit("older", "report", unit_id(client._jobs.tenant, "fake", e)) for e in (now, before))
        store.put(old, store.get(new))
        store.delete(new)
        manifest = store.get_json(keys.manifest("older", first["version"]))
        del manifest["earlier_reports"]
        store.put_json(keys.manifest("older", first["version"]), manifest)
    for _ in range(2):  # the version that keeps it says so
        kept = index(stack, 0, letters, "older")
        assert (kept["reports"]["reused"], kept["reports"]["generated"]) == (1, 0)
    rewritten = index(stack, 0, letters, "older", "--rewrite-reports")
    assert (rewritten["reports"]["reused"], rewritten["reports"]["generated"]) == (0, 1)
    assert provider.stats()["kinds"]["report"] == 2

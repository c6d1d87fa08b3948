from __future__ import annotations

from typing import Any

import pytest

from communitree_shared.contract import corpus_settings
from communitree_shared.contract.options import (
    ClusterOptions,
    ExtractOptions,
    IndexOptions,
    ReadOptions,
    ReportOptions,
)


def version(options: IndexOptions, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the manifest of a job with these options."""
    chosen, settings = corpus_settings.effective(before, options)
    return {"options": chosen.model_dump(), "settings": settings, "extract": {"models": {"extract": "extractive"}}}


def test_a_later_job_starts_from_what_an_earlier_one_was_given() -> None:
    first = version(IndexOptions(read=ReadOptions(chunk_tokens=800), prompts={"extract": "mine"}))
    chosen, settings = corpus_settings.effective(first, IndexOptions(extract=ExtractOptions(claims=True)))
    assert chosen.read.chunk_tokens == 800
    assert chosen.extract.claims
    assert chosen.prompts == {"extract": "mine"}
    assert settings == {"read": {"chunk_tokens": 800}, "prompts": {"extract": "mine"}, "extract": {"claims": True}}


def test_a_default_that_is_given_by_name_wins_over_what_is_stored() -> None:
    first = version(IndexOptions(read=ReadOptions(chunk_tokens=800)))
    chosen, settings = corpus_settings.effective(first, IndexOptions(read=ReadOptions(chunk_tokens=1200)))
    assert chosen.read.chunk_tokens == 1200
    assert settings == {"read": {"chunk_tokens": 1200}}


def test_defaults_are_not_kept() -> None:
    assert corpus_settings.effective(None, IndexOptions())[1] == {}


@pytest.mark.parametrize(
    "options",
    [
        IndexOptions(graph=True),
        IndexOptions(budget_usd=1.0, budget_tokens=5),
        IndexOptions(read=ReadOptions(limit=3, strict=True)),
        IndexOptions(cluster=ClusterOptions(recluster=True)),
        IndexOptions(reset_settings=True),
    ],
)
def test_choices_about_one_job_are_not_kept(options: IndexOptions) -> None:
    chosen, settings = corpus_settings.effective(None, options)
    assert chosen == options
    assert settings == {}


def test_reset_starts_from_the_defaults() -> None:
    first = version(IndexOptions(read=ReadOptions(chunk_tokens=800)))
    options = IndexOptions(reset_settings=True, report=ReportOptions(max_length=500))
    chosen, settings = corpus_settings.effective(first, options)
    assert chosen.read.chunk_tokens == 1200
    assert settings == {"report": {"max_length": 500}}


def test_a_changed_setting_says_what_is_made_anew() -> None:
    first = version(IndexOptions(read=ReadOptions(chunk_tokens=1200), prompts={"report": "old"}))
    options, _ = corpus_settings.effective(
        first,
        IndexOptions(
            read=ReadOptions(chunk_tokens=800),
            cluster=ClusterOptions(max_cluster_size=20),
            extract=ExtractOptions(entity_types=["人物", "地点"]),
            report=ReportOptions(max_length=900),
            prompts={"report": "new words"},
        ),
    )
    assert corpus_settings.changes(first, options, {"extract": "gpt"}) == [
        "chunk_tokens 1200 → 800: text units, extraction, the tree and reports are made anew",
        "entity_types organization, person, geo, event → 人物, 地点: extraction, the tree and reports are made anew",
        "max_cluster_size 10 → 20: the tree and reports are made anew",
        "report max_length 2000 → 900: reports are made anew",
        "prompt report your own (3 characters) → your own (9 characters): reports are made anew",
        "model of extract extractive → gpt: extraction, the tree and reports are made anew",
    ]


def test_nothing_changed_says_nothing() -> None:
    first = version(IndexOptions(read=ReadOptions(chunk_tokens=800)))
    chosen, _ = corpus_settings.effective(first, IndexOptions(budget_usd=2.0, read=ReadOptions(limit=1)))
    assert corpus_settings.changes(first, chosen, {"extract": "extractive"}) == []
    assert corpus_settings.changes(None, chosen) == []


def test_a_version_that_kept_no_settings_is_no_obstacle() -> None:
    old = {"options": IndexOptions(read=ReadOptions(chunk_tokens=500)).model_dump()}
    chosen, settings = corpus_settings.effective(old, IndexOptions())
    assert (chosen, settings) == (IndexOptions(), {})
    assert corpus_settings.changes(old, chosen) == [
        "chunk_tokens 500 → 1200: text units, extraction, the tree and reports are made anew"
    ]


def test_settings_that_another_release_kept_are_passed_over() -> None:
    manifest = {"settings": {"read": {"chunk_tokens": 800, "later": 1}}, "options": {"later": {}}}
    chosen, _ = corpus_settings.effective(manifest, IndexOptions())
    assert chosen == IndexOptions(read=ReadOptions(chunk_tokens=800))
    assert len(corpus_settings.changes(manifest, chosen)) == 1

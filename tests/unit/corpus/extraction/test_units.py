"""What makes a unit of the extraction another one: exactly what its result depends on."""

from __future__ import annotations

import pytest

from communitree_shared.contract.options import ClusterOptions, ExtractOptions, IndexOptions, ReportOptions
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.corpus.extraction.units import TextUnits, extraction_units

IDS = [f"u{n}" for n in range(5)]


def units(options: IndexOptions, model: str = "gpt", spoken: str = "en", pipeline: str = "") -> list[str]:
    read = TextUnits("default", "c", "v", ids=IDS, n_tokens=[9] * len(IDS), language=spoken, bytes=100)
    return [u.id for u in extraction_units(read, options, model, pipeline)]


PLAIN = IndexOptions()


@pytest.mark.parametrize(
    "options",
    [
        IndexOptions(extract=ExtractOptions(entity_types=["person"])),
        IndexOptions(extract=ExtractOptions(max_gleanings=0)),
        IndexOptions(extract=ExtractOptions(claims=True)),
        IndexOptions(prompts={"extract": "mine"}),
        IndexOptions(prompts={"gleaning": "mine"}),
    ],
)
def test_what_a_model_is_asked_makes_other_units(options: IndexOptions) -> None:
    assert not set(units(options)) & set(units(PLAIN))


@pytest.mark.parametrize(
    "options",
    [
        IndexOptions(extract=ExtractOptions(max_description_tokens=50, shard_units=3)),
        IndexOptions(prompts={"describe": "mine", "report": "mine"}),
        IndexOptions(cluster=ClusterOptions(max_cluster_size=4), report=ReportOptions(max_length=100)),
    ],
)
def test_what_a_model_does_not_see_finds_its_replies_again(options: IndexOptions) -> None:
    assert units(options) == units(PLAIN)


def test_model_language_and_text_units_make_other_units() -> None:
    assert len({tuple(units(PLAIN)), tuple(units(PLAIN, "other")), tuple(units(PLAIN, spoken="zh"))}) == 3
    assert len(units(PLAIN)) == len(set(units(PLAIN))) == len(IDS)


def test_the_built_in_extractor_depends_on_its_version_and_sharding_alone() -> None:
    asked = IndexOptions(prompts={"extract": "mine"}, extract=ExtractOptions(claims=True))
    assert units(PLAIN, EXTRACTIVE) == units(asked, EXTRACTIVE)
    assert len(units(IndexOptions(extract=ExtractOptions(shard_units=2)), EXTRACTIVE)) == 3
    assert units(PLAIN, EXTRACTIVE) != units(PLAIN, EXTRACTIVE, pipeline="spacy-1 en_core_web_sm 3.8.0")

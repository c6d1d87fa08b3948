"""The adapter, with a pipeline's parsed documents written down by hand; benchmarks run the real one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from communitree_shared.contract.options import ExtractOptions
from communitree_shared.errors import BadInput
from communitree_workers.corpus.extraction import spacy_pipeline
from communitree_workers.corpus.extraction.shards import Shard

TEXT = "Dr. Mara Lindqvist of Bayline Shipping bought two harbour tugboats in March. 王晓明在上海港务集团工作。"


@dataclass
class Doc:
    """What a pipeline returns: names with labels, phrases with tagged words."""

    text: str
    names: dict[str, str]
    phrases: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def ents(self) -> list[Any]:
        return [self._span(name, label_=label) for name, label in self.names.items() if name in self.text]

    @property
    def noun_chunks(self) -> list[Any]:
        return [self._chunk(phrase, words) for phrase, words in self.phrases.items() if phrase in self.text]

    def has_annotation(self, name: str) -> bool:
        return name == "DEP" and bool(self.phrases)

    def _span(self, text: str, **more: Any) -> Any:
        at = self.text.index(text)
        return SimpleNamespace(text=text, start_char=at, end_char=at + len(text), **more)

    def _chunk(self, phrase: str, words: list[tuple[str, str]]) -> Any:
        tokens = [SimpleNamespace(text=word, pos_=tag) for word, tag in words]
        span = self._span(phrase)

        class Chunk(SimpleNamespace):
            def __iter__(self) -> Any:
                return iter(tokens)

        return Chunk(**vars(span), root=tokens[-1])


NAMES = {"Mara Lindqvist": "PERSON", "Bayline Shipping": "ORG", "two": "CARDINAL", "March": "DATE"}
PHRASES = {"harbour tugboats": [("harbour", "NOUN"), ("tugboats", "NOUN")], "Bayline Shipping": [("Shipping", "PROPN")]}


def shard(text: str, phrases: dict[str, list[tuple[str, str]]] = PHRASES) -> Shard:
    units = pa.table({"id": ["u"], "text": [text]})
    return spacy_pipeline.extract_units(units, ExtractOptions(), "en", lambda name: lambda t: Doc(t, NAMES, phrases))


def test_names_have_types_and_phrases_are_terms() -> None:
    forms = {row["title"]: row for row in shard(TEXT).forms.to_pylist()}
    assert {title: row["type"] for title, row in forms.items() if title.isascii()} == {
        "Mara Lindqvist": "person", "Bayline Shipping": "organization", "harbour tugboats": "term",
    }  # fmt: skip
    assert forms["harbour tugboats"]["key"] == "harbour tugboat"


def test_chinese_sentences_are_read_by_the_built_in_extractor() -> None:
    assert {"王晓明", "上海港务集团"} <= set(shard(TEXT).forms["title"].to_pylist())


def test_candidates_stand_in_their_sentences() -> None:
    found = shard(TEXT)
    titles = found.forms["title"].to_pylist()
    sentences = [[titles[n] for n in row["forms"]] for row in found.sentences.to_pylist()]
    assert sentences[0] == ["Mara Lindqvist", "Bayline Shipping", "harbour tugboats"]
    assert "王晓明" in sentences[-1]


def test_a_pipeline_without_a_parser_gives_names_only() -> None:
    titles = [t for t in shard(TEXT, {}).forms["title"].to_pylist() if t.isascii()]
    assert titles == ["Mara Lindqvist", "Bayline Shipping"]


def test_without_spacy_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(BadInput) as caught:
        spacy_pipeline.pipeline("missing")
    assert "communitree[nlp]" in caught.value.hint


def test_a_pipeline_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise OSError(f"[E050] Can't find model '{name}'.")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    with pytest.raises(BadInput, match="no pipeline de_core_news_sm") as caught:
        spacy_pipeline.pipeline("de_core_news_sm")
    assert "--spacy-model" in caught.value.hint

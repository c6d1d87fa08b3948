import json

import jsonschema
import pytest

from communitree_shared import tokens
from communitree_shared.contract.options import ReportOptions
from communitree_shared.errors import BadInput
from communitree_workers.prompts import language_name, load
from communitree_workers.report.evidence import EvidenceBuilder
from communitree_workers.report.evidence.prompt import instructions, messages, schema, share_line, words_for
from communitree_workers.report.evidence.rows import count_rows
from support.reports import ENCODING, write_all
from support.trees import Shape, corpus

TABLES = corpus(Shape(entities=8, relationships=10, claims=2, documents=1, depth=1, branching=1))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_instructions_say_the_shape_in_words_and_come_first(language: str) -> None:
    evidence, _ = write_all(TABLES, ReportOptions(max_length=99), language)
    system, user = messages(evidence[0], ReportOptions(max_length=99), {})
    assert (system["role"], user["role"]) == ("system", "user")
    for key in ("title", "summary", "rating", "rating_explanation", "findings", "explanation"):
        assert f'"{key}"' in system["content"]
    assert "99" in system["content"]
    assert "[Data: Entities (" in system["content"]
    assert "{" not in system["content"].replace('{"summary"', "")
    assert user["content"] == evidence[0].data
    assert ("Write in English" in system["content"]) == (language == "en")
    assert ("用中文书写" in system["content"]) == (language == "zh")


def test_static_text_differs_by_length_and_tables_alone() -> None:
    tables = corpus(Shape(entities=20, relationships=30, depth=2, branching=3))
    evidence, _ = write_all(tables, ReportOptions())
    for found in evidence.values():
        kinds = [kind for kind, numbers in found.numbers.items() if numbers]
        assert messages(found, ReportOptions(), {})[0]["content"] == instructions("en", {}, found.words, kinds).before


def test_only_the_tables_that_are_there_are_named() -> None:
    assert "tables (Entities, Relationships)." in instructions("en", {}, 120, ("relationships", "entities")).before
    assert "（Sources、Reports）" in instructions("zh", {}, 120, ("text_units", "reports")).before


def test_the_length_grows_with_the_evidence_in_few_steps() -> None:
    assert [words_for(n, 2000) for n in (10, 250, 399, 400, 1000, 3000, 3334, 8000)] == (
        [120, 120, 120, 240, 480, 960, 2000, 2000]
    )
    assert (words_for(10, 50), words_for(500, 250), words_for(400, 250)) == (50, 250, 240)


def test_the_share_is_told_in_powers_of_two() -> None:
    said = [share_line(share, "en") for share in (1.0, 0.72, 0.5, 0.13, 0.12, 0.001, 0.0001, 0.0)]
    shares = ["nearly all", "nearly all", "about 1/2", "about 1/8", "about 1/8", "about 1/1024"]
    shares += ["less than 1/1024"] * 2
    assert said == [f"This community holds {share} of the corpus.\n" for share in shares]
    assert share_line(0.26, "zh") == "该社区约占语料的1/4。\n"
    assert share_line(0.9, "zh") == "该社区几乎包含整个语料。\n"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_tokens_with_the_first_line_are_exact(language: str) -> None:
    evidence, _ = write_all(TABLES, ReportOptions(), language)
    for found in evidence.values():
        line, rest = found.data.split("\n", 1)
        assert line + "\n" == share_line(found.share, language)
        assert tokens.count(found.data) == tokens.count(line + "\n") + tokens.count(rest)
        system, user = messages(found, ReportOptions(), {})
        spent = tokens.count(system["content"]) + tokens.count(user["content"])
        assert found.prompt_tokens - spent == 11, "what a chat's format adds"


@pytest.mark.parametrize(
    ("language", "known"),
    [("en", "2a9583798b6ba1f662679a08483fec12326e3d7f"), ("zh", "42e2d7000d128bff28b20f8dd5ed679a2d545475")],
)
def test_evidence_of_the_prompt_before_has_the_hash_it_had(language: str, known: str) -> None:
    tables = corpus(Shape(entities=20, relationships=30, claims=3, documents=1, depth=2, branching=3))
    builder = EvidenceBuilder(count_rows(tables, ENCODING), ReportOptions(), ENCODING, language, {})
    found = {e.community: e for e in builder.build(0, {})}
    before = {e.community: e for e in builder.earlier().build(0, {}, {0})}
    assert (list(before), before[0].hash) == ([0], known)
    assert found[0].hash != known
    assert found[0].data.endswith(before[0].data)


TUNED = 'Tables: {input_text}\nJSON like {{"title": ""}}, {max_report_length} words'


@pytest.mark.parametrize("template", ["Report on this:\n{data}\nNow!", TUNED])
def test_a_prompt_of_the_users_own_with_a_place_for_the_data(template: str) -> None:
    options = ReportOptions(max_prompt_tokens=1_000)
    prompts = {"report": template}
    evidence, _ = write_all(TABLES, options, "en", prompts)
    (message,) = messages(evidence[0], options, prompts)
    assert evidence[0].data in message["content"]
    assert "English" in message["content"]
    assert "{{" not in message["content"]
    assert tokens.count(message["content"]) <= evidence[0].prompt_tokens <= 1_000


def test_the_report_language_may_be_any() -> None:
    assert "Write in Italian" in instructions("Italian", {}, 500).before
    for name in ("Chinese", "中文", "zh", "zh-CN"):
        assert language_name(name) == "中文"
    assert (language_name("英文"), language_name("zh-TW"), language_name("")) == ("English", "繁体中文", "English")
    assert load("report", "zh-Hans", {}) == load("report", "zh", {})
    assert load("report", "de", {}) == load("report", "en", {})
    with pytest.raises(BadInput, match="rport") as caught:
        load("rport", "en", {})
    assert "report" in caught.value.hint


def test_the_schema_takes_a_good_reply_and_bounds_a_bad_one() -> None:
    finding = {"summary": "a", "explanation": "b"}
    good = {"title": "t", "summary": "s", "rating": 5, "rating_explanation": "r", "findings": [finding]}
    jsonschema.validate(good, schema())
    json.dumps(schema())
    for bad in ({**good, "findings": [finding] * 1_000}, {**good, "summary": "x" * 100_000}, {**good, "rating": 11}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema())

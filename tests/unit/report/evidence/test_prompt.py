import json

import jsonschema
import pytest

from communitree_shared import tokens
from communitree_shared.contract.options import ReportOptions
from communitree_shared.errors import BadInput
from communitree_workers.prompts import language_name, load
from communitree_workers.report.evidence.prompt import instructions, messages, schema
from support.reports import write_all
from support.trees import Shape, corpus

TABLES = corpus(Shape(entities=8, relationships=10, claims=2, documents=1, depth=1, branching=1))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_instructions_say_the_shape_in_words_and_come_first(language: str) -> None:
    evidence, _ = write_all(TABLES, ReportOptions(max_length=321), language)
    system, user = messages(evidence[0], ReportOptions(max_length=321), {})
    assert (system["role"], user["role"]) == ("system", "user")
    for key in ("title", "summary", "rating", "rating_explanation", "findings", "explanation"):
        assert f'"{key}"' in system["content"]
    assert "321" in system["content"]
    assert "[Data: Entities (" in system["content"]
    assert "{" not in system["content"].replace('{"summary"', "")
    assert user["content"] == evidence[0].data
    assert ("Write in English" in system["content"]) == (language == "en")
    assert ("用中文书写" in system["content"]) == (language == "zh")


def test_static_text_is_the_same_for_every_community() -> None:
    tables = corpus(Shape(entities=20, relationships=30, depth=2, branching=3))
    evidence, _ = write_all(tables, ReportOptions())
    assert len({messages(found, ReportOptions(), {})[0]["content"] for found in evidence.values()}) == 1


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
    assert "Write in Italian" in instructions(ReportOptions(), "Italian", {}).before
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

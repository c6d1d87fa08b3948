"""The fake's replies to our own prompts: a fact planted in a row must be able to reach the answer."""

from __future__ import annotations

import json

from communitree_shared.contract.options import AnswerOptions
from communitree_workers.prompts import load, question_text
from communitree_workers.query.batches.frame import data_text, rules_text
from communitree_workers.query.reduce.rounds import reduce_messages
from communitree_workers.report.evidence.prompt import instructions
from support.fake_provider import Behaviour
from support.fake_provider.content import SPOILERS, content, kind_of

TABLE = """id|title|level|weight|rank|content
7|Harbour|0|1|5|The bridge opened in 1931. It is long.
9|塔|1|1|5|塔建于1920年。很高。
"""
EVIDENCE = """
## Entities
id,entity,type,description
4,ANNA,person,A pilot

## Relationships
id,source,target,description
8,ANNA,BO,Friends
"""


def asked(language: str = "en", **options: int) -> str:
    overview = "id|title|summary\n3|All|Everything"
    rules = rules_text([3], AnswerOptions.model_validate(options), language, {})
    return f"{rules}\n{data_text(overview, language, 'Reports')}{TABLE}\n{question_text('What?', language)}"


def reply(prompt: str, **behaviour: object) -> str:
    return content(kind_of(prompt), prompt, b"key", Behaviour(**behaviour))  # type: ignore[arg-type]


def test_a_point_for_each_row_and_a_score_for_each_anchor() -> None:
    for language in ("en", "zh"):
        found = json.loads(reply(asked(language)))
        assert [point["reports"] for point in found["points"]] == [[7], [9]]
        assert found["points"][0]["description"].startswith("The bridge opened in 1931. [Data: Reports (7)]")
        assert found["points"][1]["description"].startswith("塔建于1920年。")
        assert [entry["id"] for entry in found["overview"]] == [3]


def test_obeying_the_word_limit_drops_what_does_not_fit() -> None:
    assert len(json.loads(reply(asked(map_max_length=6), obey_words=True))["points"]) == 1
    assert len(json.loads(reply(asked(map_max_length=60), obey_words=True))["points"]) == 2


def test_the_answer_holds_the_points_and_nothing_of_the_instructions() -> None:
    blocks = ["The bridge opened in 1931. [Data: Reports (7)]", "塔建于1920年。[Data: Reports (9)]"]
    messages = reduce_messages(blocks, "What?", AnswerOptions(), "en", {})
    answer = reply("\n".join(message["content"] for message in messages))
    assert "1931" in answer
    assert "1920" in answer
    assert "(1, 2)" not in answer


def test_a_report_cites_rows_of_its_tables() -> None:
    found = json.loads(reply(instructions("en", {}, 2000).before + EVIDENCE))
    cited = " ".join(finding["explanation"] for finding in found["findings"])
    assert "[Data: Entities (4)]" in cited
    assert "[Data: Relationships (8)]" in cited
    assert found["title"].startswith("ANNA")


def test_kinds_of_our_prompts() -> None:
    names = ("map", "report", "rate", "extract", "reduce", "describe", "rewrite")
    kinds = [kind_of(load(name, language, {})) for language in ("en", "zh") for name in names]
    assert kinds == ["map", "report", "ratings", "extract", "text", "text", "text"] * 2


def test_spoilers_spoil() -> None:
    good = reply(asked())
    assert all(spoiler(good) != good for spoiler in SPOILERS.values())

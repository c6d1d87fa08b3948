import json

import pytest

from communitree_shared.contract.options import ExtractOptions
from communitree_shared.errors import ContentRefused, ModelError, OutputCut, PromptCut
from communitree_workers.corpus.extraction.model import (
    CLAIMS_SCHEMA,
    describe_messages,
    extract_unit,
    graph_messages,
    graph_schema,
)

TEXT = "Ann met Bob at the mill. " * 20


def reply(*titles, edges=()):
    entities = [{"title": t, "type": "person", "description": f"{t} is there."} for t in titles]
    relationships = [{"source": a, "target": b, "description": "", "strength": 2} for a, b in edges]
    return {"entities": entities, "relationships": relationships}


class Model:
    """Gives its answers in turn and remembers what it was asked; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.went_on = []

    async def __call__(self, messages, schema, *, go_on=False):
        self.asked.append((messages, schema))
        self.went_on.append(go_on)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer), answer


async def run(model, text=TEXT, prompts=None, language="en", **options):
    return await extract_unit({"id": "u1", "text": text}, ExtractOptions(**options), language, prompts or {}, model)


async def test_one_call_without_gleanings():
    model = Model(reply("Ann", "Bob", edges=[("Ann", "Bob")]))
    result = await run(model, max_gleanings=0)
    assert result["unit"] == "u1"
    assert [e["title"] for e in result["entities"]] == ["Ann", "Bob"]
    assert (result["calls"], result["lost"], result["failed_calls"]) == (1, 0, 0)
    (messages, schema), *_ = model.asked
    assert schema["properties"]["entities"]["items"]["properties"]["type"]["enum"][-2:] == ["event", "other"]
    assert messages[1] == {"role": "user", "content": TEXT}


async def test_gleanings_add_what_was_missing_and_stop_when_nothing_is_new():
    model = Model(reply("Ann"), reply("Ann", "Bob"), reply("Ann", "Bob"), reply("never asked"))
    result = await run(model, max_gleanings=3)
    assert [e["title"] for e in result["entities"]] == ["Ann", "Bob"]
    assert result["calls"] == 3
    last = model.asked[-1][0]
    assert [m["role"] for m in last] == ["system", "user", "assistant", "user", "assistant", "user"]


async def test_a_failed_gleaning_keeps_what_was_found():
    result = await run(Model(reply("Ann"), ModelError("busy")), max_gleanings=2)
    assert ([e["title"] for e in result["entities"]], result["failed_calls"]) == (["Ann"], 1)


async def test_a_failed_first_call_fails_the_unit():
    with pytest.raises(ModelError):
        await run(Model(ModelError("busy")))


async def test_a_cut_reply_is_asked_for_in_halves():
    model = Model(OutputCut("length"), reply("Ann"), reply("Bob", "Ann"))
    result = await run(model, max_gleanings=0)
    assert [e["title"] for e in result["entities"]] == ["Ann", "Bob"]
    halves = [messages[1]["content"] for messages, _ in model.asked[1:]]
    assert "".join(halves) == TEXT
    assert all(len(half) < len(TEXT) * 0.6 for half in halves)
    assert result["calls"] == 3


async def test_a_reply_that_is_always_cut_ends():
    model = Model(*[OutputCut("length")] * 10)
    with pytest.raises(OutputCut):
        await run(model)
    assert len(model.asked) == 4


async def test_a_prompt_that_is_too_long_is_sent_in_halves():
    result = await run(Model(PromptCut("read 10 of 20"), reply("Ann"), reply("Bob")), max_gleanings=0)
    assert [e["title"] for e in result["entities"]] == ["Ann", "Bob"]
    assert not result["part"]


@pytest.mark.parametrize("error", [ContentRefused("A filter."), ModelError("Bad Request", unexplained=True)])
async def test_a_refused_half_costs_that_half_alone(error):
    model = Model(error, reply("Ann", "Bob", edges=[("Ann", "Bob")]), error)
    result = await run(model, max_gleanings=0)
    assert (len(result["entities"]), len(result["relationships"])) == (2, 1)
    (hole,) = result["holes"]
    assert (hole["start"], hole["end"]) == (len(model.asked[1][0][1]["content"]), len(TEXT))
    assert (hole["cause"], hole["message"]) == (error.code, error.message)
    assert result["part"] is error.unexplained, "what a filter refuses is not asked again"
    assert (len(model.asked), result["calls"]) == (3, 3)


async def test_a_text_that_is_refused_in_both_halves_is_refused():
    model = Model(*[ContentRefused("A filter.")] * 3)
    with pytest.raises(ContentRefused):
        await run(model)


async def test_an_endpoint_that_fails_is_not_asked_in_halves():
    model = Model(OutputCut("length"), reply("Ann"), ModelError("Incorrect API key", status=401))
    with pytest.raises(ModelError, match="API key"):
        await run(model, max_gleanings=0)


async def test_a_quarter_that_is_always_cut_leaves_the_rest_and_is_asked_again():
    cut = OutputCut("length")
    model = Model(cut, reply("Ann"), cut, reply("Bob"), cut)
    result = await run(model, max_gleanings=0)
    assert [e["title"] for e in result["entities"]] == ["Ann", "Bob"]
    (hole,) = result["holes"]
    assert (hole["end"], hole["end"] - hole["start"]) == (len(TEXT), len(model.asked[-1][0][1]["content"]))
    assert result["part"]


async def test_gleanings_and_claims_are_gone_on_with_and_what_lacks_them_is_asked_again():
    model = Model(reply("Ann"), OutputCut("length"), OutputCut("length"))
    result = await run(model, claims=True)
    assert (result["failed_calls"], result["part"], model.went_on) == (2, True, [False, True, True])
    whole = await run(Model(reply("Ann"), ContentRefused("A filter.")))
    assert (whole["failed_calls"], whole["part"]) == (1, False)


async def test_claims_are_asked_with_the_entities_found():
    claim = {"subject": "Ann", "object": "", "type": "debt", "status": "TRUE", "description": "Owes."}
    model = Model(reply("Ann", "Bob"), {"claims": [claim, {}]})
    result = await run(model, max_gleanings=0, claims=True, claim_description="money owed")
    assert [c["description"] for c in result["claims"]] == ["Owes."]
    assert result["lost"] == 1
    messages, schema = model.asked[1]
    assert schema is CLAIMS_SCHEMA
    assert "money owed" in messages[0]["content"]
    assert messages[1]["content"] == "- Ann\n- Bob\n\n" + TEXT


async def test_no_entities_no_claims_call():
    model = Model(reply())
    assert (await run(model, max_gleanings=0, claims=True))["calls"] == 1


async def test_failed_claims_keep_the_graph():
    result = await run(Model(reply("Ann"), ModelError("x")), max_gleanings=0, claims=True)
    assert (len(result["entities"]), result["failed_calls"]) == (1, 1)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_prompts_are_filled(language):
    options = ExtractOptions(entity_types=["ship", "港口"])
    system = graph_messages(TEXT, options, language, {})[0]["content"]
    assert "ship" in system
    assert "港口" in system
    long = describe_messages("Ann", ["one", "two"], options, language, {})
    assert long[1]["content"] == "Ann\n\n- one\n- two"
    for text in (system, long[0]["content"]):
        assert not any("{" + name + "}" in text for name in ("types", "language", "max_length"))


def test_a_prompt_can_be_replaced():
    assert graph_messages(TEXT, ExtractOptions(), "en", {"extract": "Mine: {types}"})[0]["content"] == (
        "Mine: organization, person, geo, event"
    )


def test_the_schema_is_closed_as_strict_endpoints_demand():
    item = graph_schema(["ship", "other"])["properties"]["entities"]["items"]
    assert item["required"] == ["title", "aliases", "type", "description"]
    assert item["properties"]["type"] == {"type": "string", "enum": ["ship", "other"]}
    assert item["additionalProperties"] is False

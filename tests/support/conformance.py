"""What becomes of each habit of real endpoints in each stage that asks a model: the table of `docs/how-to/models.md`.

`STAGES` holds a function for each column: it runs the stage's own code against a provider and says what came of it, in
a few words. A new column is one function more. `python -m support.conformance` (with `tests` in PYTHONPATH) runs all
and writes `docs/habits.json`, from which `make docs` makes the table.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from communitree_shared.contract.options import ExtractOptions, IndexOptions
from communitree_shared.errors import ModelError
from communitree_shared.settings import Settings
from communitree_workers.corpus.extraction.model import describe_messages, extract_unit
from communitree_workers.corpus.extraction.tasks import asker
from communitree_workers.corpus.merging.tasks import summarise
from communitree_workers.model.client import CallContext, ModelClient
from communitree_workers.report.records import GENERATED_BY_EXTRACTIVE, Evidence, Report
from communitree_workers.report.tasks import ask_report
from support.fake_provider import Behaviour, FakeProvider, running_provider
from support.fake_provider.habits import HABITS, OF_QUESTIONS
from support.reports import write_all
from support.trees import Shape, corpus

FILE = Path(__file__).parents[2] / "docs/habits.json"

WHOLE, JOINED, REPAIRED, HALVES = "whole", "whole, its rest asked for", "whole, asked for once more", "whole, in halves"
#: As it stands where nothing tells it from a whole one.
UNSEEN = "part, which nothing tells from a whole one"
#: Of a short prompt, or one that begins as the prompt before it, nothing shows that it was cut.
UNNOTICED = "not noticed"

_NAMES = ("Mara Lindqvist", "Oskar Petrov", "Ines Fontaine", "Tomas Okafor")
_PASSAGE = " ".join(f"{name} met {_NAMES[(n + 1) % 4]} at the harbour." for n, name in enumerate(_NAMES * 24))
_TABLES = corpus(Shape(entities=8, relationships=10, claims=2, documents=1, depth=1, branching=1))


@dataclass
class Bench:
    """A provider, and a client that asks it; `habit` makes the next calls of a stage meet one."""

    provider: FakeProvider
    clients: list[ModelClient] = field(default_factory=list)
    client: ModelClient = field(init=False)

    def habit(self, name: str, **where: Any) -> None:
        """Take on a habit; the client knows nothing of the provider but what it is told now."""
        self.provider.behaviour = Behaviour(habit=name, **where)
        self.provider.forget()
        values = {"llm_base_url": self.provider.url, "llm_model": "fake", "llm_tries": 2}
        self.client = ModelClient(Settings.model_validate(values), None, "communitree", spread=0.001)
        self.clients.append(self.client)

    def whole(self) -> str:
        """Say how a whole reply came about."""
        last = [str(body["messages"][-1]["content"]) for body in self.provider.bodies]
        if any(words.startswith("Your last reply broke off.") for words in last):
            return JOINED
        return REPAIRED if any(words.startswith("Your last reply could not be read") for words in last) else WHOLE


Stage = Callable[[Bench, str], Awaitable[str]]


async def _unit(bench: Bench, **options: Any) -> dict[str, Any]:
    ask = asker(bench.client, CallContext())
    found = ExtractOptions(**{"max_gleanings": 0, **options})
    return await extract_unit({"id": "u", "text": _PASSAGE}, found, "en", {}, ask)


def _rows(result: dict[str, Any], *kinds: str) -> list[Any]:
    """Return what a result names, whatever its words."""
    titles = {e["title"] for e in result["entities"]}
    ends = {tuple(sorted((r["source"], r["target"]))) for r in result["relationships"]}
    return [{"entities": titles, "relationships": ends, "claims": len(result["claims"])}[kind] for kind in kinds]


def _refused(error: ModelError, then: str) -> str:
    return f"{error.code}: {then}"


async def extract(bench: Bench, habit: str) -> str:
    """The first list of a text unit."""
    bench.habit("")
    good = _rows(await _unit(bench), "entities", "relationships")
    bench.habit(habit, habit_kinds=("extract",), habit_limit=1000 if habit == "truncates" else 1300)
    try:
        made = await _unit(bench)
    except ModelError as error:
        return _refused(error, "the unit fails")
    if made["holes"] or made["part"]:
        return "part, marked"
    if _rows(made, "entities", "relationships") == good:
        return bench.whole() if made["calls"] == 1 else HALVES
    return UNSEEN


async def gleaning(bench: Bench, habit: str) -> str:
    """The list of what the first one lacks."""
    return await _second(bench, habit, "entities", max_gleanings=1, habit_match="Read the passage once more")


async def claims(bench: Bench, habit: str) -> str:
    """The claims of a text unit."""
    return await _second(bench, habit, "claims", claims=True, habit_kinds=("claims",))


async def _second(bench: Bench, habit: str, kind: str, **how: Any) -> str:
    where = {name: how.pop(name) for name in ("habit_match", "habit_kinds") if name in how}
    bench.habit("")
    good = _rows(await _unit(bench, **how), kind)
    bench.habit(habit, habit_limit=100, **where)
    made = await _unit(bench, **how)
    if made["failed_calls"]:
        return "none, asked again by the next index" if made["part"] else "none, not asked again"
    if _rows(made, kind) != good:
        return UNSEEN
    return bench.whole()


async def describe(bench: Bench, habit: str) -> str:
    """One description of several."""
    messages = describe_messages("Mara", ["She met Oskar.", "She sails."] * 9, ExtractOptions(), "en", {})
    bench.habit("")
    good = await summarise(bench.client, messages, CallContext())
    bench.habit(habit, habit_limit=50)
    try:
        made = await summarise(bench.client, messages, CallContext())
    except ModelError as error:
        return _refused(error, "the descriptions, cut to the limit")
    if len(made.split()) < len(good.split()):  # the fake's words depend on how the prompt is cut into messages
        return UNSEEN
    return bench.whole()


async def report(bench: Bench, habit: str) -> str:
    """The report on a community."""
    evidence: Evidence = write_all(_TABLES, IndexOptions().report)[0][0]

    async def write() -> Report:
        return await ask_report(bench.client, evidence, IndexOptions(), "fake", CallContext())

    bench.habit("")
    good = await write()
    bench.habit(habit, habit_limit=100)
    try:
        made = await write()
    except ModelError as error:
        return _refused(error, f"{GENERATED_BY_EXTRACTIVE}, with the cause")
    if made.cause:
        return "its whole findings, marked"
    if (len(made.findings), made.summary[-1:]) != (len(good.findings), good.summary[-1:]):
        return UNSEEN
    return bench.whole()


#: Column → what runs it.
STAGES: dict[str, Stage] = {
    "extract": extract, "gleaning": gleaning, "claims": claims, "describe": describe, "report": report,
}  # fmt: skip


async def column(stage: str) -> dict[str, str]:
    """Return what becomes of each habit in a stage."""
    found = {}
    for habit in (name for name in HABITS if name not in OF_QUESTIONS):
        async with running_provider() as provider:
            bench = Bench(provider)
            try:
                made = await STAGES[stage](bench, habit)
                found[habit] = UNNOTICED if habit == "truncates" and made in (WHOLE, UNSEEN) else made
            finally:
                for client in bench.clients:
                    await client.close()
    return found


async def _all() -> dict[str, dict[str, str]]:
    return {stage: await column(stage) for stage in STAGES}


if __name__ == "__main__":
    FILE.write_text(json.dumps(asyncio.run(_all()), indent=1) + "\n", encoding="utf-8")

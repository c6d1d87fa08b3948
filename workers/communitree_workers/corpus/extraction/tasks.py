"""The extraction's task: one shard of text units read by the built-in extractor, by spaCy or by a model."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from communitree_shared.contract.tables import TEXT_UNITS
from communitree_shared.errors import CommunitreeError, CorpusNotFound
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.corpus.disk.stored_rows import rows_of
from communitree_workers.corpus.extraction import builtin, model, spacy_pipeline
from communitree_workers.model.chat import CallContext, ChatRequest, CutReply
from communitree_workers.model.client import ModelClient
from communitree_workers.runtime.context import Outcome, UnitContext, failed

#: Results of this kind of unit lack something that another try may give.
PART = "extract_part"


async def extract(context: UnitContext) -> Outcome:
    """Find entities and relationships in one shard of text units."""
    args = context.args
    corpus, (_, options) = args["corpus"], await context.to_thread(context.corpus_request)
    key = context.keys.unit(corpus, "extract", context.unit.id)
    part_key = context.keys.unit(corpus, PART, context.unit.id)
    there = context.services.store.exists
    if context.attempt > 1 and any([await context.to_thread(there, k) for k in (key, part_key)]):
        return Outcome(event={"reused": 1})
    table = await context.to_thread(_text_units, context)
    if args["model"] == EXTRACTIVE:
        extractor = spacy_pipeline if options.extract.extractor == "spacy" else builtin
        shard = extractor.extract_units(table, options.extract, args["language"])
        await context.save(key, shard.to_bytes())
        return Outcome(event={"text_units": args["rows"]})
    call = context.call(usd=options.budget_usd, tokens=options.budget_tokens)

    row = table.to_pylist()[0]
    try:
        result = await model.extract_unit(
            row, options.extract, args["language"], options.prompts, asker(context.services.models, call)
        )
    except CommunitreeError as error:
        return failed(error, call.spent)
    # A part lies apart from what is whole, so that the next index asks for it again.
    made = json.dumps(result, ensure_ascii=False, sort_keys=True).encode()
    await context.save(part_key if result["part"] else key, made)
    lost = result.get("lost", 0)
    data = {"usage": call.spent.model_dump(), "lost": lost, **({"holes": result["holes"]} if result["holes"] else {})}
    return Outcome(data=data, event={"text_units": 1, "lost": lost})


def asker(models: ModelClient, call: CallContext) -> model.Ask:
    """Return what asks the model of the extraction, on behalf of a call."""

    async def ask(
        messages: list[dict[str, str]], schema: dict[str, Any] | None, *, go_on: bool = False
    ) -> tuple[str, Any]:
        chat = ChatRequest(messages=messages, schema=schema, json=schema is not None, temperature=0.0)
        reply = await models.complete("extract", chat, call)
        if go_on and isinstance(reply, CutReply):
            reply = await models.go_on("extract", chat, reply, call)
        whole = reply.whole()  # the text of a cut one is read in halves
        return whole.text, whole.value

    return ask


def _text_units(context: UnitContext) -> pa.Table:
    """Return the text units of a shard.

    Raises:
        CorpusNotFound: they are gone.
    """
    args, services = context.args, context.services
    if "bytes" not in args:  # a message of an older release
        table = context.read(args["corpus"], args["version"], TEXT_UNITS, made_by="ingest")[TEXT_UNITS]
        return table.slice(args["start"], args["rows"])
    key = context.keys.build(args["corpus"], args["version"], f"ingest/{TEXT_UNITS}.parquet")
    try:
        return rows_of(
            lambda offset, length: services.part(key, offset, length),
            args["bytes"], args["start"], args["rows"], ["id", "text", "n_tokens"],
            lambda name, make: services.value(f"{key}#{args['bytes']}#{name}", make),
        )  # fmt: skip
    except KeyError:
        raise CorpusNotFound(
            f"{key} is gone: the corpus {args['corpus']!r} was deleted or indexed anew meanwhile.",
            hint="`communitree corpora` lists what there is.",
        ) from None

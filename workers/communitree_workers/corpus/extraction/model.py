"""Entities, relationships and claims of a text unit, asked of a model.

A unit's result is a JSON object: `unit`, `entities`, `relationships`, `claims` (lists of objects with the fields of
`reply`), counts: `lost` (rows that were damaged), `calls`, `failed_calls` (gleanings or claims that failed;
what came before them is kept), `holes` (stretches of the text that gave nothing, with their cause) and `part` (another
try may give more).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from communitree_shared.contract.options import ExtractOptions
from communitree_shared.errors import ContentRefused, ContextTooLong, ModelError, OutputCut
from communitree_workers.corpus.extraction.reply import Found, parse_claims, parse_graph
from communitree_workers.corpus.extraction.titles import unify
from communitree_workers.prompts import language_name, load
from communitree_workers.text.sentences import sentence_spans

#: Prompts that a text unit's result depends on, by the name under which a caller may replace them.
ASKED = ("extract", "gleaning", "claims")
#: Part of a unit's identity: a new version extracts again. Better words in the built-in prompts are no new version.
VERSION = "1"

Messages = list[dict[str, str]]


class Ask(Protocol):
    """Sends messages to a model."""

    async def __call__(
        self, messages: Messages, schema: dict[str, Any] | None, *, go_on: bool = False
    ) -> tuple[str, Any]:
        """Return the reply's text and the JSON in it (None where there is none).

        Args:
            messages: of the chat.
            schema: the JSON schema of the reply where one is wanted.
            go_on: a reply that was cut is asked for its rest, once.

        Raises:
            OutputCut: the reply was cut. ModelError: the call failed.
        """


#: A passage that gave no whole reply is asked for again in halves, quarters at most; shorter text is not halved.
_HALVINGS = 2
#: One that was refused, in halves only: what is refused there, too, is so for its content.
_REFUSED_HALVINGS = 1
_SHORTEST = 200


def _strings(*names: str) -> dict[str, Any]:
    return {name: {"type": "string"} for name in names}


def _schema(**lists: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object of lists of objects, strict: all fields required, no others."""

    def closed(properties: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    return closed({name: {"type": "array", "items": closed(fields)} for name, fields in lists.items()})


def graph_schema(types: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of entities, of these types or `other`, and relationships."""
    kinds = {"enum": list(dict.fromkeys([*types, "other"]))} if types else {}
    aliases = {"type": "array", "items": {"type": "string"}}
    fields = _strings("title", "type", "description")
    return _schema(
        entities={"title": fields["title"], "aliases": aliases, "type": {"type": "string", **kinds},
                  "description": fields["description"]},
        relationships={**_strings("source", "target", "description"), "strength": {"type": "number"}},
    )  # fmt: skip


CLAIMS_SCHEMA = _schema(
    claims=_strings("subject", "object", "type", "status", "start_date", "end_date", "description", "source_text")
)


async def extract_unit(
    row: Mapping[str, Any], options: ExtractOptions, language: str, prompts: Mapping[str, str], ask: Ask
) -> dict[str, Any]:
    """Return the result of one text unit (a row with `id` and `text`).

    Raises:
        ModelError: no part of the text gave anything. Failed gleanings and claims are counted, and what was found is
            kept.
    """
    found = await _graph(str(row["text"]), options, language, prompts, ask, _HALVINGS)
    if options.claims and found.entities:
        messages = claim_messages(str(row["text"]), found, options, language, prompts)
        try:
            text, value = await ask(messages, CLAIMS_SCHEMA, go_on=True)
            claims, lost = parse_claims(text, value)
            found.claims, found.lost = claims, found.lost + lost
        except ModelError as error:
            found.failed(error)
        found.calls += 1
    return {"unit": row["id"], **found.as_json()}


async def _graph(
    passage: str, options: ExtractOptions, language: str, prompts: Mapping[str, str], ask: Ask, halvings: int
) -> Found:
    messages = graph_messages(passage, options, language, prompts)
    try:
        text, value = await ask(messages, graph_schema(options.entity_types))
    except ModelError as error:
        if not _halves_help(error) or halvings == 0 or len(passage) < _SHORTEST:
            raise
        left = halvings - 1 if isinstance(error, OutputCut | ContextTooLong) else min(halvings, _REFUSED_HALVINGS) - 1
        return await _in_halves(passage, options, language, prompts, ask, left)
    found = parse_graph(text, value)
    found.calls = 1
    for _ in range(options.max_gleanings):
        messages = [*messages, {"role": "assistant", "content": text}, _user(load("gleaning", language, prompts))]
        found.calls += 1
        try:
            text, value = await ask(messages, graph_schema(options.entity_types), go_on=True)
        except ModelError as error:
            found.failed(error)
            break
        more = parse_graph(text, value)
        if not found.add(more):
            break
    return found


async def _in_halves(
    passage: str, options: ExtractOptions, language: str, prompts: Mapping[str, str], ask: Ask, halvings: int
) -> Found:
    """Return what the halves of a passage give. One that gives nothing is a hole; if both do, the error is raised."""
    found, at, holes = Found(calls=1), 0, 0
    for half in _halves(passage):
        try:
            found.add(await _graph(half, options, language, prompts, ask, halvings), at)
        except ModelError as error:
            holes += 1
            # A half of which no quarter could be read shows what the model does, at the price of whole replies.
            hopeless = halvings > 0 and isinstance(error, OutputCut | ContextTooLong) and at == 0
            if not _halves_help(error) or holes == 2 or hopeless:
                raise
            found.calls += 1
            found.add_hole(at, at + len(half), error)
        at += len(half)
    return found


def _halves_help(error: ModelError) -> bool:
    """Say whether a smaller part of a passage may be answered although the whole was not."""
    return isinstance(error, OutputCut | ContextTooLong | ContentRefused) or error.unexplained


def graph_messages(passage: str, options: ExtractOptions, language: str, prompts: Mapping[str, str]) -> Messages:
    """Return the messages that ask for the entities and relationships of a passage."""
    types = ("、" if language == "zh" else ", ").join(options.entity_types)
    system = _filled(load("extract", language, prompts), types=types, language=language_name(language))
    return [{"role": "system", "content": system}, _user(passage)]


def claim_messages(
    passage: str, found: Found, options: ExtractOptions, language: str, prompts: Mapping[str, str]
) -> Messages:
    """Return the messages that ask for the claims a passage makes about entities that were found in it."""
    system = _filled(
        load("claims", language, prompts),
        claim_description=options.claim_description,
        language=language_name(language),
    )
    titles = {unify(e["title"]): e["title"] for e in reversed(found.entities)}
    listed = "\n".join(f"- {title}" for _, title in sorted(titles.items()))
    return [{"role": "system", "content": system}, _user(f"{listed}\n\n{passage}")]


def describe_messages(
    title: str, descriptions: list[str], options: ExtractOptions, language: str, prompts: Mapping[str, str]
) -> Messages:
    """Return the messages that ask for one description of several."""
    words = options.max_description_tokens * (3 if language != "zh" else 4) // 4
    system = _filled(load("describe", language, prompts), max_length=str(words), language=language_name(language))
    return [{"role": "system", "content": system}, _user("\n".join([title, "", *(f"- {d}" for d in descriptions)]))]


def _filled(prompt: str, **values: str) -> str:
    """Replace `{name}`; other braces, as in JSON examples, stay."""
    for name, value in values.items():
        prompt = prompt.replace("{" + name + "}", value)
    return prompt


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def _halves(passage: str) -> tuple[str, str]:
    middle = len(passage) // 2
    cuts = [start for start, _ in sentence_spans(passage) if start > 0]
    cut = min(cuts, key=lambda at: abs(at - middle), default=middle)
    cut = cut if _SHORTEST // 4 < cut < len(passage) - _SHORTEST // 4 else middle
    return passage[:cut], passage[cut:]

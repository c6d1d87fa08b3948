"""Replies to extraction prompts: the names of the passage, in pairs; a gleaning adds some; claims are made of pairs."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

#: Where our prompts end; what a replaced prompt does not have leaves the whole as the passage.
_PASSAGE = re.compile(r"(?:both lists are empty\.|两个列表都为空。|the list is empty\.|列表为空。|PASSAGE:)\n")
_REPLY = re.compile(r'\n(?=\{"entities"|\("entity")')
_GLEANING = re.compile(r"Read the passage once more|请再读一遍")
_ENGLISH = re.compile(r"\b[A-Z][a-z]{3,}(?: [A-Z][a-z]+)*\b")
_CHINESE = re.compile(r"[王李张贾林薛史][\u4e00-\u9fff]{2}(?=[，。、和在与说是])|[\u4e00-\u9fff]{2}(?:集团|大学)")

#: Names in the first reply, and those that a gleaning adds.
FIRST, MORE = 8, 3


def passage_of(prompt: str) -> str:
    """Return the passage of a prompt."""
    return _REPLY.split(_PASSAGE.split(prompt)[1 if _PASSAGE.search(prompt) else 0])[0]


def names_of(passage: str) -> list[str]:
    """Return the names of a passage, each once."""
    return list(dict.fromkeys([*_ENGLISH.findall(passage), *_CHINESE.findall(passage)]))


def graph(prompt: str) -> str:
    """Return entities and relationships; as GraphRAG's tuples where the prompt shows them."""
    passage = passage_of(prompt)
    names, where = names_of(passage), " ".join(passage.split())[-24:]
    chosen = names[FIRST : FIRST + MORE] if _GLEANING.search(prompt) else names[:FIRST]
    pairs = list(itertools.pairwise(chosen))
    if "<|>" in prompt:
        records = [f'("entity"<|>{name}<|>PERSON<|>{name} is named in the text.)' for name in chosen]
        records += [f'("relationship"<|>{a}<|>{b}<|>{a} is named with {b}.<|>2)' for a, b in pairs]
        return "##\n".join(records) + "<|COMPLETE|>"
    body: dict[str, Any] = {
        "entities": [
            {"title": name, "type": "person", "description": f"{name} is named before: {where}"} for name in chosen
        ],
        "relationships": [
            {"source": a, "target": b, "description": f"{a} is named with {b}.", "strength": 2} for a, b in pairs
        ],
    }
    return json.dumps(body, ensure_ascii=False)


def claims(prompt: str) -> str:
    """Return a claim for each of the listed entities but the last."""
    listed = re.findall(r"^- (?!\")(.+)$", prompt, re.M)
    rows = [
        {"subject": a, "object": b, "type": "meeting", "status": "TRUE", "start_date": "", "end_date": "",
         "description": f"{a} met {b}.", "source_text": a}
        for a, b in itertools.pairwise(listed)
    ]  # fmt: skip
    return json.dumps({"claims": rows}, ensure_ascii=False)

"""The units of the extraction: which text units each reads, and the id under which its result is found again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from communitree_shared.contract.messages import Unit
from communitree_shared.contract.options import IndexOptions
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.corpus.extraction import builtin, model

#: What a request to a model depends on: a change of anything else finds the old replies again.
_ASKED = {"entity_types", "max_gleanings", "claims", "claim_description"}


@dataclass(frozen=True)
class TextUnits:
    """A version's text units as they were written: ids and tokens in order, their language, the bytes of the table."""

    tenant: str
    corpus: str
    version: str
    ids: list[str]
    n_tokens: list[int]
    language: str
    bytes: int


def extraction_units(read: TextUnits, options: IndexOptions, writer: str, pipeline: str) -> list[Unit]:
    """Return the units in order: a shard of the built-in extractor's or spaCy's each, or one text unit for a model.

    Ids are hashes of what the unit reads and of who reads it (`writer`: a model's name, or EXTRACTIVE), so that one
    that was made before is found again. `pipeline` is the identity of spaCy's, "" for another extractor.
    """
    if writer == EXTRACTIVE:
        size, how = options.extract.shard_units, [pipeline or builtin.VERSION]
    else:
        prompts = {k: v for k, v in options.prompts.items() if k in model.ASKED}
        chosen = options.extract.model_dump_json(include=_ASKED)
        size, how = 1, [writer, chosen, json.dumps(prompts, sort_keys=True), model.VERSION]
    common: dict[str, Any] = {
        "language": read.language, "model": writer, "version": read.version, "corpus": read.corpus, "bytes": read.bytes,
    }  # fmt: skip
    units = []
    for start in range(0, len(read.ids), size):
        part = read.ids[start : start + size]
        text = "\n".join([read.tenant, *how, read.language, *part])
        identity = hashlib.sha256(text.encode()).hexdigest()[:40]
        units.append(Unit(id=identity, args={"start": start, "rows": len(part), **common}))
    return units

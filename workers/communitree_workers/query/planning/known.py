"""Ratings that were made before, per (report, question, prompt, model), so that an equal question later costs none."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from communitree_shared.contract.tables import COMMUNITY_REPORTS
from communitree_shared.objects.keys import encode_name
from communitree_shared.redis_server import rediskeys as rk
from communitree_workers.prompts import load
from communitree_workers.query.question.question import Question
from communitree_workers.query.view.cells import uncited
from communitree_workers.runtime.context import UnitContext


def candidates(
    context: UnitContext, question: Question, wanted: Sequence[int], *, outlines: bool = False
) -> dict[int, str]:
    """Return the text by which each of these communities is rated. `outlines`: see `outline`, where there are any."""
    request = question.request
    table = context.read(request.corpus, request.version, COMMUNITY_REPORTS)[COMMUNITY_REPORTS]
    row_of = {c: n for n, c in enumerate(table["community"].to_pylist())}
    name = "summary" if question.selection.rate_use_summary else "full_content"
    texts = {}
    for community in wanted:
        row = row_of.get(community)
        title, text = (table["title"][row].as_py(), table[name][row].as_py()) if row is not None else ("", "")
        text = uncited(str(text or "").encode()).decode()
        texts[community] = text if text.startswith("#") else f"{title}\n{text}"
        if outlines and row is not None and name == "full_content":
            findings = table["findings"][row].as_py() or ()
            shown = outline(title, table["summary"][row].as_py(), findings)
            texts[community] = uncited(shown.encode()).decode() or texts[community]
    return texts


def outline(title: str | None, summary: str | None, findings: Sequence[Mapping[str, Any]]) -> str:
    """Return title, summary and headings of a report, which say what it is about in a third of its tokens or less.

    The beginning of a long report would say nothing of the end. "" where there is neither a summary nor a heading.
    """
    headings = [str(finding["summary"]) for finding in findings if finding.get("summary")]
    said = [part for part in (summary, *(f"- {heading}" for heading in headings)) if part]
    return "\n".join([f"# {title or ''}", *said]) if said else ""


class KnownRatings:
    """Ratings of some candidates in Redis. What cannot be looked up is rated, what cannot be kept some day again."""

    def __init__(self, context: UnitContext, question: Question, texts: Mapping[int, str]) -> None:
        """Needs the candidates' texts: a rating is of what was read."""
        self._redis, self._ttl = context.services.ledger.redis, int(context.services.settings.map_cache_ttl)
        tenant, corpus = context.message.tenant, encode_name(question.request.corpus)
        prompt = load("rate", question.language, question.options.prompts)
        model, repeats = context.services.settings.model("rate").model, str(question.selection.num_repeats)
        around = [model, prompt, question.text]
        self._keys = {
            community: rk.rating(tenant, corpus, _digest([*around, text, repeats])) for community, text in texts.items()
        }

    def known(self) -> dict[int, float]:
        """Return the ratings that are known."""
        try:
            values: Any = self._redis.mget(list(self._keys.values()))
        except redis.RedisError:
            return {}
        return {c: float(v) for c, v in zip(self._keys, values, strict=True) if v is not None}

    def keep(self, ratings: Mapping[int, float | None]) -> None:
        """Keep fresh ratings."""
        pipe = self._redis.pipeline(transaction=False)
        for community, rating in ratings.items():
            if rating is not None:
                pipe.set(self._keys[community], rating, ex=self._ttl)
        with contextlib.suppress(redis.RedisError):
            pipe.execute()


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]

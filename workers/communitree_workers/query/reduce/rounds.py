"""The reduce: points packed into one prompt, or into rounds of prompts. Nothing falls out unnamed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from communitree_shared.contract.options import AnswerOptions
from communitree_shared.contract.results import Point
from communitree_shared.tokens import DEFAULT_ENCODING, count, truncate
from communitree_workers.citing.writing import reference
from communitree_workers.prompts import file_language, filled, language_name, load, question_text
from communitree_workers.query.planning.reduce_sizes import FAN_IN, RERATED, part_words
from communitree_workers.query.points.gathering import Gathered, sort_points
from communitree_workers.query.wording.forms import form_of
from communitree_workers.query.wording.phrases import say

#: A single point may take this share of the prompt; a longer one is shortened.
_LARGEST = 2
_POINTS = {"en": "# Points", "zh": "# 要点"}
#: A condensed text shall have no headings: one could pass for that of the question.
_HEADING = re.compile(r"^\s*#+\s*", re.MULTILINE)


@dataclass(frozen=True)
class ReducePlan:
    """What is to be done.

    `rerate`: positions of the points to be rated jointly before packing, the most important first ([]: not needed).
    `groups`: positions of the points of each reduce call. One group: that call writes the answer. More: each call
    condenses its group (`part_messages`), and the texts go on to `plan_round`. `blocks`: rendered points, by position.
    `shortened`: positions of points that had to be cut to fit.
    """

    rerate: list[int] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    blocks: dict[int, str] = field(default_factory=dict)
    shortened: list[int] = field(default_factory=list)


def plan_reduce(
    gathered: Gathered,
    options: AnswerOptions,
    language: str,
    *,
    ranks: Mapping[int, float] | None = None,
    ratings: Mapping[int, float | None] | None = None,
    rerate: bool = True,
    context: str = "Reports",
    encoding: str = DEFAULT_ENCODING,
) -> ReducePlan:
    """Plan the reduce of the points in `gathered.order`; marks each point as used or says why not.

    Points that all fit go into one prompt. Otherwise (first call, `ratings` None) the plan asks for one joint
    re-rating of the best ones; with the ratings given (or `rerate` off), they are packed again in the new order:
    dealt like cards to as many groups as needed (`overflow` tree), or, with `truncate`, by score with skip, not stop,
    and the rest is dropped.

    Args:
        gathered: all points; `dropped` grows by what is dropped here.
        options: `max_data_tokens` and `overflow`.
        language: of the reasons.
        ranks: rank of each report, for ties.
        ratings: position → 0–100, from `rate.parse_ratings`; None where unknown.
        rerate: whether a joint re-rating may be asked for.
        context: how reports are named in citations.
        encoding: the token counter's.
    """
    room = options.max_data_tokens
    if ratings is not None:
        _apply(gathered, ratings, ranks or {})
    blocks: dict[int, str] = {}
    cost: dict[int, int] = {}
    shortened: list[int] = []
    for i in gathered.order:
        blocks[i] = render_point(gathered.points[i], context)
        cost[i] = count(blocks[i], encoding)
        if cost[i] > room // _LARGEST:
            blocks[i] = render_point(gathered.points[i], context, limit=room // _LARGEST, encoding=encoding)
            cost[i] = count(blocks[i], encoding)
            shortened.append(i)
    total = sum(cost.values())
    if total > room and ratings is None and rerate:
        return ReducePlan(rerate=_best(gathered.order, cost, RERATED * room), blocks=blocks, shortened=shortened)
    if total <= room:
        groups = [list(gathered.order)] if gathered.order else []
    elif options.overflow == "truncate":
        taken = pack([cost[i] for i in gathered.order], room)
        groups = [[gathered.order[k] for k in taken]]
    else:
        groups = [[gathered.order[k] for k in group] for group in deal([cost[i] for i in gathered.order], room)]
    used = {i for group in groups for i in group}
    for i in gathered.order:
        point = gathered.points[i]
        point.used = i in used
        if i not in used:
            point.why_not = say("not.dropped", language)
            gathered.dropped += 1
    gathered.order = [i for i in gathered.order if i in used]
    return ReducePlan(groups=groups, blocks=blocks, shortened=[i for i in shortened if i in used])


def drop_group(gathered: Gathered, group: Sequence[int], reason: str) -> int:
    """Count the points of a reduce call that failed for good as dropped; return how many there are."""
    before = gathered.dropped
    for i in group:
        point = gathered.points[i]
        if point.used:
            point.used, point.why_not = False, reason
            gathered.dropped += 1
    gathered.order = [i for i in gathered.order if gathered.points[i].used]
    return gathered.dropped - before


def _apply(gathered: Gathered, ratings: Mapping[int, float | None], ranks: Mapping[int, float]) -> None:
    """Rated points stand before those that were not good enough to be rated; unknown ratings change nothing."""
    known = {i: rating for i, rating in ratings.items() if rating is not None}
    if not known:
        return
    unrated = [p.adjusted or 0.0 for i, p in enumerate(gathered.points) if i in set(gathered.order) - set(ratings)]
    floor = max(unrated, default=0.0)
    for i, rating in known.items():
        gathered.points[i].adjusted = round(floor + 1 + rating, 3) if floor > 0 else round(float(rating), 3)
    sort_points(gathered, ranks)


def _best(order: Sequence[int], cost: Mapping[int, int], room: int) -> list[int]:
    out, left = [], room
    for i in order:
        if cost[i] <= left:
            out.append(i)
            left -= cost[i]
    return out


def pack(costs: Sequence[int], room: int) -> list[int]:
    """Return the positions that fit, in order; what does not fit is skipped, and the next one is tried."""
    out, left = [], room
    for i, cost in enumerate(costs):
        if cost <= left:
            out.append(i)
            left -= cost
    return out


def deal(costs: Sequence[int], room: int) -> list[list[int]]:
    """Deal items, best first, like cards to as few groups as hold all; each group within `room`.

    Each group gets a fair hand of good and poor cards: stripes of sorted scores would lose most of the middle ones.
    No item may cost more than half of `room`.
    """
    n = max(1, math.ceil(sum(costs) / room))
    while True:
        groups: list[list[int]] = [[] for _ in range(n)]
        left = [room] * n
        fits = True
        for position, cost in enumerate(costs):
            turn = position % n
            place = next((g for g in ((turn + k) % n for k in range(n)) if left[g] >= cost), None)
            if place is None:
                fits = False
                break
            groups[place].append(position)
            left[place] -= cost
        if fits:
            return [group for group in groups if group]
        n += 1


def plan_round(texts: Sequence[str], options: AnswerOptions, encoding: str = DEFAULT_ENCODING) -> list[list[str]]:
    """Group condensed texts for the next round; one group: it makes the answer.

    Each round has fewer texts than the one before: a text is cut to its share of the prompt where all would not fit
    (`part_words` asks for texts that do).
    """
    room = options.max_data_tokens
    present = [text for text in texts if text.strip()]
    size = min(len(present), FAN_IN)
    if size == 0:
        return []
    share = room // size - 4  # the empty line after each
    cut = [text if count(text, encoding) <= share else truncate(text, share, encoding) for text in present]
    if sum(count(text, encoding) for text in present) <= room:
        return [present]
    n = math.ceil(len(cut) / FAN_IN)
    return [cut[g::n] for g in range(n)]


def render_point(
    point: Point, context: str = "Reports", *, limit: int | None = None, encoding: str = DEFAULT_ENCODING
) -> str:
    """Return a point as it stands in the reduce prompt; with `limit`, its text is cut to fit so many tokens."""
    importance = max(1, min(100, round(point.adjusted if point.adjusted is not None else point.score)))
    cited = reference(point.reports, context)
    text = " ".join(point.text.split())  # one line: none of it can pass for a heading
    if limit is not None:
        around = count(f"({importance}) … {cited}\n\n", encoding) + 2
        text = truncate(text, max(1, limit - around), encoding).rstrip() + " …"
    return f"({importance}) {text} {cited}".rstrip() + "\n\n"


def reduce_messages(
    blocks: Sequence[str],
    question: str,
    options: AnswerOptions,
    language: str,
    prompts: Mapping[str, str],
    context: str = "Reports",
    *,
    read: str = "",
) -> list[dict[str, str]]:
    """Return the messages of the call that writes the answer.

    `blocks`: rendered points or condensed texts. `read`: says what these rest on, as a sentence.
    """
    rules = filled(
        load("reduce", language, prompts), context=context, language=language_name(language), read=read,
        max_length=options.reduce_max_length, response_type=form_of(options.response_type, language),
        general_knowledge=_general_knowledge(options.allow_general_knowledge, language),
    )  # fmt: skip
    return _messages(rules, blocks, question, language)


def part_messages(
    blocks: Sequence[str],
    question: str,
    options: AnswerOptions,
    language: str,
    prompts: Mapping[str, str],
    groups: int,
    context: str = "Reports",
) -> list[dict[str, str]]:
    """Return the messages of a call that condenses one of `groups` groups."""
    rules = filled(
        load("reduce_part", language, prompts), context=context, language=language_name(language),
        max_length=part_words(groups, options),
    )  # fmt: skip
    return _messages(rules, blocks, question, language)


def _messages(rules: str, blocks: Sequence[str], question: str, language: str) -> list[dict[str, str]]:
    body = "".join(block if block.endswith("\n") else _HEADING.sub("", block) + "\n\n" for block in blocks)
    data = f"{_POINTS[file_language(language)]}\n\n{body}{question_text(question, language)}"
    return [{"role": "system", "content": rules.strip()}, {"role": "user", "content": data}]


def _general_knowledge(allowed: bool, language: str) -> str:
    return say("rule.general_on" if allowed else "rule.general_off", language)

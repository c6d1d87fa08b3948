"""Trees of reports with facts planted in the explanations of findings, and questions about them.

A report has a title, a summary and four findings of its place in the tree; a fact is one sentence in an explanation,
and stands in no title, summary or heading. A question names the fact's holder, or asks for it in words that the facts
do not have, beside the name of the branch (a paraphrase). Each comes with the communities whose reports hold an answer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import orjson

from communitree_shared.contract import tables as names
from communitree_shared.contract.tables import MASS_SCALE
from communitree_workers.query.view.building import build_view
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.tables.io import from_rows

_SYLLABLES = tuple(
    """ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu bra cle dri flo gru""".split()  # noqa: SIM905
)
#: What facts say, and how a paraphrase asks for the same: they share no word.
_SAID = (
    ("financed the repair of the eastern aqueduct", "Who paid for mending the old water channel in {place}?"),
    ("smuggled ledgers across the frontier", "Who secretly carried account books over the border near {place}?"),
    ("pardoned the mutinous garrison", "Who forgave rebellious soldiers around {place}?"),
    ("auctioned the abandoned vineyard", "Who sold deserted grape land by {place}?"),
)


@dataclass(frozen=True)
class Asked:
    """A question, and the communities whose reports hold what answers it."""

    text: str
    holders: frozenset[int]


@dataclass
class Facts:
    """A view, and what is asked of it."""

    view: CorpusView
    naming: list[Asked] = field(default_factory=list)
    paraphrased: list[Asked] = field(default_factory=list)
    reports: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)  # title, summary, headings


def _word(rng: random.Random, syllables: int = 3) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(syllables))


def planted(fan: tuple[int, ...], *, seed: int = 1, facts: int = 24, skewed: bool = False) -> Facts:
    """Return a tree of `fan[0]` roots with `fan[1]` children each, and so on, and questions about it.

    `facts`: holders of facts, each in one to five leaves (and, one time in three, in the report above the first).
    `skewed`: half of the inner branches end early.
    """
    rng = random.Random(seed)
    common = [_word(rng, 2) + _word(rng, 1) for _ in range(1500)]
    weight = [1 / (i + 3) for i in range(len(common))]
    parent, level, own = list[int](), list[int](), list[list[str]]()
    last = list[int]()
    for depth, width in enumerate(fan):
        made = []
        for up in last or [-1]:
            if skewed and depth > 1 and rng.random() < 0.5:
                continue
            for _ in range(width):
                made.append(len(parent))
                parent.append(up)
                level.append(depth)
                own.append([*(own[up][-3:] if up >= 0 else ()), *(_word(rng) for _ in range(3))])
        last = made
    n = len(parent)
    children = _children(parent)
    leaves = [node for node in range(n) if not children[node]]

    def prose(node: int, words: int) -> str:
        mixed = rng.choices(common, weight, k=words - words // 8) + rng.choices(own[node], k=words // 8)
        rng.shuffle(mixed)
        return " ".join(mixed).capitalize() + "."

    texts = [[prose(node, rng.randint(50, 110)) for _ in range(4)] for node in range(n)]
    naming, paraphrased = [], []
    for i in range(facts):
        holder = f"{_word(rng).capitalize()} {_word(rng, 4).capitalize()}"
        said, asks = _SAID[i % len(_SAID)]
        held = rng.sample(leaves, min(len(leaves), 1 + i % 5))
        nodes = held + ([parent[held[0]]] if i % 3 == 0 and parent[held[0]] >= 0 else [])
        for node in nodes:
            place = rng.randrange(4)
            texts[node][place] += (
                f" {holder} {said} in {rng.randint(1640, 1990)} [Data: Entities ({rng.randint(1, n)})]."
            )
        beside = " and ".join(rng.choices(common[:60], k=2))
        about = f"What is known about {holder}?" if i % 2 else f"How was {holder} involved with {beside}?"
        naming.append(Asked(about, frozenset(nodes)))
        branch = own[held[0]][-4].capitalize()
        paraphrased.append(Asked(asks.format(place=branch), frozenset(nodes[:1])))
    held_units = [[node] if not children[node] else [] for node in range(n)]
    for node in range(n - 1, -1, -1):
        if parent[node] >= 0:
            held_units[parent[node]] += held_units[node]
    communities, reports, told = [], [], []
    for node in range(n):
        title = " ".join(own[node][-2:]).capitalize()
        summary = prose(node, 40)
        findings = [{"summary": prose(node, 7), "explanation": text} for text in texts[node]]
        body = "\n\n".join(f"## {f['summary']}\n\n{f['explanation']}" for f in findings)
        communities.append({
            "id": f"c{node}", "human_readable_id": node, "community": node, "level": level[node],
            "parent": parent[node], "children": children[node], "title": title, "entity_ids": [],
            "relationship_ids": [], "text_unit_ids": [f"t{unit}" for unit in held_units[node]],
            "size": len(held_units[node]), "key": f"{node:06d}", "weight": len(held_units[node]), "kind": "cluster",
            "mass": len(held_units[node]) * MASS_SCALE,
        })  # fmt: skip
        reports.append({
            "id": f"r{node}", "community": node, "level": level[node], "title": title, "summary": summary,
            "rank": 5.0, "direct": MASS_SCALE, "full_content": f"# {title}\n\n{summary}\n\n{body}",
            "findings": findings, "generated_by": "m", "language": "en", "evidence": orjson.dumps({}).decode(),
        })  # fmt: skip
        told.append((title, summary, tuple(str(f["summary"]) for f in findings)))
    units = [{"id": f"t{leaf}", "human_readable_id": leaf, "text": "x", "n_tokens": 1} for leaf in leaves]
    view = build_view({
        names.COMMUNITIES: from_rows(names.COMMUNITIES, communities),
        names.COMMUNITY_REPORTS: from_rows(names.COMMUNITY_REPORTS, reports),
        names.TEXT_UNITS: from_rows(names.TEXT_UNITS, units),
    })  # fmt: skip
    return Facts(view, naming, paraphrased, told)


def _children(parent: list[int]) -> list[list[int]]:
    out: list[list[int]] = [[] for _ in parent]
    for node, up in enumerate(parent):
        if up >= 0:
            out[up].append(node)
    return out


def best_matches(view: CorpusView, terms: tuple[str, ...], tokens: int) -> set[int]:
    """Return the communities that plain BM25 over all reports reads within these tokens, best first."""
    scores = view.lexicon.scores(terms)
    out, left = set[int](), tokens
    for node in sorted(range(len(scores)), key=lambda n: (-scores[n], n)):
        if scores[node] > 0 and view.tokens[node] <= left:
            out.add(int(view.community[node]))
            left -= int(view.tokens[node])
    return out


def recall(read: set[int], asked: Asked) -> float:
    """Return which share of the reports that hold an answer is read."""
    return len(read & asked.holders) / len(asked.holders)

"""From tables to the evidence of every community of a level, children's reports included.

Sources: GraphRAG's community reports (a child's report stands in for its members' rows where these do not fit), with
the choice made by `pack` and a count that closes: each row of a community counts once, as direct (in the prompt),
through (behind a child's report in it), aggregated (known only by a counted row or a child's title and summary) or
omitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from communitree_shared import tokens
from communitree_shared.options import ReportOptions
from communitree_shared.tables import WEIGHT_SCALE
from communitree_workers.report import citations
from communitree_workers.report import rows as rendering
from communitree_workers.report.members import Community, Corpus, Ints, Rows
from communitree_workers.report.pack import Child, Packed, Pair, Problem, pack
from communitree_workers.report.prompt import instructions
from communitree_workers.report.records import KINDS, LISTED, ChildReport, Evidence
from communitree_workers.tables.io import Tables

#: Changes whenever rows or instructions are made differently: no report is taken over from an older way of making them.
_FORMAT = 1
#: Less room than this for data is no evidence to write from.
_LEAST_ROOM = 48
#: A row longer than the whole room is cut to this share of it, so that it does not crowd out all others.
_LONG_ROW_SHARE = 4
#: Central entities named in the evidence, for titles.
_NAMES = 6

#: How a row is known, the better one counts.
_OMITTED, _AGGREGATED, _THROUGH, _DIRECT = range(4)
_STATES = ("omitted", "aggregated", "through", "direct")


@dataclass
class _Draft:
    """A community on the way to its evidence: its rows, rendered, with what stands for them."""

    community: Community
    tails: dict[str, list[str]]
    costs: dict[str, Ints]
    shortened: dict[str, list[int]]
    children: list[Community]
    reports: list[ChildReport | None]
    offered: list[Child]
    report_tails: dict[int, str]
    title_tails: dict[int, str]
    pair_tails: dict[tuple[int, int], str]
    owners: dict[str, Ints]


class EvidenceBuilder:
    """Makes the evidence of communities, level by level, from tables whose rows are counted (`rows.count_rows`)."""

    def __init__(
        self, tables: Tables, options: ReportOptions, encoding: str, language: str, prompts: Mapping[str, str]
    ) -> None:
        self.options = options
        self.encoding = encoding
        self.language = options.language or language
        self.corpus = Corpus(tables, encoding)
        static = instructions(options, self.language, prompts)
        self.static_tokens = static.tokens(encoding)
        self._heads = {kind: tokens.count(text, encoding) for kind, text in rendering.HEADINGS.items()}
        self._header = [_FORMAT, static.before, static.after, self.language, options.max_length]
        self._levels: dict[int, list[Community]] = {}
        self._scratch = {kind: np.full(len(self.corpus.numbers[kind]), -1, dtype=np.int64) for kind in KINDS}
        room = options.max_prompt_tokens - self.static_tokens
        #: Tokens for data. Where the instructions leave no room no call is made, so they take none either.
        self.too_tight = room < _LEAST_ROOM
        self.room = options.max_prompt_tokens if self.too_tight else room

    def levels(self) -> list[int]:
        """Return the levels that have communities, coarsest first."""
        return self.corpus.levels()

    def build(self, level: int, children: Mapping[int, ChildReport]) -> list[Evidence]:
        """Return the evidence of every community of a level, longest prompt first.

        `children` holds the reports of the level below by community; a child without one keeps its rows where they fit.
        """
        self._levels = {at: found for at, found in self._levels.items() if at in (level, level + 1)}
        below = {community.number: community for community in self._level(level + 1)}
        made = [self._evidence(community, below, children) for community in self._level(level)]
        return sorted(made, key=lambda evidence: (-evidence.prompt_tokens, evidence.key, evidence.community))

    def estimate(self) -> dict[int, dict[str, int]]:
        """Return, for each level, `communities`, `calls` and `prompt_tokens` before any report exists.

        A prompt that all rows would overflow is counted as full.
        """
        out = {}
        for level in self.levels():
            calls = spent = 0
            found = self.corpus.level(level)
            for community in found:
                if community.size < self.options.min_entities or self.too_tight:
                    continue
                kinds = [kind for kind in KINDS if len(community.rows[kind])]
                whole = sum(int(self.corpus.costs[k][community.rows[k]].sum()) + self._heads[k] for k in kinds)
                calls += bool(kinds)
                spent += min(whole, self.room) + self.static_tokens if kinds else 0
            out[level] = {"communities": len(found), "calls": calls, "prompt_tokens": spent}
        return out

    def _level(self, level: int) -> list[Community]:
        if level not in self._levels:
            self._levels[level] = self.corpus.level(level)
        return self._levels[level]

    def _evidence(
        self, community: Community, below: Mapping[int, Community], reports: Mapping[int, ChildReport]
    ) -> Evidence:
        draft = self._draft(community)
        whole = sum(int(cost.sum()) for cost in draft.costs.values())
        if whole + sum(self._heads[kind] for kind in KINDS if len(draft.costs[kind])) > self.room:
            draft.children = sorted(
                (below[number] for number in community.children if number in below), key=lambda c: (c.key, c.number)
            )
            draft.reports = [reports.get(child.number) for child in draft.children]
            draft.owners = {kind: self._owners(kind, community.rows[kind], draft.children) for kind in KINDS}
        draft.offered = [self._child(draft, at) for at in range(len(draft.children))]
        packed = pack(
            Problem(self.room, self._heads, draft.costs, draft.owners, draft.offered, pairs=lambda: self._pairs(draft))
        )
        return self._finish(draft, packed)

    def _draft(self, community: Community) -> _Draft:
        """Render a community's rows; one that is longer than all the room there is is shortened."""
        tails: dict[str, list[str]] = {}
        costs = {}
        shortened: dict[str, list[int]] = {}
        for kind in KINDS:
            rows = community.rows[kind]
            rendered = self.corpus.tails(kind) if len(rows) else []
            tails[kind] = [rendered[row] for row in rows]
            costs[kind] = self.corpus.costs[kind][rows]
            for at in np.flatnonzero(costs[kind] > self.room - self._heads[kind]):
                number = self.corpus.numbers[kind][rows[at]]
                limit = min(max(self.room // _LONG_ROW_SHARE, _LEAST_ROOM // 2), self.room - self._heads[kind])
                cut = rendering.shorten(number, tails[kind][at], limit, self.encoding)
                if cut is not None:
                    tails[kind][at] = cut
                    costs[kind] = costs[kind].copy()
                    costs[kind][at] = rendering.count([f"{number},{cut}\n"], self.encoding)[0]
                    shortened.setdefault(kind, []).append(int(at))
        nobody = {kind: np.full(len(costs[kind]), -1, dtype=np.int64) for kind in KINDS}
        return _Draft(community, tails, costs, shortened, [], [], [], {}, {}, {}, nobody)

    def _owners(self, kind: str, rows: Ints, children: list[Community]) -> Ints:
        """Return the place of the child that holds each row, -1 for rows between children."""
        scratch = self._scratch[kind]
        for at in range(len(children) - 1, -1, -1):  # in overlapping trees the first child counts
            scratch[children[at].rows[kind]] = at
        owners = scratch[rows]
        for child in children:
            scratch[child.rows[kind]] = -1
        return owners

    def _child(self, draft: _Draft, at: int) -> Child:
        child, report = draft.children[at], draft.reports[at]
        if report is None:
            return Child(child.number, child.mass, None, None)
        body = report.full_content.removeprefix(f"# {report.title}")
        draft.report_tails[at] = rendering.line(report.title, citations.remove(body))
        draft.title_tails[at] = rendering.line(report.title, citations.remove(report.summary))
        rows = [f"{child.number},{tails[at]}\n" for tails in (draft.report_tails, draft.title_tails)]
        full, short = rendering.count(rows, self.encoding)
        return Child(child.number, child.mass, full, short)

    def _pairs(self, draft: _Draft) -> list[Pair]:
        """Return a counted row for each pair of children with relationships between them, heaviest first."""
        edges = draft.community.rows["relationships"]
        home = self._scratch["entities"]
        for at, child in enumerate(draft.children):
            home[child.rows["entities"]] = at
        a, b = home[self.corpus.source[edges]], home[self.corpus.target[edges]]
        for child in draft.children:
            home[child.rows["entities"]] = -1
        low, high = np.minimum(a, b), np.maximum(a, b)
        found: dict[tuple[int, int], list[int]] = {}
        for at in np.flatnonzero((draft.owners["relationships"] < 0) & (low >= 0) & (low != high)).tolist():
            found.setdefault((int(low[at]), int(high[at])), []).append(at)
        weights = self.corpus.weight[edges]
        pairs = []
        for (one, other), places in found.items():
            rows = np.asarray(places, dtype=np.int64)
            weight = int(weights[rows].sum())
            strongest = places[int(np.argmax(weights[rows]))]
            source, target, *_ = rendering.fields(draft.tails["relationships"][strongest])
            tail = f"{len(rows)},{weight / WEIGHT_SCALE:g},{rendering.line(f'{source} – {target}')}"
            draft.pair_tails[one, other] = tail
            row = f"{draft.children[one].number},{draft.children[other].number},{tail}\n"
            pairs.append((-weight, Pair(one, other, rendering.count([row], self.encoding)[0], rows)))
        return [pair for _, pair in sorted(pairs, key=lambda item: (item[0], item[1].a, item[1].b))]

    def _finish(self, draft: _Draft, packed: Packed) -> Evidence:
        community = draft.community
        children = draft.children
        taken = {kind: np.flatnonzero(packed.rows[kind]).tolist() for kind in KINDS}
        direct: Rows = {kind: community.rows[kind][packed.rows[kind]] for kind in KINDS}
        numbers = {kind: [self.corpus.numbers[kind][row] for row in direct[kind].tolist()] for kind in KINDS}
        tails = {kind: [draft.tails[kind][at] for at in taken[kind]] for kind in KINDS}
        full = [children[at].number for at in packed.reports]
        short = [children[at].number for at in packed.titles]
        pairs = [(children[p.a].number, children[p.b].number, draft.pair_tails[p.a, p.b]) for p in packed.pairs]

        sections: dict[str, tuple[list[str], list[str]]] = {  # kind → rows as shown, rows without numbers
            "reports": _section(full, [draft.report_tails[at] for at in packed.reports]),
            "titles": _section(short, [draft.title_tails[at] for at in packed.titles]),
            "pairs": (
                [f"{a},{b},{tail}\n" for a, b, tail in pairs],
                [
                    f"{children[p.a].key},{children[p.b].key},{pair[2]}"
                    for p, pair in zip(packed.pairs, pairs, strict=True)
                ],
            ),
            **{kind: _section(numbers[kind], tails[kind]) for kind in KINDS},
        }
        data = "".join(rendering.HEADINGS[kind] + "".join(rows) for kind, (rows, _) in sections.items() if rows)
        spent = self._spent(draft, packed, sections)
        names = self._names(community)
        told = bool(full or short) or any(not tail.endswith(",") for kind in KINDS for tail in tails[kind])
        large = community.size >= self.options.min_entities
        needs_model = told and large and not self.too_tight
        canonical = [self._header, needs_model, names, {kind: plain for kind, (_, plain) in sections.items() if plain}]
        states = {kind: self._states(kind, draft, packed) for kind in KINDS}
        record = self._record(direct, full, short, packed, children, states)
        if draft.shortened:
            cut = {k: [at for at in places if packed.rows[k][at]] for k, places in draft.shortened.items()}
            record["shortened"] = {k: self._ids(k, community.rows[k][at]) for k, at in cut.items() if at}
        return Evidence(
            community=community.number,
            key=community.key,
            level=community.level,
            size=community.size,
            language=self.language,
            encoding=self.encoding,
            prompt_tokens=spent + (0 if self.too_tight else self.static_tokens),
            data=data,
            needs_model=needs_model,
            cause="the prompt limit leaves no room for evidence" if self.too_tight and told and large else "",
            hash=hashlib.sha256(json.dumps(canonical, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:40],
            direct=self.corpus.direct_mass(direct, community),
            share=self._share(community),
            numbers={**numbers, "reports": full + short},
            names=names,
            record=record,
            omitted=self._omitted(draft, packed, states),
            gaps={
                _STATES[state]: {kind: community.rows[kind][states[kind] == state].tolist() for kind in KINDS}
                for state in (_OMITTED, _AGGREGATED)
            },
        )

    def _spent(self, draft: _Draft, packed: Packed, sections: Mapping[str, tuple[list[str], list[str]]]) -> int:
        rows = sum(int(draft.costs[kind][packed.rows[kind]].sum()) for kind in KINDS)
        rows += sum(pair.cost for pair in packed.pairs)
        rows += sum(draft.offered[at].report or 0 for at in packed.reports)
        rows += sum(draft.offered[at].title or 0 for at in packed.titles)
        return rows + sum(self._heads[kind] for kind, (shown, _) in sections.items() if shown)

    def _states(self, kind: str, draft: _Draft, packed: Packed) -> Ints:
        """Return how each row of a kind is known. A row that is direct here is so whatever a child left out."""
        rows, owners = draft.community.rows[kind], draft.owners[kind]
        states = np.full(len(rows), _OMITTED, dtype=np.int64)
        for places, known in ((packed.reports, _THROUGH), (packed.titles, _AGGREGATED)):
            for at in places:
                report = draft.reports[at]
                assert report is not None
                mine = owners == at
                states[mine] = known
                for state in (_AGGREGATED, _OMITTED):
                    missing = report.gaps.get(_STATES[state], {}).get(kind, [])
                    states[mine & np.isin(rows, missing)] = state
        if kind == "relationships":
            for pair in packed.pairs:
                states[pair.rows] = np.maximum(states[pair.rows], _AGGREGATED)
        states[packed.rows[kind]] = _DIRECT
        return states

    def _record(
        self,
        direct: Rows,
        full: list[int],
        short: list[int],
        packed: Packed,
        children: list[Community],
        states: Mapping[str, Ints],
    ) -> dict[str, Any]:
        counts: dict[str, dict[str, int]] = {
            name: {kind: int((states[kind] == state).sum()) for kind in KINDS}
            for state, name in reversed(list(enumerate(_STATES)))
        }
        counts["total"] = {kind: len(states[kind]) for kind in KINDS}
        return {
            **{kind: self._ids(kind, direct[kind]) for kind in KINDS},
            "reports": full,
            "titles": short,
            "pairs": [[children[p.a].number, children[p.b].number, len(p.rows)] for p in packed.pairs],
            "counts": counts,
        }

    def _omitted(self, draft: _Draft, packed: Packed, states: Mapping[str, Ints]) -> dict[str, Any]:
        lost = {kind: draft.community.rows[kind][states[kind] == _OMITTED] for kind in KINDS}
        shown = {*packed.reports, *packed.titles}
        away = [
            child.number
            for at, child in enumerate(draft.children)
            if at not in shown and any((states[k][draft.owners[k] == at] != _DIRECT).any() for k in KINDS)
        ]
        return {
            **{kind: len(rows) for kind, rows in lost.items()},
            "reports": away,
            "ids": {kind: self._ids(kind, rows[:LISTED]) for kind, rows in lost.items() if len(rows)},
        }

    def _ids(self, kind: str, rows: Ints) -> list[str]:
        ids: list[str] = self.corpus.ids[kind].take(rows).to_pylist()
        return ids

    def _names(self, community: Community) -> list[str]:
        entities = [int(row) for row in community.rows["entities"][:_NAMES]] or list(community.documents[:_NAMES])
        return [rendering.fields(self.corpus.tails("entities")[row])[0] for row in entities]

    def _share(self, community: Community) -> float:
        if self.corpus.total_mass > 0:
            return community.mass / self.corpus.total_mass
        return community.size / max(1, len(self.corpus.entity_mass))


def _section(numbers: list[int], tails: list[str]) -> tuple[list[str], list[str]]:
    return rendering.numbered(numbers, tails), tails

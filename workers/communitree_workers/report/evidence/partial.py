"""The contents of a prompt that cannot hold all rows: children looked at, packed, and every row's state worked out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from communitree_shared import tokens
from communitree_shared.contract.tables import WEIGHT_SCALE
from communitree_workers.report.evidence import rows as rendering
from communitree_workers.report.evidence.contents import AGGREGATED, DIRECT, OMITTED, STATES, THROUGH, Contents
from communitree_workers.report.evidence.members import Community, Corpus, Ints
from communitree_workers.report.evidence.packing import Child, Packed, Pair, Problem, pack
from communitree_workers.report.records import KINDS, ChildReport

#: A row longer than the whole room is cut to this share of it, so that it does not crowd out all others.
_LONG_ROW_SHARE = 4
_SHORTEST_CUT = 24


class Partial:
    """One community whose rows do not all fit."""

    def __init__(
        self,
        corpus: Corpus,
        community: Community,
        children: Sequence[Community],
        reports: Mapping[int, ChildReport],
        room: int,
        heads: Mapping[str, int],
    ) -> None:
        self.corpus = corpus
        self.community = community
        self.room, self.heads = room, heads
        self.children = sorted(children, key=lambda child: (child.key, child.number))
        self.reports = [reports.get(child.number) for child in self.children]
        self.costs: dict[str, Ints] = {}
        #: kind → position in its table → the row as it was shortened, without its number.
        self.cut: dict[str, dict[int, str]] = {}
        for kind in KINDS:
            self._measure(kind)
        self.owners = {kind: self._owners(kind, community.rows[kind]) for kind in KINDS}
        self.child_tails: list[tuple[str, str]] = []
        self.offered = [self._child(at) for at in range(len(self.children))]
        self.pair_tails: dict[tuple[int, int], str] = {}

    def contents(self) -> Contents:
        """Return what `pack` chose."""
        packed = pack(Problem(self.room, self.heads, self.costs, self.owners, self.offered, self._pairs))
        states = {kind: self._states(kind, packed) for kind in KINDS}
        rows = {kind: self.community.rows[kind] for kind in KINDS}
        taken = {kind: rows[kind][packed.rows[kind]].tolist() for kind in KINDS}
        numbers = [child.number for child in self.children]
        told_in_part = np.zeros(len(numbers) + 1, dtype=bool)  # the last one is no child: rows between children
        for kind in KINDS:
            told_in_part[self.owners[kind][states[kind] != DIRECT]] = True
        shown = {*packed.reports, *packed.titles}
        return Contents(
            rows=taken,
            tails={kind: self._tails(kind, taken[kind]) for kind in KINDS},
            tokens=self._spent(packed),
            reports=[(numbers[at], self.child_tails[at][0]) for at in packed.reports],
            titles=[(numbers[at], self.child_tails[at][1]) for at in packed.titles],
            pairs=[
                (
                    numbers[pair.a],
                    numbers[pair.b],
                    len(pair.rows),
                    self.pair_tails[pair.a, pair.b],
                    f"{self.children[pair.a].key},{self.children[pair.b].key}",
                )
                for pair in packed.pairs
            ],
            through={kind: int((states[kind] == THROUGH).sum()) for kind in KINDS},
            pale={kind: rows[kind][states[kind] == AGGREGATED].tolist() for kind in KINDS},
            lost={kind: rows[kind][states[kind] == OMITTED].tolist() for kind in KINDS},
            absent=[number for at, number in enumerate(numbers) if told_in_part[at] and at not in shown],
            shortened={kind: [row for row in taken[kind] if row in cut] for kind, cut in self.cut.items()},
        )

    def _measure(self, kind: str) -> None:
        """Set the costs of a kind; a row that is longer than all the room there is is shortened."""
        rows = self.community.rows[kind]
        self.costs[kind] = self.corpus.costs[kind][rows]
        room = self.room - self.heads[kind]
        for at in np.flatnonzero(self.costs[kind] > room).tolist():
            row = int(rows[at])
            number = self.corpus.numbers[kind][row]
            limit = min(max(self.room // _LONG_ROW_SHARE, _SHORTEST_CUT), room)
            cut = rendering.shorten(number, self.corpus.tails(kind)[row], limit, self.corpus.encoding)
            if cut is not None:
                self.costs[kind][at] = tokens.count(f"{number},{cut}\n", self.corpus.encoding)
                self.cut.setdefault(kind, {})[row] = cut

    def _tails(self, kind: str, rows: list[int]) -> list[str]:
        if not rows:
            return []
        rendered, cut = self.corpus.tails(kind), self.cut.get(kind, {})
        return [cut.get(row, rendered[row]) for row in rows]

    def _owners(self, kind: str, rows: Ints) -> Ints:
        """Return the place of the child that holds each row, -1 for rows between children."""
        scratch = self.corpus.scratch[kind]
        for at in range(len(self.children) - 1, -1, -1):  # in overlapping trees the first child counts
            scratch[self.children[at].rows[kind]] = at
        owners = scratch[rows]
        for child in self.children:
            scratch[child.rows[kind]] = -1
        return owners

    def _child(self, at: int) -> Child:
        child, report, encoding = self.children[at], self.reports[at], self.corpus.encoding
        if report is None:
            self.child_tails.append(("", ""))
            return Child(child.number, child.mass, None, None)
        full, short = rendering.report_tails(report.title, report.summary, report.full_content)
        self.child_tails.append((full, short))
        number = tokens.count(str(child.number), encoding)
        return Child(
            child.number,
            child.mass,
            number + (report.row_tokens or rendering.count_tail(full, encoding)),
            number + (report.title_row_tokens or rendering.count_tail(short, encoding)),
        )

    def _pairs(self) -> Iterator[Pair]:
        """Yield a counted row for each pair of children with relationships between them, heaviest first."""
        edges = self.community.rows["relationships"]
        home = self.corpus.scratch["entities"]
        for at, child in enumerate(self.children):
            home[child.rows["entities"]] = at
        a, b = home[self.corpus.source[edges]], home[self.corpus.target[edges]]
        for child in self.children:
            home[child.rows["entities"]] = -1
        low, high = np.minimum(a, b), np.maximum(a, b)
        places = np.flatnonzero((self.owners["relationships"] < 0) & (low >= 0) & (low != high))
        if not len(places):
            return
        weights = self.corpus.weight[edges]
        groups = low[places] * len(self.children) + high[places]
        order = np.lexsort((places, -weights[places], groups))  # the strongest of a pair first
        places, groups = places[order], groups[order]
        starts = np.flatnonzero(np.concatenate([[True], np.diff(groups) != 0]))
        sums = np.add.reduceat(weights[places], starts)
        parts = np.split(places, starts[1:])
        strongest = edges[places[starts]]
        sources, targets = self.corpus.source[strongest].tolist(), self.corpus.target[strongest].tolist()
        titles = self.corpus.titles
        for at in np.lexsort((groups[starts], -sums)).tolist():
            one, other = divmod(int(groups[starts[at]]), len(self.children))
            ends = rendering.line(f"{titles[sources[at]]} – {titles[targets[at]]}")
            tail = f"{len(parts[at])},{int(sums[at]) / WEIGHT_SCALE:g},{ends}"
            self.pair_tails[one, other] = tail
            row = f"{self.children[one].number},{self.children[other].number},{tail}\n"
            yield Pair(one, other, tokens.count(row, self.corpus.encoding), parts[at])

    def _spent(self, packed: Packed) -> int:
        used = [kind for kind in KINDS if packed.rows[kind].any()]
        used += [name for name in ("reports", "titles", "pairs") if getattr(packed, name)]
        rows = sum(int(self.costs[kind][packed.rows[kind]].sum()) for kind in KINDS)
        rows += sum(pair.cost for pair in packed.pairs)
        rows += sum(self.offered[at].report or 0 for at in packed.reports)
        rows += sum(self.offered[at].title or 0 for at in packed.titles)
        return rows + sum(self.heads[name] for name in used)

    def _states(self, kind: str, packed: Packed) -> Ints:
        """Return how each row of a kind is known. A row that is direct here is so whatever a child left out."""
        rows, owners = self.community.rows[kind], self.owners[kind]
        by_child = np.full(len(self.children) + 1, OMITTED, dtype=np.int64)  # the last one: rows between children
        by_child[packed.titles] = AGGREGATED
        by_child[packed.reports] = THROUGH
        states: Ints = by_child[owners]
        place = self.corpus.scratch[kind]
        place[rows] = np.arange(len(rows))
        for at in (*packed.reports, *packed.titles):
            report = self.reports[at]
            assert report is not None
            for state in (AGGREGATED, OMITTED):
                missing = place[report.gaps.get(STATES[state], {}).get(kind, [])]
                states[missing[(missing >= 0) & (owners[missing] == at)]] = state
        place[rows] = -1
        if kind == "relationships":
            for pair in packed.pairs:
                states[pair.rows] = np.maximum(states[pair.rows], AGGREGATED)
        states[packed.rows[kind]] = DIRECT
        return states

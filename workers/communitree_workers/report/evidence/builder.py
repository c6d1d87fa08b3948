"""From tables to the evidence of every community of a level, children's reports included.

Sources: GraphRAG's community reports (a child's report stands in for its members' rows where these do not fit), with
the choice made by `pack` and a count that closes: each row of a community counts once, as direct (in the prompt),
through (behind a child's report in it), aggregated (known only by a counted row or a child's title and summary) or
omitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping

from communitree_shared import tokens
from communitree_shared.contract.options import ReportOptions
from communitree_workers.report.evidence import rows as rendering
from communitree_workers.report.evidence.contents import Contents, whole
from communitree_workers.report.evidence.members import Community, Corpus
from communitree_workers.report.evidence.partial import Partial
from communitree_workers.report.evidence.prompt import instructions, share_line, words_for
from communitree_workers.report.records import LABELS, ChildReport, Evidence
from communitree_workers.tables.io import Tables

#: Changes whenever rows or instructions are made differently: no report is taken over from an older way of making them.
_FORMAT = 2
#: That of `prompt.EARLIER`: evidence without a first line, the length and the tables the same for all.
_EARLIER_FORMAT = 1
#: Less room than this for data is no evidence to write from.
_LEAST_ROOM = 48
#: Central entities named in the evidence, for titles.
_NAMES = 6

NO_ROOM = "the prompt limit leaves no room for evidence"


class EvidenceBuilder:
    """Makes the evidence of communities, level by level, from tables whose rows are counted (`rows.count_rows`)."""

    def __init__(
        self,
        tables: Tables,
        options: ReportOptions,
        encoding: str,
        language: str,
        prompts: Mapping[str, str],
        earlier_than: EvidenceBuilder | None = None,
    ) -> None:
        self.options = options
        self.encoding = encoding
        self.language = options.language or language
        self._prompts = prompts
        self._earlier = earlier_than is not None
        self._tables = tables
        self.corpus: Corpus = earlier_than.corpus if earlier_than is not None else Corpus(tables, encoding)
        self._heads = {kind: tokens.count(text, encoding) for kind, text in rendering.HEADINGS.items()}
        self._static: dict[tuple[int, tuple[str, ...]], tuple[str, int]] = {}
        self._lines: dict[str, int] = {}
        self._levels: dict[int, list[Community]] = {}
        #: Tokens of the instructions and of the evidence's first line, at most.
        self.static_tokens = self._instructions(options.max_length, tuple(LABELS))[1] + self._longest_line()
        room = options.max_prompt_tokens - self.static_tokens
        #: Tokens for data. Where the instructions leave no room no call is made, so they take none either.
        self.too_tight = room < _LEAST_ROOM
        self.room = options.max_prompt_tokens if self.too_tight else room

    def earlier(self) -> EvidenceBuilder:
        """Return a builder of the evidence as it was for the prompt before: what reports by that were written from."""
        return EvidenceBuilder(self._tables, self.options, self.encoding, self.language, self._prompts, self)

    def levels(self) -> list[int]:
        """Return the levels that have communities, coarsest first."""
        return self.corpus.levels()

    def build(
        self, level: int, children: Mapping[int, ChildReport], only: Collection[int] | None = None
    ) -> list[Evidence]:
        """Return the evidence of every community of a level, longest prompt first; `only` of these, by number.

        `children` holds the reports of the level below by community; a child without one keeps its rows where they fit.
        """
        self._levels = {at: found for at, found in self._levels.items() if at in (level, level + 1)}
        made = [
            self._evidence(community, children)
            for community in self._level(level)
            if only is None or community.number in only
        ]
        return sorted(made, key=lambda evidence: (-evidence.prompt_tokens, evidence.key, evidence.community))

    def estimate(self) -> dict[int, dict[str, int]]:
        """Return, for each level, `communities`, `calls` and `prompt_tokens` before any report exists.

        A prompt that all rows would overflow is counted as full.
        """
        out = {}
        for level in self.levels():
            found = self.corpus.level(level)
            large = [c for c in found if c.size >= self.options.min_entities and not self.too_tight]
            data = [(c, tokens) for c in large if (tokens := self._tokens(c))]
            spent = sum(self._estimate(community, tokens) for community, tokens in data)
            out[level] = {"communities": len(found), "calls": len(data), "prompt_tokens": spent}
        return out

    def whole(self, level: int, only: Collection[int] | None = None) -> list[Evidence]:
        """Return the evidence of those communities of a level whose rows all fit: it does not depend on reports."""
        found = [c for c in self.corpus.level(level) if only is None or c.number in only]
        return [self._evidence(c, {}) for c in found if self._tokens(c) <= self.room]

    def _estimate(self, community: Community, spent: int) -> int:
        """Return the tokens of the prompt on a community whose rows have so many."""
        if spent > self.room:
            return self.room + self.static_tokens
        kinds = tuple(kind for kind in LABELS if kind in community.rows and len(community.rows[kind]))
        return spent + self._line(community)[1] + self._instructions(self._words(spent), kinds)[1]

    def _words(self, spent: int) -> int:
        return self.options.max_length if self._earlier else words_for(spent, self.options.max_length)

    def _instructions(self, words: int, kinds: tuple[str, ...]) -> tuple[str, int]:
        """Return the head of the hash of evidence with these instructions, and their tokens."""
        kinds = tuple(LABELS) if self._earlier else kinds
        if (words, kinds) not in self._static:
            static = instructions(self.language, self._prompts, words, kinds, earlier=self._earlier)
            version = _EARLIER_FORMAT if self._earlier else _FORMAT
            header = json.dumps([version, static.before, static.after, self.language, self.options.max_length])
            self._static[words, kinds] = header, static.tokens(self.encoding)
        return self._static[words, kinds]

    def _line(self, community: Community) -> tuple[str, int]:
        """Return the first line of the evidence, and its tokens: it ends with a line feed, so that they add up."""
        if self._earlier:
            return "", 0
        line = share_line(self._share(community), self.language)
        if line not in self._lines:
            self._lines[line] = tokens.count(line, self.encoding)
        return line, self._lines[line]

    def _longest_line(self) -> int:
        if self._earlier:
            return 0
        lines = (share_line(2.0**-halvings, self.language) for halvings in range(12))
        return max(tokens.count(line, self.encoding) for line in lines)

    def _level(self, level: int) -> list[Community]:
        if level not in self._levels:
            self._levels[level] = self.corpus.level(level)
        return self._levels[level]

    def _tokens(self, community: Community) -> int:
        """Return the tokens of all of a community's rows with their headings."""
        return sum(cost + self._heads[kind] for kind, cost in community.costs.items() if cost)

    def _evidence(self, community: Community, reports: Mapping[int, ChildReport]) -> Evidence:
        spent = self._tokens(community)
        if spent <= self.room:
            return self._finish(community, whole(self.corpus, community, spent))
        mine = set(community.children)
        children = [child for child in self._level(community.level + 1) if child.number in mine] if mine else []
        partial = Partial(self.corpus, community, children, reports, self.room, self._heads)
        return self._finish(community, partial.contents())

    def _finish(self, community: Community, contents: Contents) -> Evidence:
        told, large = contents.told(), community.size >= self.options.min_entities
        needs_model = told and large and not self.too_tight
        names = self._names(community)
        numbers = {kind: list(map(self.corpus.numbers[kind].__getitem__, rows)) for kind, rows in contents.rows.items()}
        numbers["reports"] = [number for number, _ in contents.reports + contents.titles]
        words = self._words(contents.tokens)
        header, static = self._instructions(words, tuple(kind for kind in LABELS if numbers[kind]))
        line, line_tokens = self._line(community) if contents.tokens else ("", 0)
        canonical = "\x1e".join([header + line, str(needs_model), *names, contents.canonical()])
        return Evidence(
            community=community.number,
            key=community.key,
            level=community.level,
            size=community.size,
            language=self.language,
            encoding=self.encoding,
            prompt_tokens=contents.tokens + (0 if self.too_tight else static + line_tokens),
            data=("" if self.too_tight else line) + contents.data(self.corpus),
            needs_model=needs_model,
            cause=NO_ROOM if self.too_tight and told and large else "",
            hash=hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:40],
            direct=self.corpus.direct_mass(contents.rows, community),
            share=self._share(community),
            numbers=numbers,
            record=contents.record(self.corpus, community),
            omitted=contents.omitted(self.corpus),
            gaps=contents.gaps(),
            names=names,
            words=0 if self._earlier else words,
        )

    def _names(self, community: Community) -> list[str]:
        entities = community.rows["entities"][:_NAMES].tolist() or community.documents[:_NAMES]
        return [self.corpus.titles[row] for row in entities]

    def _share(self, community: Community) -> float:
        if self.corpus.total_mass > 0:
            return community.mass / self.corpus.total_mass
        return community.size / max(1, len(self.corpus.entity_mass))

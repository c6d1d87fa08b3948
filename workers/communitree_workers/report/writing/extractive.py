"""Reports that no model writes: the most central statements of the evidence, each with its source.

It is the default model and the fallback, so its reports must read well: titles name the most central things, findings
are sentences of the corpus grouped around one of them, or the reports of sub-communities in brief. Deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from communitree_shared.languages import is_chinese
from communitree_workers.report import citations
from communitree_workers.report.evidence import rows as rendering
from communitree_workers.report.records import GENERATED_BY_EXTRACTIVE, Evidence, Finding, Report
from communitree_workers.report.writing.attachment import attach
from communitree_workers.report.writing.phrases import listed
from communitree_workers.report.writing.spelling import Spelling
from communitree_workers.text.sentences import clip, sentence_spans

_TITLE_NAMES = 3
_SUMMARY_NAMES = 6
_SUMMARY_STATEMENTS = 4
#: Findings in all, and of these at least so many from rows where child reports take the rest.
_FINDINGS, _LEAST_OWN = 8, 3
#: Sentences taken of one description, of an entity's relationships and claims, of a child's summary, of a text.
_OWN, _TIES, _CHILD, _TEXT = 2, 2, 3, 3
_LONGEST_SENTENCE = 320
_LONGEST_NAME = 60
#: Only sentences of a text that long compete for its report; shorter ones are headings and crumbs.
_SHORTEST_SENTENCE = 12

_ALSO_EN, _ALSO_ZH = "It also includes ", "其中还有"
_ALSO = re.compile(rf"\s*(?:{_ALSO_EN}|{_ALSO_ZH})[^\n]*$")
_BULLET = re.compile(r"^(?:[*•·-]\s+)+")

_SECTIONS = {heading.partition("\n")[0]: kind for kind, heading in rendering.HEADINGS.items()}
_ENDS = ".!?:;…\"')]。！？；：”』」）"
_HAN = re.compile("[\u3400-\u9fff》]")
_ROW = re.compile(r"(\d+),(.*)")
_PLAIN = re.compile(r"\W+")


@dataclass
class _Row:
    number: int
    fields: list[str]


@dataclass
class _Writer:
    """What has been said already: no sentence is used twice in the findings."""

    language: str
    sections: dict[str, list[_Row]]
    spelling: Spelling
    said: set[str] = field(default_factory=set)

    def rows(self, kind: str) -> list[_Row]:
        return self.sections.get(kind, [])

    def fresh(self, text: str, limit: int) -> list[str]:
        """Return the first sentences of a text that were not said yet."""
        out: list[str] = []
        for sentence in sentences(text):
            if len(out) == limit:
                break
            mark = _PLAIN.sub("", sentence).casefold()
            if mark and mark not in self.said:
                self.said.add(mark)
                out.append(sentence)
        return out


def write_report(evidence: Evidence, language: str, cause: str = "") -> Report:
    """Return a report made of the evidence alone, `generated_by` extractive, attached to the evidence.

    `cause` says why no model wrote it, "" when that was planned. The rating is the community's share of the corpus's
    mass on a logarithmic scale.
    """
    sections = read_data(evidence.data)
    writer = _Writer(language, sections, _spelling(sections, evidence.names))
    names = writer.spelling.readable_all(evidence.names)
    children = _children(writer)[:_FINDINGS]
    findings = [*children, *(_entities(writer) + _texts(writer))[: max(_LEAST_OWN, _FINDINGS - len(children))]]
    title = listed([clip(name, _LONGEST_NAME) for name in names[:_TITLE_NAMES]], language)
    if not title:
        title = findings[0].summary if findings else _no_name(evidence, language)
    places = citations.places(evidence.numbers)
    checked = [citations.check(f.explanation, places) for f in findings]
    counts, cited = citations.tally(checked)
    report = Report(
        community=evidence.community,
        key=evidence.key,
        level=evidence.level,
        title=title,
        summary=_summary(writer, names, findings),
        rating=0.0,
        rating_explanation="",
        findings=findings,
        language=language,
        generated_by=GENERATED_BY_EXTRACTIVE,
        cause=cause or evidence.cause,
        citations=counts,
        cited=cited,
    )
    return attach(report, evidence)


def _spelling(sections: dict[str, list[_Row]], names: Iterable[str]) -> Spelling:
    types = dict.fromkeys(names, "")
    for row in sections.get("relationships", []):
        types |= dict.fromkeys(row.fields[:2], "")
    types |= {row.fields[0]: row.fields[1] for row in sections.get("entities", [])}
    return Spelling("\n".join(row.fields[-1] for rows in sections.values() for row in rows), types)


def read_data(data: str) -> dict[str, list[_Row]]:
    """Return the rows of each section of a prompt's data."""
    sections: dict[str, list[_Row]] = {}
    rows: list[_Row] = []
    for text in data.split("\n"):
        if text in _SECTIONS:
            rows = sections.setdefault(_SECTIONS[text], [])
        elif match := _ROW.match(text):
            rows.append(_Row(int(match.group(1)), rendering.fields(match.group(2))))
    return sections


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, long ones clipped."""
    text = text.removesuffix(rendering.SHORTENED)
    return [clip(_BULLET.sub("", text[start:end]), _LONGEST_SENTENCE) for start, end in sentence_spans(text)]


def _children(writer: _Writer) -> list[Finding]:
    """One finding a sub-community: its title, and its summary in brief."""
    out = []
    for row in [*writer.rows("reports"), *writer.rows("titles")]:
        title, content = row.fields[0], row.fields[-1]
        body = join(writer.fresh(_ALSO.sub("", content.partition(" ## ")[0]), _CHILD))
        if body:
            out.append(Finding(title, f"{body} {citations.data(reports=[row.number])}"))
    return out


def _entities(writer: _Writer) -> list[Finding]:
    """One finding an entity, most central first: its description and the relationships and claims not yet told."""
    ties: dict[str, list[_Row]] = {}
    for row in writer.rows("relationships"):
        for end in dict.fromkeys(row.fields[:2]):
            ties.setdefault(end, []).append(row)
    claims: dict[str, list[_Row]] = {}
    for row in writer.rows("claims"):
        claims.setdefault(row.fields[0], []).append(row)
    out = []
    known = set()
    entities = [(row.fields[0], row) for row in writer.rows("entities")]
    for name, row in entities:
        known.add(name)
        out.append(_about(writer, name, row, ties.get(name, []), claims.get(name, [])))
    # relationships whose ends have no row here, as between sub-communities that only their reports speak for
    for name, rows in ties.items():
        if name not in known:
            out.append(_about(writer, name, None, rows, []))
    return [finding for finding in out if finding is not None]


def _about(
    writer: _Writer, name: str, entity: _Row | None, ties: Sequence[_Row], claims: Sequence[_Row]
) -> Finding | None:
    own = writer.fresh(entity.fields[-1], _OWN) if entity else []
    cited: dict[str, list[int]] = {"entities": [entity.number] if own and entity else []}
    said = list(own)
    partners: list[str] = []
    for kind, rows in (("relationships", ties), ("claims", claims)):
        for row in rows:
            if len(cited.get(kind, ())) == _TIES:
                break
            fresh = writer.fresh(row.fields[-1], 1)
            if fresh:
                said += fresh
                cited.setdefault(kind, []).append(row.number)
                if kind == "relationships":
                    partners.append(row.fields[1] if row.fields[0] == name else row.fields[0])
    if not said:
        return None
    shown, *others = writer.spelling.readable_all([name, *partners])
    heading = _heading(shown, others[:_TIES], writer.language)
    return Finding(heading, f"{join(said)} {citations.data(**cited)}")


def _texts(writer: _Writer) -> list[Finding]:
    """One finding a text: the sentences that say most of what the texts share."""
    rows = writer.rows("text_units")
    if not rows:
        return []
    from communitree_workers.text.words import terms  # loads the Chinese dictionary: only where text is weighed

    split = [[s for s in sentences(row.fields[0]) if len(s) >= _SHORTEST_SENTENCE] for row in rows]
    words = [[set(terms(sentence)) for sentence in one] for one in split]
    spread: dict[str, int] = {}
    for one in words:
        for bag in one:
            for word in bag:
                spread[word] = spread.get(word, 0) + 1
    out = []
    for row, lines, bags in zip(rows, split, words, strict=True):
        weight = [sum(spread[word] for word in bag) / (len(bag) + 4) for bag in bags]
        best = sorted(sorted(range(len(lines)), key=lambda i: (-weight[i], i))[:_TEXT])
        body = writer.fresh("\n\n".join(lines[i] for i in best), _TEXT)
        if body:
            out.append(
                Finding(clip(body[0], _LONGEST_NAME * 2), f"{join(body)} {citations.data(text_units=[row.number])}")
            )
    return out


def _summary(writer: _Writer, names: Sequence[str], findings: Sequence[Finding]) -> str:
    """The leading sentence of each of the first findings, and who or what else it is about."""
    statements: list[str] = []
    for finding in findings:
        first = sentences(citations.remove(finding.explanation))[:1]
        statements += [s for s in first if s not in statements]
        if len(statements) == _SUMMARY_STATEMENTS:
            break
    told = join(statements).casefold()
    others = [name for name in names[_TITLE_NAMES:_SUMMARY_NAMES] if name.casefold() not in told]
    also = ""
    if others:
        shown = listed(others, writer.language)
        also = f"{_ALSO_ZH}{shown}。" if is_chinese(writer.language) else f"{_ALSO_EN}{shown}."
    if statements:
        return join([*statements, also])
    gap = "语料中没有更多说明。" if is_chinese(writer.language) else "The corpus says no more about it."
    return join([also, gap])


def _heading(name: str, partners: Sequence[str], language: str) -> str:
    if not partners:
        return name
    others = listed(partners, language)
    return f"{name}与{others}" if is_chinese(language) else f"{name}, with {others}"


def _no_name(evidence: Evidence, language: str) -> str:
    return f"{evidence.size} 个没有名称的实体" if is_chinese(language) else f"{evidence.size} entities without a name"


def join(parts: Iterable[str]) -> str:
    """Return sentences one after another, each with an end; a space between them, none after Chinese punctuation."""
    text = ""
    for part in filter(None, parts):
        if text and text[-1] not in _ENDS:
            text += "。" if _HAN.match(text[-1]) else "."
        close = not text or text[-1] in "。！？；”』」）" or (text[-1] == "…" and _HAN.match(part))
        text += part if close else f" {part}"
    if text and text[-1] not in _ENDS:
        text += "。" if _HAN.match(text[-1]) else "."
    return text

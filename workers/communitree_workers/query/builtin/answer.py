"""The built-in model's answer: points arranged by what they are about, with their citations, in readable Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from communitree_shared.contract.options import AnswerOptions
from communitree_shared.contract.results import Point
from communitree_shared.languages import is_chinese
from communitree_workers.citing.grammar import grammar_of
from communitree_workers.citing.writing import reference
from communitree_workers.query.builtin.passages import join, statements
from communitree_workers.query.question.words import QuestionWords
from communitree_workers.query.wording.forms import Form, known_form
from communitree_workers.query.wording.length import words
from communitree_workers.query.wording.phrases import say

#: Groups that are told at length, and those only named, by form of the answer.
_GROUPS: dict[Form, tuple[int, int]] = {
    "paragraphs": (7, 12),
    "paragraph": (4, 0),
    "list": (10, 10),
    "report": (20, 30),
}
_PER_GROUP: dict[Form, int] = {"paragraphs": 4, "paragraph": 1, "list": 2, "report": 8}
_NAMED = 5
#: How citations name text units.
_SOURCES = "Sources"
#: Characters of a title in the opening line; a longer one ends at a border inside it.
_BRIEF = 40
_BORDER = re.compile(r",? and (?=\S)|[,;:] |[，；：、]|和(?=\S)| [–—-] | \(|（")


@dataclass
class _Group:
    name: str
    points: list[Point] = field(default_factory=list)


def write_answer(
    points: Sequence[Point],
    asked: QuestionWords,
    options: AnswerOptions,
    language: str,
    titles: Mapping[int, str],
    context: str = "Reports",
) -> str:
    """Return the answer made of these points, the most important first.

    Args:
        points: the points that are used.
        asked: the question; decides how they are arranged: by name, by theme, or by report.
        options: `response_type` and `reduce_max_length`.
        language: of the words around the statements.
        titles: title of each cited report; of a text unit, that of its document.
        context: how reports are named in citations.
    """
    form = known_form(options.response_type)
    groups = _by_name(points) if asked.general and asked.kind else _by_report(points, titles, context)
    if asked.general and not asked.kind:
        groups = _few_words_in_common(groups)
    told, named = _GROUPS[form]
    # Names of files are no themes.
    opening = _opening(groups[:told], asked, language) if asked.kind or context != _SOURCES else ""
    left = options.reduce_max_length - words(opening)
    parts: list[str] = []
    for number, group in enumerate(groups[:told], start=1):
        text = _body(group, _PER_GROUP[form], left, context)
        if not text:
            continue
        left -= words(text)
        parts.append(_shaped(group.name, text, form, number, language, plain=not asked.general and len(groups) == 1))
    rest = _rest(groups[told : told + named], left, language, context)
    gap = "\n" if form == "list" else " " if form == "paragraph" else "\n\n"
    body = gap.join(parts)
    if form == "paragraph":
        return f"{opening} {body}".strip()
    return "\n\n".join(filter(None, (opening, body, rest)))


def _by_name(points: Sequence[Point]) -> list[_Group]:
    """Points that begin with `name:` go together; the others by themselves."""
    groups: dict[str, _Group] = {}
    for point in points:
        name, rest = _split_name(point.text)
        group = groups.setdefault(name, _Group(name))
        group.points.append(point.model_copy(update={"text": rest}))
    return list(groups.values())


def _split_name(text: str) -> tuple[str, str]:
    for colon in (": ", "："):
        name, found, rest = text.partition(colon)
        if found and len(name) <= 60 and "。" not in name and not re.search(r"[a-z]{4,}[.!?] ", name):
            return name, rest
    return "", text


def _by_report(points: Sequence[Point], titles: Mapping[int, str], context: str) -> list[_Group]:
    """Points that cite the same report go together; of text units, those of documents with the same title."""
    groups: dict[int | str, _Group] = {}
    for point in points:
        cited = {titles.get(i, i) if context == _SOURCES else i: titles.get(i, "") for i in point.reports} or {-1: ""}
        key = next((k for k in cited if k in groups), next(iter(cited)))
        groups.setdefault(key, _Group(cited[key])).points.append(point)
    return list(groups.values())


def _few_words_in_common(groups: list[_Group]) -> list[_Group]:
    """Put groups whose title repeats an earlier one behind the others: themes shall differ."""
    seen: set[str] = set()
    fresh: list[_Group] = []
    again: list[_Group] = []
    for group in groups:
        names = set(_names_in(group.name))
        (again if names and names <= seen else fresh).append(group)
        seen |= names
    return fresh + again


def _names_in(title: str) -> list[str]:
    for separator in (" and ", "和", "与", "、", "，"):
        title = title.replace(separator, ", ")
    return [name.strip().lower() for name in title.split(", ") if name.strip()]


def _opening(groups: Sequence[_Group], asked: QuestionWords, language: str) -> str:
    names = [_plain(group.name) for group in groups if group.name]
    if not asked.general or not names:
        return ""
    if asked.kind:
        return say(f"answer.{asked.kind}", language, names=listed(names[:12], language))
    return say("answer.themes", language, names=listed([_brief(n) for n in names[:_NAMED]], language, flat=True))


def _brief(title: str) -> str:
    """Return a title that is a long list or sentence by its beginning: whole names where it lists some."""
    if len(title) <= _BRIEF:
        return title
    ends = [match.start() for match in _BORDER.finditer(title) if 8 <= match.start() <= _BRIEF]
    if ends:
        return title[: ends[-1]].rstrip()
    cut = title[: _BRIEF - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > _BRIEF // 2 else cut).rstrip(" ,;:，；：、–—-") + "…"


def _plain(title: str) -> str:
    return (
        grammar_of(bare=False).without(title).strip().rstrip(".。")
    )  # those of a title are no citations of the answer


def listed(names: Sequence[str], language: str, *, flat: bool = False) -> str:
    """Return names as a list in words; `flat`: names that are lists themselves are kept apart by semicolons."""
    if is_chinese(language):
        if flat and any("、" in n or "和" in n for n in names):
            return "；".join(names)
        return "、".join(names[:-1]) + ("和" if len(names) > 1 else "") + "".join(names[-1:])
    if flat and any(", " in n or " and " in n for n in names):
        return "; ".join(names)
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + "".join(names[-1:])


def _body(group: _Group, limit: int, left: int, context: str) -> str:
    out: list[str] = []
    said: set[str] = set()
    for point in group.points:
        if len(out) == limit:
            break
        fresh = [s for s in statements(point.text) if s not in said]
        said.update(fresh)
        text = join(fresh)
        if not text or words(text) > left:
            continue
        left -= words(text)
        out.append(f"{_ended(text)} {reference(point.reports, context)}".strip())
    return " ".join(out)


def _ended(text: str) -> str:
    if text[-1] in ".!?…。！？；;:\"'”’」』）)":
        return text
    return text + ("。" if "\u3400" <= text[-1] <= "\u9fff" else ".")


def _shaped(name: str, text: str, form: Form, number: int, language: str, *, plain: bool) -> str:
    colon = "：" if is_chinese(language) else ": "
    title = _plain(name)
    if form == "report":
        return f"## {title}\n\n{text}" if title else text
    if form == "list":
        return f"{number}. **{title}**{colon}{text}" if title else f"{number}. {text}"
    if form == "paragraph" or plain or not title:
        return text
    return f"**{title}**{colon}{text}"


def _rest(groups: Sequence[_Group], left: int, language: str, context: str) -> str:
    """Name what is not told at length, with its citations."""
    items: list[str] = []
    for group in groups:
        title = _plain(group.name)
        cited = reference(dict.fromkeys(id for point in group.points for id in point.reports), context)
        if title and cited and words(title) <= left:
            items.append(f"- {title} {cited}")
            left -= words(title)
    return "\n".join([say("answer.further", language), "", *items]) if items else ""

"""Forms of an answer that a caller may ask for, GraphRAG's names and any free text."""

from __future__ import annotations

from typing import Literal

from communitree_shared.languages import is_chinese

Form = Literal["paragraphs", "paragraph", "list", "report"]

_FORMS: dict[Form, tuple[tuple[str, ...], str, str]] = {
    "paragraphs": (("multiple paragraphs", "paragraphs", "多段", "多个段落"), "multiple paragraphs", "多个段落"),
    "paragraph": (("single paragraph", "one paragraph", "paragraph", "一段", "单段"), "a single paragraph", "一个段落"),
    "list": (
        ("prioritized list", "list", "list of 3-7 points", "列表", "清单", "优先级列表"),
        "a list, the most important item first",
        "一个列表，最重要的排在最前",
    ),
    "report": (
        ("multi-page report", "multiple-page report", "report", "报告", "多页报告"),
        "a report of several pages with headings",
        "一份带标题的多页报告",
    ),
}


def known_form(response_type: str) -> Form:
    """Return which form a response type is nearest to."""
    wanted = response_type.strip().lower()
    for form, (names, _, _) in _FORMS.items():
        if wanted in names:
            return form
    if "list" in wanted or "列" in wanted or "bullet" in wanted:
        return "list"
    if "report" in wanted or "page" in wanted or "报告" in wanted:
        return "report"
    if "single" in wanted or "one " in wanted or "sentence" in wanted or "一段" in wanted or "一句" in wanted:
        return "paragraph"
    return "paragraphs"


def form_of(response_type: str, language: str) -> str:
    """Return how a prompt names a form; free text is passed on as it is."""
    wanted = response_type.strip().lower()
    for names, english, chinese in _FORMS.values():
        if wanted in names:
            return chinese if is_chinese(language) else english
    return response_type.strip() or form_of("multiple paragraphs", language)

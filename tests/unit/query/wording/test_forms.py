"""Forms of an answer, by name and by words."""

from __future__ import annotations

from communitree_workers.query.wording.forms import form_of, known_form


def test_forms_by_name_and_by_words() -> None:
    assert known_form("Prioritized List") == "list"
    assert known_form("Multi-Page Report") == "report"
    assert known_form("one sentence") == "paragraph"
    assert known_form("anything") == "paragraphs"
    assert form_of("multiple paragraphs", "zh") == "多个段落"
    assert form_of("", "en") == "multiple paragraphs"

"""Notes of an answer's account: what a sample of pruned communities showed, and which words were not found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from communitree_shared.contract.results import Point
from communitree_workers.query.builtin.answer import listed
from communitree_workers.query.builtin.replies import question_matcher
from communitree_workers.query.question.words import QuestionWords
from communitree_workers.query.selection.choice import Selected
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.query.wording.phrases import say


def audit_notes(selected: Selected, points: Sequence[Point], language: str) -> list[str]:
    """Return what reading a sample of the pruned communities has shown."""
    budget = selected.selection.budget
    if "audited" not in budget:
        return []
    sample = set(budget["audited"])
    if not sample:  # or the budget had no room for it, which the selection says
        return [] if budget.get("audit_wanted") else [say("warn.audit_none", language)]
    missed = [p for p in points if p.score > 0 and sample.intersection(p.reports)]
    return [say("warn.audit", language, sample=len(sample), count=len(missed))]


def word_notes(
    asked: QuestionWords,
    lexicon: Lexicon,
    statements: Sequence[str],
    held: Callable[[str], bool],
    language: str,
    *,
    kind: str = "reports",
) -> list[str]:
    """Return which words of a question the built-in model, which matches words, has not found.

    Args:
        asked: the question.
        lexicon: the words of reports' full text.
        statements: what was found.
        held: says whether a word stands in any report or text unit; asked where nothing was found.
        language: of the notes.
        kind: `reports` or `sources`: what is read.
    """
    if asked.general:
        return []
    found = question_matcher(asked, None).matches("\n".join(statements))
    strange = asked.unheld(lambda word: word in found or lexicon.frequency(word) > 0)
    if statements:
        return [say("warn.words_unfound", language, words=listed(strange, language))] if strange else []
    missing = [word for word in strange if not held(word)]
    if not missing:
        return [say("warn.words_apart", language)]
    key = "warn.words_missing_texts" if kind == "sources" else "warn.words_missing"
    return [say(key, language, words=listed(missing, language))]

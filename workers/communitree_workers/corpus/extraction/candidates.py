"""What both languages' extractors give: a candidate is a phrase in a sentence that may become an entity."""

from __future__ import annotations

from typing import NamedTuple

#: Evidence for what a candidate is. NAME: capitalised inside a sentence, or a name by its tag; START: capitalised where
#: every word is; NOUN: a common phrase where only a noun can stand; TERM: a common phrase anywhere else; CODE: an
#: identifier or quoted literal; VERB: a word where only a verb can stand, which is no mention but speaks against it.
NAME, START, NOUN, TERM, CODE, VERB = 0, 1, 2, 3, 4, 5
KINDS = 6


class Candidate(NamedTuple):
    """`key` unifies spellings and inflections; `title` is the phrase as it stands, `parts` its words with blanks."""

    key: str
    title: str
    kind: int
    type: str
    parts: str

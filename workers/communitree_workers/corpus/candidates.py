"""What both languages' extractors give: a candidate is a phrase in a sentence that may become an entity."""

from __future__ import annotations

from typing import NamedTuple

#: Evidence for what a candidate is. NAME: capitalised inside a sentence, or a name by its tag; START: capitalised where
#: every word is; NOUN: a common phrase where only a noun can stand; TERM: a common phrase anywhere else; CODE: an
#: identifier or quoted literal.
NAME, START, NOUN, TERM, CODE = 0, 1, 2, 3, 4
KINDS = 5


class Candidate(NamedTuple):
    """`key` unifies spellings and inflections; `title` is the phrase as it stands, `parts` its words with blanks."""

    key: str
    title: str
    kind: int
    type: str
    parts: str

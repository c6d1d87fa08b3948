"""What a question asks for, told from its words alone: the whole corpus, or something in particular; people or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import rjieba

from communitree_workers.query.question.chinese import Cutter
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.text.variants import simplified
from communitree_workers.text.words import is_cjk, language, terms

#: 这本, 那本书, 这几篇, 此书, 该: they point at the corpus and name nothing in it.
_POINTING_ZH = re.compile(r"[这那此该][一两几些]?[本部份批篇套个些卷册章段节回类种]?[书文]?|几[本部份批篇套个卷册]")

_PEOPLE = re.compile(
    r"\b(?:who|whom|people|persons?|characters?|protagonists?|figures?|names)\b|人物|角色|主角|人名|谁|哪些人|什么人",
    re.I,
)
_PLACES = re.compile(r"\b(?:where|places?|locations?|cities|countries)\b|地点|地方|哪里|何处|城市|国家", re.I)
_GROUPS = re.compile(r"\b(?:organi[sz]ations?|companies|institutions?|parties)\b|组织|机构|公司|家族|部门", re.I)
_EVENTS = re.compile(r"\b(?:events?|what happen\w*)\b|事件|情节|发生了什么", re.I)


def _general(language: str) -> frozenset[str]:
    """Return the words that ask about a corpus as a whole and name nothing in it."""
    lines = Path(__file__).with_name(f"general_{language}.txt").read_text("utf-8").splitlines()
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    return frozenset(term for word in words for term in terms(word)) | frozenset(words)


_GENERAL = _general("en") | _general("zh")


@dataclass(frozen=True)
class QuestionWords:
    """`specific`: search terms that name something; `general`: there are none; `kind`: a key of `KINDS` or ''."""

    text: str
    language: str
    terms: tuple[str, ...]
    specific: tuple[str, ...]
    kind: str

    @property
    def general(self) -> bool:
        """Whether the question names nothing in particular."""
        return not self.specific

    def parts(self, word: str) -> tuple[str, ...]:
        """Return the Chinese search terms that stand inside a longer one."""
        return tuple(term for term in self.specific if term != word and term in word and is_cjk(term[0]))

    def unheld(self, holds: Callable[[str], bool]) -> list[str]:
        """Return the search terms that `holds` denies, with all their parts; parts are not named by themselves."""
        inside = {part for term in self.specific for part in self.parts(term)}
        return [term for term in self.specific if term not in inside and not any(map(holds, (term, *self.parts(term))))]


def is_general(term: str) -> bool:
    """Say whether a search term, in simplified characters, names nothing in a corpus: 主题, 谁, 这本书."""
    return term in _GENERAL or (term.isdigit() and len(term) < 3) or _POINTING_ZH.fullmatch(term) is not None


def read_words(text: str, lexicon: Lexicon | None = None) -> QuestionWords:
    """Read a question; with a corpus's lexicon, Chinese is cut into the words that this corpus has."""
    plain = simplified(text)
    cut = Cutter(lexicon, is_general).cut if lexicon else rjieba.cut_for_search
    found = tuple(dict.fromkeys(terms(text if lexicon else plain, cut)))
    specific = tuple(term for term in found if not is_general(simplified(term)))
    kind = ""
    for name, pattern in (("people", _PEOPLE), ("places", _PLACES), ("groups", _GROUPS), ("events", _EVENTS)):
        if pattern.search(plain):
            kind = name
            break
    return QuestionWords(text, language(text), found, specific, kind)

"""Names and noun phrases of a Chinese sentence, by rjieba's words and tags.

Names (persons, places, organisations, works in 《》) stand alone; neighbouring nouns make one phrase, as modern texts
have them: 上海 港务 集团. Its guesses of unknown names often have a neighbouring character glued on (黛玉道, 向士隐):
that is mended over the whole corpus, see `merging`.
"""

from __future__ import annotations

import re
from functools import lru_cache

import rjieba

from communitree_workers.corpus.extraction.candidates import CODE, NAME, NOUN, TERM, Candidate
from communitree_workers.corpus.extraction.lexicon import words
from communitree_workers.text.stopwords import CHINESE
from communitree_workers.text.words import is_cjk

_WORK = re.compile(r"《([^《》\n]{2,30})》")
_GENERIC = words("zh_generic") | CHINESE
_NAME_TYPES = {"nr": "person", "ns": "place", "nt": "organization", "nz": "name"}
_NOUNS = frozenset({"n", "vn", "j", "nz", "ns", "nt", "eng", "an"})
_ORGANIZATION_ENDS = (
    "集团",
    "公司",
    "大学",
    "学院",
    "银行",
    "委员会",
    "协会",
    "医院",
    "法院",
    "部",
    "局",
    "党",
    "军",
    "社",
    "厂",
    "研究所",
    "中心",
)
#: They end a phrase: 清华大学 研究 台风 is no name.
_ORGANIZATION_WORDS = frozenset(word for word in _ORGANIZATION_ENDS if len(word) > 1)
_HOUSES = ("府", "庙", "寺", "庵", "宫")
#: What begins with them points at something, and does not name it: 之兵, 此事, 汝二人.
_POINTING = frozenset("之其此彼吾汝")
#: What stands in no name, and after its first character in no noun.
_GRAMMAR = frozenset("不了么呢吗些的")
_PARTICLES = frozenset("了么呢吗")
_LONGEST = 4


def candidates(sentence: str) -> list[Candidate]:
    """Return the candidates of one sentence in order, with repetitions."""
    out = [Candidate(work.casefold(), work, NAME, "work", work.casefold()) for work in _WORK.findall(sentence)]
    run: list[str] = []
    for word, tag in [*rjieba.tag(sentence), ("。", "x")]:
        if word == " " and run and not is_cjk(run[-1][-1]):
            continue  # "Global Search 服务": blanks part Latin words only
        noun = tag in _NOUNS and _is_content(word)
        name = tag[:2] == "nr" and len(word) > 1 and word not in _GENERIC and word[0] not in "那这"
        if name and not _GRAMMAR.isdisjoint(word):  # 不免有些, taken for a person
            noun = name = False
        if noun and not name:
            run.append(word)
            if tag == "nt" or word in _ORGANIZATION_WORDS:
                _add_run(out, run)
                run = []
            continue
        if run:
            _add_run(out, run)
            run = []
        if name:
            out.append(Candidate(word, word, NAME, _name_type(word), word))
    return out


def _add_run(out: list[Candidate], run: list[str]) -> None:
    run = run[-_LONGEST:]
    while run and run[0][0] in _POINTING:
        run = run[1:]
    if not run or (len(run) == 1 and len(run[0]) < 2):
        return
    title = _joined(run)
    key, parts = title.casefold(), " ".join(run).casefold()
    if all(word.isascii() for word in run):
        kind, what = (NAME, "name") if any(word[0].isupper() for word in run) else (TERM, "term")
        out.append(Candidate(key, title, CODE if "_" in title else kind, what, parts))
        return
    what = _noun_type(title, run)
    kind = NAME if what != "term" else TERM if len(run) == 1 else NOUN
    out.append(Candidate(key, title, kind, what, parts))


def _joined(run: list[str]) -> str:
    title = run[0]
    for word in run[1:]:
        title += word if is_cjk(title[-1]) or is_cjk(word[0]) else " " + word
    return title


@lru_cache(maxsize=100_000)
def _is_content(word: str) -> bool:
    """Single characters count inside a run only when they are no function word."""
    if word in _GENERIC or not any(c.isalpha() for c in word):
        return False
    if (word[1:] and not _PARTICLES.isdisjoint(word[1:])) or (len(word) == 2 and word[0] == "不"):
        return False  # 打了个 and 不值 are no things
    return len(word) > 1 or (is_cjk(word) and word not in "人儿时事话问方内手故头字生家年月日号")


def _noun_type(title: str, run: list[str]) -> str:
    if title.endswith(_ORGANIZATION_ENDS) and len(title) > 2:
        return "organization"
    if len(run) == 1:
        tag = _tag(title)
        if tag in _NAME_TYPES and tag != "nr" and len(set(title)) > 1:  # 哥哥 is tagged as a place
            return _NAME_TYPES[tag]
    return "term"


@lru_cache(maxsize=100_000)
def _tag(word: str) -> str:
    tags = rjieba.tag(word)
    return str(tags[0][1]) if len(tags) == 1 else ""


def _name_type(word: str) -> str:
    """Households and temples are often tagged as persons: 荣国府, 葫芦庙."""
    return "place" if len(word) > 2 and word.endswith(_HOUSES) else "person"

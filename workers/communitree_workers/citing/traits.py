"""What a statement can be told by: its numbers, its names, and its words.

A name is certain where its spelling says so (capitals inside a sentence, an identifier, 《》); a word that begins a
sentence, or that rjieba takes for a name, may be one: it is weighed like the rare word that it is.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import rjieba

from communitree_workers.citing.quantities import Quantity, quantities
from communitree_workers.text.stopwords import CHINESE, ENGLISH
from communitree_workers.text.variants import simplified
from communitree_workers.text.words import CJK, fold_plural, language


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TOKEN = re.compile(
    rf"(?P<quoted>《[^《》\n]{{1,40}}》|「[^「」\n]{{1,20}}」)"
    r"|(?P<code>`[^`\n]{1,80}`|(?<![\w])[A-Za-z_]\w*(?:(?:\.|::|->|/)\w+)+(?:\(\))?|[A-Za-z_]\w*\(\))"
    rf"|(?P<cjk>[{CJK}]+)"
    rf"|(?P<word>[^\W_{CJK}]+(?:[_'’&-][^\W_{CJK}]+)*_*|_+\w+)"
)
_ALONE = re.compile(r"[^\W_]+")
_BEGINS = re.compile(r"(?:^|[.!?:;。！？：；\n|•>\"“(（*#-]\s?|\d[.)]\s|\*\*)\s*\Z")
#: A text of so many characters is no accident.
_QUOTED = 16
#: Words that join the words of a name.
_JOINING = frozenset(("of", "the", "de", "la", "le", "von", "van", "der", "den", "del", "di", "da", "du"))
#: Sentences begin with these, names do not.
_OPENERS = ENGLISH | _listed("""
    however meanwhile later during since both many several according although while among another there these those
    today yesterday overall finally also further instead thus hence moreover additionally similarly together despite
    report reports january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday
""")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|without|neither|nor|cannot|failed to|\w+n['’]t)\b|[不没無无未非勿莫]|拒绝|并未",
    re.IGNORECASE,
)
_PASSIVE = re.compile(r"\bby\b|被|由|受")
_ENDINGS = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ers", "ies", "ied", "ed", "er", "es", "ly", "s",
    "e", "y",
)  # fmt: skip
_PAIRS = """
increas rais rose ris grew grow gain 增加 增长 上升 提高 | decreas reduc fell fall declin shrink drop 减少 下降 降低
accept approv pass support endors grant 批准 通过 支持 接受 | reject refus oppos den declin veto 拒绝 否决 反对 驳回
open begin began start found launch 开放 开始 成立 开业 | clos end shut dissolv 关闭 结束 停止 解散
buy bought purchas acquir 购买 收购 买入 | sell sold sale 出售 卖出
before earlier 之前 | after later 之后
win won victor 获胜 赢得 战胜 | lose lost defeat 失败 输掉
import 进口 | export 出口
more above over 高于 多于 | less fewer below under 低于 少于
first earliest 最早 | last latest 最后
north northern 北 | south southern 南
east eastern 东 | west western 西
largest biggest highest most 最大 最高 最多 | smallest lowest least 最小 最低 最少
"""
_SIDES: dict[str, list[tuple[int, int]]] = {}
for _n, _line in enumerate(_PAIRS.strip().splitlines()):
    for _side, _words in enumerate(_line.split("|")):
        for _word in _words.split():
            _SIDES.setdefault(_word, []).append((_n, _side))


#: What ends the name of a body: the word before it is a name, whatever rjieba takes it for.
_BODIES = _listed("""
    集团 公司 银行 基金 基金会 大学 学院 医院 法院 委员会 协会 商会 研究所 研究院 实业 企业 联盟 联合会 出版社 报社 工厂
    剧团 乐团
""")
_GLUED, _GLUED_BEHIND = "由在和与被对从向将把为是及据", "说道在和与的了是将被"


class Name(NamedTuple):
    """A name, its words in small letters. `sure`: its spelling says that it is one."""

    start: int
    end: int
    words: tuple[str, ...]
    sure: bool


@dataclass(frozen=True)
class Traits:
    """What a text says, in the forms in which texts are compared.

    `plain`: its words alone, as they stand. `words`: stems, each once, in order; `nouns`: those among them that may be
    names, all where no spelling tells.
    """

    text: str
    plain: str
    chinese: bool
    numbers: tuple[Quantity, ...]
    names: tuple[Name, ...]
    words: tuple[str, ...]
    nouns: frozenset[str]
    known: frozenset[str]
    negative: bool
    passive: bool
    sides: frozenset[tuple[int, int]]

    @property
    def keys(self) -> int:
        """How many numbers and certain names there are."""
        return len({n.key for n in self.numbers}) + len({n.words for n in self.names if n.sure})

    def quotes(self, other: Traits) -> bool:
        """Say whether another text of some length stands in this one word for word."""
        said = other.plain.strip() if other.chinese else other.plain
        return len(said) >= _QUOTED and said in self.plain

    def has(self, word: str) -> bool:
        """Say whether a word (of `words`, or of a name) stands in the text; a Chinese one may stand inside another."""
        return word in self.known or (ord(word[0]) > 0x2E7F and word in self.text)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return what forms of an English word have in common: financed, financing, finances."""
    word = fold_plural(word)
    if len(word) < 5 or not word.isascii():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def normalised(text: str) -> str:
    """Return a text with half-width forms and simplified characters."""
    return text if text.isascii() else simplified(unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=16_384)
def traits(text: str) -> Traits:
    """Return the traits of a text without references."""
    text = normalised(text)
    numbers = tuple(quantities(text))
    inside = [(q.start, q.end) for q in numbers]
    names: list[Name] = []
    words: dict[str, None] = {}
    known: set[str] = set()
    nouns: set[str] = set()
    latin: list[tuple[int, int, str]] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if any(a <= start < b for a, b in inside) and match["cjk"] is None:
            continue
        if match["quoted"]:
            inner = match[0][1:-1]
            names.append(Name(start, end, (inner.casefold(),), True))
            known.add(inner.casefold())
        elif match["code"]:
            bare = match[0].strip("`").removesuffix("()").casefold()
            names.append(Name(start, end, (bare,), True))
            known.update({bare, *re.split(r"\W+", bare)})
        elif match["cjk"]:
            _chinese(match[0], start, names, words, nouns)
        else:
            latin.append((start, end, match[0]))
    spoken = set(words)
    _latin(text, latin, names, words, known)
    nouns.update(words.keys() - spoken)
    known.update(words)
    known.update(word for name in names for word in name.words)
    lowered = text.lower()
    sides = {side for word in [*known, *lowered.split()] for side in _SIDES.get(word, ())}
    sides |= {side for word, all_ in _SIDES.items() if ord(word[0]) > 255 and word in text for side in all_}
    return Traits(
        lowered,
        f" {' '.join(_ALONE.findall(lowered))} ",
        language(text) == "zh",
        numbers,
        tuple(sorted(names)),
        tuple(words),
        frozenset(nouns),
        frozenset(known),
        _NEGATION.search(text) is not None,
        _PASSIVE.search(text) is not None,
        frozenset(sides),
    )


def _chinese(run: str, at: int, names: list[Name], words: dict[str, None], nouns: set[str]) -> None:
    before, kind = "", ""
    for word, tag in rjieba.tag(run):
        if tag[:2] == "nr" and len(word) > 2:  # rjieba glues a neighbour to names that it does not know
            glued = word[0] in _GLUED
            at += glued
            word = word[glued:].rstrip(_GLUED_BEHIND)
        if word in _BODIES and len(before) > 1 and kind in ("n", "j", "l", "a", "v") and before not in _BODIES:
            names.append(Name(at - len(before), at + len(word), (before, word), kind in ("n", "j")))
        before, kind = word, tag[0]
        if len(word) > 1 and tag[:2] in ("nr", "ns", "nt", "nz"):
            names.append(Name(at, at + len(word), (word,), False))
        if word not in CHINESE and tag not in ("m", "x") and (len(word) > 1 or tag[0] in "nv"):
            words[word] = None
            if tag[0] == "n" or tag in ("j", "i", "l", "nz"):
                nouns.add(word)
        at += len(word)


def _latin(
    text: str, tokens: list[tuple[int, int, str]], names: list[Name], words: dict[str, None], known: set[str]
) -> None:
    long = [word for _, _, word in tokens if len(word) > 3]
    title = len(long) > 3 and all(word[0].isupper() for word in long)  # a heading: its capitals say nothing
    run: list[tuple[int, int, str]] = []

    def close() -> None:
        while run and run[-1][2] in _JOINING:
            run.pop()
        if run:
            _add_name(text, run, title, names, words, known)
        run.clear()

    for start, end, word in tokens:
        if run and text[run[-1][1] : start] != " ":
            close()
        low = word.lower()
        if _identifier(word):
            close()
            names.append(Name(start, end, (low,), not title))
            known.update({low, *re.split(r"[\W_]+", low)})
        elif word[0].isupper() or (run and low in _JOINING):
            run.append((start, end, word))
        else:
            close()
            _add_word(low, words, known)
    close()


def _add_name(
    text: str, run: list[tuple[int, int, str]], title: bool, names: list[Name], words: dict[str, None], known: set[str]
) -> None:
    begins = _BEGINS.search(text, max(0, run[0][0] - 6), run[0][0]) is not None
    while run and begins and run[0][2].lower() in _OPENERS:
        _add_word(run.pop(0)[2].lower(), words, known)
        begins = False
        while run and run[0][2] in _JOINING:
            run.pop(0)
    if not run:
        return
    parts = [_bare(word) for _, _, word in run if word.lower() not in _JOINING]
    sure = not title and not (begins and len(parts) == 1)
    parts = [part for part in parts if part and (part not in _OPENERS or len(parts) > 1)]
    if not parts:
        return
    names.append(Name(run[0][0], run[-1][1], tuple(parts), sure))
    known.update(parts)
    for part in parts:
        known.add(stem(part))
        if not sure:
            words[stem(part)] = None


def _bare(word: str) -> str:
    return re.sub(r"['’]s?$", "", word.lower())


def _add_word(low: str, words: dict[str, None], known: set[str]) -> None:
    for part in re.split(r"[-'’_]", low):
        if part and part not in ENGLISH and not part.isdigit() and len(part) > 1:
            words[stem(part)] = None
            known.add(part)


_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s)")


def _identifier(word: str) -> bool:
    if "_" in word:
        return True
    if any(map(str.isdigit, word)):
        return any(map(str.isalpha, word)) and _ORDINAL.fullmatch(word) is None
    inner = any(map(str.isupper, word[1:])) and any(map(str.islower, word))
    return inner and len(word) > 2 and "-" not in word and not word.startswith(("Mc", "Mac", "O'", "O’"))

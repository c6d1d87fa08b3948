"""What the grammar of references is made of: brackets, words that open one, words and signs inside a list of ids."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from communitree_shared.contract.citing import KINDS

#: Openers and closers, any kind of which ends any other: models mix them.
SQUARE, ROUND, OTHER = "[【〔［〖", "(（", "{｛"
OPENING, CLOSING = SQUARE + ROUND + OTHER, "]】〕］〗)）}｝"

#: Words that say "a reference follows", before a colon.
_HEADS = (
    r"data(?:\s+(?:sources?|refs?|references?))?|sources?|refs?|references?|citations?|cited?|evidence"
    r"|来源数据|数据来源|数据|資料|资料来源|资料|来源|來源|引用|引自|出处|出處|参考|參考|依据|证据"
)
HEAD = re.compile(rf"(?:{_HEADS})[*_\s]*[:：=](?!/)[*_]*", re.IGNORECASE)
#: `[Data Reports (1)]`: the one head that may stand without a colon.
DATA = re.compile(r"(?:data|数据)(?=[\s\-–(（])\s*[\-–]?", re.IGNORECASE)
UNVERIFIED = re.compile(r"(?:unverified|未核实|未核實)\s*[:：]", re.IGNORECASE)
#: A head outside brackets: the opening one was forgotten.
LOOSE = re.compile(r"(?<![^\W_])Data\s{0,3}[:：]|数据\s{0,3}[:：]")
#: What may yet become such a head.
LOOSE_BEGUN = re.compile(
    r"(?<![^\W_])(?:D(?:a(?:ta?)?)?|Data\s{0,3}|数据?\s{0,3}|(?:Data|数据)\s{0,3}[:：][^\]】\n]{0,200})\Z"
)

#: Words before the first name inside brackets.
LEAD = re.compile(
    r"(?:see(?:\s+also)?|cf\.?|e\.\s?g\.?,?|i\.\s?e\.?,?|from|per|as\s+per|according\s+to|based\s+on|in|by|via"
    r"|参见|参考|详见|另见|见|參見|見|根据|依据|引自|据)(?![^\W\d_])[\s:：]*"
    r"|(?:参见|参考|详见|另见|见|參見|見|根据|依据|引自|据)\s*",
    re.IGNORECASE,
)
#: Words and signs before a number that say it is one of a row: `id 12`, `#12`, `第12`.
SIGN = re.compile(
    r"(?:#|№|＃|@|\^|(?:ids?|nos?|nrs?|num(?:bers?)?)(?![^\W\d_])\s*[.:：=#]*|编号\s*[:：]?|编号|第)\s*", re.IGNORECASE
)
AFTER = re.compile(r"\s*(?:号|號|份|unverified|未核实)")
#: `+more`, `and 3 others`, 等: there are others, not named; a number before the word is no id.
MORE = re.compile(
    r"(?:and\s+|[+＋]\s*)?(?:\d{1,6}\s+)?(?:more|others)(?![^\W\d_])|(?:[+＋]\s*)?(?:更多|其他|其它)"
    r"|等等?(?:\s*\d{1,6})?\s*[份个篇项]?|etc\b\.?|…+|\.{3,}|[+＋]\s*(?:\d{1,6}(?=\s*[)）\]】]))?",
    re.IGNORECASE,
)
SEPARATOR = re.compile(r"[,，、;；&|]|(?:and|or|as\s+well\s+as)(?![^\W_])|以及|和|与|與|及|或|跟", re.IGNORECASE)
DASH = re.compile(r"\s*+(?:[-–—−‐‑~～〜]|\.\.(?!\.)|(?:to|through)(?![^\W\d_])|至|到)\s*", re.IGNORECASE)
#: Emphasis, quotation marks, escapes, tags: they mean nothing here.
DECORATION = re.compile(r"""[*_"'“”‘’`\\~†‡\u200b\u2060]+|</?[a-z]{1,6}(?:\s[^<>\n]{0,100})?>""", re.IGNORECASE)
BLANK = re.compile(r"(?:[^\S\n]|\n(?![^\S\n]*\n))+")
NUMBER = re.compile(r"\d+")
#: A number goes on behind its digits, so that it is no id: 3.5, 12:30, 1990s, 12%.
GOES_ON = re.compile(r"[.:：/]\d|[^\W\d_]|[%％‰°$€£+]")
WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
LINK = re.compile(
    r"[(（]\s*(?:[#/.]|https?:|mailto:|[\w\-./]+\.\w{2,5}[)）#])[^\s()（）]{0,500}[)）]|[(（]#[)）]", re.IGNORECASE
)
PARAGRAPH = re.compile(r"\n[^\S\n]*\n")

#: Four digits that may be a year: no ids in round brackets, where years stand.
YEAR = re.compile(r"1\d{3}|20\d{2}|2100")

_SIGNED = rf"(?:{SIGN.pattern})"
LIST = re.compile(
    rf"\s*(?:[:：=\-–_*]\s*)*(?:[{re.escape(OPENING)}][*_\s\"'“‘`]*)?{_SIGNED}?[A-Za-z]?[*_#]?\d"
    rf"|\s*[:：]?\s*[{re.escape(OPENING)}]\s*(?:[+＋]|更多|[^\W\d_]+(?:[-\s][^\W\d_]+){{0,2}}\s*[)）\]】]|[\-−]\d"
    rf"|(?:reports?|报告)\s*\d|[{re.escape(OPENING)}]?\d)",
    re.IGNORECASE,
)
ITEM = re.compile(rf"(\d++)(?>(?:{DASH.pattern})(?:{SIGN.pattern})?[A-Za-z]?(\d++))?")
CALL = re.compile(r"\w[(\[]")
DATE = re.compile(r"\d{1,4}(?:\s*[-–/.]\s*\d{1,4}){1,3}")
EMPTY = re.compile(r"[(（\[]\s*[)）\]]")
REMARK = re.compile(rf"[^{re.escape(OPENING + CLOSING)}\n]{{0,80}}[{re.escape(CLOSING)}]")
TITLE = re.compile(
    rf"\s*[\"“'‘「《]?[^\W\d_][^{re.escape(OPENING + CLOSING)}\d\n,，、;；]{{1,160}}"
    rf"(?=[{re.escape(CLOSING)},，、;；])"
)
ODD = re.compile(r"[^\s,，、;；()（）\[\]【】]+")


@lru_cache(maxsize=64)
def names(context: str | None) -> re.Pattern[str]:
    """Return the pattern of names of kinds, a caller's own name for the reports first."""
    own = r"\s+".join(map(re.escape, context.split())) if context else ""
    known = "|".join(filter(None, [own, *(pattern for _, pattern in KINDS.values()), "sub-?communit(?:y|ies)|子报告"]))
    return re.compile(rf"(?:{known})(?=编号|第|[和与及或到至]|[\W\d_]|\Z)", re.IGNORECASE)


@cache
def bare(initial: str) -> re.Pattern[str]:
    """Return the pattern of numbers alone: all that stands in the bracket. Nothing in it is tried twice."""
    letter = f"(?P<initial>{initial}[-#. ]?)?" if initial else "(?P<initial>(?!))?"
    again = f"(?:{initial}[-#. ]?)?" if initial else ""
    sign = rf"(?:{SIGN.pattern}|(?:refs?|cite|citation|report)[\-:\s]\s*)?"
    between = r"(?:\s*[,，、;；&]\s*(?:and\s)?|\s+(?:and|和|与)\s+|\s*[和与及]\s*|\s+)"
    number = r"\d++(?![\d.%％‰:：/]\d|[^\W\d_和与及至到等])"
    one = rf"{number}(?>{DASH.pattern}{again}{number})?+"
    more = rf"(?:\s*[,，、]?\s*(?:{MORE.pattern}))?"
    return re.compile(
        rf"{sign}{letter}{one}(?>{between}{sign}{again}{one})*+{more}[\s.,;*_^†]*(?:source\s*)?", re.IGNORECASE
    )

"""What models put around an answer in prose, and what they say instead of one."""

from __future__ import annotations

import re
from typing import Any

import orjson

_FENCED = re.compile(
    r"\A\s*(```+|~~~+)[ \t]*(markdown|md|text|txt|plaintext|json|)[ \t]*\r?\n(.*?)\r?\n?\1\s*\Z", re.DOTALL
)
_ANY_FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)
#: Keys of an object that holds the answer and nothing else.
_ANSWER = frozenset({
    "answer", "response", "reply", "text", "content", "result", "output", "final_answer", "summary", "description",
    "question", "rewritten_question", "答案", "回答", "回复", "结果", "内容", "摘要", "描述", "问题",
})  # fmt: skip
#: Characters of a text that may turn out to stand in a fence or an object.
MAY_BE_WRAPPED = "`~{"

#: A refusal is short; a longer text that begins so says something.
_LONGEST_REFUSAL, _LONGEST_CHINESE_REFUSAL = 400, 120
_SORRY = (
    r"(?:(?:i['’]?m|i am) (?:very |really |so |truly )?sorry|sorry|i apologi[sz]e|my apologies|unfortunately|"
    r"as an ai(?: language)?(?: model| assistant)?)"
)
_CANNOT = (
    r"i (?:can ?not|can['’]?t|won['’]?t|will not|could not|couldn['’]?t|must decline|am (?:not able|unable)|"
    r"['’]?m (?:not able|unable)|do not feel comfortable|don['’]?t feel comfortable|have to decline|am not allowed)"
    r"|i['’]m (?:not able|unable)"
)
_OBJECT = (
    r"help|assist|comply|fulfil+|answer|respond|provide|discuss|engage|continue|complete|process|generate|create|write|"
    r"support|do that|participate|with (?:that|this)"
)
_REFUSAL = re.compile(
    rf"\A(?:{_SORRY}[,.;:!]? ?(?:but |however,? ?)?)*(?:{_CANNOT})(?: to| from)?\b.{{0,40}}?\b(?:{_OBJECT})",
    re.IGNORECASE,
)
#: Nothing follows that would make an answer of it, and nothing says that the data are what is missing.
_ABOUT_DATA = re.compile(
    r"\b(?:data|reports?|documents?|sources?|evidence|passages?|tables?|points?|statements?|(?:provided|given|available|"
    r"following) (?:information|text|context)|insufficient|not enough|no information|does not (?:contain|mention)|"
    r"(?:in|from|on) the (?:context|text|information))\b",
    re.IGNORECASE,
)
_CHINESE_REFUSAL = re.compile(
    r"\A(?:非常|很|十分)?(?:抱歉|对不起|很遗憾|不好意思|作为(?:一个|一名)?(?:人工智能|AI|语言模型)[^，。]{0,12})?[，,。！!]?(?:但是?|不过)?"
    r"(?:我)?(?:无法|不能|没有办法|没法|不便|不会)(?:.{0,16}?)"
    r"(?:回答|提供|帮助|协助|满足|讨论|完成|处理|生成|继续|参与|回应|给到相关内容)"
)
_CHINESE_CANNED = re.compile(r"\A(?:你好，|您好，)?(?:这个问题我|我无法给到相关|让我们换个话题)")
_ABOUT_CHINESE_DATA = re.compile(
    r"(?:数据|报告|资料|文档|文本|文件|原文|表格|要点|(?:提供|给出|现有|上述|以上)的?(?:信息|内容))"
)
_QUOTES = "\"'“”‘’「『《«`>"
_CJK = re.compile(r"[\u4e00-\u9fff]")


def unwrapped(text: str) -> str:
    """Return an answer without a Markdown fence around the whole of it, nor `{"answer": "…"}`."""
    for _ in range(3):  # a fence, an object in it, a fence in that
        inner = _without_fence(text)
        inner = _out_of_object(inner)
        if inner == text:
            break
        text = inner
    return text


def _without_fence(text: str) -> str:
    match = _FENCED.match(text)
    return match[3].strip() if match and not _ANY_FENCE.search(match[3]) else text


def _out_of_object(text: str) -> str:
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return text
    try:
        found = orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return text
    inner = answer_in(found)
    return text if inner is None else inner.strip()


def answer_in(value: Any) -> str | None:
    """Return the text of an object that holds an answer and nothing else, None of any other value."""
    if isinstance(value, dict) and len(value) == 1:
        key, inner = next(iter(value.items()))
        if str(key).lower() in _ANSWER and isinstance(inner, str):
            return inner
    return None


def is_refusal(text: str) -> bool:
    """Whether a reply is nothing but a refusal in the model's own words: short, from its first word, no quotation.

    That the data do not answer a question is an answer, and no refusal.
    """
    stripped = " ".join(text.split())
    if not stripped or stripped[0] in _QUOTES or "[Data:" in text or "[数据" in text:
        return False
    if _CJK.search(stripped):
        if len(stripped) > _LONGEST_CHINESE_REFUSAL or _ABOUT_CHINESE_DATA.search(stripped):
            return False
        return bool(_CHINESE_REFUSAL.match(stripped) or _CHINESE_CANNED.match(stripped))
    if len(stripped) > _LONGEST_REFUSAL or _ABOUT_DATA.search(stripped):
        return False
    return bool(_REFUSAL.match(stripped))

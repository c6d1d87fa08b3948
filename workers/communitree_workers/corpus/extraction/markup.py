"""Blank out what is no prose: code, rulers, link targets, markup. Offsets stay, since blanks replace it one for one."""

from __future__ import annotations

import re

_LINK_TARGET = re.compile(r"(?<=\])\((?:[^()\s]|\([^()\s]*\))+(?:[ \t]+\"[^\"\n]*\")?\)")
_URL = re.compile(r"(?:https?|ftp)://[^\s<>\"'）。，]+|www\.[^\s<>\"'）。，]+")
_FENCE = re.compile(r"^([ \t]*)(```+|~~~(?!~))[^\n]*\n.*?(?:^[ \t]*\2[^\n]*$|\Z)", re.M | re.S)
_RULER = re.compile(r"^[ \t]*([-=*~^\"'#+_.])\1{2,}[ \t]*$|^[ \t]*[|+:=-][ \t|+:=-]{2,}$", re.M)
#: Elements of HTML: any other word in angle brackets (`<branch>`, `Vec<String>`, an address) is text.
_ELEMENTS = (
    "a|abbr|address|article|aside|audio|b|big|blockquote|body|br|button|canvas|caption|center|cite|code|col|colgroup|dd"
    "|del|details|dfn|div|dl|dt|em|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins"
    "|kbd|label|li|link|main|mark|meta|nav|ol|p|picture|pre|q|s|samp|script|section|small|span|strike|strong|style|sub"
    "|summary|sup|svg|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|video|wbr"
)
_TAG = re.compile(rf"</?(?i:{_ELEMENTS})(?:[ \t/][^<>\n]{{0,200}})?>" + r"|<!--.*?-->|&(?:[a-z]{2,8}|#\d{1,6});", re.S)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)[ ][^\n]*$", re.M)
_GRAMMAR = re.compile(r"^[ \t]*(?:[\w-]+[ \t]*)?(?:::=|\|[ \t])[^\n]*$", re.M)
_INDENTED = re.compile(r"(?:\A|(?<=\n\n))(?:(?: {3,}|\t)[^\n]*\n(?:[ \t]*\n)?)+")
_MARKS = re.compile(r"\*\*|(?<![\w*])\*(?=\w)|(?<=\w)\*(?![\w*])|\[\d{1,3}\]", re.M)
_EMPHASIS = re.compile(r"(?<![\w`])_([^\s_](?:[^_\n]{0,80}[^\s_])?)_(?![\w`(])")
_FENCE_LINE = re.compile(r"^[ \t]*(?:```+|~~~)([^\n]*)$", re.M)
_CODE_LINE = re.compile(
    r"[{};]\s*$|^\s*(?:def|class|for|while|if|elif|else|try|except|return|import|from|with|print|raise|async|await|@\w|#)\b"
    r"|\w\(.*\)\s*:?$|\s[=!<>+*/%&|-]=?\s|\w=\w|::=|^\s*[\w.]+\(|->|\[.*\]|^\s*\S{0,12}$"
)


def prose(text: str) -> str:
    """Return the text with code and markup blanked; same length, so that offsets into it fit the original.

    The marks of a heading stay: they tell `sentence_spans` that its line is a sentence.
    """
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(_blank, _without_end_of_fence(text))
    if "<" in text:
        text = _TAG.sub(_blank, text)
    if "://" in text or "www." in text:
        text = _LINK_TARGET.sub(_blank, text)
        text = _URL.sub(_blank, text)
    if ">>>" in text:
        text = _PROMPT.sub(_blank, text)
    if "::=" in text:
        text = _GRAMMAR.sub(_blank, text)
    if "\n " in text or "\n\t" in text:
        text = _INDENTED.sub(_blank_code, text)
    if "***" in text or "---" in text or "===" in text or "~~~" in text or '"""' in text or "^^^" in text:
        # A ruler ends a heading: a full stop's work is done by an empty line.
        text = _RULER.sub(_ruler, text)
    if "*" in text or "[" in text:
        text = _MARKS.sub(_blank, text)
    if "_" in text:
        text = _EMPHASIS.sub(r" \1 ", text)
    return text


def _without_end_of_fence(text: str) -> str:
    """Blank the end of a code block that began before the text, as where a document was cut into text units."""
    fences = list(_FENCE_LINE.finditer(text))
    if not fences or fences[0][1].strip():
        return text
    before = [line for line in text[: fences[0].start()].splitlines() if line.strip()]
    code = sum(1 for line in before if _CODE_LINE.search(line))
    goes_on = len(fences) > 1 and bool(fences[1][1].strip())  # the next one opens, so this one closes
    if goes_on or (len(fences) % 2 == 1 and len(before) > 1 and code * 2 > len(before)):
        end = fences[0].end()
        return _spaces(text[:end]) + text[end:]
    return text


def _blank(match: re.Match[str]) -> str:
    return _spaces(match.group())


def _spaces(text: str) -> str:
    if "\n" not in text:
        return " " * len(text)
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _ruler(match: re.Match[str]) -> str:
    return "\n" * len(match.group())


def _blank_code(match: re.Match[str]) -> str:
    """Blank an indented block when most of its lines look like code, not like an indented paragraph."""
    lines = [line for line in match.group().splitlines() if line.strip()]
    code = sum(1 for line in lines if _CODE_LINE.search(line))
    return _blank(match) if code * 2 > len(lines) else match.group()

"""Numbers and dates of a text in one form: 12,000 = 12 thousand = 1.2万, 5 May 1990 = 1990-05-05 = 1990年5月5日.

What is spelled with letters attached (B12, v2.3.1) is a name, no number.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

_MONTHS = {
    "january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5, "june": 6,
    "jun": 6, "july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sept": 9, "sep": 9, "october": 10, "oct": 10,
    "november": 11, "nov": 11, "december": 12, "dec": 12,
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_UNITS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "bn": 10**9,
           "mn": 10**6, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8, "十": 10}  # fmt: skip
_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CJK_NUMBER = "零〇一二两三四五六七八九十百千万亿"
_SMALL = "|".join([*_TENS, *_UNITS])

_ALL = re.compile(
    rf"(?P<iso>(?<![0-9A-Za-z_])(?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})(?![0-9A-Za-z_]))"
    rf"|(?P<zh>(?P<y2>\d{{4}}|[零〇一二三四五六七八九]{{4}})\s?年(?:\s?(?P<m2>\d{{1,2}}|[一二三四五六七八九十]{{1,2}})\s?月"
    rf"(?:\s?(?P<d2>\d{{1,2}}|[一二三四五六七八九十]{{1,3}})\s?[日号])?)?)"
    rf"|(?P<zmd>(?P<m3>\d{{1,2}}|[一二三四五六七八九十]{{1,2}})\s?月\s?(?P<d3>\d{{1,2}}|[一二三四五六七八九十]{{1,3}})\s?[日号])"
    rf"|(?P<md>\b(?P<m4>{_MONTH})\.?\s+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*[%:])(?:,?\s+(?P<y4>\d{{4}})\b)?)"
    rf"|(?P<dm>\b(?P<d5>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m5>{_MONTH})\b\.?(?:,?\s+(?P<y5>\d{{4}})\b)?)"
    rf"|(?P<my>\b(?P<m6>{_MONTH})\.?,?\s+(?P<y6>\d{{4}})\b)"
    rf"|(?P<share>百分之\s?(?P<s1>[{_CJK_NUMBER}]+|\d+(?:\.\d+)?))"
    rf"|(?P<plain>(?<![0-9A-Za-z_.])-?(?P<n1>\d{{1,3}}(?:[,，]\d{{3}})++(?:\.\d+)?|\d++(?:\.\d++)?)"
    rf"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|bn|mn)\b|\s?(?P<zscale>[百千]?[万亿]|千|百))?"
    rf"(?P<unit>\s?[%％]|\s?per\s?cent\b|\s?percent\b)?(?![A-Za-z_]|\.\d|-[A-Za-z]\w))"
    rf"|(?P<words>\b(?:{_SMALL}|hundred)(?:[\s-](?:and\s)?(?:{_SMALL}|hundred|thousand|million|billion))*\b"
    rf"(?P<wunit>\sper\s?cent\b|\spercent\b)?)"
    rf"|(?P<cjk>[{_CJK_NUMBER}]{{2,}}(?:点[{_CJK_NUMBER}]+)?|[二两三四五六七八九十百](?=[个名人座次家艘条项所位年月日天层章卷部册吨米里亩元倍]))",
    re.IGNORECASE,
)  # fmt: skip
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_ABOUT = re.compile(
    r"(?:about|around|nearly|almost|roughly|approximately|over|some|more than|约|大约|近|将近|超过|逾)\s*\Z",
    re.IGNORECASE,
)


class Quantity(NamedTuple):
    """A number or a part of a date. `key`: its one form; `rough`: the text says or shows that it is rounded."""

    start: int
    end: int
    key: str
    rough: bool = False


def quantities(text: str) -> list[Quantity]:
    """Return the numbers and dates of a text (half-width, simplified characters) in order."""
    out: list[Quantity] = []
    for match in _ALL.finditer(text):
        start, end = match.span()
        for name in ("iso", "zh", "zmd", "md", "dm", "my"):
            if match[name] is not None:
                out += [Quantity(start, end, key) for key in _date(match, name)]
                break
        else:
            found = _number(match)
            if found is not None:
                key, scaled = found
                rough = scaled or _ABOUT.search(text, max(0, start - 16), start) is not None
                out.append(Quantity(start, end, key, rough))
    return out


def _date(match: re.Match[str], name: str) -> list[str]:
    n = {"iso": 1, "zh": 2, "zmd": 3, "md": 4, "dm": 5, "my": 6}[name]
    groups = match.groupdict()
    year, month, day = (groups.get(f"{part}{n}") for part in "ymd")
    keys = []
    if year:
        keys.append("".join(str(_DIGITS.get(c, c)) for c in year))
    m = _MONTHS.get((month or "").lower()) or (_small(month) if month else None)
    d = _small(day) if day else None
    if m and d:
        keys.append("md{}-{}".format(*sorted((m, d))))
    elif m:
        keys.append(f"m{m}")
    return keys


def _small(text: str) -> int:
    return int(text) if text.isdigit() else int(_chinese(text) or 0)


def _number(match: re.Match[str]) -> tuple[str, bool] | None:
    if match["share"]:
        text = match["s1"]
        value = Decimal(text) if text[0].isdigit() else _chinese(text)
        return None if value is None else (f"{_form(value)}%", False)
    if match["plain"]:
        value = Decimal(match["n1"].replace(",", "").replace("，", ""))
        scale = match["scale"]
        factor = _SCALES[scale.lower()] if scale else 1
        for c in match["zscale"] or "":
            factor *= _SCALES[c]
        return _form(value * factor) + ("%" if match["unit"] else ""), factor > 1
    if match["words"]:
        value = _english(match["words"])
        return None if value is None else (_form(value) + ("%" if match["wunit"] else ""), False)
    value = _chinese(match["cjk"])
    return None if value is None else (_form(value), False)


def _form(value: Decimal) -> str:
    text = format(value.normalize(), "f") if value < 10**30 else str(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _english(text: str) -> Decimal | None:
    words = [w for w in re.split(r"[\s-]+", text.lower()) if w not in ("and", "per", "cent", "percent")]
    if words in (["one"], ["hundred"]):
        return None
    total = part = 0
    for word in words:
        if word in _UNITS or word in _TENS:
            part += _UNITS.get(word) or _TENS[word]
        elif word == "hundred":
            part = max(1, part) * 100
        else:
            total, part = total + max(1, part) * _SCALES[word], 0
    return Decimal(total + part)


def _chinese(text: str) -> Decimal | None:
    whole, _, fraction = text.partition("点")
    if not re.search("[十百千万亿]", whole):
        digits = "".join(str(_DIGITS[c]) for c in whole)
        return Decimal(digits + ("." + "".join(str(_DIGITS.get(c, 0)) for c in fraction) if fraction else ""))
    if whole[0] in "百千万亿":
        return None  # 万一, 千万: words
    total = section = digit = 0
    for c in whole:
        if c in _DIGITS:
            digit = _DIGITS[c]
        elif c in "十百千":
            section, digit = section + (digit or 1) * _SCALES[c], 0
        else:
            total, section, digit = (total + section + digit) * _SCALES[c], 0, 0
    value = Decimal(total + section + digit)
    return value + Decimal("0." + "".join(str(_DIGITS.get(c, 0)) for c in fraction)) if fraction else value


def agrees(key: str, other: Quantity) -> bool:
    """Say whether a number is the other one, or rounds to it where that is told as rounded."""
    if key == other.key:
        return True
    if not (other.rough or "." in other.key) or key[:1] == "m" or other.key[:1] == "m":
        return False
    if key.endswith("%") != other.key.endswith("%"):
        return False
    mine, told = Decimal(key.rstrip("%")), Decimal(other.key.rstrip("%"))
    if _YEAR.fullmatch(key) and _YEAR.fullmatch(other.key):
        return False
    digits = len(told.normalize().as_tuple().digits)
    if digits < 2 or not mine or len(mine.normalize().as_tuple().digits) <= digits:
        return False
    return round(mine, digits - 1 - mine.adjusted()) == told

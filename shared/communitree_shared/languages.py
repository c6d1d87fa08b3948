"""Languages: which one a text is in, and the one code for all names that people give to a language."""

from __future__ import annotations

import re
from functools import lru_cache

#: Han with its extensions, iteration marks, and kana: what is written without spaces.
CJK = "\u3005\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

CJK_RUN = re.compile(f"[{CJK}]+")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff]+")

#: A Chinese word has about this many characters: makes characters comparable with words of other scripts.
_CHARACTERS_A_WORD = 1.6
#: Enough to tell the language of a document.
_SAMPLE = 20_000

#: Names and tags of a language, in lower case, `_` as `-`; the first is its code.
_NAMES = """
zh, chinese, mandarin, simplified chinese, zh-cn, zh-sg, zh-hans, 中文, 汉语, 漢語, 华语, 普通话, 简体, 简体中文
zh-hant, traditional chinese, zh-tw, zh-hk, zh-mo, 繁体, 繁體, 繁体中文, 繁體中文, 正體中文
en, english, en-us, en-gb, 英文, 英语, 英語
fr, french, fr-fr, 法文, 法语, 法語
de, german, de-de, 德文, 德语, 德語
es, spanish, es-es, 西班牙文, 西班牙语, 西班牙語
ja, japanese, ja-jp, 日文, 日语, 日語, 日本語
"""
_CODES = {name: names[0] for names in (line.split(", ") for line in _NAMES.strip().splitlines()) for name in names}
#: How names of Chinese begin, also such as are not listed above.
_CHINESE = ("zh", "chinese", "中文", "汉语", "漢語", "华语", "華語", "简体", "簡體", "繁体", "繁體")


def language_code(name: str) -> str:
    """Return the code of a language named in whichever way (中文, Chinese, zh-CN: `zh`); an unknown name as it is."""
    return _CODES.get(name.strip().lower().replace("_", "-"), name.strip())


@lru_cache(maxsize=64)
def is_chinese(name: str) -> bool:
    """Say whether a language is Chinese of any kind: `zh`, `zh-hant`, Chinese (Hong Kong), 简体字."""
    return language_code(name).lower().startswith(_CHINESE)


def language(text: str) -> str:
    """Return `zh` when at least half of the words are Chinese, else `en`; text without any word is `en`.

    A long text is judged by three samples: start, middle and end.
    """
    if len(text) > 3 * _SAMPLE:
        middle = len(text) // 2
        text = text[:_SAMPLE] + "\n" + text[middle : middle + _SAMPLE] + "\n" + text[-_SAMPLE:]
    characters = sum(map(len, CJK_RUN.findall(text)))
    words = len(_LATIN_WORD.findall(text))
    return "zh" if characters and characters / _CHARACTERS_A_WORD >= words else "en"

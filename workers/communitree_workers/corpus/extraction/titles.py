"""When two titles name one thing: a conservative rule, and the ids made from it."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_SPACE = re.compile(r"\s+")
_QUOTES = "\"'`“”‘’„«»‹›「」『』《》〈〉"
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_BETWEEN_CJK = re.compile(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")


def unify(title: str) -> str:
    """Return the key under which titles are one: width (NFKC), case, white space, quotes, a final possessive.

    Nothing is guessed: initials, plurals and word order stay. An empty key is no title.
    """
    key = _SPACE.sub(" ", unicodedata.normalize("NFKC", title)).strip()
    while key and key[0] in _QUOTES:
        key = key[1:].lstrip()
    while key and key[-1] in _QUOTES and not key.endswith(("s'", "s’")):
        key = key[:-1].rstrip()
    key = _BETWEEN_CJK.sub("", _POSSESSIVE.sub("", key).strip(_QUOTES + " "))
    return key.casefold().replace("’", "'")


def entity_id(key: str) -> str:
    """Return the id of the entity with this unified title: 32 hexadecimal digits."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]

"""A reply that broke off and its continuation, made one text."""

from __future__ import annotations

import re

_DONE = re.compile(r"\W*done\W*", re.IGNORECASE)
#: A continuation repeats at most so much of the end of what came before; fewer characters may be an accident.
_LONGEST_REPEAT, _SHORTEST_REPEAT, _SHORTEST_CHINESE_REPEAT = 600, 12, 5
_FENCE = re.compile(r"\A\s*```\w*\n|\n?```\s*\Z")
_WORD = re.compile(r"[^\W_]")
_NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef\u3000-\u303f]")


def is_done(continuation: str) -> bool:
    """Whether a model says that nothing was missing."""
    return _DONE.fullmatch(continuation) is not None or not continuation.strip()


def seems_finished(text: str) -> bool:
    """Whether a text ends as sentences, citations and closed quotes do."""
    return text.rstrip().endswith(tuple('.!?。！？…)]}）】”」"*`'))


def rest_of(first: str, continuation: str, *, prose: bool = True) -> str:
    """Return what to put behind a text: the continuation without what it repeats of it.

    It was asked to begin with the last words once more, which joins the two also inside a word. One that repeats
    nothing gets a space where words meet. `prose` False: no space is put anywhere, and a fence around it is taken off.
    """
    rest = continuation if prose else _FENCE.sub("", continuation)
    tail, head = first.rstrip(), rest.lstrip()
    least = _SHORTEST_REPEAT if tail[-_SHORTEST_REPEAT:].isascii() else _SHORTEST_CHINESE_REPEAT
    for size in range(min(len(tail), len(head), _LONGEST_REPEAT), least - 1, -1):
        if tail.endswith(head[:size]):
            return head[size:] if first == tail else head[size:].lstrip()
    if not prose or not first or not rest or first[-1].isspace() or rest[0].isspace():
        return rest
    together = _NO_SPACES.search(first[-1] + rest[0]) or not _WORD.match(rest[0]) or first[-1] in "([{“‘\"'/-"
    return rest if together else f" {rest}"

"""What a reference may name, `[Data: Reports (1, 2); Entities (3)]`: the kinds of rows, and the caller's own name."""

from __future__ import annotations

import re
from functools import lru_cache

from communitree_shared.errors import UsageError

#: Kind of rows → how references name it, and a pattern of what is understood (in any case).
KINDS: dict[str, tuple[str, str]] = {
    "reports": ("Reports", r"(?:community\s+)?reports?|communit(?:y|ies)|社区报告|报告|社区"),
    "sources": ("Sources", r"sources?|text\s*units?|来源|文本单元|文本|原文|资料"),
    "entities": ("Entities", r"entit(?:y|ies)|实体"),
    "relationships": ("Relationships", r"relationships?|relations?|关系"),
    "claims": ("Claims", r"claims?|covariates?|声明|断言|主张"),
}

_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, (_, pattern) in KINDS.items()}

#: A name that a reference can hold: nothing in it ends the name, or is read as an id.
_NAME = re.compile(r"[^\W\d_](?:[^\[\]【】〔〕［］()（）;；,，、:：+＋#]{0,78}[^\W\d_])?")


@lru_cache(maxsize=256)
def kind_of(name: str) -> str:
    """Return the kind that a reference's name stands for; "" for a name of no kind."""
    bare = " ".join(name.split())
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.fullmatch(bare)), "")


def label_of(kind: str) -> str:
    """Return how references name rows of a kind; a name of no kind as it is."""
    return KINDS[kind][0] if kind in KINDS else kind


def check_context_name(name: str) -> None:
    """Refuse a name for the reports that could not be read in a reference again.

    Raises:
        UsageError: it is empty, names another kind of rows, or holds what ends a name.
    """
    hint = "Use a word or a few that name reports: Reports, Dossiers, 档案."
    if not name.strip():
        raise UsageError("context_name is empty: citations would name nothing.", hint=hint)
    if kind_of(name) not in ("", "reports"):
        label = label_of(kind_of(name))
        raise UsageError(f"context_name {name!r} cannot be told from references to {label}.", hint=hint)
    if not _NAME.fullmatch(name) or not name.isprintable() or name != " ".join(name.split()):
        raise UsageError(
            f"context_name {name!r} cannot be read in a reference: 80 characters at most, from a letter to a letter, "
            "single spaces between words, no brackets, commas, colons or semicolons.",
            hint=hint,
        )

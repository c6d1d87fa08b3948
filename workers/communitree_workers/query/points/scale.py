"""One scale for the scores of all batches.

Every map call also scores the same few rows of the overview. How much a call's anchor scores lie above or below the
others' says how generous it was; its points are shifted by that, shrunk by how well the anchors can tell (an
analysis of variance with random effects). Scores are never normalised within a batch: a batch may simply be better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def shifts(anchors: Sequence[Mapping[int, float] | None]) -> list[float]:
    """Return what to take off each batch's scores.

    `anchors[b]`: overview id → score as given in batch b; None or {} where there is none (no shift). At least two
    batches with at least two common anchors are needed; otherwise nothing is shifted.
    """
    out = [0.0] * len(anchors)
    rows = [b for b, row in enumerate(anchors) if row]
    common = _common([anchors[b] or {} for b in rows])
    if len(rows) < 2 or len(common) < 2:
        return out
    given = [[float((anchors[b] or {})[a]) for a in common] for b in rows]
    n, k = len(rows), len(common)
    means = [sum(row[j] for row in given) / n for j in range(k)]
    generous = [sum(row[j] - means[j] for j in range(k)) / k for row in given]
    residual = sum(
        (row[j] - means[j] - generous[i]) ** 2 for i, row in enumerate(given) for j in range(k)
    ) / ((n - 1) * (k - 1))  # fmt: skip
    noise = residual / k
    between = max(0.0, sum(g * g for g in generous) / (n - 1) - noise)
    share = between / (between + noise) if between + noise > 0 else 0.0
    for b, g in zip(rows, generous, strict=True):
        out[b] = share * g
    return out


def _common(rows: list[Mapping[int, float]]) -> list[int]:
    """Return the anchors that every batch scored; one that most skipped shall not cost all the others."""
    if not rows:
        return []
    seen: dict[int, int] = {}
    for row in rows:
        for id in row:
            seen[id] = seen.get(id, 0) + 1
    return sorted(id for id, times in seen.items() if times == len(rows))

"""Random bare trees for property tests of selections; `views.view_of` makes views of them."""

from __future__ import annotations

from hypothesis import strategies as st

from support.views import TreeShape


@st.composite
def shapes(draw: st.DrawFn, most: int = 14, roots: int = 3, tokens: int = 60) -> TreeShape:
    """Random trees of up to `most` nodes; a child may be cheaper than its parent, and a node may have one child."""
    level = [draw(st.integers(1, roots))]
    parent = [-1] * level[0]
    first = 0
    while True:
        width = len(parent) - first
        room = most - len(parent)
        if room <= 0 or width == 0:
            break
        fresh: list[int] = []
        for node in range(first, first + width):
            n = draw(st.integers(0, min(3, room - len(fresh)))) if room > len(fresh) else 0
            fresh += [node] * n
        first = len(parent)
        parent += fresh
    size = len(parent)
    cost = draw(st.lists(st.integers(1, tokens), min_size=size, max_size=size))
    mass = draw(st.lists(st.integers(0, 5_000_000), min_size=size, max_size=size))
    return TreeShape(tuple(parent), tuple(cost), tuple(mass))

"""The community tree by level, and its branches to a depth."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.table import Table
from rich.tree import Tree as RichTree

from communitree.render.numbers import plural, shorten
from communitree.render.text import Text
from communitree_shared.contract.results import Tree, TreeCommunity


def level_table(tree: Tree) -> Table:
    """Return one row a level; level 0 is the coarsest."""
    table = Table(
        title=Text(f"{tree.corpus}: {plural(len(tree.communities), 'community', 'communities')}"), title_justify="left"
    )
    for name in ("level", "communities", "leaves", "entities", "report tokens"):
        table.add_column(name, justify="right")
    for row in _levels(tree):
        table.add_row(*(f"{int(row[name]):,}" for name in ("level", "communities", "leaves", "entities", "tokens")))
    return table


def tree_view(tree: Tree, *, depth: int = 2, width: int = 8, below: int | None = None) -> RichTree:
    """Return the branches, heaviest first (weight = text units), to a depth and a number of children.

    Args:
        tree: the whole tree.
        depth: levels shown.
        width: children shown of each community; 0: all.
        below: only the branch of this community.
    """
    by_id = {c.id: c for c in tree.communities}
    roots = [by_id[below]] if below is not None else [c for c in tree.communities if c.parent not in by_id]
    top = RichTree(Text(f"version {tree.version}", "dim"), guide_style="bright_black")

    def add(node: RichTree, communities: list[TreeCommunity], levels: int) -> None:
        ordered = sorted(communities, key=lambda c: (-c.weight, c.id))
        shown = ordered if width == 0 else ordered[:width]
        for community in shown:
            children = [by_id[i] for i in community.children if i in by_id]
            branch = node.add(_line(community, hidden=len(children) if levels == 1 else 0))
            if levels > 1:
                add(branch, children, levels - 1)
        if len(ordered) > len(shown):
            rest = ordered[len(shown) :]
            # Communities share text units: a sum of theirs could be more than the corpus has.
            most = plural(rest[0].weight, "text unit")
            node.add(Text(f"and {len(rest):,} more, {most}" + (" each at most" if len(rest) > 1 else ""), "dim"))

    add(top, roots, depth)
    return top


def _line(community: TreeCommunity, hidden: int) -> Text:
    title = shorten(community.title or "(no title)", 70)
    line = Text.assemble((f"{community.id}", "bold cyan"), " ", title)
    detail = f"  {plural(community.size, 'entity', 'entities')}, {plural(community.weight, 'text unit')}"
    if hidden:
        detail += f", {plural(hidden, 'child', 'children')} below"
    return line + Text(detail, "dim")


def _levels(tree: Tree) -> list[dict[str, Any]]:
    if tree.levels and all({"level", "communities"} <= row.keys() for row in tree.levels):
        blank = {"leaves": 0, "entities": 0, "tokens": 0}
        return [{**blank, **row} for row in tree.levels]
    rows: dict[int, dict[str, Any]] = defaultdict(lambda: {"communities": 0, "leaves": 0, "entities": 0, "tokens": 0})
    for community in tree.communities:
        row = rows[community.level]
        row["communities"] += 1
        row["leaves"] += community.is_leaf
        row["entities"] += community.size
        row["tokens"] += community.n_tokens
    return [{"level": level, **rows[level]} for level in sorted(rows)]

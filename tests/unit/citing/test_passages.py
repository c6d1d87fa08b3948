"""Which text a citation belongs to."""

from __future__ import annotations

import pytest

from communitree_workers.citing.grammar import grammar_of
from communitree_workers.citing.passages import Cited, passages


def told(text: str) -> list[tuple[list[str], tuple[int, ...]]]:
    cited = [Cited(r.start, r.end, tuple(i for part in r.parts for i in part.ids)) for r in grammar_of().find(text)]
    return [(list(p.sentences), p.ids) for p in passages(text, cited)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ships sail. Mills grind [1]. Bees hum [2].", [(["Ships sail.", "Mills grind"], (1,)), (["Bees hum"], (2,))]),
        ("Ships sail [1][2].", [(["Ships sail"], (1, 2))]),
        ("Ships sail [1] in May.", [(["Ships sail in May."], (1,))]),
        ("[1] Ships sail.", [(["Ships sail."], (1,))]),
        ("Ships sail [1].\n\nMills grind.", [(["Ships sail"], (1,)), (["Mills grind."], ())]),
        ("Ships [1]:\n- to Lorne\n- to Ystad", [(["Ships"], (1,)), (["- to Lorne"], (1,)), (["- to Ystad"], (1,))]),
        ("- to Lorne\n- to Ystad [1]", [(["- to Lorne"], (1,)), (["- to Ystad"], (1,))]),
        ("| a | 1 |\n|---|---|\n| b | 2 |\n\n[Data: Reports (7)]", [(["| a | 1 |"], (7,)), (["| b | 2 |"], (7,))]),
        ("船开了[1]。磨坊关了[2]。", [(["船开了"], (1,)), (["磨坊关了"], (2,))]),
        ("Ships\nsail [Data: Reports (1,\n2)].", [(["Ships\nsail"], (1, 2))]),
        ("Ships sail [1]. Mills grind.", [(["Ships sail"], (1,)), (["Mills grind."], ())]),
        ("(97) Ships sail [1].", [(["Ships sail"], (1,))]),
        ("", []),
    ],
)
def test_a_citation_belongs_to_what_stands_before_it(
    text: str, expected: list[tuple[list[str], tuple[int, ...]]]
) -> None:
    assert told(text) == expected


def test_a_heading_and_what_stands_before_are_around() -> None:
    text = "## Alder Trust\n\nIt was founded in 1900 [1]. It closed [2]."
    cited = [Cited(r.start, r.end, (1,)) for r in grammar_of().find(text)]
    last = passages(text, cited)[-1]
    assert last.sentences == ("It closed",)
    assert last.around == "Alder Trust\nIt was founded in 1900"

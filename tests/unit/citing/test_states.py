"""What became of a point in an answer: measured on answers whose every statement is known, and by hand."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from communitree_workers.citing.grammar import grammar_of
from communitree_workers.citing.passages import Cited, Passage, passages
from communitree_workers.citing.states import Claim, Outcome, lost_in, point_states
from support.statements import SHAPES, world, write

SEEDS = range(8)


def parts_of(text: str) -> list[Passage]:
    found = grammar_of().find(text)
    return passages(text, [Cited(r.start, r.end, tuple(i for part in r.parts for i in part.ids)) for r in found])


def state(answer: str, *claims: tuple[str, int]) -> list[Outcome]:
    return point_states([Claim(text, (id,)) for text, id in claims], parts_of(answer))


def rates(shape: str, noise: float) -> Counter[str]:
    count: Counter[str] = Counter()
    for seed in SEEDS:
        made = world(shape, seed)
        answer = write(shape, made, seed, noise)
        claims = [Claim(fact.text, (fact.report,), (made.titles[fact.report],)) for fact in made.facts]
        for i, outcome in enumerate(point_states(claims, parts_of(answer.text))):
            truth = "stated" if i in answer.stated else "named" if i in answer.named else "not stated"
            count["all"] += 1
            count[f"{truth} → {outcome.state}"] += 1
            count["wrong yes"] += outcome.state == "stated" != truth
            count["wrong no"] += truth == "stated" and outcome.state in ("named", "not stated")
            count["unknown"] += outcome.state == "unknown"
    return count


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("noise", "most"), [(0.0, 0.01), (0.15, 0.03)])
def test_false_states_are_rare_on_every_shape(shape: str, noise: float, most: float) -> None:
    count = rates(shape, noise)
    assert count["all"] == 50 * len(SEEDS)
    assert count["wrong yes"] <= most * count["all"], count
    assert count["wrong no"] <= most * count["all"], count
    # Where the language is the same, or names and numbers stay, it must not hide behind "unknown".
    assert count["unknown"] <= (0.55 if shape == "translated Chinese" else 0.03) * count["all"], count
    assert count["named → stated"] == 0 or noise
    assert count["named → named"] >= 0.8 * sum(n for name, n in count.items() if name.startswith("named →"))


def test_two_facts_in_one_frame_are_told_apart() -> None:
    y, z = "Alder Trust financed the Maren bridge in 1990.", "Alder Trust financed the Lorne canal in 1991."
    swapped = "Alder Trust financed the Maren bridge in 1991."
    answer = "Alder Trust financed the Maren bridge in 1990 and the Lorne canal in 1991 [Data: Reports (4)]."
    assert [o.state for o in state(answer, (y, 4), (z, 4))] == ["stated", "stated"]
    assert state(answer, (y, 4), (z, 4), (swapped, 4))[2].state == "not stated"
    only = "Alder Trust financed the Maren bridge in 1990 [Data: Reports (4)]."
    assert [o.state for o in state(only, (y, 4), (z, 4))] == ["stated", "not stated"]


def test_what_a_pronoun_stands_for_is_known_from_before() -> None:
    answer = (
        "Alder Trust financed the Maren bridge in 1990 [Data: Reports (4)]. It also financed the canal at Lorne [4]."
    )
    claims = [("Alder Trust financed the Maren bridge in 1990.", 4), ("Alder Trust financed the canal at Lorne.", 4)]
    assert [o.state for o in state(answer, *claims)] == ["stated", "stated"]


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Kestrel Works raised wages by 12 percent.", "Kestrel Works raised its wages by 12%."),
        ("The dam cost 3,500,000 crowns.", "The dam cost 3.5 million crowns."),
        ("Ida Holm opened the dam on 3 May 1990.", "On May 3, 1990, Ida Holm opened the dam."),
        ("大坝耗资三千五百万元。", "大坝耗资3500万元。"),
        ("工厂的产量增长了百分之十二。", "工厂产量增长12%。"),
        ("The plan employs twenty-five clerks in Oslo.", "The plan employs 25 clerks in Oslo."),
        ("The city has 1,234,567 people.", "The city has about 1.2 million people."),
    ],
)
def test_numbers_and_dates_are_the_same_in_any_form(claim: str, sentence: str) -> None:
    assert state(f"{sentence} [Data: Reports (4)]", (claim, 4))[0].state == "stated"


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Kestrel Works raised wages by 12 percent.", "Kestrel Works raised its wages by 13%."),
        ("Exports to Lorne rose in 1990.", "Exports to Lorne fell in 1990."),
        ("Ida Holm opened the dam on 3 May 1990.", "On May 4, 1990, Ida Holm opened the dam."),
        ("John Smith led the revolt.", "Jane Smith led the revolt."),
        ("`load_table` raises KeyError.", "`open_store` raises KeyError."),
        ("工厂的产量增长了百分之十二。", "工厂产量下降12%。"),
        ("The city has 1994 people.", "The city has about 1990 people."),
    ],
)
def test_another_name_number_or_direction_is_another_fact(claim: str, sentence: str) -> None:
    assert state(f"{sentence} [Data: Reports (4)]", (claim, 4))[0].state == "not stated"


def test_a_denial_states_nothing_that_was_claimed() -> None:
    claim = "The council of Maren approved the harbour plan."
    assert state("The council of Maren never approved the harbour plan [4].", (claim, 4))[0].state == "unknown"
    assert state("X sued Delta Mills [4].", ("Delta Mills sued X.", 4))[0].state != "stated"
    order = "Pine Mutual sued Delta Mills."
    assert state("Delta Mills was sued by Pine Mutual [4].", (order, 4))[0].state == "stated"
    assert state("Delta Mills sued Pine Mutual [4].", (order, 4))[0].state == "unknown"


def test_reasons() -> None:
    claims = [Claim("Ships sail to Lorne.", (3,)), Claim("Bridges fell in 1907.", (4,)), Claim("Mills burn oil.", (5,))]
    found = point_states(claims, parts_of("Ships sail to Lorne [Data: Reports (9)]."), condensed=[1])
    assert found == [Outcome("not stated", "elsewhere", 0), Outcome("not stated", "condensed"),
                     Outcome("not stated", "unused")]  # fmt: skip
    assert lost_in(claims, parts_of("Bridges fell in 1907 [4].")) == [0, 2]


def test_a_title_in_a_list_is_named() -> None:
    claims = [
        Claim("Ships sail to Lorne and back in May.", (3,), ("Ships of Lorne",)),
        Claim("甲校有学生。", (4,), ("学校志",)),
    ]
    found = point_states(claims, parts_of("Also: Ships of Lorne, Mills [Data: Reports (3, 8)]\n\n另见：学校志 [4]"))
    assert [o.state for o in found] == ["named", "named"]


def test_a_usual_answer_takes_less_than_fifty_milliseconds() -> None:
    def seconds(seed: int) -> float:
        made = world("frame", seed, reports=10)
        more = world("numbers", seed, reports=10)
        claims = [Claim(fact.text, (fact.report,)) for fact in [*made.facts, *more.facts]]
        parts = parts_of(write("frame", made, seed).text)[:20]
        start = time.thread_time()
        point_states(claims, parts)
        return time.thread_time() - start

    assert min(seconds(seed) for seed in range(100, 106)) < 0.05

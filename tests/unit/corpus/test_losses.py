from __future__ import annotations

from communitree_shared.contract.messages import LeftOut
from communitree_workers.corpus import losses


def test_each_count_has_its_sentence() -> None:
    assert losses.of_merge({"lost": 1, "loops": 0, "failed_calls": 1200, "candidates": 5}) == [
        "1 row of the model's replies was damaged and is lost",
        "1,200 gleanings or requests for claims failed; what the text units gave before is kept",
    ]
    assert losses.of_merge({}) == []


def test_many_notes_about_files_are_counted() -> None:
    notes = [f"file {n}" for n in range(1030)]
    told = losses.of_files(notes)
    assert told[:2] == ["file 0", "file 1"]
    assert told[-1] == "and 1,010 more about files"
    assert losses.of_files(notes[:3]) == notes[:3]


def test_files_that_never_came_are_warnings_those_left_out_by_rule_notes() -> None:
    left_out = [
        LeftOut(reason="empty", count=30, names=[f"{n}.txt" for n in range(30)]),
        LeftOut(reason="hidden", count=1, names=[".git"], by_rule=True),
    ]
    (told,) = losses.of_left_out(left_out)
    assert told.startswith("not read, empty: 0.txt, 1.txt, ")
    assert told.endswith(", 19.txt and 10 more")
    assert losses.of_left_out(left_out, by_rule=True) == ["not read, hidden: .git"]

from __future__ import annotations

from communitree_shared.contract.messages import LeftOut
from communitree_workers.corpus import losses
from communitree_workers.corpus.reading.documents import Problem


def test_each_count_has_its_sentence() -> None:
    assert losses.of_merge({"lost": 1, "loops": 0, "failed_calls": 1200, "candidates": 5}) == [
        "1 row of the model's replies was damaged and is lost",
        "1,200 gleanings or requests for claims failed; what the text units gave before is kept",
    ]
    assert losses.of_merge({}) == []


def test_duplicates_do_not_crowd_out_what_is_broken() -> None:
    problems = [Problem("orders.jsonl", "duplicate", f"orders.jsonl#{n} is the same text") for n in range(40)]
    problems += [
        Problem("orders.jsonl", "bad_row", "no JSON", row=41),
        Problem("orders.jsonl", "empty", "column text holds no text", row=42),
        Problem("z-locked.pdf", "unreadable", "the file is protected by a password"),
        Problem("a.txt", "bad_bytes", "bytes were replaced", kept=True),
    ]
    groups = losses.grouped(problems)
    assert [(g.reason, g.count, g.kept, len(g.examples)) for g in groups] == [
        ("bad_row", 1, 0, 1), ("empty", 1, 0, 1), ("unreadable", 1, 0, 1), ("bad_bytes", 1, 1, 1),
        ("duplicate", 40, 0, 20)
    ]  # fmt: skip
    assert losses.of_files(groups) == [
        "orders.jsonl, row 41: no JSON",
        "orders.jsonl, row 42: column text holds no text",
        "z-locked.pdf: the file is protected by a password",
        "a.txt: bytes were replaced",
        "40 × duplicate: orders.jsonl: orders.jsonl#0 is the same text; orders.jsonl: orders.jsonl#1 is the same text; "
        "orders.jsonl: orders.jsonl#2 is the same text; and 37 more",
    ]


def test_files_that_never_came_are_warnings_those_left_out_by_rule_notes() -> None:
    left_out = [
        LeftOut(reason="empty", count=30, names=[f"{n}.txt" for n in range(30)]),
        LeftOut(reason="hidden", count=1, names=[".git"], by_rule=True),
    ]
    (told,) = losses.of_left_out(left_out)
    assert told.startswith("not read, empty: 0.txt, 1.txt, ")
    assert told.endswith(", 19.txt and 10 more")
    assert losses.of_left_out(left_out, by_rule=True) == ["not read, hidden: .git"]

from __future__ import annotations

import pytest

from communitree_workers.model.replies.joining import is_done, rest_of, seems_finished


@pytest.mark.parametrize(
    ("first", "more", "joined"),
    [
        ("The harbour was", "built in 1931.", "The harbour was built in 1931."),
        ("The harbour was ", "built in 1931.", "The harbour was built in 1931."),
        ("The harbour was", " built in 1931.", "The harbour was built in 1931."),
        ("The harbour was built", ", and is deep.", "The harbour was built, and is deep."),
        ("It was built.", "It is deep.", "It was built. It is deep."),
        ("It was built.\n", "It is deep.", "It was built.\nIt is deep."),
        ("港口建于", "1931年。", "港口建于1931年。"),
        ("港口建", "于1931年。", "港口建于1931年。"),
        ("See [Data: Reports (", "1)].", "See [Data: Reports (1)]."),
        ("The harbour was built in", "harbour was built in 1931.", "The harbour was built in 1931."),
        (
            "Mira Cole planned the breakwater ",
            "planned the breakwater in 1931.",
            "Mira Cole planned the breakwater in 1931.",
        ),
        ("", "All of it.", "All of it."),
        (
            "Mira Cole planned the breakw",
            "planned the breakwater in 1931.",
            "Mira Cole planned the breakwater in 1931.",
        ),
        ("The harbour of Alpha is de", "of Alpha is deep.", "The harbour of Alpha is deep."),
        ("港口建于一九三", "港口建于一九三一年。", "港口建于一九三一年。"),
    ],
)
def test_a_text_and_its_continuation(first: str, more: str, joined: str) -> None:
    assert first + rest_of(first, more) == joined


def test_json_and_its_continuation() -> None:
    first, whole = '{"points": [{"description": "The harb', '{"points": [{"description": "The harbour"}]}'
    assert first + rest_of(first, '```json\n"description": "The harbour"}]}\n```', prose=False) == whole
    assert first + rest_of(first, 'our"}]}', prose=False) == whole


@pytest.mark.parametrize(("text", "finished"), [("It is deep.", True), ("很深。", True), ("[Data: Reports (1)]", True),
                                                ("It is", False), ("它很", False), ("## Harbour", False)])  # fmt: skip
def test_whether_a_text_seems_finished(text: str, finished: bool) -> None:
    assert seems_finished(text) is finished


@pytest.mark.parametrize("text", ["DONE", "done.", " **DONE** ", "", "\n"])
def test_done(text: str) -> None:
    assert is_done(text)


@pytest.mark.parametrize("text", ["Done with the harbour, they left.", "It is done", "完成"])
def test_not_done(text: str) -> None:
    assert not is_done(text)

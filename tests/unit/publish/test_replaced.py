"""Documents that a new version lacks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from communitree_shared.contract.tables import DOCUMENTS
from communitree_workers.publish.replaced import gone, line
from communitree_workers.tables import io


def documents(*rows: tuple[str, str]):  # type: ignore[no-untyped-def]
    return io.from_rows(DOCUMENTS, [{"id": identity, "title": title} for identity, title in rows])


def test_a_document_is_gone_when_neither_its_text_nor_its_title_is_there() -> None:
    before = documents(("1", "医院-1.txt"), ("2", "医院-2.txt"), ("3", "医院-3.txt"), ("4", ""))
    after = documents(("1", "renamed.txt"), ("9", "医院-2.txt"))
    assert gone(before, after) == ["4", "医院-3.txt"]
    assert gone(before, io.empty(DOCUMENTS)) == ["4", "医院-1.txt", "医院-2.txt", "医院-3.txt"]


def test_a_title_stands_for_one_document() -> None:
    before = documents(("1", "Report"), ("2", "Report"), ("3", "Report"))
    assert gone(before, documents(("1", "Report"), ("9", "Report"))) == ["Report"]
    assert gone(before, documents(("1", "Report"))) == ["Report", "Report"]


sets = st.dictionaries(st.sampled_from("123456"), st.sampled_from(["a", "b", ""])).map(lambda d: list(d.items()))


@given(sets, sets)
def test_nothing_is_gone_from_a_set_that_grew_and_all_from_one_that_has_nothing_in_common(
    rows: list[tuple[str, str]], more: list[tuple[str, str]]
) -> None:
    before = documents(*rows)
    assert gone(before, documents(*rows, *(row for row in more if row[0] not in dict(rows)))) == []
    others = documents(*((f"x{identity}", f"x{title}") for identity, title in more))
    assert gone(before, others) == sorted(title or identity for identity, title in rows)


def test_all_are_counted_and_the_first_named() -> None:
    assert line(["a.txt"]) == "1 document of the version before is gone, as an index replaces the whole set: a.txt"
    many = line([f"{n:04}" for n in range(1_230)])
    assert many.startswith("1,230 documents of the version before are gone, as an index replaces the whole set: 0000, ")
    assert many.endswith("0019 and 1,210 more")

"""From a citing sentence to the place in a document."""

from __future__ import annotations

from communitree_workers.citing.quotation import Unit, quotations

HARBOUR = (
    "The town lies by the sea. In 1907 the Norden Bank lent 40,000 crowns for the harbour of Ystad.\n"
    "The library was opened in 1931. Ships came from Lorne."
)
MILLS = "The mills burned down. Norden Bank paid nothing for the mills."


def test_the_sentence_it_rests_on_stands_first_with_its_place() -> None:
    units = [Unit("t1", MILLS, "mills.txt", 100), Unit("t2", HARBOUR, "town.txt", 5000)]
    found = quotations("Norden Bank lent 40,000 crowns for the harbour in 1907.", "", units)
    best = found[0]
    assert best.text == "In 1907 the Norden Bank lent 40,000 crowns for the harbour of Ystad."
    assert (best.unit, best.document, best.offset) == ("t2", "town.txt", 5000 + best.begin)
    assert HARBOUR[best.begin : best.end] == best.text
    assert best.likeness > 0.8


def test_the_finding_decides_where_the_sentence_is_in_other_words() -> None:
    units = [Unit("t1", MILLS), Unit("t2", HARBOUR)]
    found = quotations("A reading room for all.", "The library was opened in 1931.", units)
    assert [one.text for one in found] == ["The library was opened in 1931."]
    assert found[0].offset is None


def test_chinese_sentences_are_found() -> None:
    text = "宝玉出生时衔着一块玉。黛玉六岁时母亲去世，她进了贾府。宝钗住在梨香院。"
    found = quotations("黛玉的母亲去世后，她来到贾府。", "", [Unit("t", text, "book", 7)])
    assert found[0].text == "黛玉六岁时母亲去世，她进了贾府。"
    assert found[0].offset == 7 + text.index("黛玉")


def test_what_says_nothing_of_it_is_not_quoted() -> None:
    assert quotations("Zebras graze in Kenya.", "", [Unit("t1", MILLS), Unit("t2", HARBOUR)]) == []
    assert quotations("Zebras graze in Kenya.", "", []) == []
    assert len(quotations("Ships.", "", [Unit(str(i), "Ships sail. Ships sink.") for i in range(9)], most=2)) == 2

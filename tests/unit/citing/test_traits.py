"""Numbers, names and words of a text, in the forms in which texts are compared."""

from __future__ import annotations

import pytest

from communitree_workers.citing.quantities import agrees, quantities
from communitree_workers.citing.traits import stem, traits


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("12,000 and 12 thousand, 1.2 million", ["12000", "12000", "1200000"]),
        ("5 May 1990; May 5, 1990; 1990-05-05; 5th of May", ["1990", "md5-5"] * 3 + ["md5-5"]),
        ("1990年5月5日，一九九〇年，5月5日", ["1990", "md5-5", "1990", "md5-5"]),
        ("百分之三十 30% 30 percent 三十", ["30%", "30%", "30%", "30"]),
        ("3万 3.5亿 三千万元 二十三人 2003年出资44万元", ["30000", "350000000", "30000000", "23", "2003", "440000"]),
        ("twenty-five mills, one hundred and twenty, two, a hundred", ["25", "120", "2"]),
        ("B12 v2.3.1 x2 万一 千万 一些", []),
        ("3.50 and 007", ["3.5", "7"]),
    ],
)
def test_numbers_have_one_form(text: str, keys: list[str]) -> None:
    assert [q.key for q in quantities(text)] == keys


def test_a_rounded_number_agrees_where_it_is_told_as_rounded() -> None:
    def one(text: str) -> bool:
        return agrees("1234567", quantities(text)[0])

    assert one("1.2 million")
    assert one("about 1,230,000")
    assert not one("1,230,000")
    assert not one("1.3 million")
    assert not agrees("1994", quantities("about 1990")[0]) or quantities("about 1990")[0].rough
    assert not agrees("12", quantities("12%")[0])


def test_names_are_sure_where_their_spelling_says_so() -> None:
    def names(text: str) -> list[tuple[tuple[str, ...], bool]]:
        return [(name.words, name.sure) for name in traits(text).names]

    assert names("In 1990 the Alder Trust financed Maren.") == [(("alder", "trust"), True), (("maren",), True)]
    assert names("Ships sail to Lorne.") == [(("ships",), False), (("lorne",), True)]
    assert names("`parse_config()` calls Client.ask and fooBar") == [
        (("parse_config",), True), (("client.ask",), True), (("foobar",), True),
    ]  # fmt: skip
    assert names("星河实业修建了它") == [(("星河", "实业"), True)]
    assert names("他读《红楼梦》") == [(("红楼梦",), True)]


def test_forms_of_a_word_have_one_stem() -> None:
    assert len({stem(word) for word in ("finance", "financed", "financing", "finances")}) == 1
    assert stem("ship") != stem("shop")

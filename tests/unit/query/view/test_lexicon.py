"""BM25 over the words of communities (Robertson and Zaragoza 2009)."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.query.view.lexicon import Lexicon

DOCUMENTS = [["cat", "dog"], ["dog", "dog"], ["bird"]]


def test_scores_by_hand() -> None:
    lexicon = Lexicon.build(DOCUMENTS)
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 5 / 3
    expected = [
        idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * length / mean)) for tf, length in ((1, 2), (2, 2), (0, 1))
    ]
    assert np.allclose(lexicon.scores(["dog"]), expected)
    assert (lexicon.frequency("dog"), lexicon.holders("dog").tolist()) == (2, [0, 1])


def test_a_common_term_never_counts_against_a_document() -> None:
    assert (Lexicon.build([["a"], ["a"], ["a", "b"]]).scores(["a"]) > 0).all()


def test_unknown_terms_and_empty_indexes() -> None:
    assert Lexicon.build(DOCUMENTS).scores(["fish"]).tolist() == [0, 0, 0]
    assert Lexicon.build([]).scores(["fish"]).tolist() == []
    assert Lexicon.build([[], []]).scores(["fish"]).tolist() == [0, 0]


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=8), st.permutations(list("abcdef")))
def test_the_order_of_query_terms_changes_no_bit(documents: list[list[str]], query: list[str]) -> None:
    lexicon = Lexicon.build(documents)
    assert lexicon.scores(query).tobytes() == lexicon.scores(sorted(query)).tobytes()


def test_a_rare_word_tells_more_than_a_common_one() -> None:
    lexicon = Lexicon.build([["a", "b"], ["a", "a", "c"], ["d"]])
    assert lexicon.frequency("a") == 2
    assert lexicon.frequency("zzz") == 0
    assert lexicon.holders("a").tolist() == [0, 1]
    scores = lexicon.scores(["a", "zzz"])
    assert scores[2] == 0
    assert (scores[:2] > 0).all()
    assert lexicon.scores(["d"])[2] > scores.max()

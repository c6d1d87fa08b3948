import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.text.bm25 import Bm25

DOCUMENTS = [["cat", "dog"], ["dog", "dog"], ["bird"]]


def test_scores_by_hand():
    index = Bm25(DOCUMENTS, k1=1.2, b=0.75)
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 5 / 3
    expected = [
        idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * length / mean)) for tf, length in ((1, 2), (2, 2), (0, 1))
    ]
    assert np.allclose(index.scores(["dog"]), expected)
    assert math.isclose(index.idf("dog"), idf)


def test_a_common_term_never_counts_against_a_document():
    index = Bm25([["a"], ["a"], ["a", "b"]])
    assert (index.scores(["a"]) > 0).all()


def test_unknown_terms_and_empty_indexes():
    assert Bm25(DOCUMENTS).scores(["fish"]).tolist() == [0, 0, 0]
    assert Bm25([]).scores(["fish"]).tolist() == []
    assert Bm25([[], []]).scores(["fish"]).tolist() == [0, 0]
    assert Bm25(DOCUMENTS).idf("fish") > Bm25(DOCUMENTS).idf("bird")


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=8), st.permutations(list("abcdef")))
def test_the_order_of_query_terms_changes_no_bit(documents, query):
    index = Bm25(documents)
    assert index.scores(query).tobytes() == index.scores(sorted(query)).tobytes()

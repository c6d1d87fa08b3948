import numpy as np

from communitree_workers.corpus.merging.pairs import weighed_pairs


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, dtype=np.int64)


def test_one_sentence_is_shared_out_over_its_pairs_and_the_next_one_counts_a_little() -> None:
    # Sentences 0 and 1 stand side by side in text unit 0, sentence 2 in another.
    sentence, entity = ints(0, 0, 1, 1, 2, 2, 2), ints(0, 1, 1, 2, 0, 1, 3)
    a, b, weight = weighed_pairs(sentence, entity, ints(0, 0, 1), 4)
    found = dict(zip(zip(a.tolist(), b.tolist(), strict=True), weight.tolist(), strict=True))
    assert found == {
        (0, 1): 1_000_000 + 500_000 + 150_000,  # sentence 0, a pair of three in sentence 2, sentences 0 and 1
        (0, 2): 150_000,
        (0, 3): 500_000,
        (1, 2): 1_000_000 + 150_000,
        (1, 3): 500_000,
    }


def test_entities_that_never_meet_have_no_pair() -> None:
    a, b, weight = weighed_pairs(ints(0, 2), ints(0, 1), ints(0, 0, 0), 2)
    assert (len(a), len(b), len(weight)) == (0, 0, 0)

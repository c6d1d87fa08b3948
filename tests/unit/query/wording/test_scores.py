"""Scores as models write them."""

from __future__ import annotations

from typing import Any

import pytest

from communitree_workers.query.planning.rating import parse_ratings
from communitree_workers.query.wording.scores import read_score


def test_read_score_says_what_it_mended() -> None:
    assert read_score(5) == (5.0, False)
    assert read_score("5") == (5.0, True)
    assert read_score(True) == (None, True)


@pytest.mark.parametrize("said", ["4/5", "4 out of 5", "5分之4", "４／５", "4/5 分"])
def test_a_fraction_means_the_same_on_every_scale(said: Any) -> None:
    assert read_score(said) == (80.0, True)
    assert read_score(said, 5) == (4.0, True)
    assert parse_ratings({"ratings": [{"id": 7, "rating": said}]}, [7]) == {7: 4.0}


@pytest.mark.parametrize("said", ["4/0", "so so", "3 or 4", None, [], {}, float("nan")])
def test_what_cannot_be_read_is_no_score(said: Any) -> None:
    assert read_score(said) == (None, True)


@pytest.mark.parametrize(
    ("said", "share"),
    [("high", 0.75), ("Very High", 0.9), ("很高", 0.9), ("中等", 0.5), ("无", 0.0)],
)
def test_scores_in_plain_words_are_read(said: str, share: float) -> None:
    assert read_score(said) == (share * 100, True)
    assert read_score(said, 5) == (share * 5, True)

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared import tokens
from communitree_shared.errors import UsageError

NAMES = sorted(tokens.BUNDLED)


@pytest.mark.parametrize(("name", "expected"), [("cl100k_base", 4), ("o200k_base", 4)])
def test_known_counts(name: str, expected: int) -> None:
    assert tokens.count("The cat sat down", name) == expected
    assert tokens.count("", name) == 0


@pytest.mark.parametrize("name", NAMES)
def test_text_that_looks_like_a_special_token_is_text(name: str) -> None:
    assert tokens.count("<|endoftext|>", name) > 1


@given(st.text(max_size=60), st.integers(0, 20), st.sampled_from(NAMES))
@settings(max_examples=60)
def test_truncating_keeps_a_prefix_within_the_limit(text: str, limit: int, name: str) -> None:
    cut = tokens.truncate(text, limit, name)
    assert text.startswith(cut)
    assert tokens.count(cut, name) <= limit
    if tokens.count(text, name) <= limit:
        assert cut == text


def test_truncating_never_cuts_inside_a_character() -> None:
    text = "龘靐齉🧑‍🚀" * 5
    for limit in range(40):
        cut = tokens.truncate(text, limit)
        assert text.startswith(cut)
        assert "\ufffd" not in cut


def test_an_encoding_that_is_not_bundled_never_waits_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    with pytest.raises(UsageError, match="p50k_base"):
        tokens.encoding.__wrapped__("p50k_base")

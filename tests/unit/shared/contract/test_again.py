"""What of an earlier answer can be read again, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from communitree_shared.contract.again import silent_of
from communitree_shared.errors import UsageError


def answer(silent: list[int], strategy: str = "auto", **more: Any) -> dict[str, Any]:
    account = {"selection": {"strategy": strategy}, "reports": {"silent": silent}}
    return {"corpus": "c", "version": "v", "account": account, **more}


def test_the_silent_reports() -> None:
    assert silent_of("j", answer([3, 9]), "c", "v") == [3, 9]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "There is no answer of job j"),
        ({"status": "published", "corpus": "c"}, "There is no answer of job j"),  # an index
        (answer([3], corpus="红楼梦"), "Job j asked the corpus '红楼梦', not 'c'."),
        (answer([3], version="older"), "it has been indexed since"),
        (answer([], strategy="texts"), "read text units, not reports"),
        (answer([]), "there is nothing to read again"),
    ],
)
def test_what_cannot_be_read_again_says_why(found: dict[str, Any] | None, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        silent_of("j", found, "c", "v")
    assert said in str(caught.value)

from __future__ import annotations

import re
from collections.abc import Iterator

from communitree_shared import errors
from communitree_shared.contract.results import EXIT_CODES
from communitree_shared.errors import CommunitreeError


def tree(kind: type[CommunitreeError] = CommunitreeError) -> Iterator[type[CommunitreeError]]:
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from tree(child)


def test_codes_are_one_for_each_kind_and_stable_words() -> None:
    codes = [kind.code for kind in tree()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)
    assert {kind.exit_code for kind in tree()} <= {2, 4, 5}
    assert {kind.__name__ for kind in tree() if kind.exit_code == 5} == {"OtherBucket", "DataLost"}


def test_the_drawing_at_the_top_shows_every_error() -> None:
    assert errors.__doc__
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__)
    assert sorted(drawn) == sorted(kind.__name__ for kind in tree())
    retryable = set(re.findall(r"── (\w+) .*\(retryable\)", errors.__doc__))
    assert retryable == {kind.__name__ for kind in tree() if kind.retryable}


def test_an_error_tells_what_to_do_as_json() -> None:
    assert errors.CorpusBusy("busy", hint="wait", retry_after=30).as_json() == {
        "code": "corpus_busy", "message": "busy", "hint": "wait", "retry_after": 30,
    }  # fmt: skip
    assert "retry_after" not in errors.BadInput("bad").as_json()


def test_exit_codes_are_those_of_the_contract() -> None:
    assert EXIT_CODES == {
        "answered": 0, "no_data": 0, "published": 0, "done": 0, "partial": 3, "failed": 4, "cancelled": 4,
    }  # fmt: skip
    assert errors.UsageError("x").exit_code == 2
    assert errors.StackNotRunning("x").exit_code == 4

from __future__ import annotations

from typing import Any, get_args

import pytest

from communitree_shared.contract.looks import ARGUMENTS, INLINE, arguments, schema
from communitree_shared.contract.messages import StreamRequest
from communitree_shared.errors import BadInput
from communitree_workers.look.tasks import OPS
from support.house import ROOT


def test_every_look_of_the_workers_can_be_asked_for_by_the_stream() -> None:
    named = set(get_args(StreamRequest.model_fields["op"].annotation)) - {""}
    assert named == set(ARGUMENTS) == set(OPS) == set(schema()["properties"])


def test_arguments_are_complete() -> None:
    assert arguments("report", {"community": 3}) == {"community": 3}
    assert arguments("export", {}) == {"own_columns": True}
    assert arguments("plan", {"question": "What?"}) == {"question": "What?", "options": {}, "which": "one"}


@pytest.mark.parametrize(
    ("op", "given", "words"),
    [
        ("", {}, "does not say at what"),
        ("shell", {}, "does not say at what"),
        ("tree", {"community": 1}, "'tree' are not valid: community: there is no such name"),
        ("report", {}, "community"),
        ("report", {"community": "x"}, "community"),
        ("report", {"comunity": 1}, "community"),
        ("source", {"text_unit": ""}, "text_unit"),
        ("plan", {"question": "", "options": {}}, "question"),
        ("plan", {"question": "x", "options": {"selection": {"stratgy": "leaves"}}}, "options.selection.stratgy"),
        ("plan", {"question": "x", "which": "some"}, "which"),
    ],
)
def test_what_is_wrong_is_named(op: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        arguments(op, given)


def test_the_scripts_know_the_same_limit() -> None:
    prelude = (ROOT / "shared/communitree_shared/ledger/scripts/prelude.lua").read_text(encoding="utf-8")
    assert f"local INLINE = {INLINE}\n" in prelude

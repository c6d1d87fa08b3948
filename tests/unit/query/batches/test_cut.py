"""Cutting as a plan does it: batches in the store, found again, each the one that its hash names."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pytest

from communitree_shared.contract.options import BatchOptions, QueryOptions
from communitree_shared.contract.tables import COMMUNITY_REPORTS
from communitree_shared.errors import InfrastructureError
from communitree_shared.objects.keys import Keys
from communitree_shared.tokens import count
from communitree_workers.query.batches import cutting
from communitree_workers.query.batches.batch import Batch, CutBatch
from communitree_workers.runtime.cache import Cache
from support.questions import question_of
from support.views import TreeShape, report_rows, view_of

N = 400
TEXTS = [
    f"# Report {i}\n\n{'It lies by the river. ' * 12}\n\n“第{i}份报告”。" if i % 3 else f"Row {i}" for i in range(N)
]
VIEW = view_of(TreeShape((-1,) * N, (1,) * N, (1,) * N))
VIEW.tokens[:] = [
    count(row.line.decode()) for row in report_rows(VIEW, range(N), [text.encode() for text in TEXTS], BatchOptions())
]
#: In an order of its own: rows are found by their number.
TABLE = pa.table({"community": list(range(N))[::-1], "full_content": TEXTS[::-1]})
OPTIONS = QueryOptions(batch=BatchOptions(max_context_tokens=850, reserve_tokens=200, overview_tokens=0))


class Objects(dict[str, bytes]):
    def put(self, key: str, data: bytes) -> None:
        self[key] = data

    def put_json(self, key: str, value: Any) -> None:
        self[key] = orjson.dumps(value)

    def find_json(self, key: str) -> Any:
        return orjson.loads(self[key]) if key in self else None


def cut(store: Any, options: QueryOptions = OPTIONS, ids: tuple[int, ...] = tuple(range(N))) -> list[CutBatch]:
    context: Any = SimpleNamespace(
        services=SimpleNamespace(store=store, value=Cache(2**20).get), keys=Keys("default"),
        message=SimpleNamespace(tenant="default"), read=lambda *_: {COMMUNITY_REPORTS: TABLE},
    )  # fmt: skip
    selected: Any = SimpleNamespace(kind="reports", ids=list(ids))
    return cutting.cut(context, question_of(VIEW, options=options, corpus="c", version="v"), selected)


@pytest.mark.parametrize("delimiter", ["|", "\t"])
def test_each_report_stands_in_a_stored_batch_under_its_hash(delimiter: str) -> None:
    options = OPTIONS.model_copy(update={"batch": OPTIONS.batch.model_copy(update={"column_delimiter": delimiter})})
    store = Objects()
    made = cut(store, options)
    assert len(made) > 2 * 64, "so many that groups have several batches"
    assert sorted(id for batch in made for id in batch.ids) == list(range(N))
    for known in made:
        data = store[Keys("default").batch("c", known.key)]
        assert hashlib.sha256(data).hexdigest() == known.key
        batch = Batch.from_bytes(data)
        assert (batch.reports, batch.tokens, batch.prompt_tokens) == (known.ids, known.tokens, known.prompt_tokens)
        assert sum(count(line.decode()) for line in batch.lines) == batch.tokens
        for id, line in zip(batch.ids, batch.lines, strict=True):
            assert f"Report {id}\n" in TEXTS[id] or line.endswith(f"Row {id}\n".encode())


def test_batches_are_found_again_and_do_not_depend_on_the_order_of_the_selection() -> None:
    store = Objects()
    made = cut(store)
    stored = dict(store)
    assert cut(store) == made
    assert cut(store, ids=tuple(range(N))[::-1]) == made
    assert {key for key in store if "/versions/" not in key} == {key for key in stored if "/versions/" not in key}


def test_what_cannot_be_stored_is_an_error_and_is_not_found_again() -> None:
    class Refusing(Objects):
        def put(self, key: str, data: bytes) -> None:
            raise InfrastructureError("full")

    store = Refusing()
    for ids in (range(N), range(1)):
        with pytest.raises(InfrastructureError):
            cut(store, ids=tuple(ids))
    assert not store


def test_a_report_that_the_table_lacks_is_an_error() -> None:
    with pytest.raises(KeyError):
        cut(Objects(), ids=(0, N))

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from communitree_shared.contract.tables import RELATIONSHIPS
from communitree_workers.tables import io


def test_a_table_written_through_a_file_is_the_table_with_plain_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "_SLICE", 3)
    titles, numbers = pa.array(["赵", "Ann", "Bob"]), pa.array(np.arange(7, dtype=np.int32) % 3)
    compact = pa.table(
        {
            "id": [f"r{n}" for n in range(7)],
            "source": pa.DictionaryArray.from_arrays(numbers, titles),
            "description": pa.array(["d"] * 7, pa.large_string()),
            "text_unit_ids": pa.ListArray.from_arrays(
                pa.array([0, 2, 2, 3, 4, 5, 6, 7], pa.int32()), pa.DictionaryArray.from_arrays(numbers, titles)
            ),
        }
    )
    with io.to_file(RELATIONSHIPS, compact) as (file, size):
        file.seek(0)
        data = file.read()
    read = io.from_bytes(data)
    assert len(data) == size
    assert read.equals(io.conform(RELATIONSHIPS, compact))
    assert read.schema == io.schema(RELATIONSHIPS)
    assert file.closed


def test_what_is_written_at_a_time_depends_on_the_ids_in_its_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "_VALUES", 10)
    monkeypatch.setattr(io, "_SLICE", 5)
    lists = [["u"] * n for n in (1, 1, 1, 9, 40, 0, 0, 0, 2)]
    table = pa.table({"id": [f"r{n}" for n in range(9)], "text_unit_ids": lists})
    with io.to_file(RELATIONSHIPS, table) as (written, _):
        file = pq.ParquetFile(written)
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        assert file.read().equals(io.conform(RELATIONSHIPS, table))
    assert sizes == [3, 1, 1, 4]

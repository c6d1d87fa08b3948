from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from communitree_shared.tables import RELATIONSHIPS
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
    with io.to_file(RELATIONSHIPS, compact) as path:
        read = io.from_bytes(Path(path).read_bytes())
    assert read.equals(io.conform(RELATIONSHIPS, compact))
    assert read.schema == io.schema(RELATIONSHIPS)
    assert not Path(path).exists()

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.tables.columns import blocks


@given(st.lists(st.integers(0, 9)), st.integers(1, 20))
def test_blocks_hold_all_rows_in_order_and_no_more_than_fits(counts: list[int], most: int) -> None:
    parts = [list(range(len(counts)))[part] for part in blocks(np.asarray(counts, dtype=np.int64), most)]
    assert [row for part in parts for row in part] == list(range(len(counts)))
    assert all(len(part) == 1 or sum(counts[row] for row in part) <= most for part in parts)

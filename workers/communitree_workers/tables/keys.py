"""What identifies a community through re-clustering: its members."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from communitree_workers.tables.columns import one_chunk


def community_keys(entity_ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return for each list of member ids the hash of the ids, sorted, one a line (32 hexadecimal digits)."""
    lists = one_chunk(entity_ids).to_pylist()
    keys = [hashlib.sha256("".join(f"{i}\n" for i in sorted(ids)).encode()).hexdigest()[:32] for ids in lists]
    return pa.array(keys, pa.string())

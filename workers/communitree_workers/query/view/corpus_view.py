"""What planning needs of a version, in flat arrays: built once at publishing, loaded in milliseconds.

Report texts are not in it; they stay in `community_reports` and are read when batches are cut.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from communitree_workers.query.view.blocks import Blocks
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.query.view.overview import Overview

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Raised when the stored form changes, so that a stored view of an older form is built again.
FORMAT = 5


@dataclass(frozen=True)
class CorpusView:
    """Arrays over communities in an order where parents stand before their children.

    `tokens`, `tokens_summary`: of the rendered rows; `mass`, `direct`: in 1/MASS_SCALE text units; `rank`: a missing
    one is the neutral 5; `shown`: whether `levels` shows it (no remainder, no stand-in for a report that an imported
    index lacked); `readable`: whether it has a report. `held`, `read`: text units (positions) that a community holds,
    and that stand in its report's own evidence (the most
    mentioned first), as CSR (`*_ptr`, `*_idx`). `unit_id`, `unit_key`: human_readable_id and id of text units.
    `by_tokens`, `by_reports`: the cut's
    precomputation; `bits`: each community's share of F.
    """

    community: IntArray
    level: IntArray
    parent: IntArray
    child_ptr: IntArray
    child_idx: IntArray
    tokens: IntArray
    tokens_summary: IntArray
    mass: IntArray
    direct: IntArray
    weight: IntArray
    rank: NDArray[np.float64]
    size: IntArray
    shown: BoolArray
    readable: BoolArray
    bits: IntArray
    held_ptr: IntArray
    held_idx: NDArray[np.int32]
    read_ptr: IntArray
    read_idx: NDArray[np.int32]
    unit_id: IntArray
    unit_key: list[str]
    unit_tokens: IntArray
    unit_document: IntArray
    by_tokens: Blocks
    by_reports: Blocks
    lexicon: Lexicon
    titles: list[str]
    kinds: list[str]
    generated_by: list[str]
    documents: list[str]
    overview: Overview
    entities: int
    language: str
    encoding: str

    @property
    def total_mass(self) -> int:
        """Return M: the mass of all roots."""
        return int(self.mass[self.parent < 0].sum())

    @property
    def heaviest(self) -> int:
        """Return the largest weight of a community."""
        return int(self.weight.max(initial=1))

    @property
    def is_leaf(self) -> BoolArray:
        """Return which communities have no children."""
        leaf: BoolArray = np.diff(self.child_ptr) == 0
        return leaf

    @property
    def node(self) -> dict[int, int]:
        """Return community → position."""
        return self._cached("_node", lambda: {c: i for i, c in enumerate(self.community.tolist())})

    @property
    def unit_node(self) -> dict[int, int]:
        """Return human_readable_id of a text unit → position."""
        return self._cached("_unit_node", lambda: {c: i for i, c in enumerate(self.unit_id.tolist())})

    def _cached(self, name: str, make: Any) -> dict[int, int]:
        value: dict[int, int] | None = self.__dict__.get(name)
        if value is None:
            value = make()
            object.__setattr__(self, name, value)
        return value

    def children(self, node: int) -> IntArray:
        """Return the positions of a community's children."""
        return self.child_idx[self.child_ptr[node] : self.child_ptr[node + 1]]

    def units_held(self, nodes: IntArray) -> BoolArray:
        """Return which text units these communities hold."""
        return _mark(len(self.unit_id), self.held_ptr, self.held_idx, nodes)

    def units_read(self, nodes: IntArray) -> BoolArray:
        """Return which text units stand in the own evidence of these communities' reports."""
        return _mark(len(self.unit_id), self.read_ptr, self.read_idx, nodes)

    def to_bytes(self) -> bytes:
        """Return the stored form: JSON, then the arrays as an uncompressed npz without pickle."""
        arrays: dict[str, Any] = {}
        plain: dict[str, Any] = {"format": FORMAT}
        for name, value in _parts(self):
            if isinstance(value, np.ndarray):
                arrays[name] = value
            else:
                plain[name] = value.to_json() if isinstance(value, Overview) else value
        head = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
        out = io.BytesIO()
        out.write(len(head).to_bytes(8, "big") + head)
        for name in sorted(arrays):
            key, body = name.encode(), io.BytesIO()
            np.save(body, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            data = body.getvalue()
            out.write(len(key).to_bytes(2, "big") + key + len(data).to_bytes(8, "big") + data)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> CorpusView:
        """Return the view of `to_bytes`.

        Raises:
            ValueError: the bytes are of another format; build the view again.
        """
        size = int.from_bytes(data[:8], "big")
        plain = orjson.loads(data[8 : 8 + size])
        if plain.pop("format", None) != FORMAT:
            raise ValueError("This stored view has another format; build it again.")
        values: dict[str, Any] = {**plain, "overview": Overview.from_json(plain["overview"])}
        at = 8 + size
        while at < len(data):
            length = int.from_bytes(data[at : at + 2], "big")
            name = data[at + 2 : at + 2 + length].decode()
            at += 2 + length
            size = int.from_bytes(data[at : at + 8], "big")
            values[name] = np.load(io.BytesIO(data[at + 8 : at + 8 + size]), allow_pickle=False)
            at += 8 + size
        for part, kind in _NESTED.items():
            prefix = part + "."
            inner = {name.removeprefix(prefix): values.pop(name) for name in list(values) if name.startswith(prefix)}
            values[part] = kind(**inner)
        return cls(**values)


_NESTED: dict[str, Any] = {"by_tokens": Blocks, "by_reports": Blocks, "lexicon": Lexicon}


def _parts(view: CorpusView) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for part in fields(view):
        value = getattr(view, part.name)
        if part.name in _NESTED:
            out += [(f"{part.name}.{inner.name}", getattr(value, inner.name)) for inner in fields(value)]
        else:
            out.append((part.name, value))
    return out


def _mark(n: int, ptr: IntArray, idx: NDArray[np.int32], nodes: IntArray) -> BoolArray:
    out = np.zeros(n, dtype=bool)
    out[idx[gather(ptr, nodes)]] = True
    return out


def gather(ptr: IntArray, nodes: IntArray) -> IntArray:
    """Return the positions in a CSR's values of all rows in `nodes`, row after row."""
    starts, lengths = ptr[nodes], ptr[nodes + 1] - ptr[nodes]
    total = int(lengths.sum())
    if not total:
        return np.zeros(0, dtype=np.int64)
    first = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return np.arange(total, dtype=np.int64) + first

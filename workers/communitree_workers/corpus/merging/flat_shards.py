"""All shards of a corpus as flat columns: what choosing entities and weighing pairs reads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from communitree_workers.corpus.extraction.candidates import KINDS
from communitree_workers.corpus.extraction.shards import Shard
from communitree_workers.corpus.merging.graph import Ints
from communitree_workers.corpus.merging.vocabulary import Forms


class FlatShards:
    """All shards as flat columns: sentences in the order of (text unit, start), mentions in the order of sentences."""

    forms: Forms
    key_of: Ints

    def __init__(self, shards: Iterable[Shard], text_units: pa.Table) -> None:
        forms, units, sentences, offset = [], [], [], 0
        for number, shard in enumerate(shards):
            n = shard.forms.num_rows
            forms.append(shard.forms)
            unit = pc.index_in(shard.units["id"], value_set=text_units["id"].combine_chunks())
            unit = pc.fill_null(unit, -1).to_numpy().astype(np.int64)
            units.append(unit[shard.sentences["unit"].to_numpy()] if shard.sentences.num_rows else unit[:0])
            sentences.append((shard.sentences, offset, number))
            offset += n
        self.all_forms = pa.concat_tables(forms) if forms else None
        self.form_kind = _numbers(self.all_forms["kind"]) if self.all_forms is not None else np.zeros(0, dtype=np.int64)
        self._read_forms(offset, text_units.num_rows)
        self._read_sentences(sentences, units, text_units)

    def drop_forms(self) -> None:
        """Let go of what only choosing entities and their titles needs."""
        none = pa.array([], pa.string())
        self.all_forms, self.forms = None, Forms(none, none, [], self.forms.counts[:0], self.forms.text_units)
        for name in ("key_of", "form_kind", "form_count", "mention_key", "mention_form"):
            setattr(self, name, np.zeros(0, dtype=np.int64))

    def _read_forms(self, n: int, text_units: int) -> None:
        if self.all_forms is None or not n:
            self.key_of = np.zeros(0, dtype=np.int64)
            none = pa.array([], pa.string())
            self.forms = Forms(none, none, [], np.zeros((0, KINDS), dtype=np.int64), text_units)
            return
        keys = pc.unique(self.all_forms["key"])
        keys = keys.take(pc.sort_indices(keys))
        self.key_of = pc.index_in(self.all_forms["key"], value_set=keys).to_numpy().astype(np.int64)
        self.forms = Forms(keys, keys, [], np.zeros((len(keys), KINDS), dtype=np.int64), text_units)

    def _read_sentences(
        self, sentences: list[tuple[pa.Table, int, int]], units: list[Ints], text_units: pa.Table
    ) -> None:
        none = np.zeros(0, dtype=np.int64)
        unit = np.concatenate([none, *units])
        start = np.concatenate([none, *(_numbers(s["start"]) for s, _, _ in sentences)])
        end = np.concatenate([none, *(_numbers(s["end"]) for s, _, _ in sentences)])
        lengths = np.concatenate([none, *(_numbers(pc.list_value_length(s["forms"])) for s, _, _ in sentences)])
        flat = np.concatenate([none, *(_numbers(pc.list_flatten(s["forms"])) + offset for s, offset, _ in sentences)])
        order = np.lexsort((start, unit))
        order = order[unit[order] >= 0]
        begins = np.cumsum(lengths) - lengths
        self.unit, self.start, self.end = unit[order], start[order], end[order]
        lengths = lengths[order]
        self.mention_sentence = np.repeat(np.arange(len(order), dtype=np.int64), lengths)
        self.mention_position = np.arange(lengths.sum(), dtype=np.int64) - np.repeat(
            np.cumsum(lengths) - lengths, lengths
        )
        form = flat[np.repeat(begins[order], lengths) + self.mention_position]
        self.mention_form = form
        self.mention_key = self.key_of[form]
        self.first = self._first_copies(text_units)
        self._count(form)

    def _first_copies(self, text_units: pa.Table) -> NDArray[np.bool_]:
        """Mark each sentence of a document once, by its place in the document where that is known."""
        if not len(self.unit):
            return np.zeros(0, dtype=bool)
        document = pc.dictionary_encode(text_units["document_id"].combine_chunks()).indices.to_numpy().astype(np.int64)
        at = text_units["start"].to_numpy()[self.unit]
        place = np.where(at >= 0, document[self.unit] << 40 | (at + self.end), -1 - np.arange(len(self.unit)))
        first = np.zeros(len(self.unit), dtype=bool)
        first[np.unique(place, return_index=True)[1]] = True
        return first

    def _count(self, form: Ints) -> None:
        """Count kinds by key, and settle each key's type and parts by the commonest form."""
        n = len(self.key_of)
        self.form_count = np.bincount(form[self.first[self.mention_sentence]], minlength=n)
        if not n or self.all_forms is None:
            return
        kind = self.form_kind
        size = len(self.forms.keys)
        counts = np.bincount(self.key_of * KINDS + kind, weights=self.form_count, minlength=size * KINDS)
        counts = counts.astype(np.int64).reshape(size, KINDS)
        names, chosen = commonest(*coded(self.all_forms["type"]), self.key_of, self.form_count, size)
        kinds = names.to_pylist()
        types = [kinds[code] for code in chosen.tolist()]
        names, chosen = commonest(*coded(self.all_forms["parts"]), self.key_of, self.form_count, size)
        self.forms = Forms(self.forms.keys, names.take(pa.array(chosen)), types, counts, self.forms.text_units)


def _numbers(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def coded(values: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """Return the distinct values, sorted, and the number of each row's among them."""
    names = pc.unique(values)
    names = names.take(pc.sort_indices(names))
    return names, pc.index_in(values, value_set=names).to_numpy().astype(np.int64)


def commonest(names: pa.Array, value: Ints, group: Ints, counts: Ints, size: int) -> tuple[pa.Array, Ints]:
    """Return the names, and for each group the number of that with the highest count, the first of equals."""
    pair, inverse = np.unique(group * len(names) + value, return_inverse=True)
    total = np.bincount(inverse, weights=counts)
    groups, value = pair // len(names), pair % len(names)
    order = np.lexsort((value, -total, groups))
    first = order[np.unique(groups[order], return_index=True)[1]]
    picked = np.zeros(size, dtype=np.int64)
    picked[groups[first]] = value[first]
    return names, picked

"""Tokens of many lines at once: each distinct word is encoded once, and a line has the tokens of its words.

A tokenizer begins a new word at each space that stands alone between two characters, whatever these are, so that
` word` has the same tokens wherever it stands. Prose repeats its words: of a table of English descriptions about a
fifth is left to encode. Where words hardly repeat (Chinese has no spaces) it takes as long as line by line.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tiktoken
from numpy.typing import NDArray

from communitree_shared import tokens
from communitree_workers.tables.columns import blocks

#: Lines, and their bytes, whose words are compared: the more, the fewer are left to encode. A run takes
#: about 35 MB where words repeat, and up to 200 MB where none does.
_RUN = 65_536
_BYTES = 8_000_000


def count_lines(lines: pa.Array, encoding: str) -> NDArray[np.int64]:
    """Return the tokens of each line, a final line feed included.

    It is quick for lines that begin with a digit and have single spaces for white space; others are counted alone.

    Args:
        lines: strings (large ones above 2 GB together), no nulls.
        encoding: name of a tiktoken encoding.
    """
    encoder = tokens.encoding(encoding)
    sizes = np.maximum(np.asarray(pc.binary_length(lines), dtype=np.int64), -(-_BYTES // _RUN))
    parts = [_run(lines[run], encoder, encoding) for run in blocks(sizes, _BYTES)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _run(lines: pa.Array, encoder: tiktoken.Encoding, encoding: str) -> NDArray[np.int64]:
    cut = pc.split_pattern(lines, " ")
    words = cut.flatten().dictionary_encode()
    costs = _costs(words.dictionary.to_pylist(), encoder, encoding)[np.asarray(words.indices)]
    first = np.asarray(cut.offsets)[:-1]
    # All words were counted with a space before them: before a digit it is a token of its own, here one too many.
    counts = np.add.reduceat(costs, first) - 1
    alone = np.asarray(pc.match_substring_regex(lines, "^[0-9]")) & (np.minimum.reduceat(costs, first) > 0)
    for at in np.flatnonzero(~alone).tolist():
        counts[at] = len(encoder.encode_ordinary(lines[at].as_py()))
    return counts


def _costs(words: list[str], encoder: tiktoken.Encoding, encoding: str) -> NDArray[np.int64]:
    """Return the tokens of each word with a space before it; 0 where they depend on what stands beside it."""
    costs = np.zeros(len(words), dtype=np.int64)
    sure = [at for at, word in enumerate(words) if (bare := word.removesuffix("\n")) and bare == bare.strip()]
    ids = encoder.encode_to_numpy("".join([f" {words[at]}" for at in sure]), disallowed_special=())
    begins = np.flatnonzero(_begins_word(encoding)[ids])
    if len(begins) == len(sure):
        costs[sure] = np.diff(begins, append=len(ids))
    return costs


@cache
def _begins_word(encoding: str) -> NDArray[np.bool_]:
    """Return for each token whether its bytes begin with a space; for none where a space may join digits after it."""
    encoder = tokens.encoding(encoding)
    found = np.zeros(encoder.n_vocab, dtype=bool)
    if len(encoder.encode_ordinary(" 1")) == 1:
        return found
    for token in range(encoder.n_vocab):
        try:
            found[token] = encoder.decode_single_token_bytes(token).startswith(b" ")
        except KeyError:  # numbers that no token has
            continue
    return found

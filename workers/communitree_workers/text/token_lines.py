"""Tokens of many lines at once: the text is encoded in runs, and a line ends where a token ends with its line feed.

About a quarter quicker than line by line, with no Python object a token. It holds where a tokenizer's words never
reach from one line into the next, as with lines that begin with a digit; lines of which that is not true are noticed
(their number does not come out) and counted one by one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import tiktoken
from numpy.typing import NDArray

from communitree_shared import tokens

#: Lines encoded at a time: large enough to pay, small enough for the buffers.
_RUN = 2048


def count_lines(lines: pa.Array, encoding: str) -> NDArray[np.int64]:
    """Return the tokens of each line.

    Args:
        lines: strings (large ones above 2 GB together), no nulls; each begins with a digit and ends with its only
            line feed.
        encoding: name of a tiktoken encoding.
    """
    encoder = tokens.encoding(encoding)
    ends = _ends_line(encoding)
    parts = [_run(lines.slice(start, _RUN), encoder, ends) for start in range(0, len(lines), _RUN)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _run(lines: pa.Array, encoder: tiktoken.Encoding, ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    texts: list[str] = lines.to_pylist()
    ids = encoder.encode_to_numpy("".join(texts), disallowed_special=())
    last = np.flatnonzero(ends[ids])
    if len(last) != len(texts):
        return np.array([len(encoder.encode_ordinary(text)) for text in texts], dtype=np.int64)
    return np.diff(last, prepend=-1).astype(np.int64)


@cache
def _ends_line(encoding: str) -> NDArray[np.bool_]:
    """Return for each token whether its bytes end with a line feed."""
    encoder = tokens.encoding(encoding)
    found = np.zeros(encoder.n_vocab, dtype=bool)
    for token in range(encoder.n_vocab):
        try:
            found[token] = encoder.decode_single_token_bytes(token).endswith(b"\n")
        except KeyError:  # numbers that no token has
            continue
    return found

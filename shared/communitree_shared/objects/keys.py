"""Object keys: the only place that knows where an object lives in the bucket (design: `ARCHITECTURE.md`).

Plain characters only (letters, digits, `.`, `_`, `-`, `/`): S3 servers disagree on everything else.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from communitree_shared.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z0-9-]")
_SAFE_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")

#: A path segment of an object key may have 255 bytes; a byte of a name may take three of them.
MAX_NAME_BYTES = 80


def corpus_name(name: str) -> str:
    """Return the NFC-normalised corpus name.

    Raises:
        UsageError: empty, too long, or with control characters.
    """
    normal = unicodedata.normalize("NFC", name).strip()
    if not normal:
        raise UsageError("The corpus name is empty.", hint="Give a name: --corpus NAME.")
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in normal):
        raise UsageError(f"The corpus name {normal!r} has control characters.", hint="Use printable characters.")
    if len(normal.encode()) > MAX_NAME_BYTES:
        raise UsageError(f"The corpus name is longer than {MAX_NAME_BYTES} bytes.", hint="Choose a shorter name.")
    return normal


@lru_cache(1024)
def encode_name(name: str) -> str:
    """Return a corpus name in plain characters, one to one: other bytes become `_` and two hex digits."""
    return "".join(c if _PLAIN.match(c) else "".join(f"_{b:02x}" for b in c.encode()) for c in corpus_name(name))


def decode_name(encoded: str) -> str:
    """Return the corpus name of an encoded one."""
    return re.sub(rb"_([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), encoded.encode()).decode()


def safe_id(value: str, what: str) -> str:
    """Return an id that may stand in a key.

    Raises:
        UsageError: it has characters that ids never have (so it can name nothing, and reach nothing).
    """
    if not _SAFE_ID.match(value) or ".." in value:
        raise UsageError(f"{value!r} is no {what} id.", hint=f"A {what} id has letters, digits, '-', '_' and '.'.")
    return value


def bucket_name(prefix: str) -> str:
    """Return the key of the object that tells this bucket (or the ground below a prefix of it) from all others."""
    prefix = prefix.strip("/")
    return f"{prefix}/bucket.name" if prefix else "bucket.name"


class MissingObject(KeyError):
    """There is no such object in the bucket; says what should be there."""

    def __init__(self, key: str, bucket: str) -> None:
        super().__init__(key)
        self.key, self.bucket = key, bucket

    def __str__(self) -> str:
        what = described(self.key)
        return f"there is no object {self.key} in the bucket {self.bucket}" + (f": {what} is missing" if what else "")


def described(key: str) -> str:
    """Return what an object holds and whose it is, by its key; "" where that is not known."""
    parts = key.split("/")
    for at, part in enumerate(parts[:-1]):
        rest = parts[at + 2 :]
        if part == "corpora" and rest:
            return f"{_of_corpus(rest)} of the corpus {decode_name(parts[at + 1])!r}"
        if part == "jobs" and rest:
            return f"{rest[-1].removesuffix('.json')} of the job {parts[at + 1]}"
    return "the name of the bucket" if parts[-1] == "bucket.name" else ""


def _of_corpus(rest: list[str]) -> str:
    match rest:
        case ["documents", sha256]:
            return f"the uploaded document {sha256[:12]}…"
        case ["units", stage, _]:
            return f"what a unit of the stage {stage} made"
        case ["batches", _]:
            return "a batch of reports"
        case ["current.json"]:
            return "which version is published"
        case ["versions", version, "manifest.json"]:
            return f"the manifest of the version {version}"
        case ["versions", version, "texts", _]:
            return f"a large text of the version {version}"
        case ["versions", version, "build", *name]:
            return f"{'/'.join(name)}, which the making of the version {version} needs,"
        case ["versions", version, *name]:
            return f"{'/'.join(name)} of the version {version}"
    return "/".join(rest)


@dataclass(frozen=True)
class Keys:
    """The keys of one tenant."""

    tenant: str
    prefix: str = ""

    @property
    def root(self) -> str:
        """Return the tenant's folder, with a trailing slash."""
        return f"{self.prefix.strip('/')}/{self.tenant}/" if self.prefix.strip("/") else f"{self.tenant}/"

    def corpora(self) -> str:
        """Return the folder of all corpora."""
        return f"{self.root}corpora/"

    def corpus(self, corpus: str) -> str:
        """Return a corpus's folder."""
        return f"{self.corpora()}{encode_name(corpus)}/"

    def document(self, corpus: str, sha256: str) -> str:
        """Return the key of a raw input, by content."""
        return f"{self.corpus(corpus)}documents/{safe_id(sha256, 'document')}"

    def document_lists(self, corpus: str) -> str:
        """Return the folder of a corpus's lists of documents."""
        return f"{self.corpus(corpus)}lists/"

    def document_list(self, corpus: str, sha256: str) -> str:
        """Return the key of a list of documents, by content: JSON Lines."""
        return f"{self.document_lists(corpus)}{safe_id(sha256, 'list')}"

    def units(self, corpus: str, stage: str) -> str:
        """Return the folder of what a stage's units made."""
        return f"{self.corpus(corpus)}units/{safe_id(stage, 'stage')}/"

    def unit(self, corpus: str, stage: str, unit: str) -> str:
        """Return the key of what one unit made: it exists when the unit is done."""
        return f"{self.units(corpus, stage)}{safe_id(unit, 'unit')}"

    def version(self, corpus: str, version: str) -> str:
        """Return a version's folder."""
        return f"{self.corpus(corpus)}versions/{safe_id(version, 'version')}/"

    def table(self, corpus: str, version: str, table: str) -> str:
        """Return the key of a table."""
        return f"{self.version(corpus, version)}{table}.parquet"

    def build(self, corpus: str, version: str, name: str = "") -> str:
        """Return the key of something that only the making of a version needs; removed when it is published."""
        return f"{self.version(corpus, version)}build/{name}"

    def artifact(self, corpus: str, version: str, name: str) -> str:
        """Return the key of something derived from a version's tables: the query view."""
        return f"{self.version(corpus, version)}{name}"

    def texts(self, corpus: str, version: str) -> str:
        """Return the folder of texts that are too large for a version's table of documents."""
        return f"{self.version(corpus, version)}texts/"

    def text(self, corpus: str, version: str, document: str) -> str:
        """Return the key of the whole text of a document, by its id of any characters: UTF-8."""
        return f"{self.texts(corpus, version)}{hashlib.sha256(document.encode()).hexdigest()}"

    def needs(self, corpus: str, version: str) -> str:
        """Return the key of what a version was made of: documents, and units by stage. What `gc` must keep."""
        return f"{self.version(corpus, version)}needs.json"

    def manifest(self, corpus: str, version: str) -> str:
        """Return the key of a version's manifest, written last."""
        return f"{self.version(corpus, version)}manifest.json"

    def current(self, corpus: str) -> str:
        """Return the key that names the published version."""
        return f"{self.corpus(corpus)}current.json"

    def batch(self, corpus: str, sha256: str) -> str:
        """Return the key of a batch, by content."""
        return f"{self.corpus(corpus)}batches/{safe_id(sha256, 'batch')}"

    def batch_index(self, corpus: str, version: str, selection: str) -> str:
        """Return the key of the list of batches that a selection of a version makes."""
        return f"{self.version(corpus, version)}batches/{safe_id(selection, 'selection')}.json"

    def jobs(self) -> str:
        """Return the folder of all jobs."""
        return f"{self.root}jobs/"

    def job(self, job: str, name: str) -> str:
        """Return the key of an object of a job: request.json, points.json, result.json …"""
        return f"{self.jobs()}{safe_id(job, 'job')}/{name}"

    def open_job(self, job: str) -> str:
        """Return the key of the marker of a job that has not ended: what a lost ledger is rebuilt from."""
        return f"{self.root}open/{safe_id(job, 'job')}"

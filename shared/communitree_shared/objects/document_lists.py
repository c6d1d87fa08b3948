"""Lists of documents that are too long for a request: an object of JSON Lines, one document a line, by content.

A line is `{"name": …, "sha256": …, "size": …}`, as in a request. Lists are read in blocks: a million lines have about
150 MB, and are never held as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from communitree_shared.contract.messages import DocumentList, ListObject, StreamDocument
from communitree_shared.contract.options import fault
from communitree_shared.errors import BadInput
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store

#: More documents than this do not stand in a request.
APART_ABOVE = 1_000

#: A list may have so many bytes, a line of it so many.
LARGEST, LONGEST_LINE = 2**30, 16_384

_BLOCK = 4 * 2**20

#: So many lines are looked at between two calls of `beat`.
_BEAT = 20_000

_REMEDY = 'Each line is {"name": …, "sha256": …, "size": …}: see docs/how-to/other-languages.md.'


def written(store: Store, keys: Keys, corpus: str, documents: Iterable[dict[str, Any]]) -> DocumentList:
    """Write documents (name, sha256, size) as a list; return what a request says of it."""
    lines = (json.dumps(d, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n" for d in documents)
    data = "".join(lines).encode()
    made = ListObject(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    store.put(keys.document_list(corpus, made.sha256), data)
    return checked(lambda offset, length: data[offset : offset + length], "the list", made)


def check(
    store: Store, keys: Keys, corpus: str, listed: ListObject, beat: Callable[[], object] = lambda: None
) -> DocumentList:
    """Read a list of any program's to its end; return what a request says of it. `beat` is called now and then.

    Raises:
        BadInput: it is not there, or something in it is wrong: the line and the remedy are named.
    """
    key = keys.document_list(corpus, listed.sha256)
    return checked(_reader(store, key), key, listed, beat)


def read(store: Store, keys: Keys, corpus: str, listed: ListObject) -> Iterator[dict[str, Any]]:
    """Yield the documents of a list. Raises as `check`; what it raises for its end comes after the last document."""
    key = keys.document_list(corpus, listed.sha256)
    return ({"name": d.name, "sha256": d.sha256, "size": d.size} for d in parsed(_reader(store, key), key, listed))


def checked(
    read_range: Callable[[int, int], bytes], where: str, listed: ListObject, beat: Callable[[], object] = lambda: None
) -> DocumentList:
    """Return what a request says of a list: how many documents it has, and how many bytes of different contents.

    Raises:
        BadInput: as `check`.
    """
    known: set[int] = set()  # 64 bits of each: a million hashes must not fill the memory
    count, total = 0, 0
    for count, document in enumerate(parsed(read_range, where, listed), 1):
        if (content := hash(document.sha256)) not in known:
            known.add(content)
            total += document.size
        if count % _BEAT == 0:
            beat()
    return DocumentList(sha256=listed.sha256, size=listed.size, count=count, bytes=total)


def parsed(read_range: Callable[[int, int], bytes], where: str, listed: ListObject) -> Iterator[StreamDocument]:
    """Yield the documents of a list. `read_range` takes offset and length, as `Store.get_range` does.

    Raises:
        BadInput: a line is wrong, there is none, or the whole is not what its hash and size say.
    """
    if listed.size > LARGEST:
        raise BadInput(
            f"The list of documents has {listed.size:,} bytes; {LARGEST:,} are allowed.",
            hint="Index parts of it as corpora of their own.",
        )
    number = 0
    for number, line in enumerate(_lines(read_range, where, listed), 1):
        yield _document(line, number, where)
    if not number:
        raise BadInput(f"The list of documents {where} is empty.", hint=_REMEDY)


def _document(line: bytes, number: int, where: str) -> StreamDocument:
    def wrong(what: str, hint: str = _REMEDY) -> BadInput:
        return BadInput(f"Line {number:,} of the list of documents {where}: {what}.", hint=hint)

    if len(line) > LONGEST_LINE:
        raise wrong(f"it has more than {LONGEST_LINE:,} bytes", "End each document's line with a line feed.")
    if not line.strip():
        raise wrong("it is blank", "Remove it.")
    if number == 1 and line.startswith(b"\xef\xbb\xbf"):
        raise wrong("it begins with a byte order mark", "Write UTF-8 without one.")
    try:
        return StreamDocument.model_validate_json(line)
    except ValidationError as error:
        path, what = fault(StreamDocument, error)
        raise wrong(f"{'.'.join(path)}: {what}" if path else what) from None


def _lines(read_range: Callable[[int, int], bytes], where: str, listed: ListObject) -> Iterator[bytes]:
    """Yield the lines; at their end, see that they are what the request says."""
    digest, offset, rest = hashlib.sha256(), 0, b""
    while offset < listed.size + 1:  # one byte more than there should be
        block = read_range(offset, min(_BLOCK, listed.size + 1 - offset))
        if not block:
            break
        digest.update(block)
        offset += len(block)
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > LONGEST_LINE:
            yield rest
            return  # who reads it has raised
    if rest:
        yield rest
    if offset != listed.size or digest.hexdigest() != listed.sha256:
        what = "is not the one" if offset == listed.size else f"does not have the {listed.size:,} bytes"
        raise BadInput(
            f"The list of documents {where} {what} that the request says.",
            hint="State its size and SHA-256, and put it to the key that ends in this hash before the request.",
        )


def _reader(store: Store, key: str) -> Callable[[int, int], bytes]:
    def read_range(offset: int, length: int) -> bytes:
        try:
            return store.get_range(key, offset, length)
        except KeyError:
            raise BadInput(f"There is no list of documents {key}.", hint="Put it there before the request.") from None
        except BadInput:  # a range that begins behind the end of what is there
            return b""

    return read_range

"""Files that need a parser, read in a process of their own: what a hostile one does ends that process, not the worker.

One process reads file after file; it is started for the first one, and anew after a file that broke a
limit or ended it. Plain text is decoded here: no parser sees it, and a large text stays on disk.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.reading import formats, wire
from communitree_workers.corpus.reading.documents import Document, Problem, Source

_PIECE = 1 << 20
#: What the process sees of the environment: no keys to stores and models.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")

#: Arrow's other pools reserve room ahead, which the limit of memory would count.
_ARROW = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


class _Broken(Exception):
    """A file broke a limit, or its process; the message says which."""


class IsolatedReader:
    """A `formats.Reader` whose parsers run in another process. To be used as a context; not by several threads."""

    def __init__(self) -> None:
        self._content = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the reader
        self._child: subprocess.Popen[bytes] | None = None
        #: Bytes of its output that are not yet used.
        self._come = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._content.close()

    def __call__(self, source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
        """Yield the documents of one source and what is wrong with it.

        What was read before a limit was broken has been given, and the problem says so.
        """
        if not formats.needs_parser(source.name) or source.size == 0:
            yield from formats.read_one(source, options)
            return
        try:
            size = self._take(source)
        except Exception as error:  # a file that is not there: told as every reader tells it
            yield from formats.read_one(Source(source.name, partial(_again, error), source.size), options)
            return
        given, whole = 0, False
        try:
            for item in self._read(source.name, size, options):
                given += isinstance(item, Document)
                yield item
            whole = True
        except _Broken as broken:
            before = f"; the {given:,} documents before that are kept" if given else ""
            yield Problem(source.name, "limit", f"{broken}{before}")
        finally:
            if not whole:  # or the consumer has enough: what is still to come belongs to no one
                self._end()

    def _take(self, source: Source) -> int:
        """Put the bytes of a source where the process reads them; return their number."""
        self._content.seek(0)
        self._content.truncate()
        with source.open() as stream:
            while piece := stream.read(_PIECE):
                view = memoryview(piece)
                while view:
                    view = view[self._content.write(view) :]
        return self._content.tell()

    def _read(self, name: str, size: int, options: ReadOptions) -> Iterator[Document | Problem]:
        child = self._started()
        assert child.stdin is not None
        request = {"name": name, "size": size, "options": options.model_dump(mode="json")}
        try:
            child.stdin.write(wire.frame(request))
            child.stdin.flush()
        except BrokenPipeError:
            raise _Broken(self._ended(child)) from None
        budget = _Budget(size)
        while (value := self._frame(child, budget)) != wire.END:
            yield wire.unpacked(value)

    def _frame(self, child: subprocess.Popen[bytes], budget: _Budget) -> Any:
        (length,) = wire.HEAD.unpack(self._bytes(child, wire.HEAD.size, budget))
        budget.spend(length)
        return wire.parsed(self._bytes(child, length, budget))

    def _bytes(self, child: subprocess.Popen[bytes], length: int, budget: _Budget) -> bytearray:
        assert child.stdout is not None
        pipe, data = child.stdout.fileno(), self._come
        if len(data) < length:
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
        while len(data) < length:
            began = time.monotonic()
            ready = poll.poll(max(0.0, budget.seconds) * 1000)
            budget.wait(time.monotonic() - began)
            piece = os.read(pipe, _PIECE) if ready else b""
            if not piece:
                raise _Broken(self._ended(child) if ready else budget.overdue())
            data += piece
        taken = data[:length]
        del data[:length]
        return taken

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            content = self._content.fileno()
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "communitree_workers.corpus.reading.child", str(content)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                pass_fds=[content],
                env={n: os.environ[n] for n in _ENVIRONMENT if n in os.environ}
                | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
            )
        return self._child

    def _ended(self, child: subprocess.Popen[bytes]) -> str:
        try:
            code = child.wait(5)
        except subprocess.TimeoutExpired:
            return "the process that read it closed its output"
        if code == -signal.SIGXCPU:
            return "reading it takes more processor time than a file of its size is given"
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        return f"the process that read it ended {how}: the file is damaged, or takes more memory than its size allows"

    def _end(self) -> None:
        child, self._child = self._child, None
        self._come.clear()
        if child is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        child.wait()


class _Budget:
    """What is left to a file of time that is waited for it, and of bytes that come of it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.seconds = wire.seconds_for(size)
        self._bytes = wire.output_for(size)

    def wait(self, seconds: float) -> None:
        self.seconds -= seconds

    def spend(self, length: int) -> None:
        self._bytes -= length
        if self._bytes < 0:
            limit = wire.output_for(self._size) >> 20
            raise _Broken(f"it unpacks to more than {limit:,} MB, too much for its {self._size:,} bytes")

    def overdue(self) -> str:
        return f"reading it takes more than {wire.seconds_for(self._size):.0f} s, too long for its {self._size:,} bytes"


def _again(error: Exception) -> Any:
    raise error

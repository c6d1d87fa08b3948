"""The process that reads files which need a parser, one after the other: `python -P -m …reading.child FD`.

Standard input brings a frame for each file, FD holds its bytes, standard output takes what was read. It ends with its
input. Memory and processor time are limited here, time and output by the parent (`isolated`).
"""

from __future__ import annotations

import io
import logging
import os
import resource
import signal
import sys
from typing import BinaryIO

import orjson

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.disk.scratch import Ranged
from communitree_workers.corpus.reading import formats, wire
from communitree_workers.corpus.reading.documents import Source


def main(content: int, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more."""
    while len(head := requests.read(wire.HEAD.size)) == wire.HEAD.size:
        request = orjson.loads(requests.read(wire.HEAD.unpack(head)[0]))
        _limit(request["size"])
        _answer(request, content, replies)
        replies.write(wire.frame(wire.END))
        replies.flush()


def _answer(request: dict[str, object], content: int, replies: BinaryIO) -> None:
    name, size = str(request["name"]), int(str(request["size"]))

    def opened() -> BinaryIO:
        return io.BufferedReader(Ranged(lambda offset, length: os.pread(content, length, offset), size))

    for item in formats.read_one(Source(name, opened, size), ReadOptions.model_validate(request["options"])):
        replies.write(wire.frame(wire.packed(item)))


def _limit(size: int) -> None:
    """Allow what a file of this size may take; where the system counts no private memory, only its time is limited."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + wire.seconds_for(size)) + 5
    for kind, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, wire.memory_for(size))):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    logging.disable()  # parsers log what stands in the file
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)

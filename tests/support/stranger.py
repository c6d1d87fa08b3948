"""What another local user tries on the ports and sockets of a stack, with nothing but the standard library.

All is imported at once and no file is opened: `as_user` runs it in a process that may not read this folder.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import ssl
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil

#: What SeaweedFS's master, volume server, filer, S3 server and admin server are known to serve, and what any may.
REQUESTS = (
    ("GET", "/"),
    ("GET", "/dir/assign"),
    ("GET", "/dir/assign?collection=communitree&count=1"),
    ("POST", "/dir/assign"),
    ("GET", "/dir/lookup?volumeId=1"),
    ("GET", "/dir/lookup?fileId=1,01"),
    ("GET", "/dir/status"),
    ("GET", "/vol/status"),
    ("GET", "/vol/grow?count=1&collection=stranger"),
    ("GET", "/vol/vacuum?garbageThreshold=0.0"),
    ("GET", "/col/delete?collection=communitree"),
    ("POST", "/col/delete?collection=communitree"),
    ("PUT", "/col/delete?collection=communitree"),
    ("POST", "/submit"),
    ("GET", "/cluster/status"),
    ("GET", "/cluster/healthz"),
    ("GET", "/stats/health"),
    ("GET", "/stats/counter"),
    ("GET", "/stats/memory"),
    ("GET", "/stats/disk"),
    ("GET", "/status"),
    ("GET", "/metrics"),
    ("GET", "/debug/vars"),
    ("GET", "/debug/pprof/heap"),
    ("GET", "/ui/index.html"),
    ("GET", "/raft/stats"),
    ("GET", "/1,01"),
    ("GET", "/buckets/"),
    ("GET", "/buckets/communitree/"),
    ("GET", "/buckets/communitree/?limit=100"),
    ("GET", "/buckets/communitree/secret.txt"),
    ("PUT", "/buckets/communitree/stranger.txt"),
    ("POST", "/buckets/communitree/stranger.txt"),
    ("DELETE", "/buckets/communitree/secret.txt"),
    ("DELETE", "/buckets/communitree?recursive=true&ignoreRecursiveError=true"),
    ("GET", "/etc/iam/identity.json"),
    ("GET", "/.tus/"),
    ("GET", "/communitree"),
    ("GET", "/communitree?list-type=2"),
    ("GET", "/communitree/secret.txt"),
    ("PUT", "/communitree/stranger.txt"),
    ("PUT", "/stranger"),
    ("POST", "/communitree?delete"),
    ("DELETE", "/communitree/secret.txt"),
    ("DELETE", "/communitree"),
    ("POST", "/?Action=CreateAccessKey&UserName=admin&Version=2010-05-08"),
    ("GET", "/api/cluster/topology"),
    ("GET", "/api/s3/buckets"),
    ("GET", "/api/users"),
    ("GET", "/login"),
    ("GET", "/maintenance"),
    ("GET", "/topics"),
)

#: Calls by gRPC, all with an empty message: names, places for writing, and what each server says of itself.
CALLS = (
    "/master_pb.Seaweed/Assign",
    "/master_pb.Seaweed/CollectionList",
    "/master_pb.Seaweed/CollectionDelete",
    "/master_pb.Seaweed/VolumeList",
    "/master_pb.Seaweed/LookupVolume",
    "/master_pb.Seaweed/GetMasterConfiguration",
    "/filer_pb.SeaweedFiler/ListEntries",
    "/filer_pb.SeaweedFiler/LookupDirectoryEntry",
    "/filer_pb.SeaweedFiler/DeleteEntry",
    "/filer_pb.SeaweedFiler/CollectionList",
    "/filer_pb.SeaweedFiler/GetFilerConfiguration",
    "/volume_server_pb.VolumeServer/VolumeServerStatus",
    "/volume_server_pb.VolumeServer/DeleteCollection",
    "/s3_pb.SeaweedS3IamCache/PutIdentity",
    "/iam_pb.SeaweedIdentityAccessManagement/ListUsers",
    "/worker_pb.WorkerService/WorkerStream",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)

REDIS = (
    "PING", "GET communitree:bucket", "SET stranger 1", "DEL communitree:bucket", "KEYS *", "SCAN 0", "DBSIZE", "INFO",
    "FLUSHALL", "CONFIG GET requirepass", "ACL LIST", "DEBUG SLEEP 0", "SAVE", "SHUTDOWN NOSAVE", "CLIENT LIST",
    "EVAL return(1) 0", "REPLICAOF NO ONE", "MONITOR", "SUBSCRIBE communitree:*", "HELLO 3", "AUTH default", "AUTH x",
)  # fmt: skip

_TLS_ONLY = b"Client sent an HTTP request to an HTTPS server"
_PATIENCE = 5.0

Address = tuple[str, int] | str


def listeners(processes: Iterable[psutil.Process]) -> tuple[dict[int, str], set[str]]:
    """Return the TCP ports that processes listen on, by address, and the paths of their Unix sockets."""
    ports: dict[int, str] = {}
    paths: set[str] = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            for found in process.net_connections("inet"):
                if found.status == psutil.CONN_LISTEN:
                    ports[found.laddr.port] = found.laddr.ip
            paths |= {str(found.laddr) for found in process.net_connections("unix") if found.laddr}
    return ports, paths


def tls(certificate: str = "", key: str = "") -> ssl.SSLContext:
    """Return what speaks TLS to any server: as nobody, or with a certificate that the server does not know."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def exchange(
    address: Address,
    data: bytes,
    context: ssl.SSLContext | None = None,
    enough: Callable[[bytes], bool] = lambda reply: False,
) -> bytes:
    """Return what a server says to some bytes until it closes, or has said enough; b"" when it says nothing."""
    reply = b""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as link:
        link.settimeout(_PATIENCE)
        link.connect(address)  # raises: where nobody listens, nothing is tried
        with (
            contextlib.suppress(TimeoutError, ConnectionError, ssl.SSLError),
            context.wrap_socket(link) if context else link as speaking,
        ):
            speaking.sendall(data)
            while not enough(reply) and (more := speaking.recv(65536)):
                reply += more
    return reply


def http(address: Address, context: ssl.SSLContext | None = None) -> dict[str, bytes]:
    """Return what a server says to each request, by method and path; what wants TLS has said nothing."""
    said = {}
    for method, path in REQUESTS:
        body = b"stranger" if method in {"PUT", "POST"} else b""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        reply = exchange(address, head.encode() + body, context)
        if reply and _TLS_ONLY not in reply and reply[0] != 0x15:  # a TLS alert
            said[f"{method} {path}"] = reply
    return said


def grpc(address: Address, context: ssl.SSLContext | None = None) -> dict[str, bytes]:
    """Return what a server says to each call, by its path: HTTP/2 frames, if it speaks to us at all."""
    if context:
        context.set_alpn_protocols(["h2"])
    said = {}
    for path in CALLS:
        reply = exchange(address, _call(path), context, _has_ended)
        if len(reply) >= 9 and reply[3] == 4:  # the server's own settings come first
            said[path] = reply
    return said


def _call(path: str) -> bytes:
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "127.0.0.1"),
               ("content-type", "application/grpc"), ("te", "trailers")]  # fmt: skip
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in headers)  # RFC 7541, 6.2.2
    end = 1
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(4, 0, 0, b"")  # settings
        + _frame(1, 4, 1, block)  # headers, complete
        + _frame(0, end, 1, b"\0\0\0\0\0")  # an empty message, the last
    )


def _has_ended(reply: bytes) -> bool:
    """Return whether the server's frames end our one stream."""
    at = 0
    while at + 9 <= len(reply):
        size, kind, flags = int.from_bytes(reply[at : at + 3]), reply[at + 3], reply[at + 4]
        stream = int.from_bytes(reply[at + 5 : at + 9])
        if at + 9 + size <= len(reply) and stream == 1 and (kind == 3 or (kind in {0, 1} and flags & 1)):
            return True
        at += 9 + size
    return False


def _text(text: str) -> bytes:
    assert len(text) < 127
    return bytes([len(text)]) + text.encode()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def redis(address: Address) -> dict[str, bytes]:
    """Return what a server says to each Redis command, sent as the first of a connection."""
    said = {}
    for words in REDIS:
        reply = exchange(address, f"{words}\r\nQUIT\r\n".encode())
        said[words] = reply
    return said


def tried(ports: Iterable[int], paths: Iterable[str], certificate: str = "", key: str = "") -> dict[str, list[str]]:
    """Return what each port and socket answered: without TLS, with TLS as nobody, with a foreign certificate."""
    found: dict[str, list[str]] = {}
    addresses: dict[str, Address] = {str(port): ("127.0.0.1", port) for port in ports}
    for name, address in (addresses | {path: path for path in paths}).items():
        found[name] = []
        for how, context in (("plain", None), ("TLS", tls()), ("a foreign certificate", tls(certificate, key))):
            if how.startswith("a ") and not certificate:
                continue
            said = http(address, context) | grpc(address, context)
            found[name] += [f"{request} ({how}): {reply[:300]!r}" for request, reply in said.items()]
    return found


def readable(folder: Path) -> list[str]:
    """Return what of a folder can be listed or read."""
    found = []

    def walk(at: Path) -> Iterator[str]:
        with contextlib.suppress(OSError):
            yield f"{at}: {os.listdir(at)}"
            for inside in os.listdir(at):
                yield from walk(at / inside)
        with contextlib.suppress(OSError), open(at, "rb") as file:
            yield f"{at}: {len(file.read())} bytes"

    found += walk(folder)
    return found


def unguarded(paths: Iterable[str]) -> list[str]:
    """Return the Unix sockets that another user may reach: open to others, in folders that are open to others."""
    found = []
    for path in paths:
        if not path.startswith("/"):  # an abstract name, which has no rights at all, or a relative one
            found.append(path)
            continue
        with contextlib.suppress(FileNotFoundError):
            modes = [Path(path).stat().st_mode, *(folder.stat().st_mode for folder in Path(path).parents)]
            closed = not stat.S_IMODE(modes[0]) & 0o077 or any(not stat.S_IMODE(mode) & 0o011 for mode in modes[1:])
            found += [] if closed else [path]
    return found


def reachable(paths: Iterable[str]) -> list[str]:
    """Return the Unix sockets that let us connect."""
    found = []
    for path in paths:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_UNIX, kind) as link:
                refused = link.connect_ex(path)
                if refused in {0, errno.EPROTOTYPE}:
                    found.append(path)
                    break
    return found


def as_user(number: int, action: Callable[[], Any]) -> Any:
    """Run an action in a child process of another user (we must be root); return its JSON-like result."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            os.close(ours)
            os.setgroups([])
            os.setresgid(number, number, number)
            os.setresuid(number, number, number)
            with os.fdopen(theirs, "w") as pipe:
                json.dump(action(), pipe)
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the other user's process failed: {status}"
    return json.loads(text)

"""The object store: plain S3 through the minio client. Infrastructure faults are waited out here.

A call that meets a server that is away is tried again with growing pauses until `patience` seconds have passed. One
that the server refuses (credentials, bucket, space, clock) is tried again for `refusal_patience` seconds only: someone
must act, and is told. All calls of a process share what they know of the server: see `trouble`.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Protocol, TypeVar, cast

import urllib3
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

from communitree_shared import crash
from communitree_shared.errors import BadInput, InfrastructureError, ServerRefuses
from communitree_shared.faults import S3_FAULTS, no_conditions, of_s3
from communitree_shared.objects.credentials import provider
from communitree_shared.objects.keys import MissingObject
from communitree_shared.objects.proofs import Parts, Proofs, check_range, md5_of
from communitree_shared.settings import Settings
from communitree_shared.trouble import trouble_with

T = TypeVar("T")

#: So many objects are asked for one by one; where more are wanted, pages of a listing are cheaper.
_BY_HEAD = 64

#: A request that is wrong however often it is made.
_WRONG = {"InvalidRange", "InvalidArgument", "KeyTooLongError", "InvalidURI", "EntityTooLarge", "NotImplemented"}
#: What stores without conditional writes say of `If-None-Match`.
_UNKNOWN = {"NotImplemented", "InvalidArgument", "InvalidRequest", "MethodNotAllowed"}
_BYTES = "application/octet-stream"
_ABSENT = {"NoSuchKey", "NoSuchObject", "ResourceNotFound", "NoSuchVersion"}


class Rewindable(Protocol):
    """What can be sent, and sent again."""

    def read(self, size: int, /) -> bytes:
        """Return so many bytes; fewer at the end."""

    def seek(self, offset: int, /) -> int:
        """Go to an offset."""


class Store:
    """Objects by key in one bucket.

    Raises (every method):
        InfrastructureError: the server did not answer within `patience` seconds.
        ServerRefuses: it answered, and refused us for `refusal_patience` seconds.
    """

    def __init__(self, settings: Settings, *, patience: float = 120.0, refusal_patience: float = 0.0) -> None:
        self.bucket = settings.s3_bucket
        self.patience, self.refusal_patience = patience, refusal_patience
        self.requests = 0
        self.trouble = trouble_with(f"The object store at {settings.s3_endpoint}")
        self._endpoint = settings.s3_endpoint
        self._may_create = settings.s3_create_bucket
        http = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=5, read=60),
            maxsize=64,
            retries=False,
            cert_reqs="CERT_REQUIRED",
            ca_certs=settings.s3_ca_bundle or _default_ca(),
        )
        self._client = Minio(
            settings.s3_endpoint,
            secure=settings.s3_secure,
            region=settings.s3_region,
            http_client=http,
            credentials=provider(settings),
        )
        self._region = settings.s3_region
        self._proofs = Proofs()

    def ensure_bucket(self) -> None:
        """Create the bucket where it is missing and may be made."""

        def ensure() -> None:
            if self._client.bucket_exists(self.bucket):
                return
            if not self._may_create:
                raise ServerRefuses(
                    f"The bucket {self.bucket!r} does not exist at {self._endpoint}.",
                    hint="Create it, or set COMMUNITREE_S3_CREATE_BUCKET=true.",
                )
            try:
                self._client.make_bucket(self.bucket, location=self._region)
            except S3Error as error:
                if error.code not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
                    raise

        self._call("bucket", ensure)

    def get(self, key: str) -> bytes:
        """Return an object.

        Raises:
            MissingObject: there is none (a KeyError).
        """

        def get() -> bytes:
            data, headers = self._read(key)
            again = lambda: self._read(key)[0]  # noqa: E731
            self._proofs.check_get(key, headers.get("etag") or "", data, lambda: self._size(key), again)
            return data

        return self._call(key, get)

    def _read(self, key: str, offset: int = 0, length: int = 0) -> tuple[bytes, Mapping[str, str]]:
        response = self._client.get_object(self.bucket, key, offset=offset, length=length)
        try:
            return bytes(response.read()), response.headers
        finally:
            response.close()
            response.release_conn()

    def find(self, key: str) -> bytes | None:
        """Return an object, or None."""
        try:
            return self.get(key)
        except KeyError:
            return None

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Return `length` bytes of an object from `offset`.

        Raises:
            MissingObject: there is no such object (a KeyError).
        """
        if length == 0:
            return b""

        def get() -> bytes:
            data, headers = self._read(key, offset, length)
            check_range(key, headers.get("content-range") or "", data)
            return data

        return self._call(key, get)

    def put(self, key: str, data: bytes, content_type: str = _BYTES) -> None:
        """Write an object."""
        crash.point("put.before")
        file = io.BytesIO(data)
        self._call(key, lambda: self._send(key, file, len(data), lambda: self._has(key, data), content_type))
        crash.point("put.after")

    def _send(self, key: str, file: Rewindable, size: int, has: Callable[[], bool], content_type: str = _BYTES) -> None:
        file.seek(0)
        parts = Parts(file, size)
        stream = cast(BinaryIO, parts)
        done = self._client.put_object(self.bucket, key, stream, size, content_type, part_size=parts.part)
        self._proofs.check_put(key, done.etag or "", parts.etag(), has)

    def put_file(self, key: str, file: Rewindable, size: int) -> None:
        """Write an object from the first `size` bytes of a file, in parts.

        All are read, in order, before the last part is sent. What reading raises goes through and leaves no object,
        `OSError` excepted: that is taken for a fault of the server.
        """

        crash.point("put_file.before")
        self._call(key, lambda: self._send(key, file, size, lambda: self._size(key) == size))
        crash.point("put_file.after")

    def put_new(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one; return whether it was written. First writer wins."""

        def put() -> bool:
            try:
                # minio-py's put_object has no parameter for conditions (checked for 7.2).
                done = self._client._execute("PUT", self.bucket, key, body=data, headers={"If-None-Match": "*"})
            except S3Error as error:
                if error.code == "PreconditionFailed":
                    return False
                if error.code in _UNKNOWN:
                    raise no_conditions(self._endpoint, str(error.code)) from None
                raise
            self._proofs.check_put(key, done.headers.get("etag") or "", md5_of(data), lambda: self._has(key, data))
            return True

        crash.point("put_new.before")
        written = self._call(key, put)
        crash.point("put_new.after")
        return written

    def _has(self, key: str, data: bytes) -> bool:
        return self._size(key) == len(data) and self._read(key)[0] == data

    def _size(self, key: str) -> int:
        """Return the size of an object in bytes, -1 where there is none."""
        try:
            return self._client.stat_object(self.bucket, key).size or 0
        except S3Error as error:
            if error.code in _ABSENT:
                return -1
            raise

    def exists(self, key: str) -> bool:
        """Return whether there is an object."""
        try:
            self._call(key, lambda: self._client.stat_object(self.bucket, key))
        except KeyError:
            return False
        return True

    def etag(self, key: str) -> str:
        """Return what changes when an object is written with other content.

        Raises:
            MissingObject: there is none (a KeyError).
        """
        found = self._call(key, lambda: self._client.stat_object(self.bucket, key))
        return str(found.etag)

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys under a prefix, in order."""
        return (key for key, _ in self.dated(prefix))

    def dated(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield the keys under a prefix, in order, and when each was written (unix seconds, the store's clock)."""
        after = None
        while True:
            page = self._call(prefix, lambda after=after: self._dated_page(prefix, after))  # type: ignore[misc]
            yield from page
            if len(page) < 1000:
                return
            after = page[-1][0]

    def present(self, folder: str, names: Iterable[str]) -> set[str]:
        """Return those of the names that are objects in a folder; what else is there, however much, is passed over."""
        wanted = sorted(set(names))
        if len(wanted) <= _BY_HEAD:
            with ThreadPoolExecutor(16) as pool:
                there = list(pool.map(lambda name: self.exists(folder + name), wanted))
            return {name for name, is_there in zip(wanted, there, strict=True) if is_there}
        found: set[str] = set()
        at, after = 0, ""
        while at < len(wanted):
            after = max(after, folder + wanted[at][:-1])
            page = self._call(folder, lambda after=after: self._page(folder, after))  # type: ignore[misc]
            last = page[-1] if len(page) == 1000 else None
            there_now = set(page)
            while at < len(wanted) and (last is None or folder + wanted[at] <= last):
                found |= {wanted[at]} if folder + wanted[at] in there_now else set()
                at += 1
            after = last or after
        return found

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders directly under a prefix."""

        def names() -> list[str]:
            found = self._client.list_objects(self.bucket, prefix=prefix, recursive=False)
            return [item.object_name[len(prefix) :].rstrip("/") for item in found if item.is_dir]

        return self._call(prefix, names)

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        crash.point("delete.before")
        self._call(key, lambda: self._client.remove_object(self.bucket, key))
        crash.point("delete.after")

    def delete_all(self, keys: list[str]) -> None:
        """Remove many objects."""
        for start in range(0, len(keys), 1000):
            part = keys[start : start + 1000]

            def remove(part: list[str] = part) -> None:
                for error in self._client.remove_objects(self.bucket, [DeleteObject(k) for k in part]):
                    raise InfrastructureError(f"{error.name} could not be removed: {error.message}")

            crash.point("delete_all.before")
            self._call(part[0], remove)
            crash.point("delete_all.after")

    def get_json(self, key: str) -> Any:
        """Return an object parsed as JSON.

        Raises:
            MissingObject: there is none (a KeyError).
        """
        return json.loads(self.get(key))

    def find_json(self, key: str) -> Any | None:
        """Return an object parsed as JSON, or None."""
        data = self.find(key)
        return None if data is None else json.loads(data)

    def put_json(self, key: str, value: Any) -> None:
        """Write a value as JSON, keys sorted."""
        data = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        self.put(key, data, "application/json")

    def _page(self, prefix: str, after: str | None) -> list[str]:
        return [key for key, _ in self._dated_page(prefix, after)]

    def _dated_page(self, prefix: str, after: str | None) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        for item in self._client.list_objects(self.bucket, prefix=prefix, recursive=True, start_after=after):
            found.append((item.object_name, item.last_modified.timestamp() if item.last_modified else 0.0))
            if len(found) == 1000:
                break
        return found

    def _call(self, key: str, action: Callable[[], T]) -> T:
        began = time.monotonic()
        until, refused_until = began + self.patience, began + self.refusal_patience
        while True:
            fault = self.trouble.turn(until)
            if fault is None:
                self.requests += 1
                try:
                    found = action()
                except S3_FAULTS as error:
                    if isinstance(error, S3Error) and error.code in _ABSENT:
                        self.trouble.over()
                        raise MissingObject(key, self.bucket) from None
                    if isinstance(error, S3Error) and error.code in _WRONG:
                        self.trouble.over()
                        raise BadInput(f"The object store refuses to serve {key}: {error.code}.") from None
                    fault = of_s3(error, self._endpoint, self.bucket)
                else:
                    self.trouble.over()
                    return found
                waits = time.monotonic() < (refused_until if isinstance(fault, ServerRefuses) else until)
                self.trouble.met(fault, waits=waits)
            if time.monotonic() >= (refused_until if isinstance(fault, ServerRefuses) else until):
                raise type(fault)(f"{fault.message} ({key})", hint=fault.hint)


def _default_ca() -> str:
    import certifi

    return certifi.where()

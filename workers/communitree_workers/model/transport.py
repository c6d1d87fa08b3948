"""HTTP: one aiohttp session for a process, whole replies and streams through one door.

Errors of aiohttp can carry the request's headers, the key among them: none of them is chained or passed on.
"""

from __future__ import annotations

import asyncio

import aiohttp
from yarl import URL

from communitree_workers.model.chat import ChatRequest
from communitree_workers.model.endpoints.endpoint import Endpoint
from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.retry import retry_after
from communitree_workers.model.following import Follower
from communitree_workers.model.replies.tidying import unwrapped
from communitree_workers.model.wire import RawReply, StreamReader, error_words, whole_reply

#: A longer reply is a server gone wrong, not an answer.
MOST_BYTES = 32 * 2**20

#: A stream that keeps sending may take this many times as long as one try.
STREAM_FACTOR = 5.0


class Transport:
    """Sends request bodies. The session is made in the loop that first uses it and lives as long as that loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._urls: dict[str, URL] = {}

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            # The limits bound calls in flight; a limit of the connector's would only hide them in a queue of its own.
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, raise_for_status=False
            )
        return self._session

    async def send(
        self, endpoint: Endpoint, body: bytes, request: ChatRequest, seconds: float, longest: float | None,
        *, streaming: bool, unopened: bool = False,
    ) -> RawReply:  # fmt: skip
        """Send one request and return its reply; whoever follows it was told its text.

        `seconds`: the time for the try; for a stream, the longest silence in it. `longest`: what is left until the
        deadline, None without one. `unopened`: this endpoint's thinking comes without its opening mark.

        Raises:
            CallFailed: no answer in time, a broken connection, a status that is not 200, or a reply that is none.
        """
        total = seconds * STREAM_FACTOR if streaming else seconds
        total = total if longest is None else max(0.001, min(total, longest))
        timeout = aiohttp.ClientTimeout(total=total, sock_connect=min(30.0, total), sock_read=min(seconds, total))
        url = self._urls.get(endpoint.url) or self._urls.setdefault(endpoint.url, URL(endpoint.url, encoded=True))
        follower = Follower(request, unopened=unopened)
        reader = StreamReader(follower)
        try:
            async with self._open().post(
                url, data=body, headers=endpoint.headers, timeout=timeout, proxy=endpoint.proxy, ssl=endpoint.ssl,
                allow_redirects=False,
            ) as response:  # fmt: skip
                if response.status != 200:
                    raise await _refusal(response)
                if response.content_type == "text/event-stream":
                    async for chunk in response.content.iter_any():
                        reader.feed(chunk)
                        if reader.done:
                            break
                    reply = reader.reply()
                else:
                    reply = whole_reply(await _read(response), json=request.wants_json)
        except CallFailed:
            follower.restart()
            raise
        except TimeoutError:
            follower.restart()
            raise CallFailed(f"no answer within {min(seconds, total):.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            follower.restart()
            raise CallFailed(_words(error, endpoint)) from None
        if not request.wants_json:
            reply.text = unwrapped(reply.text)
        follower.close(reply.text)
        return reply


async def _read(response: aiohttp.ClientResponse) -> bytes:
    if (response.content_length or 0) > MOST_BYTES:
        raise CallFailed(f"the reply is longer than {MOST_BYTES} bytes", status=502)
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MOST_BYTES:
            raise CallFailed(f"the reply is longer than {MOST_BYTES} bytes", status=502)
        parts.append(chunk)
    return b"".join(parts)


async def _refusal(response: aiohttp.ClientResponse) -> CallFailed:
    words, code = error_words(await response.content.read(64 * 1024))
    location = response.headers.get("Location", "")
    if 300 <= response.status < 400 and location:
        target = response.url.join(URL(location))
        words = f"the server redirects to {target.with_query(None).with_user(None)}"
    wait = retry_after(response.headers.get("Retry-After"))
    ms = response.headers.get("retry-after-ms")  # Azure's finer form
    if ms is not None and ms.replace(".", "", 1).isdigit():
        wait = float(ms) / 1000
    return CallFailed(words or (response.reason or "no words"), status=response.status, code=code, retry_after=wait)


def _words(error: Exception, endpoint: Endpoint) -> str:
    """An aiohttp error in words; only its kind and the operating system's reason, never its request."""
    reason = getattr(error, "os_error", None) or (error if isinstance(error, OSError) else "")
    kind = type(error).__name__
    return endpoint.scrub(f"the connection to {URL(endpoint.url).host} failed: {kind} {reason}".strip())

"""A provider that costs as little as it can: `python -m lean_provider [--latency 0.5]` prints its base URL.

For benchmarks of clients: it looks for ids at the head of a map prompt's table and answers from templates, without
parsing a request, so that most of what is measured is the client's. A map prompt names "points"; any other gets text.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re

from aiohttp import web

POINTS = 5
_ID = re.compile(rb"\\n\\?\"?(\d+)\\?\"?\|")
_TEXT = "The wards report on harbours, treaties and archives; councils audit them. " * 6


def _map_reply(body: bytes) -> str:
    start = max(0, body.find(b"id|title"))
    ids = [int(m[1]) for m in itertools.islice(_ID.finditer(body, start), POINTS)]
    points = [
        {"description": f"Ward {i} reports on its harbour and on the council. [Data: Reports ({i})]",
         "score": 20 + (i * 7) % 80, "reports": [i]}
        for i in ids
    ]  # fmt: skip
    return json.dumps({"points": points})


def _usage(body: bytes, text: str) -> dict[str, int]:
    prompt, output = len(body) // 4, len(text) // 4
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


class Lean:
    """The one handler."""

    def __init__(self, latency: float) -> None:
        self.latency = latency

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        text = _map_reply(body) if b'points\\"' in body else _TEXT
        head = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "lean"}
        if b'"stream":true' in body or b'"stream": true' in body:
            return await self._stream(request, head, text, _usage(body, text))
        if self.latency:
            await asyncio.sleep(self.latency)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response(
            {**head, "object": "chat.completion", "usage": _usage(body, text), "choices": [choice]}
        )

    async def _stream(
        self, request: web.Request, head: dict[str, object], text: str, usage: dict[str, int]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        parts = [text[i : i + 40] for i in range(0, len(text), 40)]
        begun = asyncio.get_running_loop().time()
        for number, part in enumerate(parts, 1):
            # Until, not for: the pauses of a slow machine must not add up to more than the latency.
            await asyncio.sleep(
                max(0.0, begun + self.latency * number / len(parts) - asyncio.get_running_loop().time())
            )
            await response.write(_event(head, [{"index": 0, "delta": {"content": part}, "finish_reason": None}]))
        await response.write(_event(head, [{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        await response.write(_event(head, [], usage=usage) + b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _event(head: dict[str, object], choices: list[object], **more: object) -> bytes:
    return f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': choices, **more})}\n\n".encode()


async def _serve(latency: float) -> None:
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", Lean(latency).chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.sleep(3600)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    asyncio.run(_serve(parser.parse_args().latency))

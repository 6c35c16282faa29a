"""A chat-completions server on a loopback port that answers by a script.

    async with OpenAiServer([text_reply("Hello"), error_reply(503)]) as server:
        ... base_url=server.base_url ...
        server.requests[0].body["messages"]

- The script is a list of replies, one for each request in turn (then 400), or a function that gets the request's body
  (the JSON as a dict) and returns a reply.
- A `Reply` is a status, headers and `steps`: bytes are sent as they are, `RELEASE` waits until `server.release()` was
  called once more, `HANG` waits until the client goes away, `DROP` tears the connection.
- `text_reply`, `call_reply`, `error_reply` make whole replies; `sse(...)` makes event bytes from JSON objects;
  `reply.cut_at(3, 10)` and `reply.in_pieces(4)` send the same bytes cut at these places, or in pieces of that size.
- `server.requests` is every request so far; `await server.request_came(n)` waits for the n-th; `await
  server.client_left(n)` waits until n streams were ended by the client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from aiohttp import web

Json = dict[str, Any]
Step = bytes | Literal["release", "hang", "drop"]
RELEASE: Literal["release"] = "release"
HANG: Literal["hang"] = "hang"
DROP: Literal["drop"] = "drop"
WAIT_SECONDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the server."""

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})

    def cut_at(self, *places: int) -> Reply:
        """The same bytes, sent in pieces that end at these byte positions. Only for replies of bytes."""
        data = b"".join(step for step in self.steps if isinstance(step, bytes))
        marks = [0, *sorted(place for place in places if 0 < place < len(data)), len(data)]
        return replace(self, steps=tuple(data[a:b] for a, b in pairwise(marks)))

    def in_pieces(self, size: int) -> Reply:
        """The same bytes in pieces of `size`."""
        length = sum(len(step) for step in self.steps if isinstance(step, bytes))
        return self.cut_at(*range(size, length, size))


@dataclass(frozen=True, slots=True)
class Request:
    """What the client sent."""

    path: str
    headers: Mapping[str, str]
    body: Json


Script = Sequence[Reply] | Callable[[Json], Reply]


def sse(*events: Json | str, end: str = "\n") -> bytes:
    """Events as bytes: a dict as JSON data, a string as it is (`[DONE]`). `end` is the line end."""
    texts = (event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events)
    return "".join(f"data: {text}{end}{end}" for text in texts).encode()


def delta(finish: str | None = None, **fields: Any) -> Json:
    """One chunk of a reply with this `delta`."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def usage(prompt_tokens: int = 10, completion_tokens: int = 5, cached_tokens: int = 0) -> Json:
    """The chunk with the figures, as the service sends it after the finish reason."""
    counts = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }
    return {**delta(), "choices": [], "usage": counts}


def text_reply(text: str, finish: str = "stop") -> Reply:
    """A whole answer of text, a word a chunk."""
    words = text.split(" ")
    pieces = [word if n == 0 else f" {word}" for n, word in enumerate(words)]
    return Reply((sse(*(delta(content=piece) for piece in pieces), delta(finish), usage(), "[DONE]"),))


def call_reply(*calls: tuple[str, str, Json], text: str = "") -> Reply:
    """A whole answer that calls tools: (id, name, arguments) each; the arguments come in two fragments."""
    events: list[Json] = [delta(content=text)] if text else []
    for index, (call_id, name, arguments) in enumerate(calls):
        raw = json.dumps(arguments, ensure_ascii=False)
        head: Json = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(delta(tool_calls=[head]))
        events += [
            delta(tool_calls=[{"index": index, "function": {"arguments": part}}])
            for part in (raw[: len(raw) // 2], raw[len(raw) // 2 :])
        ]
    return Reply((sse(*events, delta("tool_calls"), usage(), "[DONE]"),))


def error_reply(
    status: int, message: str = "refused", headers: Mapping[str, str] | None = None, **fields: Any
) -> Reply:
    """A refusal with an error object; `fields` go into it (`code`, `type`)."""
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return Reply((body,), status, {"Content-Type": "application/json", **(headers or {})})


class OpenAiServer:
    """Use as an async context manager."""

    def __init__(self, script: Script) -> None:
        self._replies: Iterable[Reply] | None = None if callable(script) else iter(script)
        self._function = script if callable(script) else None
        self._changed = asyncio.Condition()
        self._releases = 0
        self._left = 0
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.requests: list[Request] = []
        self.base_url = ""

    async def __aenter__(self) -> OpenAiServer:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._answer)
        # Ends the handler when the client goes away, so that tests see that it did.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def release(self) -> None:
        """Lets one stream go past its RELEASE."""
        async with self._changed:
            self._releases += 1
            self._changed.notify_all()

    async def request_came(self, n: int = 1) -> Request:
        """The n-th request (from 1), waited for."""
        await self._until(lambda: len(self.requests) >= n)
        return self.requests[n - 1]

    async def client_left(self, n: int = 1) -> None:
        """Waits until n streams were ended by the client."""
        await self._until(lambda: self._left >= n)

    async def _until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX), self._changed:
            await self._changed.wait_for(true)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        reply = self._next(body)
        async with self._changed:
            self.requests.append(Request(request.path, dict(request.headers), body))
            self._changed.notify_all()
        response = web.StreamResponse(status=reply.status, headers=dict(reply.headers))
        await response.prepare(request)
        try:
            for step in reply.steps:
                if not await self._take(step, request, response):
                    return response
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            self._left += 1
            async with self._changed:
                self._changed.notify_all()
            raise
        return response

    async def _take(self, step: Step, request: web.Request, response: web.StreamResponse) -> bool:
        """Does one step; False when the stream is over."""
        if isinstance(step, bytes):
            await response.write(step)
            # A turn of the loop sends the piece off by itself, so that cuts reach the client as cuts.
            await asyncio.sleep(0)
        elif step == RELEASE:
            async with self._changed:
                await self._changed.wait_for(lambda: self._releases > 0)
                self._releases -= 1
        elif step == HANG:
            await self._closing.wait()
            return False
        else:
            if request.transport is not None:
                request.transport.abort()
            return False
        return True

    def _next(self, body: Json) -> Reply:
        if self._function is not None:
            return self._function(body)
        assert self._replies is not None
        return next(iter(self._replies), error_reply(400, "the script of the test has no more replies"))

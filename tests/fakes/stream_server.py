"""A model service on a loopback port that answers by a script; the services' formats are in the modules beside it.

    async with StreamServer([reply, other_reply]) as server:
        ... base_url=server.base_url ...
        server.requests[0].body["messages"]

- The script is a list of replies, one for each request in turn (then 400), or a function that gets the request's body
  (the JSON as a dict) and returns a reply.
- A `Reply` is a status, headers and `steps`: bytes are sent as they are, `RELEASE` waits until `server.release()` was
  called once more, `HANG` waits until the client goes away, `DROP` tears the connection. `WAIT_FIRST` as the first
  step holds back even the head of the answer until the client goes away.
- `reply.cut_at(3, 10)` and `reply.in_pieces(4)` send the same bytes cut at these places, or in pieces of that size.
- `server.requests` is every request so far; `await server.request_came(n)` waits for the n-th; `await
  server.client_left(n)` waits until n streams were ended by the client.
- A `strict` server answers 400 to a request that the real service would refuse; `server.refused` says why.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, Self

from aiohttp import web

from tests.fakes.strict_api import Refused

Json = dict[str, Any]
Step = bytes | Literal["release", "hang", "drop", "wait first"]
RELEASE: Literal["release"] = "release"
HANG: Literal["hang"] = "hang"
DROP: Literal["drop"] = "drop"
WAIT_FIRST: Literal["wait first"] = "wait first"
WAIT_SECONDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the server."""

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})

    @property
    def data(self) -> bytes:
        """All bytes of the answer."""
        return b"".join(step for step in self.steps if isinstance(step, bytes))

    def cut_at(self, *places: int) -> Reply:
        """The same bytes, sent in pieces that end at these byte positions. Only for replies of bytes."""
        data = self.data
        marks = [0, *sorted(place for place in places if 0 < place < len(data)), len(data)]
        return replace(self, steps=tuple(data[a:b] for a, b in pairwise(marks)))

    def in_pieces(self, size: int) -> Reply:
        """The same bytes in pieces of `size`."""
        return self.cut_at(*range(size, len(self.data), size))


@dataclass(frozen=True, slots=True)
class Request:
    """What the client sent."""

    path: str
    headers: Mapping[str, str]
    body: Json


Script = Sequence[Reply] | Callable[[Json], Reply]


def sse(*events: Json | str, end: str = "\n", named: bool = False) -> bytes:
    """Events as bytes: a dict as JSON data, a string as it is (`[DONE]`). `end` is the line end; `named` events carry
    their `type` as name."""
    out: list[str] = []
    for event in events:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        name = f"event: {event['type']}{end}" if named and not isinstance(event, str) else ""
        out.append(f"{name}data: {text}{end}{end}")
    return "".join(out).encode()


def document(body: Json) -> Reply:
    """The answer as one JSON document, as from a server that does not stream."""
    return Reply((json.dumps(body).encode(),), headers={"Content-Type": "application/json"})


def error_reply(
    status: int, message: str = "refused", headers: Mapping[str, str] | None = None, **fields: Any
) -> Reply:
    """A refusal with an error object; `fields` go into it (`code`, `type`)."""
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return Reply((body,), status, {"Content-Type": "application/json", **(headers or {})})


class StreamServer:
    """Use as an async context manager. A service's own class names its `path` and what it refuses."""

    path = "/v1/chat/completions"
    base_path = "/v1"

    def __init__(self, script: Script, *, strict: bool = False) -> None:
        self._replies: Iterable[Reply] | None = None if callable(script) else iter(script)
        self._function = script if callable(script) else None
        self._strict = strict
        self._changed = asyncio.Condition()
        self._releases = 0
        self._left = 0
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.requests: list[Request] = []
        self.refused: list[str] = []
        self.base_url = ""

    def check(self, body: Json) -> None:
        """Raises Refused for a request that the real service would not take."""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(self.path, self._answer)
        # Ends the handler when the client goes away, so that tests see that it did.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}{self.base_path}"
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
        try:
            if reply.steps[:1] == (WAIT_FIRST,):
                await self._closing.wait()
            await response.prepare(request)
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
        elif step == DROP:
            if request.transport is not None:
                request.transport.abort()
            return False
        else:
            await self._closing.wait()
            return False
        return True

    def _next(self, body: Json) -> Reply:
        if self._strict:
            try:
                self.check(body)
            except Refused as refused:
                self.refused.append(str(refused))
                return error_reply(400, str(refused), type="invalid_request_error")
        if self._function is not None:
            return self._function(body)
        assert self._replies is not None
        return next(iter(self._replies), error_reply(400, "the script of the test has no more replies"))


@asynccontextmanager
async def raw_http(answers: Sequence[Sequence[bytes]]) -> AsyncGenerator[str]:
    """A server that writes the pieces of an answer, whatever they are, to each request in turn, and then closes the
    connection; gives its address."""
    waiting = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if b": " in line)
            await reader.readexactly(int(lines[b"content-length"]))
            for piece in next(waiting):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

"""A model that answers with the names of the messages it was asked, so that a reply proves what it answers.

Messages name themselves `m<chat>-<number>`. The model is a chat-completions server in the process of the journey: it
lives on while the gateway is killed. It is slow at times, stops in the middle of some streams, gives some long answers,
and lets every fourth message (where the tool is there) be kept with one or two calls of `memory_save`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from random import Random
from typing import Any

from aiohttp import web

from agent.fence import spoken
from tests.fakes.openai_server import call_reply, text_reply
from tests.journeys.moments import Moments

Json = dict[str, Any]
NAME = re.compile(r"\bm(\d+)-(\d+)\b")
SLOW_SHARE, HALTING_SHARE = 0.2, 0.1
PAUSE_SECONDS = (0.05, 0.6)
LONG_EVERY = 9
LONG_LINES = 90


def names(text: str) -> list[str]:
    """The messages that a text names, in order."""
    return [found[0] for found in NAME.finditer(text)]


def answer_to(asked: list[str]) -> str:
    """The answer: one line with the names, and for some of them so much below it that it takes two messages."""
    text = f"Answer to {', '.join(asked)}."
    if asked and int(asked[0].partition("-")[2]) % LONG_EVERY == 0:
        chat, _, number = asked[0].removeprefix("m").partition("-")
        lines = (f"Line {n} of the long answer in chat {chat} from number {number} on." for n in range(LONG_LINES))
        text = "\n\n".join([text, *lines])
    return text


def calls_wanted(asked: list[str]) -> int:
    """How many calls the answer makes."""
    numbers = [int(name.partition("-")[2]) for name in asked]
    return max((2 if number % 8 == 1 else 1 if number % 4 == 1 else 0 for number in numbers), default=0)


def fact(first: str, ordinal: int) -> str:
    """The fact that the call of this ordinal (from 1) keeps, for an answer to `first` and maybe more."""
    return f"Note {ordinal} about {first} is kept"


class EchoModel:
    """Use as an async context manager. Tells `moments` of `asked`, `called` and `answered`.

    `witness` is called with the names of the messages of each request, when it has come.
    """

    def __init__(self, random: Random, moments: Moments) -> None:
        self._random = random
        self._moments = moments
        self.witness: Callable[[list[str]], None] | None = None
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    async def __aenter__(self) -> EchoModel:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            body: Json = await request.json()
            self._moments.happened("asked")
            if self.witness is not None:
                self.witness(_running_turn(body["messages"])[0])
            return await self._stream(request, *reply_to(body))
        except ConnectionError:
            # The gateway was killed.
            return web.StreamResponse()

    async def _stream(self, request: web.Request, data: bytes, moment: str) -> web.StreamResponse:
        chance = self._random.random()
        pause_seconds = self._random.uniform(*PAUSE_SECONDS) if chance < SLOW_SHARE + HALTING_SHARE else 0.0
        head = len(data) // 2 if chance < HALTING_SHARE else 0
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if head:
            await response.write(data[:head])
        await asyncio.sleep(pause_seconds)
        await response.write(data[head:])
        await response.write_eof()
        self._moments.happened(moment)
        return response


def reply_to(body: Json) -> tuple[bytes, str]:
    """The stream that answers a request, and the name of the moment when it was given."""
    asked, results = _running_turn(body["messages"])
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    if "memory_save" in tools and results < calls_wanted(asked):
        note = fact(asked[0], results + 1)
        reply, moment = call_reply((f"call-{asked[0]}-{results + 1}", "memory_save", {"fact": note})), "called"
    else:
        reply, moment = text_reply(answer_to(asked)), "answered"
    return b"".join(step for step in reply.steps if isinstance(step, bytes)), moment


def _running_turn(messages: list[Json]) -> tuple[list[str], int]:
    """The names of the messages that the running turn is about, and how many calls it has results of."""
    asked: list[str] = []
    results = 0
    for message in messages:
        match message["role"]:
            case "assistant" if not message.get("tool_calls"):
                asked, results = [], 0
            case "user" if "\n</context>\n" in message["content"]:
                # A message of the history has no context before it.
                if not asked:
                    results = 0
                asked += names(spoken(message["content"]))
            case "tool":
                results += 1
            case _:
                pass
    return asked, results

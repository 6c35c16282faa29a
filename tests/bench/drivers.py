"""Whoever talks to a gateway from outside: on the page, and through a Bot API. Both time from message to reply."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from secrets import token_hex
from typing import Any

import aiohttp

from tests.bench.made_up import OWNER
from tests.bench.processes import Line
from tests.bench.server import TOKEN
from tests.fakes.bot_api import BotApi

REPLY_SECONDS_MAX = 30.0


class PageDriver:
    """Posts messages and hears of the replies by server-sent events."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lines: list[Line] = []
        self._done: dict[str, asyncio.Queue[float]] = defaultdict(asyncio.Queue)

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int) -> AsyncIterator[PageDriver]:
        driver = cls(port)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        endless = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=endless) as session,
            session.get(f"http://127.0.0.1:{port}/api/events") as response,
        ):
            await response.content.readline()
            listening = asyncio.create_task(driver._listen(response))
            try:
                yield driver
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
                for line in driver._lines:
                    line.close()

    async def _listen(self, response: aiohttp.ClientResponse) -> None:
        kind = b""
        async for line in response.content:
            if line.startswith(b"event: "):
                kind = line[7:].strip()
            elif line.startswith(b"data: ") and kind == b"done":
                self._done[json.loads(line[6:])["conversation"]].put_nowait(time.perf_counter())

    async def post(self, text: str, conversation: str = "new") -> str:
        """Returns when the message is on disk; the id of its conversation."""
        line = self._lines.pop() if self._lines else await Line.open(self._port)
        body: dict[str, Any] = {"text": text, "conversation": conversation, "key": token_hex(8)}
        status, answer = await line.post("/api/messages", TOKEN, json.dumps(body).encode())
        self._lines.append(line)
        if status != 202:
            raise RuntimeError(f"the message was not taken: {status} {answer[:200]!r}")
        return json.loads(answer)["conversation"]

    async def begin(self, text: str) -> str:
        """A new conversation with one turn behind it."""
        conversation = await self.post(text)
        await self._reply(conversation)
        return conversation

    async def turn(self, conversation: str, text: str) -> float:
        """Seconds from the post to the event that the turn is done."""
        begun = time.perf_counter()
        await self.post(text, conversation)
        return await self._reply(conversation) - begun

    async def _reply(self, conversation: str) -> float:
        async with asyncio.timeout(REPLY_SECONDS_MAX):
            return await self._done[conversation].get()


class BotDriver:
    """The owner in as many chats as are asked for, on a Bot API that lives in this process."""

    def __init__(self, api: BotApi) -> None:
        self._api = api
        self._waiting: dict[int, asyncio.Future[float]] = {}
        self._chats = count(100)
        api.rule = self._called

    def _called(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "sendMessage" and (reply := self._waiting.pop(int(parameters["chat_id"]), None)):
            reply.set_result(time.perf_counter())

    async def begin(self, text: str) -> str:
        """A new chat with one turn behind it."""
        chat = str(next(self._chats))
        await self.turn(chat, text)
        return chat

    async def turn(self, chat: str, text: str) -> float:
        """Seconds from the moment Telegram has the message until it is asked to send the reply."""
        reply = self._waiting[int(chat)] = asyncio.get_running_loop().create_future()
        begun = time.perf_counter()
        self._api.push_text(int(chat), text, user_id=OWNER)
        async with asyncio.timeout(REPLY_SECONDS_MAX):
            return await reply - begun


Driver = PageDriver | BotDriver

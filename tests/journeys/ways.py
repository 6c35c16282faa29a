"""The two ways into the gateway that a journey takes: Telegram (its fake lives on while the gateway dies), and HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Any, Protocol

import aiohttp

from tests.fakes.bot_api import BotApi, Fault, flood
from tests.journeys.echo_model import names
from tests.journeys.moments import Moments
from tests.journeys.verdict import Journey

OWNER = 7_000_001
GROUP, PRIVATE = -100_000, 200_000
TOKEN = "a-token-of-the-journey"
POST_SECONDS_MAX = 10.0
POST_AGAIN_SHARE = 0.1
RETRY_SECONDS = 0.05

Json = dict[str, Any]


class Way(Protocol):
    """How messages get in, and how answers are seen. `channel`: what the gateway calls it."""

    channel: str

    def settings(self) -> str:
        """The tables of config.toml."""
        ...

    def submit(self, chat: int, name: str, text: str) -> None:
        """A person writes a message; getting it in may take until the gateway is back."""
        ...

    async def all_in(self) -> None:
        """Waits until every message so far was taken."""
        ...

    def acknowledged(self) -> dict[str, str]:
        """Of each message that counts as taken for the sender: its key in the database, by its name."""
        ...

    async def journey(self) -> Journey:
        """What was sent and seen; the gateway still runs."""
        ...


class TelegramWay:
    """Odd chats are private ones of allowed people, even ones are groups in which the owner writes.

    The fake answers some sends late, refuses some for a second, and breaks the line before or after some.
    """

    channel = "telegram"

    def __init__(self, random: Random, moments: Moments, chats: int) -> None:
        self._random = random
        self._moments = moments
        self._chats = chats
        self._updates: dict[str, tuple[int, str]] = {}
        self.api = BotApi(rule=self._rule)

    def settings(self) -> str:
        allow = [PRIVATE + chat for chat in range(1, self._chats + 1) if chat % 2]
        groups = [GROUP - chat for chat in range(1, self._chats + 1) if not chat % 2]
        return (
            f"[channels.inapp]\nport = 0\n\n[channels.telegram]\nenabled = true\ntoken = {json.dumps(self.api.token)}\n"
            f"base_url = {json.dumps(self.api.base_url)}\nowner = {OWNER}\nallow = {allow}\ngroups = {groups}\n"
            "require_mention = false\n"
        )

    def _rule(self, method: str, parameters: Json) -> Fault | None:
        """What goes wrong with a send."""
        if method != "sendMessage":
            return None
        self._moments.happened("sending")
        chance = self._random.random()
        if chance < 0.25:
            return Fault(delay_seconds=self._random.uniform(0.02, 0.3))
        if chance < 0.28:
            return Fault(drop="after", delay_seconds=self._random.uniform(0.0, 0.1))
        if chance < 0.30:
            return Fault(drop="before")
        return flood(1) if chance < 0.33 else None

    def submit(self, chat: int, name: str, text: str) -> None:
        chat_id = PRIVATE + chat if chat % 2 else GROUP - chat
        message = self.api.message(chat_id, text, user_id=chat_id if chat % 2 else OWNER)
        number = self.api.push({"message": message})
        self._updates[name] = (number, f"{chat_id}/{message['message_id']}")
        self._moments.happened("written")

    async def all_in(self) -> None:
        """Telegram keeps what was not fetched yet."""

    def acknowledged(self) -> dict[str, str]:
        confirmed = self.api.confirmed
        return {name: key for name, (number, key) in self._updates.items() if number <= confirmed}

    async def journey(self) -> Journey:
        shown: dict[str, list[tuple[str, str]]] = defaultdict(list)
        # As it stands in the chats: a live draft that grew into its reply is one message.
        now = {(sent.chat_id, sent.message_id): sent.text for sent in self.api.sent}
        for (chat_id, message_id), text in now.items():
            chat = chat_id - PRIVATE if chat_id > 0 else GROUP - chat_id
            shown[f"m{chat}"].append((str(message_id), text))
        keys = {name: key for name, (_, key) in self._updates.items()}
        return Journey(self.channel, keys, shown, may_be_unknown=True)


class HttpWay:
    """One client a chat: it posts a message with a key until it gets 202, then the next; some it posts again."""

    channel = "inapp"

    def __init__(self, random: Random, moments: Moments, session: aiohttp.ClientSession) -> None:
        self._random = random
        self._moments = moments
        self._session = session
        self._port = _free_port()
        self._taken: dict[str, str] = {}
        self._conversations: dict[int, str] = {}
        self._waiting: dict[int, asyncio.Queue[tuple[str, str]]] = defaultdict(asyncio.Queue)
        self._clients: dict[int, asyncio.Task[None]] = {}
        self.posts = 0

    def settings(self) -> str:
        return f"[channels.inapp]\nport = {self._port}\ntoken = {json.dumps(TOKEN)}\n"

    def submit(self, chat: int, name: str, text: str) -> None:
        self._waiting[chat].put_nowait((name, text))
        if chat not in self._clients:
            self._clients[chat] = asyncio.create_task(self._write(chat), name=f"client {chat}")

    async def close(self) -> None:
        for task in self._clients.values():
            task.cancel()
        await asyncio.gather(*self._clients.values(), return_exceptions=True)

    async def _write(self, chat: int) -> None:
        while True:
            name, text = await self._waiting[chat].get()
            body = {"text": text, "key": f"key-{name}", "conversation": self._conversations.get(chat, "new")}
            answer = await self._until_taken(body)
            self._taken[name] = body["key"]
            conversation = self._conversations.setdefault(chat, answer["conversation"])
            self._moments.happened("written")
            if self._random.random() < POST_AGAIN_SHARE:
                # The client did not trust its eyes.
                again = await self._until_taken(body)
                assert again == answer, f"{name} was {answer}, and the second time {again}"
            assert answer == {"message_id": body["key"], "conversation": conversation}, answer
            self._waiting[chat].task_done()

    async def _until_taken(self, body: Json) -> Json:
        while True:
            self.posts += 1
            try:
                async with self._request("POST", "/api/messages", json=body) as response:
                    if response.status == 202:
                        return await response.json()
                    assert response.status == 503, f"{response.status}: {await response.text()}"
            except (aiohttp.ClientError, TimeoutError):
                pass  # The gateway is down, or died while it took the message.
            await asyncio.sleep(RETRY_SECONDS)

    def _request(self, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        timeout = aiohttp.ClientTimeout(total=POST_SECONDS_MAX)
        return self._session.request(
            method, f"http://127.0.0.1:{self._port}{path}", headers=headers, timeout=timeout, **more
        )

    async def all_in(self) -> None:
        """Raises what a client raised."""
        joins = [asyncio.ensure_future(queue.join()) for queue in self._waiting.values()]
        everything = asyncio.gather(*joins)
        try:
            await asyncio.wait({everything, *self._clients.values()}, return_when=asyncio.FIRST_COMPLETED)
            for client in self._clients.values():
                if client.done():
                    client.result()
        finally:
            everything.cancel()
            await asyncio.gather(everything, return_exceptions=True)

    def acknowledged(self) -> dict[str, str]:
        return dict(self._taken)

    async def journey(self) -> Journey:
        shown: dict[str, list[tuple[str, str]]] = {}
        for chat, conversation in self._conversations.items():
            async with self._request("GET", f"/api/conversations/{conversation}") as response:
                messages: list[Json] = (await response.json())["messages"]
            wrote = _names_of(messages, "user")
            wanted = [name for name in self._taken if name.startswith(f"m{chat}-")]
            assert wrote == wanted, f"chat {chat} shows {wrote} for {wanted}"
            shown[f"m{chat}"] = [
                (message["id"], message["text"]) for message in messages if message["role"] == "assistant"
            ]
        return Journey(self.channel, dict(self._taken), shown, may_be_unknown=False)


def _names_of(messages: Iterable[Json], role: str) -> list[str]:
    return [name for message in messages if message["role"] == role for name in names(message["text"])]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]

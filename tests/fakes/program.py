"""The whole gateway in this process on a home of its own, as people and their programs meet it.

    async with BotApi() as api, program(tmp_path / "home", api) as gateway:
        api.push_text(7, "hello")
        await gateway.quiet()

`OWNER` and `GUEST` are Telegram ids with rights. The second start on the same folder is a restart.
"""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from agent.types import Message, Prompt, Provider, StreamChunk
from gateway.app import App
from gateway.config import Settings
from gateway.library import utc_now
from gateway.readlog import file_name, read_lines
from tests.fakes.bot_api import BotApi
from tests.fakes.scripted_provider import END
from tests.fakes.waiting import until

OWNER = 7
GUEST = 8
ANSWER_CHARS_MAX = 200
TOKEN = "the-token-of-the-page"

Json = dict[str, Any]


def settings_for(api: BotApi | None = None, **sections: Any) -> Settings:
    """The page on a free port; Telegram against `api`; no clock. `sections` add to that."""
    channels: Json = {"inapp": {"port": 0, "token": TOKEN}}
    if api is not None:
        channels["telegram"] = {
            "enabled": True,
            "token": api.token,
            "base_url": api.base_url,
            "owner": OWNER,
            "allow": [GUEST],
        }
    for name, more in sections.pop("channels", {}).items():
        channels[name] = {**channels.get(name, {}), **more}
    return Settings.model_validate({"heartbeat": {"enabled": False}, **sections, "channels": channels})


class EchoProvider:
    """A model that says `re: ` and the first of the person's words; it keeps the prompts. `gate`, while it is unset,
    holds it back."""

    name = "echo"
    model = "echo"
    local = True

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamChunk]:
        self.prompts.append(prompt)
        await self.gate.wait()
        yield StreamChunk("text", text=f"re: {said_last(prompt.messages)[:ANSWER_CHARS_MAX]}")
        for chunk in END:
            yield chunk

    async def close(self) -> None:
        """There is nothing to close."""


def said_last(messages: tuple[Message, ...]) -> str:
    """The person's own words in the newest message, without what the agent put around them."""
    return messages[-1].text.rpartition("</context>")[2].strip()


class Program:
    """A started App, with what a test looks at."""

    def __init__(self, app: App, api: BotApi | None) -> None:
        self.app = app
        self.api = api
        self.home = app.home
        assert app.server is not None
        self.http = aiohttp.ClientSession(app.server.address, headers={"Authorization": f"Bearer {TOKEN}"})

    # -- over HTTP

    async def get(self, path: str, status: int = 200) -> Json:
        async with self.http.get(path) as response:
            body = await response.text()
            assert response.status == status, body
            return json.loads(body)

    async def post(self, path: str, body: Any, status: int = 202) -> Json:
        async with self.http.post(path, data=io.BytesIO(json.dumps(body).encode())) as response:
            answer = await response.text()
            assert response.status == status, answer
            return json.loads(answer)

    async def ask(self, text: str, **fields: Any) -> str:
        """Writes on the page and gives back the answer."""
        posted = await self.post("/api/messages", {"text": text, **fields})
        await self.quiet()
        return (await self.get(f"/api/conversations/{posted['conversation']}"))["messages"][-1]["text"]

    async def channel(self, name: str) -> Json:
        return next(item for item in (await self.get("/api/status"))["channels"] if item["channel"] == name)

    # -- what became of it

    async def quiet(self, timeout_seconds: float = 10.0) -> None:
        """Returns when Telegram has no more for us, and nothing runs, waits or is on its way."""
        await until(self._idle, timeout_seconds)

    async def _idle(self) -> bool:
        app = self.app
        heard = self.api is None or not self.api.pending
        busy = app.queue.running or app.outbox.depth or app.inbox.busy
        return heard and not busy and not await app.store.waiting_count()

    def log(self, chat: int | str = OWNER, channel: str = "telegram") -> list[Json]:
        return list(read_lines(self.home / "workspace" / "readlog" / channel / file_name(str(chat))))

    def logged(self, chat: int | str = OWNER, channel: str = "telegram") -> list[tuple[str, str]]:
        return [(line["dir"], line["text"]) for line in self.log(chat, channel)]

    def sent(self, chat: int = OWNER) -> list[str]:
        assert self.api is not None
        return [message.text for message in self.api.sent if message.chat_id == chat]

    def rows(self, sentence: str) -> list[tuple[Any, ...]]:
        """What another program reads in the database."""
        return rows(self.home, sentence)


def rows(home: Path, sentence: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(home / "hudhud.db")
    try:
        return connection.execute(sentence).fetchall()
    finally:
        connection.close()


@asynccontextmanager
async def program(
    home: Path,
    api: BotApi | None = None,
    *,
    settings: Settings | None = None,
    provider: Provider | None = None,
    now: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Program]:
    """Started on `home`, stopped at the end. Without a `provider` the offline model of the product answers."""
    app = App(home, settings or settings_for(api), now=now, provider=provider)
    await app.start()
    running = Program(app, api)
    try:
        yield running
    finally:
        await running.http.close()
        await app.stop()

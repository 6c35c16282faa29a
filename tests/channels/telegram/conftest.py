"""A Telegram channel beside a Bot API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from channels.channel import ChannelDown, MenuCommand
from channels.message import Address, OutboundMessage
from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings
from tests.fakes.bot_api import BotApi
from tests.fakes.channel_ports import Clock, DictMemory, Inbox, RecordingHealth, context


class Rig:
    """The server, and channels that share one memory: `channel()` is what a restart makes."""

    def __init__(self, api: BotApi, home: Path) -> None:
        self.api = api
        self.home = home
        self.clock = Clock()
        self.health = RecordingHealth()
        self.memory = DictMemory()
        self.inbox = Inbox()

    def channel(self, *, commands: tuple[MenuCommand, ...] = (), **settings: Any) -> TelegramChannel:
        given: dict[str, Any] = {"token": SecretStr(self.api.token), "base_url": self.api.base_url} | settings
        parts = context(
            TelegramSettings(enabled=True, **given), self.home, clock=self.clock, health=self.health, memory=self.memory
        )
        parts = replace(parts, commands=commands)
        return TelegramChannel(parts, sleep=self.clock.sleep)

    @asynccontextmanager
    async def listening(self, channel: TelegramChannel | None = None) -> AsyncGenerator[TelegramChannel]:
        """A channel whose `run` goes on in the background; its end by anything but our own is a failure."""
        channel = channel or self.channel()
        task = asyncio.create_task(channel.run(self.inbox))
        try:
            yield channel
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=2)
            assert task.done()
            assert task.cancelled() or task.exception() is None

    async def down(self, channel: TelegramChannel | None = None) -> ChannelDown:
        """Runs until the channel goes down, and says how."""
        with pytest.raises(ChannelDown) as caught:
            await asyncio.wait_for((channel or self.channel()).run(self.inbox), timeout=5)
        return caught.value


def outbound(chat_id: int | str, text: str, **more: Any) -> OutboundMessage:
    thread_id = more.pop("thread_id", None)
    return OutboundMessage("key-1", Address("telegram", str(chat_id), thread_id), text, **more)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with BotApi() as api:
        yield Rig(api, tmp_path)

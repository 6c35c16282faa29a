"""The channel with fakes around it: a platform, a clock that is turned by hand, an inbox."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from channels.channel import ChannelDown
from channels.message import Address, OutboundMessage
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.settings import WhatsAppSettings
from tests.fakes.channel_ports import Clock, DictMemory, Inbox, RecordingHealth, context
from tests.fakes.waiting import until
from tests.fakes.whatsapp import LIBRARY, ME, MY_LID, OWNER, Platform, reachable


class Rig:
    """One account on a platform, and what outlives a restart of the channel: its memory and its home."""

    def __init__(self, platform: Platform, home: Path) -> None:
        self.platform = platform
        self.home = home
        self.clock = Clock()
        self.health = RecordingHealth()
        self.memory = DictMemory()
        self.inbox = Inbox()
        self.pair()

    def pair(self) -> None:
        """As after a link: a session is there."""
        self.memory.values["account"] = json.dumps({"ids": [ME, MY_LID]})
        (self.home / "whatsapp" / "auth").mkdir(parents=True, exist_ok=True)
        self.platform.is_paired = True

    def unpair(self) -> None:
        self.memory.values.pop("account", None)
        self.platform.is_paired = False

    def channel(self, **settings: Any) -> WhatsAppChannel:
        given = {"owner": OWNER} | settings
        parts = context(
            WhatsAppSettings(enabled=True, **given),
            self.home,
            clock=self.clock,
            health=self.health,
            memory=self.memory,
        )
        return WhatsAppChannel(
            parts, library=LIBRARY, new_client=self.platform.new_client, reach=reachable, sleep=self.clock.sleep
        )

    @asynccontextmanager
    async def listening(self, channel: WhatsAppChannel | None = None) -> AsyncGenerator[WhatsAppChannel]:
        """A channel whose `run` goes on in the background and is connected; its end by anything but our own fails."""
        channel = channel or self.channel()
        before = len(self.health.states)
        task = asyncio.create_task(channel.run(self.inbox))
        try:
            await until(lambda: task.done() or any(state[0] == "connected" for state in self.health.states[before:]))
            yield channel
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=5)
            assert task.done()
            assert task.cancelled() or task.exception() is None

    async def down(self, channel: WhatsAppChannel | None = None) -> ChannelDown:
        """Runs until the channel goes down, and says how."""
        with pytest.raises(ChannelDown) as caught:
            await asyncio.wait_for((channel or self.channel()).run(self.inbox), timeout=10)
        return caught.value

    async def hear(self, *events: Any) -> None:
        """The events happen, and are taken by the channel."""
        self.platform.push(*events)
        await self.platform.until_taken()


def outbound(chat_id: str, text: str, **more: Any) -> OutboundMessage:
    return OutboundMessage("key-1", Address("whatsapp", chat_id), text, **more)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    platform = Platform()
    yield Rig(platform, tmp_path)
    platform.close()

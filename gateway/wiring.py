"""Small pieces that fit one part of the program to another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from agent.mcp import McpServer
from channels.channel import Channel, ChannelDown, NotAccepted
from channels.scheduled.channel import ScheduledChannel
from channels.scheduled.types import ScheduledRun
from gateway.config import Settings
from gateway.health import ChannelHealth
from gateway.outbox import Outbox
from gateway.people import People
from gateway.sentences import Language, language_of, sentence
from gateway.store import Store, StoreError
from heartbeat.types import DueRun, Kind, QueueState

LOG = logging.getLogger(__name__)
_TOLD = "told"
"""The fact of a channel that its owner knows why it is down."""


class FactMemory:
    """`channels.channel.ChannelMemory` of one channel; what cannot be saved is NotAccepted, as with a message."""

    def __init__(self, store: Store, channel: str) -> None:
        self._store = store
        self._channel = channel

    async def get(self, key: str) -> str | None:
        return await self._store.fact(self._channel, key)

    async def put(self, key: str, value: str) -> None:
        await self._saved(self._store.put_fact(self._channel, key, value))

    async def migrate_chat(self, old_chat_id: str, new_chat_id: str) -> None:
        await self._saved(self._store.move_chat(self._channel, old_chat_id, new_chat_id))

    @staticmethod
    async def _saved(work: Awaitable[Any]) -> None:
        try:
            await work
        except StoreError as error:
            raise NotAccepted(str(error)) from error


def mcp_servers(settings: Settings) -> list[McpServer]:
    return [
        McpServer(name, server.command, server.args, server.env, server.url)
        for name, server in settings.mcp.servers.items()
    ]


class EndedChannels:
    """Tells the owner once, on another channel, that one has stopped for good; over restarts, until it was up again."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        people: People,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        now: Callable[[], datetime],
    ) -> None:
        self._language: Language = language_of("", settings.agent.language)
        self._store = store
        self._people = people
        self._outbox = outbox
        self._channels = channels
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()

    async def tell(self, name: str, error: ChannelDown) -> None:
        """The channel is down until a person acts."""
        home = self._people.home_apart_from(name)
        mark = f"{error.state}: {error.detail}"
        if home is None or home.channel not in self._channels or await self._store.fact(name, _TOLD) == mark:
            return
        info, now = self._channels[home.channel].info, self._now()
        text = sentence("channel_ended", self._language).format(channel=name, detail=error.detail, remedy=error.remedy)
        key = f"alert:{name}:{now:%Y%m%d%H%M%S%f}"
        self._outbox.put(await self._store.notice(home, info.conversations, text, key, info.saved_is_sent, now))
        await self._store.put_fact(name, _TOLD, mark)

    def changed(self, channel: ChannelHealth) -> None:
        """Hears of each new state. A channel that is connected again is told of anew when it ends."""
        if channel.state == "connected":
            task = asyncio.create_task(self._forget(channel.channel))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forget(self, name: str) -> None:
        try:
            if await self._store.fact(name, _TOLD):
                await self._store.put_fact(name, _TOLD, "")
        except StoreError as error:
            LOG.warning("%s", error)


class RunQueue:
    """`heartbeat.types.RunQueue`: a due run becomes a message of the scheduled channel."""

    def __init__(self, store: Store, channel: ScheduledChannel) -> None:
        self._store = store
        self._channel = channel

    async def submit(self, run: DueRun) -> None:
        await self._channel.submit(
            ScheduledRun(run.job.kind, run.job.name, run.key, run.due_at, run.job.instruction, run.target)
        )

    async def state(self, kind: Kind, key: str) -> QueueState:
        return await self._store.runs.state_in_queue(kind, key)

"""A channel in memory: what is sent is kept, sends can be told to fail."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import Any

from channels.channel import Accept, ChannelInfo
from channels.message import OutboundMessage, Receipt


class FakeChannel:
    """`outcomes` are used up one a send: an exception is raised, None delivers; when empty, everything is delivered.

    `delivered` holds what arrived, in order. `gate`, when set to an unset Event, holds every send back.
    """

    def __init__(self, name: str = "telegram", **info: Any) -> None:
        self._info = ChannelInfo(name=name, **info)
        self.outcomes: deque[BaseException | None] = deque()
        self.by_chat: dict[str, deque[BaseException | None]] = {}
        self.delivered: list[OutboundMessage] = []
        self.calls = 0
        self.gate: asyncio.Event | None = None
        self.changed = asyncio.Event()

    @property
    def info(self) -> ChannelInfo:
        return self._info

    async def run(self, accept: Accept) -> None:
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> Receipt:
        self.calls += 1
        if self.gate is not None:
            await self.gate.wait()
        outcomes = self.by_chat.get(message.address.chat_id, self.outcomes)
        outcome = outcomes.popleft() if outcomes else None
        if outcome is not None:
            raise outcome
        self.delivered.append(message)
        self.changed.set()
        return Receipt((message.replaces or f"p{len(self.delivered)}",), datetime.now(UTC))

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.delivered]

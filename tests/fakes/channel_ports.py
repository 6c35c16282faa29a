"""What the gateway hands to a channel, for tests: a clock that is turned by hand, health, memory, an inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from channels.channel import ChannelContext, ChannelState, NotAccepted
from channels.message import Accepted, InboundMessage
from gateway.uploads import UploadFolder


class Clock:
    """Time stands still until `advance`; `sleeps` lists every pause that was asked for, in seconds."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
        self.sleeps: list[float] = []
        self._waiting: list[tuple[datetime, asyncio.Future[None]]] = []
        self._changed = asyncio.Condition()

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self.time + timedelta(seconds=seconds), future))
        self.sleeps.append(seconds)
        async with self._changed:
            self._changed.notify_all()
        await future

    def advance(self, seconds: float) -> None:
        """Turns the clock and wakes who slept until then."""
        self.time += timedelta(seconds=seconds)
        for due, future in self._waiting:
            if due <= self.time and not future.done():
                future.set_result(None)
        self._waiting = [(due, future) for due, future in self._waiting if not future.done()]

    async def until_asked(self, times: int) -> None:
        """Until that many pauses were asked for in all."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: len(self.sleeps) >= times)


@dataclass
class RecordingHealth:
    """Every state that was reported, as (state, detail, remedy), and how often news were asked for."""

    states: list[tuple[ChannelState, str, str]] = field(default_factory=list[tuple[ChannelState, str, str]])
    receives: int = 0

    def state(self, state: ChannelState, detail: str = "", remedy: str = "") -> None:
        self.states.append((state, detail, remedy))

    def received(self) -> None:
        self.receives += 1


@dataclass
class DictMemory:
    """A channel's durable facts; they live as long as this object, over channels."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    migrations: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def get(self, key: str) -> str | None:
        return self.values.get(key)

    async def put(self, key: str, value: str) -> None:
        self.values[key] = value

    async def migrate_chat(self, old_chat_id: str, new_chat_id: str, *, renumbered: bool = False) -> None:
        self.migrations.append((old_chat_id, new_chat_id))


class Inbox:
    """The gateway's `accept`: saves each message once, in order; can refuse, wait, or promise an answer."""

    def __init__(self, will_answer: bool = False) -> None:
        self.saved: list[InboundMessage] = []
        self.asked: list[InboundMessage] = []
        self.refusals = 0
        self.refuse: Callable[[InboundMessage], bool] = lambda message: True
        self.open = asyncio.Event()
        self.open.set()
        self.will_answer = will_answer
        self._changed = asyncio.Condition()

    async def __call__(self, message: InboundMessage) -> Accepted:
        self.asked.append(message)
        async with self._changed:
            self._changed.notify_all()
        await self.open.wait()
        if self.refusals and self.refuse(message):
            self.refusals -= 1
            raise NotAccepted("the disk is full")
        is_new = message.dedupe_key not in {known.dedupe_key for known in self.saved}
        if is_new:
            self.saved.append(message)
        async with self._changed:
            self._changed.notify_all()
        return Accepted(message.message_id, message.chat_id, is_new, self.will_answer and is_new)

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.saved]

    async def until_saved(self, count: int) -> None:
        await self._until(lambda: len(self.saved) >= count)

    async def until_asked(self, count: int) -> None:
        await self._until(lambda: len(self.asked) >= count)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(condition)


def context(
    settings: Any,
    home: Path,
    *,
    clock: Clock | None = None,
    health: RecordingHealth | None = None,
    memory: DictMemory | None = None,
    backend: Any = None,
) -> ChannelContext:
    """A channel's context from fakes; what is not given is fresh."""
    return ChannelContext(
        settings=settings,
        home=home,
        health=health or RecordingHealth(),
        memory=memory or DictMemory(),
        uploads=UploadFolder(home / "workspace", (clock or Clock()).now),
        backend=backend,
        now=(clock or Clock()).now,
    )


async def at_once(seconds: float) -> None:
    """A pause that takes no time."""
    del seconds
    await asyncio.sleep(0)

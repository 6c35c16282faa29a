"""How each channel is: its state, and when it last certainly received and sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from channels.channel import ChannelState


@dataclass(slots=True)
class ChannelHealth:
    """The facts of one channel; times are UTC."""

    channel: str
    enabled: bool
    state: ChannelState = "off"
    detail: str = ""
    remedy: str = ""
    last_receive_at: datetime | None = None
    last_send_at: datetime | None = None
    next_retry_at: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "channel": self.channel,
            "enabled": self.enabled,
            "connected": self.state == "connected",
            "state": self.state,
            "detail": self.detail,
            "last_receive_at": _iso(self.last_receive_at),
            "last_send_at": _iso(self.last_send_at),
            "next_retry_at": _iso(self.next_retry_at),
            "remedy": self.remedy,
        }


class Health:
    """All channels of the registry, those switched off included; and whether the program takes messages."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._channels: dict[str, ChannelHealth] = {}
        self.reports: dict[str, ChannelReport] = {}
        self.ready = False
        self.started_at = now()
        self.on_change: Callable[[ChannelHealth], None] | None = None

    def add(self, name: str, *, enabled: bool) -> ChannelReport:
        """Lists a channel; gives the object through which it says how it is."""
        self._channels[name] = ChannelHealth(name, enabled, "starting" if enabled else "off")
        self.reports[name] = ChannelReport(self, self._channels[name], self._now)
        return self.reports[name]

    def sent(self, name: str, at: datetime) -> None:
        if name in self._channels:
            self._channels[name].last_send_at = at

    def known(self, name: str, *, received: datetime | None, sent: datetime | None) -> None:
        """What the database knows from before this start."""
        self._channels[name].last_receive_at = received
        self._channels[name].last_send_at = sent

    def channels(self) -> dict[str, Any]:
        """The shape of `channel_status`."""
        return {"channels": [channel.as_json() for channel in self._channels.values()]}


class ChannelReport:
    """`channels.channel.Health` for one channel."""

    def __init__(self, health: Health, channel: ChannelHealth, now: Callable[[], datetime]) -> None:
        self._health = health
        self._channel = channel
        self._now = now
        self._wake = asyncio.Event()

    def state(self, state: ChannelState, detail: str = "", remedy: str = "") -> None:
        channel = self._channel
        changed = channel.state != state
        channel.state, channel.detail, channel.remedy = state, detail, remedy
        if state == "connected":
            channel.next_retry_at = None
        if changed and self._health.on_change is not None:
            self._health.on_change(channel)

    def received(self) -> None:
        self._channel.last_receive_at = self._now()

    @property
    def is_connected(self) -> bool:
        return self._channel.state == "connected"

    @property
    def last_receive_at(self) -> datetime | None:
        return self._channel.last_receive_at

    def wake(self) -> None:
        """Somebody did something about it: the channel is started again at once, if it is down."""
        self._wake.set()

    async def woken(self) -> None:
        """Until somebody does."""
        await self._wake.wait()
        self._wake.clear()

    def retry_at(self, at: datetime | None) -> None:
        """When the supervisor starts the channel again."""
        self._channel.next_retry_at = at


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds")

"""Linking channels with their accounts, logging them out, and asking them for a sign of life."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from channels.channel import Channel, ChannelDown, HasLink, HasProbe
from gateway.health import ChannelReport


class NoLink(LookupError):
    """That is no channel that is on and can be linked. `str()` is one sentence."""


@dataclass(slots=True)
class Linking:
    """Over the channels that are on; their reports start one of them again."""

    channels: Mapping[str, Channel]
    reports: Mapping[str, ChannelReport]

    def names(self) -> list[str]:
        return [name for name, channel in self.channels.items() if isinstance(channel, HasLink)]

    def state(self, name: str) -> dict[str, Any]:
        """How far the linking has come, as JSON: channel, state, qr, code, detail, version. Raises NoLink."""
        return {"channel": name, **asdict(self._channel(name).link_state)}

    def begin(self, name: str, phone: str | None) -> dict[str, Any]:
        """Asks for a QR, or for a code that is typed on that phone. Raises NoLink, and ValueError for no number."""
        self._channel(name).link(phone)
        if name in self.reports:
            self.reports[name].wake()
        return self.state(name)

    async def logout(self, name: str) -> bool:
        """Gives the account up. False when the platform could not be told. Raises NoLink."""
        return await self._channel(name).logout()

    async def probe(self, without: Collection[str] = ()) -> None:
        """Asks every channel that can be asked, but those; what comes of it is in their states."""
        asked = [name for name, channel in self.channels.items() if isinstance(channel, HasProbe)]
        asked = [name for name in asked if name not in without]
        await asyncio.gather(*(self._probe(name) for name in asked))

    async def _probe(self, name: str) -> None:
        channel: Any = self.channels[name]
        try:
            await channel.probe()
        except ChannelDown as error:
            if name in self.reports:
                self.reports[name].state(error.state, error.detail, error.remedy)

    def _channel(self, name: str) -> HasLink:
        channel = self.channels.get(name)
        if not isinstance(channel, HasLink):
            can = ", ".join(self.names()) or "none"
            raise NoLink(f"{name} is not on, or cannot be linked; those that can: {can}.")
        return channel

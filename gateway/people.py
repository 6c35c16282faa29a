"""Who may talk to the agent: the owner, the few that the owner lets in, and everyone else."""

from __future__ import annotations

from typing import Any

from channels.message import Address, InboundMessage
from channels.registry import CHANNELS
from gateway.config import Settings
from gateway.store.types import Rights


class People:
    """Rights by platform id, from the settings; names never count."""

    def __init__(self, settings: Settings) -> None:
        self._owners: set[tuple[str, str]] = set()
        self._allowed: set[tuple[str, str]] = set()
        self._homes: list[Address] = []
        self._guests: list[Address] = []
        for name in CHANNELS:
            channel: Any = settings.channel(name)
            self._owners |= {(name, person) for person in channel.owner_ids}
            self._allowed |= {(name, person) for person in channel.allowed_ids}
            if channel.enabled:
                # A private chat has its person's id.
                self._guests += [Address(name, person) for person in sorted(channel.allowed_ids)]
            if channel.enabled and channel.home_chat:
                self._homes.append(Address(name, channel.home_chat))

    def rights(self, channel: str, sender_id: str) -> Rights:
        if (channel, sender_id) in self._owners:
            return "owner"
        return "allowed" if (channel, sender_id) in self._allowed else "stranger"

    def rights_of(self, message: InboundMessage) -> Rights:
        """A scheduled run speaks with its author's rights: the owner's."""
        return "owner" if message.origin == "scheduled" else self.rights(message.channel, message.sender_id)

    def home(self) -> Address | None:
        """The owner's home chat: on the channel the owner carries along before the page."""
        return self._homes[-1] if self._homes else None

    def chats(self) -> list[tuple[Address, bool]]:
        """The private chats of the owner (True) and of the people the owner lets in (False), owner first."""
        return [*((home, True) for home in self._homes), *((chat, False) for chat in self._guests)]

    def address(self, target: str) -> Address | None:
        """Where `owner` or `<channel>:<chat>` is; None for `none` and for a channel that there is not."""
        if target == "owner":
            return self.home()
        channel, _, chat = target.partition(":")
        return Address(channel, chat) if chat and channel in CHANNELS else None

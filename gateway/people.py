"""Who may talk to the agent: the owner, the few that the owner lets in, and everyone else."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from channels.message import Address, InboundMessage
from channels.registry import CHANNELS
from gateway.config import Settings
from gateway.limits import PAIRING_SECONDS, PAIRINGS_OPEN_MAX
from gateway.store.persons import Known, Pairing
from gateway.store.types import Rights

PAIR = "pair:"
"""Begins the key of the one message that a stranger may get: a code."""
_CODE_SIGNS = "ACDEFGHJKMNPQRTUVWXY34679"
"""Without signs that pass for others: 0 O, 1 I L, 2 Z, 5 S, 8 B."""
CODE_CHARS = 8


class PeopleStore(Protocol):
    """What is known of people besides the settings. Each raises StoreError."""

    async def known_people(self) -> Known: ...

    async def open_pairing(self, wanted: Pairing, now: datetime, open_max: int) -> bool: ...


class People:
    """Rights by platform id, from the settings and from `hudhud people`; names never count.

    What other programs on this home change is seen after the next `refresh`.
    """

    def __init__(self, settings: Settings, store: PeopleStore | None = None) -> None:
        self._store = store
        self._owners: set[tuple[str, str]] = set()
        self._allowed: set[tuple[str, str]] = set()
        self._homes: list[Address] = []
        self._guests: list[Address] = []
        self._reachable: dict[str, frozenset[str]] = {}
        self._pairs: set[str] = set()
        self._enabled: set[str] = set()
        self._let_in: Mapping[tuple[str, str], str] = {}
        self._moves: Mapping[tuple[str, str], str] = {}
        for name in CHANNELS:
            channel: Any = settings.channel(name)
            self._owners |= {(name, person) for person in channel.owner_ids}
            self._allowed |= {(name, person) for person in channel.allowed_ids}
            reachable: frozenset[str] | None = getattr(channel, "reachable_chats", None)
            if reachable is not None:
                self._reachable[name] = reachable
            if getattr(channel, "strangers", "silent") == "pair":
                self._pairs.add(name)
            if channel.enabled:
                self._enabled.add(name)
                # A private chat has its person's id.
                self._guests += [Address(name, person) for person in sorted(channel.allowed_ids)]
            if channel.enabled and channel.home_chat:
                self._homes.append(Address(name, channel.home_chat))

    async def refresh(self) -> None:
        """Takes up who was let in or put out meanwhile, and which chats moved. Raises StoreError."""
        if self._store is not None:
            known = await self._store.known_people()
            self._let_in = {(person.channel, person.id): person.name for person in known.people}
            self._moves = known.moves

    def is_settled(self, channel: str, sender_id: str) -> bool:
        """Whether the settings alone say who this is; of all others the database is asked."""
        return (channel, sender_id) in self._owners or (channel, sender_id) in self._allowed

    def rights(self, channel: str, sender_id: str) -> Rights:
        person = (channel, sender_id)
        if person in self._owners:
            return "owner"
        return "allowed" if person in self._allowed or person in self._let_in else "stranger"

    def rights_of(self, message: InboundMessage) -> Rights:
        """A scheduled run speaks with its author's rights: the owner's. So does the phone a channel is linked with."""
        return (
            "owner"
            if message.origin == "scheduled" or message.is_own
            else self.rights(message.channel, message.sender_id)
        )

    def reaches(self, address: Address) -> bool:
        """Whether anything may be sent there: to the owner, to people who are let in, to listed groups."""
        chats = self._reachable.get(address.channel)
        chat = address.chat_id
        if chats is None or chat in chats or (address.channel, chat) in self._let_in:
            return True
        return self._moves.get((address.channel, chat)) in chats

    def home(self) -> Address | None:
        """The owner's home chat: on the channel the owner carries along before the page."""
        return self._homes[-1] if self._homes else None

    def chats(self) -> list[tuple[Address, bool]]:
        """The private chats of the owner (True) and of the people the owner lets in (False), owner first."""
        let_in = [Address(channel, person) for channel, person in self._let_in if channel in self._enabled]
        guests = dict.fromkeys([*self._guests, *let_in])
        return [*((home, True) for home in self._homes), *((chat, False) for chat in guests)]

    def address(self, target: str) -> Address | None:
        """Where `owner` or `<channel>:<chat>` is; None for `none` and for a channel that there is not."""
        if target == "owner":
            return self.home()
        channel, _, chat = target.partition(":")
        return Address(channel, chat) if chat and channel in CHANNELS else None

    async def new_code(self, message: InboundMessage, now: datetime) -> Pairing | None:
        """A code for a stranger who writes in private, where the settings say so; None when there is none to give: they
        have one, or too many are open. Raises StoreError."""
        is_private = not message.is_group and message.chat_id == message.sender_id
        if self._store is None or message.channel not in self._pairs or not is_private:
            return None
        code = "".join(secrets.choice(_CODE_SIGNS) for _ in range(CODE_CHARS))
        until = now + timedelta(seconds=PAIRING_SECONDS)
        wanted = Pairing(code, message.channel, message.sender_id, message.sender_name, until)
        return wanted if await self._store.open_pairing(wanted, now, PAIRINGS_OPEN_MAX) else None


def typed_code(text: str) -> str:
    """A code as people type it: whatever the case, with spaces or hyphens."""
    return "".join(sign for sign in text.upper() if sign.isalnum())

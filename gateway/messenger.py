"""Messages that a tool sends: to known people only, one delivery row each, never twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from mimetypes import guess_type
from pathlib import Path

from agent.capabilities.messages.tools import Delivery as Sent
from agent.capabilities.messages.tools import Recipient
from channels.channel import Channel
from channels.message import Address, Attachment
from channels.registry import CHANNELS
from gateway.limits import SEND_WAIT_SECONDS
from gateway.outbox import Outbox
from gateway.people import People
from gateway.store import Store
from gateway.store.types import Delivery
from gateway.uploads import kind_of


class Messenger:
    """`agent.capabilities.messages.tools.Messenger` over the outbox."""

    def __init__(
        self,
        store: Store,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        people: People,
        workspace: Path,
        now: Callable[[], datetime],
        *,
        wait_seconds: float = SEND_WAIT_SECONDS,
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._channels = channels
        self._people = people
        self._workspace = workspace
        self._now = now
        self._wait_seconds = wait_seconds

    async def recipients(self) -> Sequence[Recipient]:
        known: list[Recipient] = []
        await self._people.refresh()
        for address, is_owner in self._people.chats():
            if address.channel not in self._channels:
                continue
            name = await self._store.name_in(address.session_key)
            names = (*(("owner",) if is_owner else ()), *((name,) if name else ()))
            known.append(Recipient(address.session_key, names))
        return known

    async def here(self, session_key: str) -> Recipient | None:
        address = await self._store.address_of(session_key)
        return Recipient(session_key) if address is not None and address.channel in CHANNELS else None

    async def send(self, key: str, address: str, text: str, file: str | None = None) -> Sent:
        delivery = await self._store.delivery(key)
        if delivery is None:
            channel, _, chat = address.partition(":")
            to = await self._store.address_of(address) or Address(channel, chat)
            info = self._channels[to.channel].info
            files = () if file is None else (await asyncio.to_thread(self._attachment, file),)
            delivery = await self._store.notice(
                to, info.conversations, text, key, info.saved_is_sent, self._now(), role="assistant", attachments=files
            )
            self._outbox.put(delivery)
        return _sent(await self._outbox.settled(delivery, self._wait_seconds))

    def _attachment(self, path: str) -> Attachment:
        file = self._workspace / path
        mime = guess_type(file.name)[0]
        return Attachment(kind_of(mime), file.name, path, mime, file.stat().st_size)


def _sent(delivery: Delivery) -> Sent:
    match delivery.state:
        case "sent":
            return Sent("sent")
        case "unknown" | "sending":
            return Sent("unknown", _sentence(delivery.reason or "the line broke while it was sent"))
        case "failed" | "expired" | "suppressed":
            return Sent("failed", _sentence(delivery.reason or "it was not sent"))
        case "planned" | "retry":
            return Sent("waiting")


def _sentence(reason: str) -> str:
    return reason[:1].upper() + reason[1:].rstrip(".") + "."

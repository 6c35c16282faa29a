"""From an event of the library to the gateway: written down, brought to `accept` in order, then taken out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from channels.channel import Accept, ChannelContext, NotAccepted
from channels.message import Address, InboundMessage
from channels.text import clean
from channels.whatsapp import wire
from channels.whatsapp.ids import Identities, id_of, is_group, is_hidden, user_of
from channels.whatsapp.journal import Entry, Journal
from channels.whatsapp.library import Library
from channels.whatsapp.limits import (
    ACCEPT_PAUSES_SECONDS,
    HISTORY_BATCH_MESSAGES,
    QUOTABLE_KEPT,
    SYNC_SECONDS_MAX,
    TITLE_SECONDS_MAX,
)
from channels.whatsapp.session import NotConnected, Session
from channels.whatsapp.settings import WhatsAppSettings

LOG = logging.getLogger(__name__)

_SAVE_REMEDY = "Free space on the disk, or end the program that holds the database; nothing is lost meanwhile."
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OverflowError)


class Receiver:
    """What comes in. `accept` None: nobody listens, events are only written down. `ids` of the account: `mine`."""

    def __init__(
        self,
        context: ChannelContext,
        library: Library,
        ids: Identities,
        journal: Journal,
        session: Callable[[], Session | None],
        sleep: Callable[[float], Awaitable[None]],
        answers: Callable[[Address], None],
    ) -> None:
        settings: WhatsAppSettings = context.settings
        self.accept: Accept | None = None
        self.mine: frozenset[str] = frozenset()
        self._syncing_until: datetime | None = None
        self._context = context
        self._memory = context.memory
        self._library = library
        self._ids = ids
        self._journal = journal
        self._session = session
        self._sleep = sleep
        self._answers = answers
        self._known = settings.owner_ids | settings.allowed_ids
        self._rules = wire.Rules(frozenset(settings.groups), settings.require_mention)
        self._order = asyncio.Lock()
        self._unmapped: set[str] | None = None
        self._asked: set[str] = set()
        self._refused: set[str] = set()
        self._titles: dict[str, str | None] = {}
        self._timers: dict[str, int] = {}
        self._sent: set[str] = set()
        self._arabic: set[str] = set()
        self._quotable: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()

    # -- events

    def keep(self, kind: int, data: bytes) -> Entry | None:
        """Writes an event down. Runs on the library's thread."""
        try:
            return self._journal.put(kind, data)
        except OSError as error:
            LOG.error("A message from WhatsApp cannot be written down (%s); it is in memory only.", error.strerror)
            return None

    async def replay(self) -> None:
        """Brings what an earlier run left, in order; whatever comes meanwhile waits."""
        async with self._order:
            for entry in tuple(self._journal.waiting()):
                event_type = self._library.events.INT_TO_EVENT.get(entry.kind)
                try:
                    event = event_type.FromString(entry.data()) if event_type is not None else None
                except (OSError, self._library.protobuf.DecodeError) as error:
                    LOG.warning("%s cannot be read and is left out: %s", entry.path, error)
                    event = None
                if event is not None:
                    await self._bring(event)
                self._journal.done(entry)

    async def take(self, event: Any, entry: Entry | None) -> None:
        """Brings one event to the gateway; what nobody listens for stays written down."""
        async with self._order:
            if self.accept is None:
                return
            self._context.health.received()
            await self._bring(event)
            if entry is not None:
                self._journal.done(entry)

    async def _bring(self, event: Any) -> None:
        """However long that takes. An event that cannot be read is set aside with a warning."""
        failures = 0
        while True:
            try:
                await self._read(event)
                break
            except NotAccepted as error:
                if failures == 0:
                    self._context.health.state("degraded", str(error), _SAVE_REMEDY)
                    LOG.error("WhatsApp messages wait because they cannot be saved: %s", error)
                await self._sleep(ACCEPT_PAUSES_SECONDS[min(failures, len(ACCEPT_PAUSES_SECONDS) - 1)])
                failures += 1
            except _UNREADABLE as error:
                LOG.warning(
                    "A message from WhatsApp cannot be read and is left out: %s: %s", type(error).__name__, error
                )
                return
        if failures and self._session() is not None:
            self._context.health.state("connected")

    async def _read(self, event: Any) -> None:
        match event.DESCRIPTOR.name:
            case "Message":
                envelope = wire.read_event(event, self._context.now())
                if envelope is not None:
                    await self._heard(envelope)
            case "HistorySync":
                await self._history(event.Data)
            case _:
                await self._group_changed(event)

    async def _heard(self, envelope: wire.Envelope) -> None:
        message = await self._prepared(envelope)
        if message is not None:
            await self._accepted(message)

    async def _prepared(self, envelope: wire.Envelope) -> InboundMessage | None:
        """The message in an envelope, with all that is known about its chat; None when there is none for us."""
        await self.learn(envelope.pairs)
        for person in dict.fromkeys((envelope.chat, envelope.sender)):
            if not await self._look_up(person):
                await self._note_unmapped(person)
        if envelope.is_own and await self._was_sent(envelope.message_id):
            return None
        chat = self._ids.one(envelope.chat)
        me = wire.Me(self.mine, "ar" if chat in self._arabic else "en")
        heard = wire.read(envelope, me, self._rules, self._ids.one, self._context.now())
        if heard.timer_seconds is not None:
            await self.set_timer(chat, heard.timer_seconds)
        message = heard.message
        if message is None:
            return None
        self._remember(message.chat_id, message.message_id, envelope.sender, message.text)
        self._note_language(message.chat_id, message.text)
        if message.is_group:
            message = replace(message, chat_title=await self._title(message.chat_id))
        if message.wants_answer and self._is_syncing:
            message = replace(message, more_may_come=True)
        return message

    async def _accepted(self, message: InboundMessage) -> None:
        assert self.accept is not None
        accepted = await self.accept(message)
        if accepted.will_answer:
            self._answers(message.address)
        elif accepted.is_new and message.wants_answer:
            self._note_refusal(message.chat_id, message.sender_id)

    def syncing(self) -> None:
        """What was sent while we were away comes now, in a row: a chat's messages get one answer."""
        self._asked.clear()
        self._syncing_until = self._context.now() + timedelta(seconds=SYNC_SECONDS_MAX)

    def synced(self) -> None:
        self._syncing_until = None

    @property
    def _is_syncing(self) -> bool:
        return self._syncing_until is not None and self._context.now() < self._syncing_until

    async def _history(self, sync: Any) -> None:
        await self.learn(wire.history_pairs(sync))
        for chat, seconds in wire.history_timers(sync).items():
            await self.set_timer(self._ids.one(chat), seconds)
        for chat, title in wire.history_titles(sync).items():
            await self._set_title(chat, title)
        batch: list[wire.Envelope] = []
        for envelope in wire.read_history(sync, wire.Me(self.mine), self._context.now()):
            batch.append(envelope)
            if len(batch) == HISTORY_BATCH_MESSAGES:
                await self._heard_all(batch)
                batch = []
        await self._heard_all(batch)

    async def _heard_all(self, envelopes: list[wire.Envelope]) -> None:
        """Many at once: they share the commits."""
        prepared = [await self._prepared(envelope) for envelope in envelopes]
        work = [self._accepted(message) for message in prepared if message is not None]
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _group_changed(self, event: Any) -> None:
        chat = id_of(event.JID)
        if event.HasField("Ephemeral"):
            ephemeral = event.Ephemeral
            await self.set_timer(chat, int(ephemeral.DisappearingTimer) if ephemeral.IsEphemeral else 0)
        if event.HasField("Name"):
            await self._set_title(chat, clean(event.Name.Name).strip())

    # -- who is who

    async def load(self) -> None:
        """What is remembered of the account and of the people that the settings name by a hidden id."""
        account = _object(await self._memory.get("account"))
        self.mine = frozenset(map(str, account.get("ids", ())))
        await self.learn(wire.pairs_of(self.mine))
        for person in self._known:
            await self._look_up(person)

    async def set_account(self, device: Any) -> None:
        """`device`: what the library says about the account we are linked with."""
        ids = [found for found in (id_of(device.JID), id_of(device.LID)) if found]
        if not ids:
            return
        self.mine = frozenset(ids)
        await self._memory.put("account", json.dumps({"ids": ids}))
        await self.learn(wire.pairs_of(self.mine))

    async def forget_account(self) -> None:
        """There is no account any more; the next start dials nobody before it is linked."""
        if self.mine:
            self.mine = frozenset()
            await self._memory.put("account", "")

    async def learn(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """Takes in which ids are one person. Chats that were two become one, older lines included."""
        for hidden, phone in pairs:
            if not self._ids.learn(hidden, phone):
                continue
            await self._part_from_earlier(hidden, phone)
            if await self._memory.get(_fact(hidden)) != phone:
                await self._memory.put(_fact(hidden), phone)
            unmapped = await self._unmapped_ids()
            one = self._ids.one(hidden)
            if hidden in unmapped and one != hidden:
                await self._memory.migrate_chat(hidden, one)
            if one != phone:
                await self._memory.migrate_chat(phone, one)
            if hidden in unmapped:
                unmapped.discard(hidden)
                await self._memory.put("unmapped", json.dumps(sorted(unmapped)))

    async def _part_from_earlier(self, hidden: str, phone: str) -> None:
        """Whoever had this number before is somebody else, with a chat apart."""
        before = await self._memory.get(f"pn:{user_of(phone)}")
        if before and before != hidden and await self._memory.get(_fact(before)) == phone:
            await self._memory.put(_fact(before), "")
            await self._memory.migrate_chat(before, before)
        if before != hidden:
            await self._memory.put(f"pn:{user_of(phone)}", hidden)

    async def _look_up(self, person: str) -> bool:
        """Finds the phone of a hidden id: remembered here, or known to the library. False when nobody knows it."""
        if not is_hidden(person) or self._ids.knows(person):
            return True
        phone = await self._memory.get(_fact(person)) or await self._ask_for_phone(person)
        if phone:
            await self.learn(((person, phone),))
        return bool(phone)

    async def _note_unmapped(self, person: str) -> None:
        unmapped = await self._unmapped_ids()
        if person not in unmapped:
            unmapped.add(person)
            await self._memory.put("unmapped", json.dumps(sorted(unmapped)))

    async def _ask_for_phone(self, person: str) -> str | None:
        session = self._session()
        if session is None or person in self._asked:
            return None
        try:
            found = await session.call("get_pn_from_lid", self.jid(person))
        except TimeoutError:
            self._asked.add(person)  # until the next connection: hundreds of old messages wait behind it
            return None
        except (NotConnected, self._library.errors.NeonizeError):
            return None
        self._asked.add(person)
        return id_of(found) or None

    async def _unmapped_ids(self) -> set[str]:
        """Hidden ids under which something was saved while nobody knew their phone."""
        if self._unmapped is None:
            stored = _object(await self._memory.get("unmapped"), list)
            self._unmapped = set(map(str, stored))
        return self._unmapped

    def jid(self, any_id: str) -> Any:
        """An id as the library wants it; it needs every field."""
        user, _, server = any_id.partition("@")
        return self._library.proto.JID(User=user, Server=server, RawAgent=0, Device=0, Integrator=0, IsEmpty=not user)

    def _note_refusal(self, chat: str, sender: str) -> None:
        """Says once why somebody who may be allowed gets no answer."""
        if not is_hidden(sender) or sender in self._refused:
            return
        self._refused.add(sender)
        LOG.warning(
            "WhatsApp: messages of %s in %s are not answered: its phone number is not known (yet), so it cannot be "
            "found in [channels.whatsapp] owner and allow. If you know who it is, its id can be put there.",
            sender,
            chat,
        )

    # -- what is remembered of chats and messages

    async def was_sent(self, message_id: str, at: str) -> None:
        """An id of our own: its echo is none of the owner's words. Raises NotAccepted; then only this run knows it."""
        try:
            await self._memory.put(f"sent:{message_id}", at)
        except NotAccepted:
            self._sent.add(message_id)
            raise

    async def _was_sent(self, message_id: str) -> bool:
        return message_id in self._sent or await self._memory.get(f"sent:{message_id}") is not None

    async def timer_seconds(self, chat: str) -> int:
        """How long messages of a chat stay; 0: for good."""
        if chat not in self._timers:
            stored = await self._memory.get(f"timer:{chat}") or ""
            self._timers[chat] = int(stored) if stored.isdigit() else 0
        return self._timers[chat]

    async def set_timer(self, chat: str, seconds: int) -> None:
        if await self.timer_seconds(chat) != seconds:
            await self._memory.put(f"timer:{chat}", str(seconds))
            self._timers[chat] = seconds

    async def _title(self, chat: str) -> str | None:
        if chat not in self._titles:
            self._titles[chat] = await self._memory.get(f"title:{chat}")
            session = self._session()
            if self._titles[chat] is None and session is not None:
                try:
                    info = await session.call("get_group_info", self.jid(chat), seconds_max=TITLE_SECONDS_MAX)
                    await self._set_title(chat, clean(info.GroupName.Name).strip())
                    if info.GroupEphemeral.IsEphemeral:
                        await self.set_timer(chat, int(info.GroupEphemeral.DisappearingTimer))
                except (NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
                    LOG.debug("The name of %s is not known: %s", chat, error)
        return self._titles[chat]

    async def _set_title(self, chat: str, title: str) -> None:
        if title and is_group(chat) and self._titles.get(chat) != title:
            await self._memory.put(f"title:{chat}", title)
            self._titles[chat] = title

    def _remember(self, chat: str, message_id: str, sender: str, text: str) -> None:
        self._quotable[chat, message_id] = (sender, text)
        if len(self._quotable) > QUOTABLE_KEPT:
            self._quotable.popitem(last=False)

    def _note_language(self, chat: str, text: str) -> None:
        """A notice comes in the language of what was written there last."""
        if any(letter.isalpha() for letter in text):
            is_arabic = any("\u0600" <= letter <= "\u06ff" for letter in text)
            (self._arabic.add if is_arabic else self._arabic.discard)(chat)

    def quotable(self, chat: str, message_id: str) -> tuple[str, str] | None:
        """Author and text of a message that came lately: WhatsApp wants both in a reply to it."""
        return self._quotable.get((chat, message_id))


def _fact(hidden: str) -> str:
    return f"lid:{user_of(hidden)}"


def _object(stored: str | None, kind: type[Any] = dict) -> Any:
    """What was stored as JSON; an empty one where nothing was, or nothing of that kind."""
    try:
        found = json.loads(stored or "null")
    except ValueError:
        return kind()
    return found if isinstance(found, kind) else kind()

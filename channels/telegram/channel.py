"""Telegram: long polling that confirms only what is saved, and sending with one clear outcome each."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Any

import telegram
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, TelegramError

from channels.channel import (
    Accept,
    ChannelContext,
    ChannelDown,
    ChannelInfo,
    NotAccepted,
    SendError,
    SendRefused,
    SendRetry,
    SendUnknown,
)
from channels.message import Address, InboundMessage, OutboundMessage, Receipt
from channels.telegram import wire
from channels.telegram.format import Part, render
from channels.telegram.limits import (
    ACCEPT_PAUSES_SECONDS,
    ALBUMS_REMEMBERED,
    OFFSET_DAYS_MAX,
    POLL_SECONDS,
    SENDS_IN_FLIGHT_MAX,
    TYPING_IN_FLIGHT_MAX,
)
from channels.telegram.request import AiohttpRequest, Flooded, LineBroke, NotSent, RawBot
from channels.telegram.settings import TelegramSettings
from channels.telegram.typing_sign import Sleep, TypingSigns

log = logging.getLogger(__name__)

_Item = InboundMessage | wire.Migration

_STYLE = (
    "Telegram shows bold, italic, strikethrough, code, links, quotes and lists; a table appears as monospaced text. "
    "People read it on a phone: short paragraphs."
)
_NOT_BOT_API = "the server does not answer like a Bot API"
_REMEDY = {
    "rejected": "Get a token from @BotFather, put it under [channels.telegram] as token, and start again.",
    "conflict": "Stop the other program that uses this token, or revoke the token at @BotFather and use the new one.",
    "unreachable": "Check the network and [channels.telegram] base_url; it is tried again by itself.",
    "degraded": "Nothing to do: it is tried again by itself.",
}
_SAVE_REMEDY = "Free space on the disk, or end the program that holds the database; nothing is lost meanwhile."


class TelegramChannel:
    """One bot. `run` polls; `send` works without it. The line is open as long as either needs it."""

    def __init__(self, context: ChannelContext, *, sleep: Sleep = asyncio.sleep) -> None:
        settings: TelegramSettings = context.settings
        self.info = ChannelInfo("telegram", style=_STYLE)
        self._context = context
        self._sleep = sleep
        self._token = settings.token.get_secret_value().strip()
        self._server = settings.base_url.rstrip("/")
        self._groups = set(settings.groups)
        self._require_mention = settings.require_mention
        self._request = AiohttpRequest(self._server, self._token)
        self._bot: RawBot | None = None
        self._me: wire.Bot | None = None
        self._offset: int | None = None
        self._remembered = False
        self._in_flight = asyncio.Semaphore(SENDS_IN_FLIGHT_MAX)
        self._typing_in_flight = asyncio.Semaphore(TYPING_IN_FLIGHT_MAX)
        self._typing = TypingSigns(self._show_typing, sleep)
        self._albums: OrderedDict[str, None] = OrderedDict()
        # At DEBUG the library logs addresses, and the token is part of them.
        for name in ("telegram", "httpx", "httpcore"):
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))

    # -- listening

    async def run(self, accept: Accept) -> None:
        """Polls until cancelled. Raises ChannelDown; what was not accepted then comes again with the next run."""
        async with self._request:
            try:
                await self._listen(accept)
            except TelegramError as error:
                raise self._down(error) from error
            finally:
                await self._typing.end_all()

    async def _listen(self, accept: Accept) -> None:
        bot, me = await self._sign_in()
        await self._remember(me)
        # The first request returns at once, so that "connected" is known at once.
        patience_seconds = 0
        while True:
            updates = await bot.updates(self._offset, patience_seconds)
            if not isinstance(updates, list):
                raise LineBroke(_NOT_BOT_API)
            if patience_seconds == 0:
                self._context.health.state("connected")
                patience_seconds = POLL_SECONDS
            self._context.health.received()
            if updates:
                self._offset = await self._take(updates, me, accept)  # pyright: ignore[reportUnknownArgumentType]
                await self._store_offset(me)

    async def _sign_in(self) -> tuple[RawBot, wire.Bot]:
        bot = self._open()
        if self._me is None:
            try:
                user = await bot.get_me()
            except (TypeError, KeyError, AttributeError, ValueError) as error:
                raise LineBroke(_NOT_BOT_API) from error
            self._me = wire.Bot(str(user.id), user.username or "")
        await bot.delete_webhook(drop_pending_updates=False)
        return bot, self._me

    def _open(self) -> RawBot:
        if self._bot is None:
            address = f"{self._server}/bot"
            self._bot = RawBot(self._token, base_url=address, request=self._request, get_updates_request=self._request)
        return self._bot

    async def _take(self, updates: list[Any], me: wire.Bot, accept: Accept) -> int:
        """Brings every update to `accept`, however long that takes; returns the offset that confirms them all."""
        numbers = [number for number in map(wire.update_id, updates) if number is not None]
        if not numbers:
            raise LineBroke(_NOT_BOT_API)
        waiting = self._read(updates, me)
        failures = 0
        while True:
            waiting, reason = await self._accept_all(waiting, accept)
            if not waiting:
                break
            if failures == 0:
                self._context.health.state("degraded", reason, _SAVE_REMEDY)
                log.error("Telegram messages wait because they cannot be saved: %s", reason)
            await self._sleep(ACCEPT_PAUSES_SECONDS[min(failures, len(ACCEPT_PAUSES_SECONDS) - 1)])
            failures += 1
        if failures:
            self._context.health.state("connected")
        return max(numbers) + 1

    def _read(self, updates: list[Any], me: wire.Bot) -> list[_Item]:
        """What is for us in the updates, in order. One that cannot be read is set aside with a warning."""
        items: list[_Item] = []
        for update in updates:
            number = wire.update_id(update)
            if number is None:
                log.warning("Telegram sent an update without a number; it is left out.")
                continue
            rules = wire.GroupRules(frozenset(self._groups), self._require_mention)
            try:
                found = wire.read_update(update, me, rules, self._context.now())
            except wire.BadUpdate as error:
                log.warning("Telegram update %d cannot be read and is left out: %s", number, error)
                continue
            if isinstance(found, InboundMessage):
                found = self._one_notice_an_album(found, wire.album_of(update))
            elif found is not None and found.old_chat_id in self._groups:
                self._groups.add(found.new_chat_id)
            if found is not None:
                items.append(found)
        return items

    def _one_notice_an_album(self, message: InboundMessage, album: str | None) -> InboundMessage:
        if album is None:
            return message
        known = album in self._albums
        self._albums[album] = None
        if len(self._albums) > ALBUMS_REMEMBERED:
            self._albums.popitem(last=False)
        return dataclasses.replace(message, notice=None) if known else message

    async def _accept_all(self, items: list[_Item], accept: Accept) -> tuple[list[_Item], str]:
        """Chats side by side, each in its order. Returns what could not be saved, in order, and why."""
        lanes: dict[str, list[_Item]] = {}
        # A migration joins two chats: then everything keeps to one order.
        moves = any(isinstance(item, wire.Migration) for item in items)
        for item in items:
            key = "" if moves or isinstance(item, wire.Migration) else item.chat_id
            lanes.setdefault(key, []).append(item)
        outcomes = await asyncio.gather(
            *(self._accept_lane(lane, accept) for lane in lanes.values()), return_exceptions=True
        )
        left: list[_Item] = []
        reason = ""
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            left += outcome[0]
            reason = outcome[1] or reason
        return left, reason

    async def _accept_lane(self, lane: list[_Item], accept: Accept) -> tuple[list[_Item], str]:
        for index, item in enumerate(lane):
            try:
                if isinstance(item, wire.Migration):
                    await self._migrate(item)
                    continue
                accepted = await accept(item)
            except NotAccepted as error:
                return lane[index:], str(error)
            if accepted.will_answer:
                self._typing.start(item.address)
        return [], ""

    # -- what is remembered

    async def _remember(self, me: wire.Bot) -> None:
        """Once per start: the new ids of groups that moved, and the offset."""
        if self._remembered:
            return
        for group in tuple(self._groups):
            moved = await self._context.memory.get(f"migrated:{group}")
            if moved:
                self._groups.add(moved)
        self._offset = _offset_of(await self._context.memory.get(f"offset:{me.id}"), self._server, self._context.now())
        if self._offset is None:
            log.warning(
                "No usable Telegram offset is stored: everything Telegram still holds is looked at again; "
                "what was answered is not answered twice."
            )
        self._remembered = True

    async def _store_offset(self, me: wire.Bot) -> None:
        value = {"offset": self._offset, "at": self._context.now().isoformat(), "server": self._server}
        try:
            await self._context.memory.put(f"offset:{me.id}", json.dumps(value))
        except NotAccepted:
            # It only spares the next start some work.
            log.warning("The Telegram offset could not be stored.")

    async def _migrate(self, move: wire.Migration) -> None:
        await self._context.memory.migrate_chat(move.old_chat_id, move.new_chat_id)
        await self._context.memory.put(f"migrated:{move.old_chat_id}", move.new_chat_id)
        if move.old_chat_id in self._groups:
            self._groups.add(move.new_chat_id)

    # -- sending

    async def send(self, message: OutboundMessage) -> Receipt:
        """Sends the parts that are not in `sent_ids` yet. The receipt and each error name all parts that arrived.

        Raises ChannelDown, SendRetry, SendRefused, SendUnknown. No request is made twice, but for a group that
        moved (the same text to its new id) and for refused formatting (that part once as plain text).
        """
        self._typing.end(message.address)
        parts = render(message.text)
        if not parts:
            raise SendRefused("there is no visible text in it")
        sent = list(message.sent_ids)
        chat_id = message.address.chat_id
        async with self._request:
            try:
                for part in parts[len(sent) :]:
                    reply_to = None if sent else message.reply_to
                    thread_id = message.address.thread_id
                    try:
                        number = await self._send_part(chat_id, thread_id, reply_to, part)
                    except ChatMigrated as moved:
                        move = wire.Migration(chat_id, str(moved.new_chat_id))
                        await self._migrate(move)
                        chat_id = move.new_chat_id
                        number = await self._send_part(chat_id, None, None, part)
                    sent.append(number)
            except NotAccepted as error:
                raise SendRetry(str(error), sent_ids=tuple(sent)) from error
            except TelegramError as error:
                raise self._send_error(error, tuple(sent)) from error
        return Receipt(tuple(sent), self._context.now())

    async def _send_part(self, chat_id: str, thread_id: str | None, reply_to: str | None, part: Part) -> str:
        try:
            return await self._send_once(chat_id, thread_id, reply_to, part)
        except BadRequest as error:
            if "can't parse entities" not in str(error).casefold():
                raise
            log.warning("Telegram refused the formatting of a part; it goes out as plain text: %s", error)
            return await self._send_once(chat_id, thread_id, reply_to, Part(part.text))

    async def _send_once(self, chat_id: str, thread_id: str | None, reply_to: str | None, part: Part) -> str:
        entities = [
            telegram.MessageEntity(e.type, e.offset, e.length, url=e.url, language=e.language) for e in part.entities
        ]
        reply = None
        if reply_to is not None and reply_to.isdigit():
            reply = telegram.ReplyParameters(int(reply_to), allow_sending_without_reply=True)
        try:
            async with self._in_flight:
                message = await self._open().send_message(
                    _number_or_name(chat_id),
                    part.text,
                    entities=entities or None,
                    message_thread_id=_topic(thread_id),
                    reply_parameters=reply,
                )
                return str(message.message_id)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise LineBroke(f"Telegram took it, but its answer cannot be read: {type(error).__name__}") from error

    async def _show_typing(self, address: Address) -> None:
        try:
            async with self._typing_in_flight:
                await self._open().send_chat_action(
                    _number_or_name(address.chat_id), "typing", message_thread_id=_topic(address.thread_id)
                )
        except TelegramError as error:
            log.debug("The typing sign did not get through: %s", error)

    # -- errors: theirs become ours

    def _down(self, error: TelegramError) -> ChannelDown:
        match error:
            case InvalidToken():
                detail = "Telegram rejected the token"
                return ChannelDown("rejected", detail, remedy=_REMEDY["rejected"], terminal=True)
            case Conflict():
                return ChannelDown("conflict", "another poller uses this token", remedy=_REMEDY["conflict"])
            case Flooded():
                seconds = error.after_seconds
                return ChannelDown("degraded", str(error), remedy=_REMEDY["degraded"], retry_after_seconds=seconds)
            case NotSent() | LineBroke():
                return ChannelDown("unreachable", self._safe(error), remedy=_REMEDY["unreachable"])
            case _:
                return ChannelDown("degraded", self._safe(error), remedy=_REMEDY["degraded"])

    def _send_error(self, error: TelegramError, sent_ids: tuple[str, ...]) -> SendError | ChannelDown:
        reason = self._safe(error)
        match error:
            case Flooded():
                return SendRetry(reason, after_seconds=error.after_seconds, sent_ids=sent_ids)
            case NotSent():
                return SendRetry(reason, sent_ids=sent_ids)
            case InvalidToken():
                # ChannelDown cannot say what arrived, so with parts out it is a retry.
                return SendRetry(reason, sent_ids=sent_ids) if sent_ids else self._down(error)
            case Forbidden() | BadRequest() | ChatMigrated():
                return SendRefused(reason, sent_ids=sent_ids)
            case _:
                return SendUnknown(reason, sent_ids=sent_ids)

    def _safe(self, error: TelegramError) -> str:
        text = str(error)
        return text.replace(self._token, "<token>") if self._token else text


def _offset_of(stored: str | None, server: str, now: datetime) -> int | None:
    """The offset in what `_store_offset` wrote; None when it is damaged, too old, or of another server."""
    try:
        data: Any = json.loads(stored or "")
        offset, at = data["offset"], datetime.fromisoformat(data["at"])
        fresh = timedelta(0) <= now - at <= timedelta(days=OFFSET_DAYS_MAX)
        return offset if isinstance(offset, int) and fresh and data["server"] == server else None
    except (ValueError, TypeError, KeyError):
        return None


def _topic(thread_id: str | None) -> int | None:
    return int(thread_id) if thread_id is not None and thread_id.isdigit() and thread_id != wire.GENERAL_TOPIC else None


def _number_or_name(chat_id: str) -> int | str:
    """Chats are numbers; a public channel may be named `@name`."""
    return int(chat_id) if chat_id.lstrip("-").isdigit() else chat_id

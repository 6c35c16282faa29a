"""Taking updates: each is read, brought to `accept`, and confirmed to Telegram only when it is saved."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from channels.channel import Accept, ChannelContext, NotAccepted
from channels.message import Accepted, Address
from channels.telegram import wire
from channels.telegram.limits import ACCEPT_PAUSES_SECONDS, ALBUMS_REMEMBERED, OFFSET_DAYS_MAX
from channels.telegram.request import LineBroke

log = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[None]]
NOT_BOT_API = "the server does not answer like a Bot API"
_SAVE_REMEDY = "Free space on the disk, or end the program that holds the database; nothing is lost meanwhile."


class Taker:
    """Brings updates to the gateway. `groups` are the ids it answers in; `typing` shows the sign, `answered` tells
    Telegram that a pressed button was noticed."""

    def __init__(
        self,
        context: ChannelContext,
        groups: set[str],
        require_mention: bool,
        sleep: Sleep,
        typing: Callable[[Address], None],
        answered: Callable[[wire.Pressed, Accepted], None],
    ) -> None:
        self._context = context
        self.groups = groups
        self._require_mention = require_mention
        self._sleep = sleep
        self._typing = typing
        self._answered = answered
        self._albums: OrderedDict[str, bool] = OrderedDict()

    async def take_all(self, updates: list[Any], me: wire.Bot, accept: Accept) -> int:
        """Brings every update to `accept`, however long that takes; returns the offset that confirms them all."""
        numbers = [number for number in map(wire.update_id, updates) if number is not None]
        if not numbers:
            raise LineBroke(NOT_BOT_API)
        waiting = self._read_all(updates, me)
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

    async def take_one(self, update: Mapping[str, Any], me: wire.Bot, accept: Accept) -> None:
        """Brings one update to `accept`. Raises NotAccepted."""
        for item in self._read_all([update], me):
            await self._accept(item, accept)

    def _read_all(self, updates: list[Any], me: wire.Bot) -> list[wire.Item]:
        """What is for us in the updates, in order. One that cannot be read is set aside with a warning."""
        for update in updates:
            self._note_album(update, me)
        items: list[wire.Item] = []
        for update in updates:
            number = wire.update_id(update)
            if number is None:
                log.warning("Telegram sent an update without a number; it is left out.")
                continue
            rules = wire.GroupRules(frozenset(self.groups), self._require_mention)
            album = wire.album_of(update)
            addressed = album is not None and self._albums.get(album, False)
            try:
                found = wire.read_update(update, me, rules, self._context.now(), album_is_addressed=addressed)
            except wire.BadUpdate as error:
                log.warning("Telegram update %d cannot be read and is left out: %s", number, error)
                continue
            if isinstance(found, wire.Migration) and found.old_chat_id in self.groups:
                self.groups.add(found.new_chat_id)
            if found is not None:
                items.append(found)
        return items

    def _note_album(self, update: Any, me: wire.Bot) -> None:
        """Whoever mentions us does so in one part of an album and means all of them."""
        if wire.update_id(update) is None or (album := wire.album_of(update)) is None:
            return
        try:
            speaks = wire.speaks_to(update, me)
        except wire.BadUpdate:
            return
        self._albums[album] = speaks or self._albums.get(album, False)
        if len(self._albums) > ALBUMS_REMEMBERED:
            self._albums.popitem(last=False)

    async def _accept_all(self, items: list[wire.Item], accept: Accept) -> tuple[list[wire.Item], str]:
        """Chats side by side, each in its order. Returns what could not be saved, in order, and why."""
        lanes: dict[str, list[wire.Item]] = {}
        # A migration joins two chats: then everything keeps to one order.
        moves = any(isinstance(item, wire.Migration) for item in items)
        for item in items:
            lanes.setdefault("" if moves else _chat_of(item), []).append(item)
        outcomes = await asyncio.gather(
            *(self._accept_lane(lane, accept) for lane in lanes.values()), return_exceptions=True
        )
        left: list[wire.Item] = []
        reason = ""
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            left += outcome[0]
            reason = outcome[1] or reason
        return left, reason

    async def _accept_lane(self, lane: list[wire.Item], accept: Accept) -> tuple[list[wire.Item], str]:
        for index, item in enumerate(lane):
            try:
                await self._accept(item, accept)
            except NotAccepted as error:
                return lane[index:], str(error)
        return [], ""

    async def _accept(self, item: wire.Item, accept: Accept) -> None:
        if isinstance(item, wire.Migration):
            await self.migrate(item)
            return
        if isinstance(item, wire.Pressed):
            self._answered(item, await accept(item.message))
            return
        accepted = await accept(item)
        if accepted.will_answer:
            self._typing(item.address)

    async def migrate(self, move: wire.Migration) -> None:
        """Raises NotAccepted."""
        # A supergroup numbers its messages from one.
        await self._context.memory.migrate_chat(move.old_chat_id, move.new_chat_id, renumbered=True)
        await self._context.memory.put(f"migrated:{move.old_chat_id}", move.new_chat_id)
        if move.old_chat_id in self.groups:
            self.groups.add(move.new_chat_id)


def _chat_of(item: wire.Item) -> str:
    if isinstance(item, wire.Pressed):
        return item.message.chat_id
    return "" if isinstance(item, wire.Migration) else item.chat_id


class Place:
    """How far the updates of one bot are confirmed, and a pause that Telegram asked for; over restarts."""

    def __init__(self, context: ChannelContext, server: str) -> None:
        self._context = context
        self._server = server
        self._offset: int | None = None
        self._at = context.now()

    @property
    def offset(self) -> int | None:
        """None after days without an update: the next one may have any number, also a lower one."""
        is_fresh = self._context.now() - self._at <= timedelta(days=OFFSET_DAYS_MAX)
        return self._offset if is_fresh else None

    async def load(self, me: wire.Bot) -> None:
        memory = self._context.memory
        stored = await memory.get(f"offset:{me.id}")
        found = _offset_of(stored, self._server, self._context.now())
        if found is not None:
            self._offset, self._at = found
            return
        # Who has never been here has nothing to lose.
        is_new = stored is None and await memory.get(f"known:{me.id}") is None
        level = logging.INFO if is_new else logging.WARNING
        log.log(
            level,
            "No usable Telegram offset is stored: everything Telegram still holds is looked at again; "
            "what was answered is not answered twice.",
        )

    async def store(self, me: wire.Bot, offset: int) -> None:
        """Everything before `offset` is saved."""
        self._offset, self._at = offset, self._context.now()
        value = {"offset": offset, "at": self._at.isoformat(), "server": self._server}
        try:
            await self._context.memory.put(f"offset:{me.id}", json.dumps(value))
        except NotAccepted:
            # It only spares the next start some work.
            log.warning("The Telegram offset could not be stored.")

    async def known(self, me: wire.Bot) -> None:
        """The bot has been here."""
        try:
            if await self._context.memory.get(f"known:{me.id}") is None:
                await self._context.memory.put(f"known:{me.id}", self._context.now().isoformat())
        except NotAccepted:
            log.warning("That this bot was here could not be stored.")

    async def flooded(self, seconds: float) -> None:
        """Telegram wants to be left alone for so long."""
        until = self._context.now() + timedelta(seconds=seconds)
        try:
            await self._context.memory.put("flood", until.isoformat())
        except NotAccepted:
            log.warning("The pause that Telegram asked for could not be stored.")

    async def pause_seconds(self) -> float:
        """How long Telegram still wants to be left alone."""
        stored = await self._context.memory.get("flood")
        try:
            return max(0.0, (datetime.fromisoformat(stored or "") - self._context.now()).total_seconds())
        except (ValueError, TypeError):
            return 0.0


def _offset_of(stored: str | None, server: str, now: datetime) -> tuple[int, datetime] | None:
    """The offset in what `store` wrote, and its time; None when it is damaged, too old, or of another server."""
    try:
        data: Any = json.loads(stored or "")
        offset, at = data["offset"], datetime.fromisoformat(data["at"])
        fresh = timedelta(0) <= now - at <= timedelta(days=OFFSET_DAYS_MAX)
        return (offset, at) if isinstance(offset, int) and fresh and data["server"] == server else None
    except (ValueError, TypeError, KeyError):
        return None

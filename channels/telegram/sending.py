"""Sending: what one message of ours becomes on Telegram, request by request, with one clear outcome."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import telegram
from telegram.error import BadRequest, ChatMigrated, TelegramError

from channels.message import Address, Attachment, Choice, OutboundMessage
from channels.telegram.format import Part, render
from channels.telegram.limits import CAPTION_UNITS_MAX, PHOTO_BYTES_MAX, SENDS_IN_FLIGHT_MAX, UPLOAD_BYTES_MAX
from channels.telegram.request import LineBroke, RawBot
from channels.telegram.wire import GENERAL_TOPIC
from channels.text import length

log = logging.getLogger(__name__)
REFUSED = ""
"""Stands among the ids of what was sent for a part that Telegram did not take."""
_OF_THE_CHAT = re.compile(r"chat|rights|topic|thread|user|peer|group|member|bot", re.IGNORECASE)
"""Refusals that speak of the chat and not of the part: the other parts would meet the same."""
_SHOWN_AS_PHOTO = {"image/jpeg", "image/png", "image/webp"}


class NothingToSend(Exception):
    """There is nothing visible in the message. `str()` is the reason."""


class PartlyRefused(Exception):
    """Some parts were definitely not taken, the others arrived. `str()` says which and why."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of ours, with what is written under it."""

    attachment: Attachment
    path: Path
    caption: Part


Piece = Part | File
P = TypeVar("P", Part, File)


def pieces_of(message: OutboundMessage, workspace: Path) -> list[Piece]:
    """What is sent, in order: the parts of the text, then the files. Raises NothingToSend, FileNotFoundError.

    A text that fits under the only file goes there. The same message always gives the same pieces.
    """
    parts = list(render(message.text))
    files = [_file(attachment, workspace) for attachment in message.attachments]
    if len(files) == 1 and len(parts) == 1 and length(parts[0].text, "utf16") <= CAPTION_UNITS_MAX:
        only = files[0]
        return [File(only.attachment, only.path, parts[0])]
    pieces: list[Piece] = [*parts, *files]
    if not pieces:
        raise NothingToSend("there is no visible text in it")
    return pieces


def _file(attachment: Attachment, workspace: Path) -> File:
    root = workspace.resolve()
    path = (root / (attachment.path or "")).resolve()
    if not path.is_file() or not path.is_relative_to(root):
        raise FileNotFoundError(f"{attachment.name} is not there any more")
    size_bytes = path.stat().st_size
    if size_bytes > UPLOAD_BYTES_MAX:
        limit, size = UPLOAD_BYTES_MAX // 1_000_000, size_bytes / 1_000_000
        raise NothingToSend(f"{attachment.name} has {size:.0f} MB, and Telegram takes files of at most {limit} MB")
    return File(attachment, path, Part(""))


class Sender:
    """Makes the requests of one message. `bot` gives the open line; `migrated` hears of a chat's new id."""

    def __init__(self, bot: Callable[[], RawBot], migrated: Callable[[str, str], Awaitable[None]]) -> None:
        self._bot = bot
        self._migrated = migrated
        self._in_flight = asyncio.Semaphore(SENDS_IN_FLIGHT_MAX)

    async def send(self, message: OutboundMessage, pieces: list[Piece], sent: list[str]) -> None:
        """Sends every piece that has no id in `sent` yet, and puts its id there as soon as it arrived.

        No request is made twice, but for a group that moved (the same to its new id) and for refused formatting (that
        part once as plain text). A part that is refused does not hold up the others. Raises TelegramError, and
        PartlyRefused at the end.
        """
        address = message.address
        refusals: list[str] = []
        for place, piece in enumerate(pieces):
            if place < len(sent) and sent[place] != REFUSED:
                continue
            reply_to = message.reply_to if place == 0 else None
            choices = message.choices if place == len(pieces) - 1 else ()
            replaces = message.replaces if place == 0 else None
            try:
                identity, address = await self._piece(address, piece, reply_to, choices, replaces)
            except BadRequest as error:
                if len(pieces) == 1 or _OF_THE_CHAT.search(str(error)):
                    raise
                log.warning("Telegram refused part %d of %d: %s", place + 1, len(pieces), error)
                refusals.append(f"part {place + 1} of {len(pieces)}: {error}")
                identity = REFUSED
            sent[place : place + 1] = [identity]
        if refusals:
            raise PartlyRefused("; ".join(refusals))

    async def draft(self, message: OutboundMessage) -> str:
        """Shows as much of the text as one message holds, in place of `replaces` if there is one; its id."""
        parts = render(message.text)
        if not parts:
            raise NothingToSend("there is no visible text in it yet")
        identity, _ = await self._piece(message.address, parts[0], message.reply_to, (), message.replaces)
        return identity

    async def _piece(
        self, address: Address, piece: Piece, reply_to: str | None, choices: tuple[Choice, ...], replaces: str | None
    ) -> tuple[str, Address]:
        """The id of what arrived, and where the rest is to be sent."""
        try:
            if isinstance(piece, Part) and replaces and await self._edited(address, piece, choices, replaces):
                return replaces, address
            return await self._new(address, piece, reply_to, choices), address
        except ChatMigrated as moved:
            await self._migrated(address.chat_id, str(moved.new_chat_id))
            there = Address(address.channel, str(moved.new_chat_id))
            return await self._new(there, piece, None, choices), there

    async def _new(self, address: Address, piece: Piece, reply_to: str | None, choices: tuple[Choice, ...]) -> str:
        if isinstance(piece, File):
            return await self._plain_if_refused(piece, lambda one: self._send_file(address, one, reply_to, choices))
        return await self._plain_if_refused(piece, lambda one: self._send_text(address, one, reply_to, choices))

    async def _edited(self, address: Address, part: Part, choices: tuple[Choice, ...], message_id: str) -> bool:
        """Puts the part in the place of a message of ours; False when that one cannot be changed any more."""

        async def edit(one: Part) -> str:
            async with self._in_flight:
                await self._bot().edit_message_text(
                    one.text,
                    number_or_name(address.chat_id),
                    int(message_id),
                    entities=_entities(one),
                    reply_markup=_keyboard(choices),
                )
            return message_id

        if not message_id.isdigit():
            return False
        try:
            await self._plain_if_refused(part, edit)
        except BadRequest as error:
            reason = str(error).casefold()
            if "not modified" in reason:
                return True
            if "to edit" in reason or "edited" in reason:
                log.warning("A message could not be changed, so a new one is sent: %s", error)
                return False
            raise
        except (TypeError, KeyError, AttributeError, ValueError):
            return True  # It was done; only the answer could not be read.
        return True

    async def _plain_if_refused(self, piece: P, send: Callable[[P], Awaitable[str]]) -> str:
        try:
            return await send(piece)
        except BadRequest as error:
            if "can't parse entities" not in str(error).casefold():
                raise
            log.warning("Telegram refused the formatting of a part; it goes out as plain text: %s", error)
            return await send(_plain(piece))

    async def _send_text(self, address: Address, part: Part, reply_to: str | None, choices: tuple[Choice, ...]) -> str:
        async with self._in_flight:
            return await _identity(
                self._bot().send_message(
                    number_or_name(address.chat_id),
                    part.text,
                    entities=_entities(part),
                    message_thread_id=topic(address.thread_id),
                    reply_parameters=_reply(reply_to),
                    reply_markup=_keyboard(choices),
                )
            )

    async def _send_file(self, address: Address, file: File, reply_to: str | None, choices: tuple[Choice, ...]) -> str:
        if file.attachment.mime in _SHOWN_AS_PHOTO and file.path.stat().st_size <= PHOTO_BYTES_MAX:
            try:
                return await self._upload("photo", address, file, reply_to, choices)
            except BadRequest as error:
                if not re.search(r"photo|image|dimensions", str(error), re.IGNORECASE):
                    raise
                log.warning("Telegram does not show %s as a picture; it goes out as a file: %s", file.path.name, error)
        return await self._upload("document", address, file, reply_to, choices)

    async def _upload(
        self, how: str, address: Address, file: File, reply_to: str | None, choices: tuple[Choice, ...]
    ) -> str:
        bot = self._bot()
        with file.path.open("rb") as handle:
            content = telegram.InputFile(handle, filename=file.attachment.name, read_file_handle=False)
            chat, thread_id = number_or_name(address.chat_id), topic(address.thread_id)
            caption, entities = file.caption.text or None, _entities(file.caption)
            reply, keyboard = _reply(reply_to), _keyboard(choices)
            async with self._in_flight:
                if how == "photo":
                    return await _identity(
                        bot.send_photo(
                            chat,
                            content,
                            caption,
                            caption_entities=entities,
                            message_thread_id=thread_id,
                            reply_parameters=reply,
                            reply_markup=keyboard,
                        )
                    )
                return await _identity(
                    bot.send_document(
                        chat,
                        content,
                        caption,
                        caption_entities=entities,
                        message_thread_id=thread_id,
                        reply_parameters=reply,
                        reply_markup=keyboard,
                    )
                )


async def _identity(sending: Awaitable[telegram.Message]) -> str:
    try:
        return str((await sending).message_id)
    except TelegramError:
        raise
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise LineBroke(f"Telegram took it, but its answer cannot be read: {type(error).__name__}") from error


def _plain(piece: P) -> P:
    if isinstance(piece, Part):
        return Part(piece.text)
    return File(piece.attachment, piece.path, Part(piece.caption.text))


def _entities(part: Part) -> list[telegram.MessageEntity] | None:
    found = [telegram.MessageEntity(e.type, e.offset, e.length, url=e.url, language=e.language) for e in part.entities]
    return found or None


def _keyboard(choices: tuple[Choice, ...]) -> telegram.InlineKeyboardMarkup | None:
    """The choices as buttons, side by side."""
    if not choices:
        return None
    return telegram.InlineKeyboardMarkup(
        [[telegram.InlineKeyboardButton(choice.label, callback_data=choice.id) for choice in choices]]
    )


def _reply(reply_to: str | None) -> telegram.ReplyParameters | None:
    if reply_to is None or not reply_to.isdigit():
        return None
    return telegram.ReplyParameters(int(reply_to), allow_sending_without_reply=True)


def topic(thread_id: str | None) -> int | None:
    """The thread of an address as Telegram takes it: General is no thread."""
    return int(thread_id) if thread_id is not None and thread_id.isdigit() and thread_id != GENERAL_TOPIC else None


def number_or_name(chat_id: str) -> int | str:
    """Chats are numbers; a public channel may be named `@name`."""
    return int(chat_id) if chat_id.lstrip("-").isdigit() else chat_id

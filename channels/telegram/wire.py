"""Updates of the Bot API to our messages (https://core.telegram.org/bots/api#update). Pure functions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from channels.message import InboundMessage
from channels.telegram.content import (
    BadUpdate,
    Json,
    author,
    full_name,
    number,
    origin_name,
    quoted_files,
    raw,
    read_content,
    read_quote,
    replied_to,
    text_of,
    whole,
)
from channels.telegram.limits import CUT_UNITS_MIN, TEXT_UNITS_MAX
from channels.text import clean, length

__all__ = ["BadUpdate", "Bot", "GroupRules", "Migration", "Pressed", "read_update"]

GENERAL_TOPIC = "1"
"""The topic every forum has; Telegram refuses it as an address, its messages go to the group itself."""


@dataclass(frozen=True, slots=True)
class Bot:
    """Who we are on Telegram."""

    id: str
    username: str


@dataclass(frozen=True, slots=True)
class GroupRules:
    """In which groups an answer is given (ids), and whether only to those who mention the bot or reply to it."""

    groups: frozenset[str]
    require_mention: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """A group became a supergroup and has a new id."""

    old_chat_id: str
    new_chat_id: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button was pressed; `query_id` is to be answered, so that the button stops waiting."""

    query_id: str
    message: InboundMessage


Item = InboundMessage | Migration | Pressed

_NOTICE = {
    "en": "I received it, but I cannot read this kind of message. Please write what you want as text.",
    "ar": "وصلني ما أرسلته، لكنني لا أستطيع قراءة هذا النوع من الرسائل. من فضلك اكتب ما تريد نصًّا.",
}


def read_update(
    update: Json, bot: Bot, rules: GroupRules, received_at: datetime, *, album_is_addressed: bool = False
) -> Item | None:
    """What an update says to us, or None when there is nothing for us in it.

    `received_at` stands in where the update has no date. `album_is_addressed`: another part of its album mentions us.
    Raises BadUpdate.
    """
    for field in ("message", "channel_post"):
        if field in update:
            return _read(whole(update, field), bot, rules, received_at, album_is_addressed)
    for field in ("edited_message", "edited_channel_post"):
        if field in update:
            message = whole(update, field)
            if "location" in message:
                return None  # A live location moves on.
            edit = _read(message, bot, rules, received_at, album_is_addressed)
            return _as_edit(edit, number(update, "update_id")) if isinstance(edit, InboundMessage) else None
    if "callback_query" in update:
        return _pressed(whole(update, "callback_query"), received_at)
    if "message_reaction" in update:
        return _reaction(whole(update, "message_reaction"), number(update, "update_id"), received_at)
    return None


def update_id(update: object) -> int | None:
    """The number of an update, None when it has none."""
    found = cast("Json", update).get("update_id") if isinstance(update, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def album_of(update: Json) -> str | None:
    """The album a message is part of; its parts come as messages of their own."""
    message = update.get("message")
    found = cast("Json", message).get("media_group_id") if isinstance(message, Mapping) else None
    return found if isinstance(found, str) else None


def speaks_to(update: Json, bot: Bot) -> bool:
    """Whether the message in an update mentions us or replies to us. Raises BadUpdate."""
    message = whole(update, "message")
    return _addressed(message, raw(message, "text" if "text" in message else "caption"), bot)[1]


def _read(
    message: Json, bot: Bot, rules: GroupRules, received_at: datetime, album_is_addressed: bool
) -> InboundMessage | Migration | None:
    chat = whole(message, "chat")
    chat_id = str(number(chat, "id"))
    if "migrate_to_chat_id" in message:
        return Migration(chat_id, str(number(message, "migrate_to_chat_id")))
    if "migrate_from_chat_id" in message:
        return Migration(str(number(message, "migrate_from_chat_id")), chat_id)
    found = read_content(message)
    sender_id, sender_name, is_bot = _sender(message, chat)
    if found is None or sender_id == bot.id:
        return None
    is_group = chat.get("type") != "private"
    text, is_mention, for_another = _addressed(message, found.text, bot)
    is_mention = is_mention or album_is_addressed
    wanted = not is_bot and not for_another
    if is_group:
        wanted = wanted and chat_id in rules.groups and (is_mention or not rules.require_mention)
    reply = replied_to(message)
    attachments = (*found.attachments, *quoted_files(message, bot.id)) if wanted else found.attachments
    answer = wanted and found.is_known and bool(text.strip() or attachments)
    in_parts, flags = _parts(message, found.text) if answer else (False, ())
    return InboundMessage(
        channel="telegram",
        chat_id=chat_id,
        message_id=str(number(message, "message_id")),
        sender_id=sender_id,
        sender_name=sender_name,
        text=text,
        sent_at=_time(message.get("date"), received_at),
        thread_id=_thread(message),
        kind=found.kind,
        attachments=attachments,
        reply_to=str(number(reply, "message_id")) if reply else None,
        is_group=is_group,
        is_mention=is_mention,
        chat_title=text_of(chat, "title") or None,
        forwarded_from=_forwarded_from(message),
        wants_answer=answer,
        notice=_notice(message) if wanted and not found.is_known else None,
        more_may_come=in_parts,
        quote=read_quote(message, sender_id, bot.id),
        flags=flags,
    )


def _parts(message: Json, text: str) -> tuple[bool, tuple[str, ...]]:
    """Whether more may follow, and how a text was cut: Telegram's programs send a long one as several messages, and
    white space at the cut is lost."""
    if isinstance(message.get("media_group_id"), str):
        return True, ()
    units = length(text, "utf16") if "text" in message else 0
    if units < CUT_UNITS_MIN:
        return False, ()
    return True, ("cut", "cut_inside") if units >= TEXT_UNITS_MAX else ("cut",)


def _as_edit(message: InboundMessage, update_number: int) -> InboundMessage:
    """An edit is logged, never answered. Its own id holds the update's number: a message can be edited often."""
    return InboundMessage(
        channel=message.channel,
        chat_id=message.chat_id,
        message_id=f"{message.message_id}.e{update_number}",
        sender_id=message.sender_id,
        sender_name=message.sender_name,
        text=message.text,
        sent_at=message.sent_at,
        thread_id=message.thread_id,
        kind="edit",
        is_group=message.is_group,
        is_mention=message.is_mention,
        chat_title=message.chat_title,
        edits=message.message_id,
        wants_answer=False,
    )


def _reaction(reaction: Json, update_number: int, received_at: datetime) -> InboundMessage | None:
    """The signs that somebody has under a message now; none: they were taken away."""
    chat = whole(reaction, "chat")
    who = next((field for field in ("user", "actor_chat") if field in reaction), None)
    if who is None:
        return None
    sender = whole(reaction, who)
    sender_id = str(number(sender, "id"))
    message_id = str(number(reaction, "message_id"))
    found = reaction.get("new_reaction")
    signs = [_sign(cast("Json", one)) for one in cast("list[Any]", found or []) if isinstance(one, Mapping)]
    return InboundMessage(
        channel="telegram",
        chat_id=str(number(chat, "id")),
        message_id=f"{message_id}.r{update_number}",
        sender_id=sender_id,
        sender_name=full_name(sender) or text_of(sender, "title") or text_of(sender, "username") or sender_id,
        text=" ".join(signs),
        sent_at=_time(reaction.get("date"), received_at),
        kind="reaction",
        is_group=chat.get("type") != "private",
        chat_title=text_of(chat, "title") or None,
        edits=message_id,
        wants_answer=False,
    )


def _sign(reaction: Json) -> str:
    return text_of(reaction, "emoji") or {"paid": "\N{WHITE MEDIUM STAR}"}.get(str(reaction.get("type")), "[emoji]")


def _pressed(query: Json, received_at: datetime) -> Pressed | None:
    """A pressed button. What it says is the button's own label, so that the log can be read."""
    query_id, data = text_of(query, "id"), raw(query, "data")
    if "message" not in query or not data:
        return None
    message, sender = whole(query, "message"), whole(query, "from")
    chat = whole(message, "chat")
    sender_id = str(number(sender, "id"))
    pressed = InboundMessage(
        channel="telegram",
        chat_id=str(number(chat, "id")),
        message_id=f"{number(message, 'message_id')}.b{query_id}",
        sender_id=sender_id,
        sender_name=full_name(sender) or sender_id,
        text=_label(message, data),
        # When it was pressed is not said, only when the question was asked.
        sent_at=received_at,
        thread_id=_thread(message),
        kind="system",
        reply_to=str(number(message, "message_id")),
        action=clean(data),
        is_group=chat.get("type") != "private",
        is_mention=True,
        chat_title=text_of(chat, "title") or None,
        key=f"button/{query_id}",
    )
    return Pressed(query_id, pressed)


def _label(message: Json, data: str) -> str:
    markup = message.get("reply_markup")
    rows = cast("Json", markup).get("inline_keyboard") if isinstance(markup, Mapping) else None
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        for button in cast("list[Any]", row) if isinstance(row, list) else []:
            if isinstance(button, Mapping) and cast("Json", button).get("callback_data") == data:
                return text_of(cast("Json", button), "text")
    return ""


def _sender(message: Json, chat: Json) -> tuple[str, str, bool]:
    """Id, name, and whether it is a bot. Who writes in a chat's name (posts, anonymous admins) is that chat."""
    if "sender_chat" in message or "from" not in message:
        found = whole(message, "sender_chat") if "sender_chat" in message else chat
        name = text_of(found, "title") or text_of(chat, "title") or full_name(found)
        return str(number(found, "id")), name, False
    user = whole(message, "from")
    sender_id = str(number(user, "id"))
    return sender_id, full_name(user) or text_of(user, "username") or sender_id, user.get("is_bot") is True


def _addressed(message: Json, words: str, bot: Bot) -> tuple[str, bool, bool]:
    """The text without our name in it, whether it speaks to us, and whether it is another bot's command."""
    mine = f"@{bot.username}".casefold()
    is_mention = _replies_to(message, bot)
    text = words
    for kind, offset, size, user_id in _entities(message):
        before, named, after = _around(text, offset, size)
        if kind == "text_mention":
            is_mention = is_mention or user_id == bot.id
        elif kind == "mention" and named.casefold() == mine:
            is_mention = True
            text = before + (after.lstrip(" ") if not before or before[-1].isspace() else after)
        elif kind == "bot_command" and "@" in named:
            command, _, name = named.partition("@")
            if f"@{name}".casefold() == mine:
                is_mention = True
                text = before + command + after
            elif offset == 0:
                return clean(words), False, True
    return clean(text if text.strip() else words), is_mention, False


def _around(text: str, offset: int, size: int) -> tuple[str, str, str]:
    """The text before, in and after an entity; both numbers count UTF-16 code units."""
    if text.isascii():
        return text[:offset], text[offset : offset + size], text[offset + size :]
    units = text.encode("utf-16-le", "surrogatepass")
    cuts = (units[: 2 * offset], units[2 * offset : 2 * (offset + size)], units[2 * (offset + size) :])
    before, named, after = (piece.decode("utf-16-le", "surrogatepass") for piece in cuts)
    return before, named, after


def _entities(message: Json) -> list[tuple[str, int, int, str]]:
    """Type, offset, length and user id of each entity, the last of the text first."""
    found = message.get("entities" if "text" in message else "caption_entities")
    entities: list[tuple[str, int, int, str]] = []
    for row in cast("list[Any]", found) if isinstance(found, list) else []:
        entity: Json = cast("Json", row) if isinstance(row, Mapping) else {}
        offset, size, user = entity.get("offset"), entity.get("length"), entity.get("user")
        if isinstance(offset, int) and isinstance(size, int) and offset >= 0 and size > 0:
            user_id = str(cast("Json", user).get("id")) if isinstance(user, Mapping) else ""
            entities.append((str(entity.get("type")), offset, size, user_id))
    return sorted(entities, key=lambda entity: -entity[1])


def _replies_to(message: Json, bot: Bot) -> bool:
    reply = replied_to(message)
    return reply is not None and author(reply)[0] == bot.id


def _thread(message: Json) -> str | None:
    """The topic. Outside of topics `message_thread_id` only names the root of a chain of replies."""
    if message.get("is_topic_message") is not True:
        return None
    thread = str(number(message, "message_thread_id"))
    return None if thread == GENERAL_TOPIC else thread


def _forwarded_from(message: Json) -> str | None:
    if "forward_origin" not in message:
        return None
    return origin_name(whole(message, "forward_origin")) or "somebody"


def _notice(message: Json) -> str:
    user = message.get("from")
    code = str(cast("Json", user).get("language_code", "")) if isinstance(user, Mapping) else ""
    return _NOTICE["ar" if re.match(r"ar\b", code, re.IGNORECASE) else "en"]


def _time(seconds: object, received_at: datetime) -> datetime:
    if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        return received_at
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return received_at

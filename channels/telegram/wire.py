"""Updates of the Bot API to our messages (https://core.telegram.org/bots/api#update). Pure functions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from channels.message import Attachment, InboundMessage, Kind
from channels.text import clean

GENERAL_TOPIC = "1"
"""The topic every forum has; Telegram refuses it as an address, its messages go to the group itself."""

Json = Mapping[str, Any]


class BadUpdate(ValueError):
    """An update that is not what the Bot API promises; `str()` says what is wrong with it."""


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


_Media = Literal["photo", "voice", "audio", "video", "file", "sticker"]

# Field of the message -> kind of the message and of the attachment. An animation comes as a document too: first wins.
_MEDIA: tuple[tuple[str, Kind, _Media], ...] = (
    ("voice", "voice", "voice"),
    ("audio", "file", "audio"),
    ("video", "video", "video"),
    ("video_note", "video", "video"),
    ("animation", "video", "video"),
    ("photo", "photo", "photo"),
    ("sticker", "sticker", "sticker"),
    ("document", "file", "file"),
)
# Content we have no words for: said so to who sent it. What is in no list here is a service message.
_OTHER_CONTENT = ("story", "paid_media", "game", "checklist", "invoice", "giveaway")

_NOTICES: dict[str, dict[str, str]] = {
    "voice": {
        "en": "I received your voice message, but I cannot understand recordings yet. Please write it as text.",
        "ar": "وصلتني رسالتك الصوتية، لكنني لا أفهم التسجيلات الصوتية بعد. من فضلك اكتب ما تريد نصًّا.",
    },
    "file": {
        "en": "I received it, but I cannot open pictures and files yet. Please write what you want as text.",
        "ar": "وصلني ما أرسلته، لكنني لا أستطيع فتح الصور والملفات بعد. من فضلك اكتب ما تريد نصًّا.",
    },
}


def read_update(update: Json, bot: Bot, rules: GroupRules, received_at: datetime) -> InboundMessage | Migration | None:
    """The message in an update, the migration it announces, or None when there is nothing for us in it.

    `received_at` stands in where the update has no date. Raises BadUpdate.
    """
    for field in ("message", "channel_post"):
        if field in update:
            return _read(_object(update, field), bot, rules, received_at)
    for field in ("edited_message", "edited_channel_post"):
        if field in update:
            edit = _read(_object(update, field), bot, rules, received_at)
            return _as_edit(edit, _whole_number(update, "update_id")) if isinstance(edit, InboundMessage) else None
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


def _read(message: Json, bot: Bot, rules: GroupRules, received_at: datetime) -> InboundMessage | Migration | None:
    chat = _object(message, "chat")
    chat_id = str(_whole_number(chat, "id"))
    if "migrate_to_chat_id" in message:
        return Migration(chat_id, str(_whole_number(message, "migrate_to_chat_id")))
    if "migrate_from_chat_id" in message:
        return Migration(str(_whole_number(message, "migrate_from_chat_id")), chat_id)
    found = _content(message)
    sender_id, sender_name, is_bot = _sender(message, chat)
    if found is None or sender_id == bot.id:
        return None
    kind, text, attachments = found
    is_group = chat.get("type") != "private"
    text, is_mention, for_another = _addressed(message, text, bot)
    wanted = not is_bot and not for_another and chat.get("type") != "channel"
    if is_group:
        wanted = wanted and chat_id in rules.groups and (is_mention or not rules.require_mention)
    answer = wanted and bool(text.strip())
    reply = _reply(message)
    return InboundMessage(
        channel="telegram",
        chat_id=chat_id,
        message_id=str(_whole_number(message, "message_id")),
        sender_id=sender_id,
        sender_name=sender_name,
        text=text,
        sent_at=_time(message.get("date"), received_at),
        thread_id=_thread(message),
        kind=kind,
        attachments=attachments,
        reply_to=str(_whole_number(reply, "message_id")) if reply else None,
        is_group=is_group,
        is_mention=is_mention,
        chat_title=_text(chat, "title") or None,
        forwarded_from=_forwarded_from(message),
        wants_answer=answer,
        notice=_notice(kind, message) if wanted and not answer and kind != "text" else None,
    )


def _as_edit(message: InboundMessage, number: int) -> InboundMessage:
    """An edit is logged, never answered. Its own id holds the update's number: a message can be edited often."""
    return InboundMessage(
        channel=message.channel,
        chat_id=message.chat_id,
        message_id=f"{message.message_id}.e{number}",
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


def _content(message: Json) -> tuple[Kind, str, tuple[Attachment, ...]] | None:
    """Kind, raw text and files of a message; None for a service message."""
    if "text" in message:
        return "text", _raw(message, "text"), ()
    caption = _raw(message, "caption")
    for field, kind, media in _MEDIA:
        if field in message:
            return kind, caption, (_attachment(message, field, media),)
    if "venue" in message or "location" in message:
        return "location", _place(message), ()
    if "contact" in message:
        contact = _object(message, "contact")
        return "contact", ", ".join(filter(None, (_full_name(contact), _text(contact, "phone_number")))), ()
    if "poll" in message:
        return "poll", _poll(_object(message, "poll")), ()
    if "dice" in message:
        dice = _object(message, "dice")
        return "text", f"{_text(dice, 'emoji')} {_whole_number(dice, 'value')}", ()
    if any(field in message for field in _OTHER_CONTENT):
        return "file", caption, ()
    return None


def _attachment(message: Json, field: str, media: _Media) -> Attachment:
    found = message[field]
    if field == "photo":
        sizes = cast("list[Any]", found) if isinstance(found, list) else []
        # The same picture in several sizes; the last is the largest.
        found = sizes[-1] if sizes else None
    if not isinstance(found, Mapping):
        raise BadUpdate(f"{field} is not an object")
    file = cast("Json", found)
    return Attachment(
        kind=media,
        name=_text(file, "file_name") or field,
        mime=_text(file, "mime_type") or None,
        size_bytes=_optional_number(file, "file_size"),
        duration_seconds=_optional_number(file, "duration"),
    )


def _place(message: Json) -> str:
    venue: Json = _object(message, "venue") if "venue" in message else {}
    location = _object(venue or message, "location")
    where = f"{location.get('latitude')}, {location.get('longitude')}"
    return clean(", ".join(filter(None, (_text(venue, "title"), _text(venue, "address"), where))))


def _poll(poll: Json) -> str:
    options = poll.get("options")
    rows = cast("list[Any]", options) if isinstance(options, list) else []
    lines = [f"- {_text(cast('Json', row), 'text')}" for row in rows if isinstance(row, Mapping)]
    return "\n".join([_text(poll, "question"), *lines])


def _sender(message: Json, chat: Json) -> tuple[str, str, bool]:
    """Id, name, and whether it is a bot. Who writes in a chat's name (posts, anonymous admins) is that chat."""
    if "sender_chat" in message or "from" not in message:
        author = _object(message, "sender_chat") if "sender_chat" in message else chat
        name = _text(author, "title") or _text(chat, "title") or _full_name(author)
        return str(_whole_number(author, "id")), name, False
    user = _object(message, "from")
    sender_id = str(_whole_number(user, "id"))
    return sender_id, _full_name(user) or _text(user, "username") or sender_id, user.get("is_bot") is True


def _addressed(message: Json, raw: str, bot: Bot) -> tuple[str, bool, bool]:
    """The text without our name in it, whether it speaks to us, and whether it is another bot's command."""
    mine = f"@{bot.username}".casefold()
    is_mention = _replies_to(message, bot)
    text = raw
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
                return clean(raw), False, True
    return clean(text if text.strip() else raw), is_mention, False


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


def _reply(message: Json) -> Json | None:
    """The message this one replies to. In a topic everything "replies" to the line that opened the topic: no reply."""
    if "reply_to_message" not in message:
        return None
    reply = _object(message, "reply_to_message")
    return None if "forum_topic_created" in reply else reply


def _replies_to(message: Json, bot: Bot) -> bool:
    author = (_reply(message) or {}).get("from")
    return isinstance(author, Mapping) and str(cast("Json", author).get("id")) == bot.id


def _thread(message: Json) -> str | None:
    """The topic. Outside of topics `message_thread_id` only names the root of a chain of replies."""
    if message.get("is_topic_message") is not True:
        return None
    thread = str(_whole_number(message, "message_thread_id"))
    return None if thread == GENERAL_TOPIC else thread


def _forwarded_from(message: Json) -> str | None:
    if "forward_origin" not in message:
        return None
    origin = _object(message, "forward_origin")
    for field in ("sender_user", "sender_chat", "chat"):
        if field in origin:
            author = _object(origin, field)
            return _full_name(author) or _text(author, "title") or _text(author, "username") or None
    return _text(origin, "sender_user_name") or None


def _notice(kind: Kind, message: Json) -> str:
    user = message.get("from")
    code = str(cast("Json", user).get("language_code", "")) if isinstance(user, Mapping) else ""
    language = "ar" if re.match(r"ar\b", code, re.IGNORECASE) else "en"
    return _NOTICES["voice" if kind == "voice" else "file"][language]


def _time(seconds: object, received_at: datetime) -> datetime:
    if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        return received_at
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return received_at


def _full_name(user: Json) -> str:
    return " ".join(filter(None, (_text(user, "first_name"), _text(user, "last_name"))))


def _object(parent: Json, field: str) -> Json:
    found = parent.get(field)
    if not isinstance(found, Mapping):
        raise BadUpdate(f"{field} is not an object")
    return cast("Json", found)


def _whole_number(parent: Json, field: str) -> int:
    found = parent.get(field)
    if not isinstance(found, int) or isinstance(found, bool):
        raise BadUpdate(f"{field} is not a whole number")
    return found


def _optional_number(parent: Json, field: str) -> int | None:
    found = parent.get(field)
    return int(found) if isinstance(found, int | float) and math.isfinite(found) else None


def _raw(parent: Json, field: str) -> str:
    """The text as it came, so that entity offsets fit; empty when there is none. Raises BadUpdate."""
    found = parent.get(field, "")
    if not isinstance(found, str):
        raise BadUpdate(f"{field} is not a text")
    return found


def _text(parent: Json, field: str) -> str:
    return clean(_raw(parent, field)).strip()

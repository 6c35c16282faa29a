"""What a message of the Bot API holds besides its text: files, places, contacts, polls, quotes. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from channels.message import Attachment, AttachmentKind, Kind, Quote
from channels.text import clean

Json = Mapping[str, Any]


class BadUpdate(ValueError):
    """An update that is not what the Bot API promises; `str()` says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Content:
    """`text` is raw, as the entity offsets count it. `is_known` False: there are no words for what it holds."""

    kind: Kind
    text: str
    attachments: tuple[Attachment, ...] = ()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _Media:
    """`ending` and `mime` are what Telegram makes of such a file, where it does not say."""

    field: str
    kind: Kind
    attachment: AttachmentKind
    ending: str = ""
    mime: str | None = None


# An animation comes as a document too: first wins.
_MEDIA = (
    _Media("voice", "voice", "voice", ".ogg", "audio/ogg"),
    _Media("audio", "file", "audio", ".mp3", "audio/mpeg"),
    _Media("video", "video", "video", ".mp4", "video/mp4"),
    _Media("video_note", "video", "video", ".mp4", "video/mp4"),
    _Media("animation", "video", "video", ".mp4", "video/mp4"),
    _Media("photo", "photo", "photo", ".jpg", "image/jpeg"),
    _Media("sticker", "sticker", "sticker", ".webp", "image/webp"),
    _Media("document", "file", "file"),
)
# Content we have no words for. What is in no list here is a service message.
_OTHER_CONTENT = ("story", "paid_media", "game", "checklist", "invoice", "giveaway")


def read_content(message: Json) -> Content | None:
    """Kind, raw text and files of a message; None for a service message. Raises BadUpdate."""
    if "text" in message:
        return Content("text", raw(message, "text"))
    caption = raw(message, "caption")
    for media in _MEDIA:
        if media.field in message:
            text = caption
            if media.field == "sticker":
                text = raw(whole(message, "sticker"), "emoji")
            return Content(media.kind, text, (_attachment(message, media),))
    if "venue" in message or "location" in message:
        return Content("location", _place(message))
    if "contact" in message:
        contact = whole(message, "contact")
        return Content("contact", ", ".join(filter(None, (full_name(contact), text_of(contact, "phone_number")))))
    if "poll" in message:
        return Content("poll", _poll(whole(message, "poll")))
    if "dice" in message:
        dice = whole(message, "dice")
        return Content("text", f"{text_of(dice, 'emoji')} {number(dice, 'value')}")
    if any(field in message for field in _OTHER_CONTENT):
        return Content("file", caption, is_known=False)
    return None


def _attachment(message: Json, media: _Media) -> Attachment:
    found = message[media.field]
    if media.field == "photo":
        sizes = cast("list[Any]", found) if isinstance(found, list) else []
        # The same picture in several sizes; the last is the largest.
        found = sizes[-1] if sizes else None
    if not isinstance(found, Mapping):
        raise BadUpdate(f"{media.field} is not an object")
    file = cast("Json", found)
    ending, mime = media.ending, media.mime
    if media.field == "sticker" and file.get("is_animated") is True:
        ending, mime = ".tgs", "application/x-tgsticker"
    elif media.field == "sticker" and file.get("is_video") is True:
        ending, mime = ".webm", "video/webm"
    return Attachment(
        kind=media.attachment,
        name=text_of(file, "file_name") or f"{media.field}{ending}",
        mime=text_of(file, "mime_type") or mime,
        size_bytes=_optional_number(file, "file_size"),
        duration_seconds=_optional_number(file, "duration"),
        remote=text_of(file, "file_id") or None,
    )


def _place(message: Json) -> str:
    venue: Json = whole(message, "venue") if "venue" in message else {}
    location = whole(venue or message, "location")
    where = f"{location.get('latitude')}, {location.get('longitude')}"
    return clean(", ".join(filter(None, (text_of(venue, "title"), text_of(venue, "address"), where))))


def _poll(poll: Json) -> str:
    options = poll.get("options")
    rows = cast("list[Any]", options) if isinstance(options, list) else []
    lines = [f"- {text_of(cast('Json', row), 'text')}" for row in rows if isinstance(row, Mapping)]
    return "\n".join([text_of(poll, "question"), *lines])


def replied_to(message: Json) -> Json | None:
    """The message this one replies to. In a topic everything "replies" to the line that opened the topic: no reply."""
    if "reply_to_message" not in message:
        return None
    reply = whole(message, "reply_to_message")
    return None if "forum_topic_created" in reply else reply


def read_quote(message: Json, sender_id: str, bot_id: str) -> Quote | None:
    """What the message quotes: the part that was marked, else the whole of what it replies to. Raises BadUpdate."""
    marked = text_of(whole(message, "quote"), "text") if "quote" in message else ""
    reply = replied_to(message)
    if reply is not None:
        author_id, name = author(reply)
        words = marked or text_of(reply, "text") or text_of(reply, "caption")
        return Quote(words, name, is_own=author_id in {sender_id, bot_id}) if words else None
    if marked and "external_reply" in message:
        outside = whole(message, "external_reply")
        return Quote(marked, origin_name(whole(outside, "origin")) if "origin" in outside else "")
    return None


def quoted_files(message: Json, bot_id: str) -> tuple[Attachment, ...]:
    """The files of the message that this one replies to, unless they are ours."""
    reply = replied_to(message)
    if reply is None or author(reply)[0] == bot_id:
        return ()
    found = read_content(reply)
    return () if found is None else found.attachments


def author(message: Json) -> tuple[str, str]:
    """Id and name of who wrote a message, as far as it says."""
    for field in ("sender_chat", "from"):
        found = message.get(field)
        if isinstance(found, Mapping):
            who = cast("Json", found)
            identity = who.get("id")
            name = full_name(who) or text_of(who, "title") or text_of(who, "username")
            return str(identity) if isinstance(identity, int) else "", name
    return "", ""


def origin_name(origin: Json) -> str:
    """Whose message a MessageOrigin speaks of; empty when it does not say."""
    for field in ("sender_user", "sender_chat", "chat"):
        if field in origin:
            who = whole(origin, field)
            return full_name(who) or text_of(who, "title") or text_of(who, "username")
    return text_of(origin, "sender_user_name")


def full_name(user: Json) -> str:
    return " ".join(filter(None, (text_of(user, "first_name"), text_of(user, "last_name"))))


def whole(parent: Json, field: str) -> Json:
    """An object in an object. Raises BadUpdate."""
    found = parent.get(field)
    if not isinstance(found, Mapping):
        raise BadUpdate(f"{field} is not an object")
    return cast("Json", found)


def number(parent: Json, field: str) -> int:
    """A whole number. Raises BadUpdate."""
    found = parent.get(field)
    if not isinstance(found, int) or isinstance(found, bool):
        raise BadUpdate(f"{field} is not a whole number")
    return found


def _optional_number(parent: Json, field: str) -> int | None:
    found = parent.get(field)
    return int(found) if isinstance(found, int | float) and math.isfinite(found) else None


def raw(parent: Json, field: str) -> str:
    """The text as it came, so that entity offsets fit; empty when there is none. Raises BadUpdate."""
    found = parent.get(field, "")
    if not isinstance(found, str):
        raise BadUpdate(f"{field} is not a text")
    return found


def text_of(parent: Json, field: str) -> str:
    """The text fit to be kept, without white space around it. Raises BadUpdate."""
    return clean(raw(parent, field)).strip()

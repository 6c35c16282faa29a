"""What one message of an export says: its text, its kind, its files. Fields that are not known yet never stop it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from channels.message import Attachment, Kind

UNSUPPORTED = "unsupported content"

_KNOWN_FIELDS = """
id type date date_unixtime edited edited_unixtime from from_id actor actor_id action text text_entities photo
photo_file_size width height file file_name file_size thumbnail thumbnail_file_size media_type mime_type
duration_seconds sticker_emoji performer title forwarded_from forwarded_from_id saved_from via_bot author
reply_to_message_id reply_to_peer_id reactions poll contact_information contact_vcard contact_vcard_file_size
location_information live_location_period_seconds place_name address inline_bot_buttons media_spoiler
self_destruct_period_seconds schedule_date
"""
_KNOWN = frozenset(_KNOWN_FIELDS.split())
_MEDIA: dict[str, tuple[Kind, Literal["voice", "audio", "video", "sticker", "file"]]] = {
    "voice_message": ("voice", "voice"),
    "audio_file": ("file", "audio"),
    "video_file": ("video", "video"),
    "video_message": ("video", "video"),
    "animation": ("video", "video"),
    "sticker": ("sticker", "sticker"),
}


@dataclass(frozen=True, slots=True)
class Content:
    """`unsupported`: the kind of what could not be read as what it is, else None."""

    text: str
    kind: Kind
    attachments: tuple[Attachment, ...] = ()
    unsupported: str | None = None


def name_of(value: object) -> str:
    """A name as it is shown; empty for one that is missing, null or blank."""
    return value.strip() if isinstance(value, str) else ""


def text_of(value: object) -> str:
    """Plain text of a text field: a string, or a list of strings and of objects that have a `text`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return text_of(cast("Mapping[str, Any]", value).get("text"))
    if isinstance(value, list):
        return "".join(text_of(item) for item in cast("list[Any]", value))
    return ""


def content_of(message: Mapping[str, Any]) -> Content:
    """What a message says. A media record without words has an empty text."""
    if message.get("type") == "service":
        return Content(_service_text(message), "system")
    text = text_of(message.get("text"))
    unknown = [name for name in message if name not in _KNOWN and isinstance(message[name], Mapping | list)]
    if not text and unknown:
        found = "\n".join(filter(None, map(_deep_text, (message[name] for name in unknown))))
        return Content(found or UNSUPPORTED, "text", unsupported=unknown[0])
    kind, attachments = _media(message)
    if kind == "text":
        kind, described = _described(message)
        text = text or described
    if kind == "sticker" and not text:
        text = name_of(message.get("sticker_emoji"))
    return Content(text, kind, attachments)


def _deep_text(value: object) -> str:
    """Every plain text inside something that is not known, a line for each."""
    return "\n".join(_texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, str) for item in items) and all(
            isinstance(item, str) or _is_run(item) for item in items
        ):
            yield from filter(None, [text_of(items)])
            return
        for item in items:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            if name in {"text", "caption", "title"} and isinstance(item, str):
                yield from filter(None, [item])
            else:
                yield from _texts(item)


def _is_run(item: object) -> bool:
    """A piece of formatted text inside a line."""
    return isinstance(item, Mapping) and set(cast("Mapping[str, Any]", item)) <= {"type", "text", "href"}


def _media(message: Mapping[str, Any]) -> tuple[Kind, tuple[Attachment, ...]]:
    if "photo" in message:
        name = _file_name(message["photo"]) or "photo"
        return "photo", (Attachment("photo", name, size_bytes=_number(message.get("photo_file_size"))),)
    media_type = message.get("media_type")
    if "file" not in message and media_type is None:
        return "text", ()
    kind, attachment_kind = _MEDIA.get(str(media_type), ("file", "file"))
    return kind, (
        Attachment(
            attachment_kind,
            name_of(message.get("file_name")) or _file_name(message.get("file")) or str(media_type or "file"),
            mime=name_of(message.get("mime_type")) or None,
            size_bytes=_number(message.get("file_size")),
            duration_seconds=_number(message.get("duration_seconds")),
        ),
    )


def _file_name(value: object) -> str:
    """The file's own name; empty where a sentence in brackets says that the file was not exported."""
    path = name_of(value)
    return "" if path.startswith("(") else path.rpartition("/")[2]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _described(message: Mapping[str, Any]) -> tuple[Kind, str]:
    """Places, contacts and polls in words."""
    location, contact, poll = (message.get(name) for name in ("location_information", "contact_information", "poll"))
    if isinstance(location, Mapping):
        place = cast("Mapping[str, Any]", location)
        named = [name_of(message.get("place_name")), name_of(message.get("address"))]
        return "location", ", ".join([*filter(None, named), f"{place.get('latitude')}, {place.get('longitude')}"])
    if isinstance(contact, Mapping):
        card = cast("Mapping[str, Any]", contact)
        return "contact", " ".join(
            filter(None, (name_of(card.get(key)) for key in ("first_name", "last_name", "phone_number")))
        )
    if isinstance(poll, Mapping):
        asked = cast("Mapping[str, Any]", poll)
        answers: Any = asked.get("answers")
        options = cast("list[Any]", answers) if isinstance(answers, list) else []
        return "poll", "\n".join([text_of(asked.get("question")), *(f"- {text_of(option)}" for option in options)])
    return "text", ""


def _service_text(message: Mapping[str, Any]) -> str:
    """`Ann: create group "Tea" (Ann, Bo)` from the fields of a service message."""
    actor = name_of(message.get("actor"))
    action = name_of(message.get("action")).replace("_", " ") or "notice"
    title = name_of(message.get("title"))
    members: Any = message.get("members")
    names = [name for name in map(name_of, cast("list[Any]", members) if isinstance(members, list) else []) if name]
    parts = [f"{actor}: {action}" if actor else action, f'"{title}"' if title else "", text_of(message.get("text"))]
    return " ".join([*filter(None, parts), *([f"({', '.join(names)})"] if names else [])])

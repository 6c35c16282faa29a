"""What a WhatsApp message holds, out of all its wrappers. Pure functions on the library's protobuf messages
(waE2E.Message, https://github.com/tulir/whatsmeow/tree/main/proto/waE2E)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from channels.message import Attachment, AttachmentKind, Kind
from channels.text import clean
from channels.whatsapp.limits import WRAPPERS_MAX

_WRAPPERS = frozenset({"FutureProofMessage", "DeviceSentMessage", "CommentMessage"})
"""Types whose field `message` is the real message."""
_MEDIA_ALBUM = 1
"""MessageAssociation.AssociationType"""
_STATUS = frozenset(
    {
        "statusMentionMessage",
        "groupStatusMentionMessage",
        "groupStatusMessage",
        "groupStatusMessageV2",
        "statusAddYours",
    }
)
"""Wrappers around what somebody posted as a status: not meant for this chat."""
_FLAGS = {
    "ephemeralMessage": "ephemeral",
    "viewOnceMessage": "view_once",
    "viewOnceMessageV2": "view_once",
    "viewOnceMessageV2Extension": "view_once",
}
# Field of the message -> kind of the message and of the attachment.
_MEDIA: dict[str, tuple[Kind, AttachmentKind]] = {
    "imageMessage": ("photo", "photo"),
    "videoMessage": ("video", "video"),
    "ptvMessage": ("video", "video"),
    "audioMessage": ("file", "audio"),
    "documentMessage": ("file", "file"),
    "stickerMessage": ("sticker", "sticker"),
}
_POLLS = (
    "pollCreationMessage",
    "pollCreationMessageV2",
    "pollCreationMessageV3",
    "pollCreationMessageV5",
    "pollCreationMessageV6",
)
# Where other kinds keep the words that people see.
_WORDS: dict[str, str] = {
    "conversation": "",
    "extendedTextMessage": "text",
    "buttonsResponseMessage": "selectedDisplayText",
    "listResponseMessage": "title",
    "templateButtonReplyMessage": "selectedDisplayText",
    "interactiveResponseMessage": "body.text",
    "buttonsMessage": "contentText",
    "listMessage": "description",
    "interactiveMessage": "body.text",
    "templateMessage": "hydratedTemplate.hydratedContentText",
    "groupInviteMessage": "groupName",
    "productMessage": "product.title",
    "orderMessage": "message",
    "requestPaymentMessage": "noteMessage.extendedTextMessage.text",
    "sendPaymentMessage": "noteMessage.extendedTextMessage.text",
}
# Nothing that people see: keys, votes that only the poll's author can read, settings, calls.
_SILENT = frozenset(
    {
        "senderKeyDistributionMessage",
        "fastRatchetKeySenderKeyDistributionMessage",
        "messageContextInfo",
        "albumMessage",
        "pollUpdateMessage",
        "keepInChatMessage",
        "pinInChatMessage",
        "encReactionMessage",
        "encEventResponseMessage",
        "encCommentMessage",
        "placeholderMessage",
        "stickerSyncRmrMessage",
        "call",
        "chat",
        "callLogMesssage",
        "bcallMessage",
        "scheduledCallEditMessage",
        "messageHistoryBundle",
        "messageHistoryNotice",
        "pollResultSnapshotMessage",
        "pollResultSnapshotMessageV3",
        "groupRootKeyShare",
        "rootSecretDistributeMessage",
        "requestPhoneNumberMessage",
        "secretEncryptedMessage",
        "protocolMessage",
        "reactionMessage",
    }
)


@dataclass(frozen=True, slots=True)
class Opened:
    """The innermost message. `is_own`: it was sent from another device of ours; to `sent_to`, where that is known."""

    message: Any
    flags: tuple[str, ...] = ()
    is_own: bool = False
    sent_to: str = ""
    is_status: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What people see of a message."""

    kind: Kind
    text: str
    attachments: tuple[Attachment, ...] = ()
    is_readable: bool = True
    flags: tuple[str, ...] = field(default=())


def opened(message: Any) -> Opened:
    """Takes off at most WRAPPERS_MAX wrappers; of several readings the innermost that holds something counts."""
    flags: dict[str, None] = {}
    is_own, sent_to = False, ""
    best, current = message, message
    for _ in range(WRAPPERS_MAX):
        name = next((name for name, inner in _set(current) if _is_wrapper(inner)), None)
        if name is None:
            break
        wrapper = getattr(current, name)
        if name in _STATUS:
            return Opened(best, tuple(flags), is_own, sent_to, is_status=True)
        if name == "deviceSentMessage":
            is_own, sent_to = True, wrapper.destinationJID
        if name in _FLAGS:
            flags[_FLAGS[name]] = None
        current = wrapper.message
        if any(True for _ in _set(current)):
            best = current
    return Opened(best, tuple(flags), is_own, sent_to)


def _is_wrapper(inner: Any) -> bool:
    descriptor = getattr(inner, "DESCRIPTOR", None)
    return descriptor is not None and descriptor.name in _WRAPPERS and inner.HasField("message")


def _set(message: Any) -> Iterator[tuple[str, Any]]:
    """The fields that are set, by name, in the order of their numbers."""
    for descriptor, value in message.ListFields():
        yield descriptor.name, value


def content_of(message: Any) -> Content | None:
    """What people see of an opened message; None when there is nothing to see."""
    for name, inner in _set(message):
        if name in _SILENT:
            continue
        if (found := _content(name, inner)) is not None:
            return found
    return None


def _content(name: str, inner: Any) -> Content | None:
    if name in _MEDIA:
        return _media(name, inner)
    if name in _POLLS:
        lines = [inner.name, *(f"- {option.optionName}" for option in inner.options)]
        return Content("poll", clean("\n".join(lines)))
    match name:
        case "locationMessage" | "liveLocationMessage":
            return Content("location", _place(inner))
        case "contactMessage":
            return Content("contact", _contact(inner))
        case "contactsArrayMessage":
            return Content("contact", "\n".join(map(_contact, inner.contacts)))
        case "eventMessage":
            return Content("text", clean("\n".join(filter(None, (inner.name, inner.description)))))
        case _:
            words = _words(name, inner)
    if words is None:
        # A kind of message that is newer than this program.
        return Content("file", "", is_readable=False)
    flags = ("view_once",) if name == "extendedTextMessage" and inner.viewOnce else ()
    return Content("text", clean(words), flags=flags, is_readable=bool(words.strip()))


def _words(name: str, inner: Any) -> str | None:
    path = _WORDS.get(name)
    if path is None:
        return None
    for part in filter(None, path.split(".")):
        inner = getattr(inner, part)
    return str(inner)


def _media(name: str, inner: Any) -> Content:
    kind, media = _MEDIA[name]
    if name == "audioMessage" and inner.PTT:
        kind, media = "voice", "voice"
    file_name = (inner.fileName or inner.title) if name == "documentMessage" else ""
    attachment = Attachment(
        kind=media,
        name=clean(file_name).strip() or media,
        mime=inner.mimetype.partition(";")[0].strip() or None,
        size_bytes=int(inner.fileLength) or None,
        duration_seconds=int(getattr(inner, "seconds", 0)) or None,
        remote=_remote(name, inner),
    )
    flags = ("view_once",) if getattr(inner, "viewOnce", False) else ()
    return Content(kind, clean(getattr(inner, "caption", "")).strip(), (attachment,), flags=flags)


def _remote(name: str, inner: Any) -> str | None:
    """All that the file can be fetched with later: the field's name and, of the part, where the file is and its key."""
    if not inner.directPath and not inner.URL:
        return None
    kept = type(inner)()
    for field_name in ("URL", "directPath", "mediaKey", "fileSHA256", "fileEncSHA256", "fileLength", "mimetype"):
        if inner.HasField(field_name):
            setattr(kept, field_name, getattr(inner, field_name))
    return f"{name}:{base64.b64encode(kept.SerializeToString()).decode('ascii')}"


def remote_message(remote: str, new_message: Any) -> Any:
    """The reverse: `new_message`, an empty Message, with that part in it. Raises ValueError."""
    name, _, data = remote.partition(":")
    if name not in _MEDIA:
        raise ValueError("this names no file of a message")
    getattr(new_message, name).ParseFromString(base64.b64decode(data, validate=True))
    return new_message


def _place(inner: Any) -> str:
    words = (getattr(inner, field, "") for field in ("name", "address", "comment", "caption"))
    return clean(", ".join(filter(None, (*words, f"{inner.degreesLatitude}, {inner.degreesLongitude}"))))


def _contact(inner: Any) -> str:
    """Name and numbers out of a vCard (RFC 6350: a line `TEL;...:number`)."""
    numbers = re.findall(r"^[^\n:]*\bTEL\b[^\n:]*:([^\r\n]+)", inner.vcard, re.MULTILINE | re.IGNORECASE)
    return clean(", ".join(filter(None, (inner.displayName, *(number.strip() for number in numbers)))))


def album_of(message: Any) -> str | None:
    """The album that a message is part of: its parts come as messages of their own."""
    if not message.HasField("messageContextInfo"):
        return None
    association = message.messageContextInfo.messageAssociation
    return association.parentMessageKey.ID or None if association.associationType == _MEDIA_ALBUM else None


def context_of(message: Any) -> Any:
    """The ContextInfo of an opened message: quote, mentions, timer; None when it has none."""
    for _, inner in _set(message):
        descriptor = getattr(inner, "DESCRIPTOR", None)
        if descriptor is not None and "contextInfo" in descriptor.fields_by_name and inner.HasField("contextInfo"):
            return inner.contextInfo
    return None

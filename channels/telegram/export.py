"""Reads Telegram Desktop's `result.json`, of a whole account or of one chat, as a stream: one message in memory.

The shape is that of Telegram Desktop's JSON export ("machine-readable JSON"). Ids become those of the Bot API
(https://core.telegram.org/api/bots/ids).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from channels.message import Export, ExportedChat, ExportedMessage, ExportError, ExportOptions, InboundMessage
from channels.telegram.export_content import content_of, name_of

CHANNEL_BASE = 1_000_000_000_000
PARTICIPANTS_MAX = 50
_PRIVATE_GROUP = "private_group"
_SHARED = {"private_supergroup", "public_supergroup", "private_channel", "public_channel"}
"""Chats in which everybody sees the same message ids, a bot too."""
_CHATS = {"", "chats.list.item", "left_chats.list.item"}
_LISTS = {"chats.list", "left_chats.list", "messages", "chats.list.item.messages", "left_chats.list.item.messages"}
_MESSAGES = {f"{chat}.messages.item".lstrip(".") for chat in _CHATS}
_FIELDS = {f"{chat}.{name}".lstrip(".") for chat in _CHATS for name in ("id", "name", "type")}
"""Where things stand in the file, as ijson names places."""
_EXPECTED = (
    "Expected are the keys `chats` with a `list` (a whole account), or `id`, `type` and `messages` (one chat), "
    "as Telegram Desktop writes them when the format is JSON."
)

Told = Callable[[int], None]


@dataclass(slots=True)
class _Chat:
    """What the first reading learns about a chat."""

    head: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: int = 0
    has_messages: bool = False
    participants: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def kind(self) -> str:
        return name_of(self.head.get("type")) or "chat"

    @property
    def is_known(self) -> bool:
        return isinstance(self.head.get("id"), int) and self.has_messages

    @property
    def chat_id(self) -> str:
        return bot_api_id(self.kind, self.head["id"])

    @property
    def title(self) -> str:
        return name_of(self.head.get("name")) or f"{self.kind} {self.head['id']}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the file: a chat begins, one of its plain fields, its list of messages, a message; the owner's id."""

    what: Literal["chat", "field", "list", "message", "account", "owner"]
    name: str = ""
    value: Any = None


def bot_api_id(kind: str, number: int) -> str:
    """The chat id that the Bot API uses: users as they are, groups negative, supergroups and channels -100..."""
    if number < 0:
        return str(number)
    if kind in _SHARED:
        return str(-(CHANNEL_BASE + number))
    return str(-number) if kind == _PRIVATE_GROUP else str(number)


def read_export(path: Path, options: ExportOptions) -> Export:
    """Checks the whole file. Raises ExportError when it is no such export, OSError when it cannot be read."""
    size = path.stat().st_size
    chats: list[_Chat] = []
    skipped: Counter[str] = Counter()
    unsupported: Counter[str] = Counter()
    owners = set(options.owner_ids)
    is_export = False
    for part in _parts(path, lambda done: options.progress(done, 2 * size)):
        if part.what == "owner":
            owners.add(str(part.value))
        elif part.what == "account":
            is_export = True
        elif part.what == "chat":
            chats.append(_Chat())
        elif part.what == "field":
            chats[-1].head[part.name] = part.value
        elif part.what == "list":
            chats[-1].has_messages = True
        else:
            _count(chats[-1], part.value, skipped, unsupported)
    single_chat = not is_export and len(chats) == 1 and chats[0].is_known and "type" in chats[0].head
    if not (is_export or single_chat):
        raise ExportError(f"{path}: this is JSON, but no export of a chat. {_EXPECTED}")
    if lost := sum(not chat.is_known for chat in chats[1 if is_export else 0 :]):
        skipped["chat without an id or messages"] = lost
    known = replace(options, owner_ids=frozenset(owners))
    return Export(
        tuple(
            ExportedChat(chat.chat_id, chat.title, chat.messages, tuple(chat.participants))
            for chat in chats
            if chat.is_known
        ),
        skipped,
        unsupported,
        (),
        lambda: _messages(path, chats, known, size),
    )


def _count(chat: _Chat, value: Any, skipped: Counter[str], unsupported: Counter[str]) -> None:
    fault = _fault(value)
    if fault:
        skipped[fault] += 1
        return
    chat.messages += 1
    content = content_of(value)
    if content.unsupported:
        unsupported[content.unsupported] += 1
    if content.kind != "system" and len(chat.participants) < PARTICIPANTS_MAX:
        chat.participants[_sender(value)[1]] = None


def _fault(value: Any) -> str | None:
    """Why a record cannot be a message; None when it can."""
    if not isinstance(value, dict):
        return "record that is no object"
    if not isinstance(value.get("id"), int):  # pyright: ignore[reportUnknownMemberType]
        return "message without an id"
    return None if _time(value, None) is not None else "message without a time"  # pyright: ignore[reportUnknownArgumentType]


def _messages(path: Path, chats: list[_Chat], options: ExportOptions, size: int) -> Iterator[ExportedMessage]:
    at = -1
    for part in _parts(path, lambda done: options.progress(size + done, 2 * size)):
        if part.what == "chat":
            at += 1
        elif part.what == "message" and chats[at].is_known and _fault(part.value) is None:
            yield _message(chats[at], part.value, options)


def _message(chat: _Chat, value: dict[str, Any], options: ExportOptions) -> ExportedMessage:
    content = content_of(value)
    sender_id, sender_name = _sender(value)
    replied = value.get("reply_to_message_id")
    flags: tuple[str, ...] = ()
    if value.get("edited_unixtime") or value.get("edited"):
        # A reaction sets the time of editing too.
        flags = ("edited or reacted",) if value.get("reactions") else ("edited",)
    if content.unsupported:
        flags = (*flags, f"unsupported: {content.unsupported}")
    at = _time(value, options)
    assert at is not None
    return ExportedMessage(
        InboundMessage(
            channel="telegram",
            chat_id=chat.chat_id,
            message_id=str(value["id"]),
            sender_id=sender_id,
            sender_name=sender_name,
            text=content.text,
            sent_at=at,
            kind=content.kind,
            attachments=content.attachments,
            reply_to=str(replied) if isinstance(replied, int) else None,
            is_group=chat.kind == _PRIVATE_GROUP or chat.kind in _SHARED,
            chat_title=chat.title,
            forwarded_from=name_of(value.get("forwarded_from")) or None,
            wants_answer=False,
        ),
        flags,
        is_owner=sender_id in options.owner_ids and content.kind != "system",
        shares_ids=chat.kind in _SHARED,
    )


def _sender(value: dict[str, Any]) -> tuple[str, str]:
    """The sender's id as the Bot API has it, and a name that can always be shown."""
    raw = value.get("from_id", value.get("actor_id"))
    given = raw if isinstance(raw, str) else ""
    name = name_of(value.get("from")) or name_of(value.get("actor"))
    number = given.lstrip("abcdefghijklmnopqrstuvwxyz")
    kind = {"channel": "public_channel", "chat": _PRIVATE_GROUP}.get(given.removesuffix(number), "")
    sender_id = bot_api_id(kind, int(number)) if number.isdecimal() else given
    return sender_id, name or (f"Deleted account ({given})" if given else "Unknown")


def _time(value: dict[str, Any], options: ExportOptions | None) -> datetime | None:
    """When it was sent: `date_unixtime`, else `date`, a wall time of the machine that exported; None for neither."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(int(value["date_unixtime"]), UTC)
    try:
        local = datetime.fromisoformat(value["date"])
        zone = UTC if options is None else options.zone
        return (local if local.tzinfo else local.replace(tzinfo=zone)).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


class _Counted:
    """A file for ijson that tells how far it was read."""

    def __init__(self, file: BinaryIO, told: Told) -> None:
        self._file = file
        self._told = told
        if file.read(3) != b"\xef\xbb\xbf":
            file.seek(0)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._told(self._file.tell())
        return data


def _parts(path: Path, told: Told) -> Iterator[_Part]:
    """The file in pieces, in its order. Raises ExportError when it is not JSON."""
    import ijson  # pyright: ignore[reportMissingTypeStubs]

    with path.open("rb") as file:
        try:
            yield from _read(ijson.parse(_Counted(file, told), use_float=True), ijson.ObjectBuilder)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())[:80]
            raise ExportError(f"{path}: this is not whole JSON ({reason!r}). {_EXPECTED}") from error


def _read(events: Iterator[tuple[str, str, Any]], new_builder: Callable[[], Any]) -> Iterator[_Part]:
    """The pieces of a stream of ijson's events. The whole file is its first chat, which an account leaves empty."""
    builder: Any = None
    for prefix, event, value in events:
        if builder is not None:
            builder.event(event, value)
            if event == "end_map" and prefix in _MESSAGES:
                yield _Part("message", value=builder.value)
                builder = None
        elif prefix in _MESSAGES and event != "map_key":
            if event == "start_map":
                builder = new_builder()
                builder.event(event, value)
            elif not event.startswith("end_"):
                yield _Part("message", value=value)
        elif event == "start_map" and prefix in _CHATS:
            yield _Part("chat")
        elif event == "start_array" and prefix in _LISTS:
            yield _Part("account" if prefix.endswith(".list") else "list")
        elif prefix in _FIELDS and event in {"string", "number"}:
            yield _Part("field", prefix.rpartition(".")[2], value)
        elif prefix == "personal_information.user_id" and event == "number":
            yield _Part("owner", value=value)

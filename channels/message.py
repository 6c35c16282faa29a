"""The messages that cross the border between a chat platform and the gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

Kind = Literal[
    "text",
    "voice",
    "photo",
    "video",
    "file",
    "sticker",
    "location",
    "contact",
    "poll",
    "edit",
    "revoke",
    "reaction",
    "system",
]
Origin = Literal["person", "scheduled"]
AttachmentKind = Literal["photo", "voice", "audio", "video", "file", "sticker"]
KIND_OF: dict[AttachmentKind, Kind] = {
    "photo": "photo",
    "voice": "voice",
    "audio": "file",
    "video": "video",
    "file": "file",
    "sticker": "sticker",
}
"""The kind of a message that is one such file."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message is sent: a chat of a channel, and a thread in it where the platform has threads.

    Ids are the platform's own, as strings. `thread_id` is None outside of threads.
    """

    channel: str
    chat_id: str
    thread_id: str | None = None

    @property
    def session_key(self) -> str:
        """`<channel>:<chat>` or `<channel>:<chat>:<thread>`."""
        base = f"{self.channel}:{self.chat_id}"
        return base if self.thread_id is None else f"{base}:{self.thread_id}"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that comes or goes with a message. `path` is relative to the workspace, None when it was not fetched.

    `remote` is the channel's own word for a file that it can still fetch (`channels.channel.HasFiles`); nobody else
    reads it, and it is shown nowhere.
    """

    kind: AttachmentKind
    name: str
    path: str | None = None
    mime: str | None = None
    size_bytes: int | None = None
    duration_seconds: int | None = None
    remote: str | None = None

    @property
    def upload_id(self) -> str:
        """By what `Uploads.find` knows a saved file: its name on the disk; empty when it was not fetched."""
        return "" if self.path is None else self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Choice:
    """One button under a question. `id` comes back as `InboundMessage.action`."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Quote:
    """What a message quotes or replies to, as far as the platform says. `is_own`: the agent's or the sender's words."""

    text: str
    sender_name: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message as a channel heard it.

    `sent_at` is an aware UTC time. `message_id` is unique in its chat; `key`, where given, is unique over the
    whole channel and replaces it for de-duplication. `answer_to` is where a scheduled answer goes, fixed when
    the run came due; people are always answered where they wrote. `edits` is the id of the message that an
    `edit`, `revoke` or `reaction` is about. `wants_answer` is False for what is only logged (edits, posts of a
    channel that is not listed, a voice note nobody can transcribe). `more_may_come`: it may be one part of several (an
    album, a text cut by the platform): its turn waits a moment for the others. `flags`: what is to be said about it in
    the read log; `cut` is a text that goes on in the next message, `cut_inside` one that was cut inside a line,
    `history` one that the platform tells of afterwards. `is_own`: the owner wrote it to somebody else, from the phone
    that this channel is linked with; it is logged as sent.
    """

    channel: str
    chat_id: str
    message_id: str
    sender_id: str
    sender_name: str
    text: str
    sent_at: datetime
    thread_id: str | None = None
    kind: Kind = "text"
    attachments: tuple[Attachment, ...] = ()
    reply_to: str | None = None
    action: str | None = None
    is_group: bool = False
    is_mention: bool = False
    origin: Origin = "person"
    key: str | None = None
    chat_title: str | None = None
    answer_to: Address | None = None
    answers_nowhere: bool = False
    edits: str | None = None
    forwarded_from: str | None = None
    wants_answer: bool = True
    notice: str | None = None
    more_may_come: bool = False
    quote: Quote | None = None
    flags: tuple[str, ...] = ()
    is_own: bool = False

    @property
    def address(self) -> Address:
        return Address(self.channel, self.chat_id, self.thread_id)

    @property
    def dedupe_key(self) -> str:
        """Unique over the channel: the same key twice is the same message."""
        return self.key if self.key is not None else f"{self.chat_id}/{self.message_id}"


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One logical reply to one address. `text` is Markdown; the channel makes of it what the platform shows.

    `sent_ids` are the platform ids of the parts that an earlier try delivered: they are not sent again.
    `replaces` is the platform id of a message of ours that this text takes the place of (a live draft, a question that
    was answered). `is_draft`: the answer is still being written; one message holds as much of it as fits.
    `choices` are buttons under the last part. `attachments` go after the text, in order; each file is a part.
    """

    key: str
    address: Address
    text: str
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()
    reply_to: str | None = None
    replaces: str | None = None
    sent_ids: tuple[str, ...] = ()
    is_draft: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """The platform's word that it has the message: an id for each part, in order, and when (UTC)."""

    message_ids: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of an inbound message: it is on disk when a channel holds this.

    `is_new` is False when the same message had been accepted before. `will_answer` is True when a turn or a
    command will answer it: the channel may show a typing sign until then.
    """

    message_id: str
    conversation_id: str
    is_new: bool
    will_answer: bool


class ExportError(Exception):
    """A file is not the export it should be; `str()` is one sentence that says what was found."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How an export file is to be read.

    `zone` is where its wall times were written. `chat` and `me` are the names of the chat and of the owner in it, where
    the file does not say; `owner_ids` are the owner's ids on that platform. `dates`: the order of day, month and year.
    `progress` is told how many bytes were read, of how many, over the checking and the reading together.
    """

    zone: ZoneInfo
    chat: str | None = None
    me: str | None = None
    owner_ids: frozenset[str] = frozenset()
    dates: Literal["dmy", "mdy", "ymd"] | None = None
    progress: Callable[[int, int], None] = lambda _done, _total: None


@dataclass(frozen=True, slots=True)
class ExportedMessage:
    """One message of an export. `shares_ids`: its id is the one that the channel itself would see for this message.

    `flags`: what is to be said about it, such as `edited`. `is_owner`: the owner wrote it.
    """

    message: InboundMessage
    flags: tuple[str, ...] = ()
    is_owner: bool = False
    shares_ids: bool = False


@dataclass(frozen=True, slots=True)
class ExportedChat:
    """What a checked export holds of one chat. `participants`: the first so many who wrote."""

    chat_id: str
    title: str
    messages: int
    participants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Export:
    """An export file that was read through once and is what it claims to be.

    `skipped` counts what is left out, by reason; `unsupported` what came as a placeholder or as bare text, by kind;
    `notes` are sentences for the owner. `messages` reads the file once more, one message at a time.
    """

    chats: tuple[ExportedChat, ...]
    skipped: Mapping[str, int]
    unsupported: Mapping[str, int]
    notes: tuple[str, ...]
    messages: Callable[[], Iterator[ExportedMessage]]

"""What the store takes and gives: plain values, times as aware UTC datetimes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from channels.message import Address, Attachment, InboundMessage, Quote
from heartbeat.types import Kind

Rights = Literal["owner", "allowed", "stranger"]
MessageState = Literal["waiting", "running", "answered", "cancelled", "failed", "expired", "observed"]
DeliveryState = Literal["planned", "sending", "sent", "retry", "unknown", "failed", "suppressed", "expired"]


def to_ms(at: datetime) -> int:
    """Milliseconds since 1970 of an aware time."""
    return int(at.timestamp() * 1000)


def from_ms(value: int) -> datetime:
    """The aware UTC time of milliseconds since 1970."""
    return datetime.fromtimestamp(value / 1000, UTC)


def safe_text(text: str) -> str:
    """The text as SQLite and UTF-8 can hold it: lone surrogates and NUL become U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Pairs of surrogates that make one character (as JSON escapes bring them) are joined, the rest replaced.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: Any) -> str | None:
    """JSON text of a list or object, None for an empty one."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else None


def attachments_of(column: str | None) -> tuple[Attachment, ...]:
    """The files in the column `attachments`."""
    return tuple(Attachment(**one) for one in json.loads(column or "[]"))


def shown_attachments(column: str | None) -> list[dict[str, Any]]:
    """The column `attachments` as it is shown: without what only the channel reads."""
    found: list[dict[str, Any]] = json.loads(column or "[]")
    return [{key: value for key, value in one.items() if key != "remote"} for one in found]


def address_text(address: Address | None) -> str | None:
    """An address as a JSON array, as the column `answer_to` keeps it."""
    return None if address is None else json.dumps([address.channel, address.chat_id, address.thread_id])


def address_of(text: str | None) -> Address | None:
    """The reverse of `address_text`."""
    return None if text is None else Address(*json.loads(text))


NOWHERE = "[]"
"""`answer_to` of a scheduled run whose answer is sent to nobody."""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """An inbound message with what the inbox decided about it.

    `cut`: how its chat is cut into conversations (`ChannelInfo.conversations`); `idle_ms` 0: never by rest.
    `ends_conversation`: the command `/new`. `notice`: a sentence sent back at once instead of an answer.
    """

    message: InboundMessage
    rights: Rights
    state: Literal["waiting", "observed"]
    command: str | None
    cut: Literal["idle", "chat", "message"]
    idle_ms: int
    ends_conversation: bool
    notice: str | None
    saved_is_sent: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of it. `seq` 0: nothing was saved (an edit that changed nothing)."""

    seq: int
    version: int
    n: int | None
    message_id: str
    conversation_id: str
    session_key: str
    chat: str
    title: str
    is_new: bool
    state: MessageState
    notice: Delivery | None = None


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """One message of a turn."""

    seq: int
    n: int
    conversation_id: str
    message_id: str
    address: Address
    sender_id: str
    sender_name: str
    rights: Rights
    origin: str
    text: str
    at: datetime
    answer_to: str | None
    attachments: tuple[Attachment, ...]
    kind: str = "text"
    forwarded_from: str | None = None
    quote: Quote | None = None
    flags: tuple[str, ...] = ()
    command: str | None = None

    @property
    def is_private(self) -> bool:
        """A private chat has its person's id."""
        return self.address.chat_id == self.sender_id


@dataclass(frozen=True, slots=True)
class Overheard:
    """What was said in a group and not to the agent. `files`: what came with it, by kind and name."""

    sender_id: str
    sender_name: str
    text: str
    kind: str
    at: datetime
    files: tuple[Attachment, ...] = ()


def run_of(message: TakenMessage) -> tuple[Kind, str]:
    """Kind and name of the job whose due run this message is."""
    kind: Any = message.address.channel
    return kind, message.address.chat_id


@dataclass(frozen=True, slots=True)
class HistoryCall:
    """A tool call of an earlier message; `output` None: nobody knows how it ended."""

    n: int
    round: int
    call_id: str
    name: str
    args: str
    fault: str | None
    output: str | None
    outcome: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """An earlier message of the conversation, oldest first in a list. `said_by`: who said it, where that is not the
    person who asks now. `overheard`: it was not said to the agent."""

    n: int
    role: str
    sender_name: str
    text: str
    turn_id: str | None
    round: int
    rounds: tuple[str, ...]
    calls: tuple[HistoryCall, ...]
    at: datetime | None = None
    said_by: str = ""
    overheard: Overheard | None = None
    kind: str = "text"
    forwarded_from: str | None = None
    attachments: tuple[Attachment, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn that was begun (or taken up again): its messages, and what the conversation held before."""

    turn_id: str
    attempts: int
    session_key: str
    conversation_id: str
    messages: tuple[TakenMessage, ...]
    history: tuple[HistoryMessage, ...]
    reply_so_far: HistoryMessage | None
    session_keys: tuple[str, ...] = ()
    """The sessions in which an allowed person wrote; empty for the owner, who sees all."""
    unseen: tuple[Overheard, ...] = ()
    """What others said in a group since the agent last took a message there, oldest first."""
    draft_id: str | None = None
    """The message that shows what a broken-off run of this turn had answered so far."""

    @property
    def files(self) -> tuple[str, ...]:
        """The workspace paths of what came with the messages."""
        attachments = (attachment for message in self.messages for attachment in message.attachments)
        return tuple(attachment.path for attachment in attachments if attachment.path)


def reply_to_of(claim: Claim) -> str | None:
    """Which message the answer quotes: in a group the last one; a private chat needs no quote above an answer."""
    last = claim.messages[-1]
    return last.message_id if last.origin == "person" and not last.is_private else None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One logical reply on its way. `text` is the Markdown of its message, `replaces` the message whose place it takes
    (the live draft it was shown as before)."""

    key: str
    message_seq: int
    address: Address
    text: str
    state: DeliveryState
    attempts: int
    next_at: datetime | None
    reply_to: str | None
    sent_ids: tuple[str, ...]
    reason: str | None
    conversation_id: str
    replaces: str | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a read log, before it is JSON: an entry number, its chat, and the line's fields."""

    seq: int
    channel: str
    chat: str
    fields: Mapping[str, Any]


def delivery_of(row: sqlite3.Row) -> Delivery:
    """A Delivery from a row of `open_deliveries` and its kin."""
    return Delivery(
        key=row["key"],
        message_seq=row["message_seq"],
        address=Address(row["channel"], row["chat"], row["thread"]),
        text=row["text"],
        state=row["state"],
        attempts=row["attempts"],
        next_at=None if row["next_at"] is None else from_ms(row["next_at"]),
        reply_to=row["reply_to"],
        sent_ids=tuple(json.loads(row["sent_ids"] or "[]")),
        reason=row["reason"],
        conversation_id=row["conversation_id"],
        replaces=row["replaces"],
        attachments=attachments_of(row["attachments"]),
    )

"""What a turn is given to read: the words of its person, and apart from them the words of others that came along."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from agent.fence import fence
from agent.lines import one_line
from agent.types import Foreign
from channels.message import Attachment
from gateway.limits import QUOTE_CHARS_MAX
from gateway.store.arriving import TRANSCRIPT
from gateway.store.types import HistoryMessage, Overheard, TakenMessage

NAME_CHARS = 60
_NAMED_KINDS = {"location", "contact", "poll", "sticker"}
GROUP = "messages of the group"
FORWARDED = "a forwarded message"
TAKEN_BACK = "[a message that its sender took back]"


class Worded(Protocol):
    """A message, new or earlier."""

    @property
    def text(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def forwarded_from(self) -> str | None: ...
    @property
    def attachments(self) -> tuple[Attachment, ...]: ...
    @property
    def flags(self) -> tuple[str, ...]: ...


def said(messages: Sequence[TakenMessage]) -> str:
    """What the person wrote, each message whole; the parts of a text that the platform cut are joined again.

    Forwarded texts are left out: they are not the person's words.
    """
    text = ""
    before: TakenMessage | None = None
    for message in messages:
        words = _words(message)
        if before is not None and "cut" in before.flags and not message.attachments and not message.forwarded_from:
            text += words if "cut_inside" in before.flags else f"\n{words}"
        else:
            text += f"\n\n{words}" if text and words else words
        before = message
    return text


def foreign(messages: Sequence[TakenMessage], unseen: Sequence[Overheard]) -> tuple[Foreign, ...]:
    """The words of others: what went on in the group, what was forwarded, what is quoted, in this order."""
    found: list[Foreign] = []
    if unseen:
        asker = messages[0].sender_id
        is_own = all(line.sender_id == asker for line in unseen)
        found.append(Foreign("\n".join(map(overheard_line, unseen)), GROUP, is_own=is_own))
    for message in messages:
        if message.forwarded_from and message.text.strip():
            found.append(Foreign(message.text, FORWARDED, message.forwarded_from))
        if message.quote is not None and message.quote.text.strip():
            quote = message.quote
            text = quote.text[:QUOTE_CHARS_MAX]
            found.append(Foreign(text, "the message that is replied to", quote.sender_name, quote.is_own))
    return tuple(found)


def overheard(lines: Sequence[Overheard]) -> str:
    """What was said in a group and not to the agent, as one piece of data of a prompt's history."""
    return fence("\n".join(map(overheard_line, lines)), GROUP)


def overheard_line(line: Overheard) -> str:
    """`09:41 Sara: text`, on one line of its own; what came with it by kind and name."""
    files = "".join(f" [{described(file)}]" for file in line.files)
    name = one_line(line.sender_name, NAME_CHARS) or line.sender_id
    return f"{_minute(line.at)} {name}: {' '.join(line.text.split())}{files}"


def described(file: Attachment) -> str:
    """A file in a few words: kind, name, length."""
    seconds = f", {file.duration_seconds} s" if file.duration_seconds is not None else ""
    return f"{file.kind}: {one_line(file.name, NAME_CHARS)}{seconds}"


def said_earlier(message: HistoryMessage) -> str:
    """An earlier message as the model reads it again: with the places of its files, never empty for one that was
    answered. Empty for a blank one, which was not."""
    text = _words(message)
    if not text.strip():
        return TAKEN_BACK if message.turn_id is not None else ""
    kept = ", ".join(file.path for file in message.attachments if file.path is not None)
    return f"[files: {kept}]\n{text}" if kept else text


def _words(message: Worded) -> str:
    """One message as the model reads it: what is no typed text carries a mark of the program."""
    marks: list[str] = []
    if message.forwarded_from:
        marks.append(f"[forwarded a message of {one_line(message.forwarded_from, NAME_CHARS)}]")
    recording = next((file for file in message.attachments if file.kind in {"voice", "audio"}), None)
    if recording is not None and TRANSCRIPT in message.flags:
        marks.append(f"[{described(recording)}; what follows is its transcript]")
    elif message.kind in _NAMED_KINDS:
        marks.append(f"[{message.kind}]")
    marks += [f"[{described(file)}; it could not be fetched]" for file in message.attachments if file.path is None]
    if not marks and not message.text.strip():
        marks = [f"[{described(file)}]" for file in message.attachments]
    text = "" if message.forwarded_from else message.text
    return "\n".join([*marks, text]) if text else "\n".join(marks)


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%MZ}"

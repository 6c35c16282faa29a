"""Reads the chat export of WhatsApp, a `.txt` or the `.zip` around it, line by line: one message in memory.

A message's id is a hash of its chat, time, sender, text and how often the same came before, so that the same file, or
a later export of the same chat, gives the same ids.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO
from zoneinfo import ZoneInfo

from channels.message import Export, ExportedChat, ExportedMessage, ExportError, ExportOptions, InboundMessage
from channels.whatsapp.export_content import content_of
from channels.whatsapp.export_lines import Head, Order, head_of, trimmed

LINE_BYTES_MAX = 1_000_000
MESSAGE_CHARS_MAX = 1_000_000
PREAMBLE_LINES_MAX = 100
"""A chat's first message begins within so many lines, or the file is no chat."""
SHOWN_CHARS = 80
PARTICIPANTS_MAX = 50
SAME_TIMES_KEPT = 5_000
"""Over so many different times equal messages are counted; in an export equal times stand together."""
_MONTH_FIRST = ("en_US", "en_PH", "en_FM")
_TITLE = re.compile(
    r"^(?:WhatsApp[ -]*Chat[ -]*(?:with|mit|-)|Chat de WhatsApp con|Discussion WhatsApp avec|Conversa do WhatsApp com|"
    r"Chat WhatsApp con|WhatsApp-chat met|WhatsApp-chatt med|Чат WhatsApp с(?: контактом)?|"
    r"(?:محادثة|دردشة) (?:واتساب|WhatsApp) مع)[ _-]*(?P<name>.+)$|^(?P<before>.+) ile WhatsApp Sohbeti$",
    re.IGNORECASE,
)
_INNER = "_chat"


def read_export(path: Path, options: ExportOptions) -> Export:
    """Checks the whole file. Raises ExportError when it is no such export, OSError when it cannot be read."""
    source = _Source(path)
    survey = _Survey()
    size = source.size
    for head, raw in source.records(survey.skipped, lambda done: options.progress(done, 2 * size)):
        survey.take(head, raw)
    if not survey.messages:
        first = source.first_line().encode("unicode_escape", "backslashreplace").decode("ascii")[:SHOWN_CHARS]
        raise ExportError(
            f'{path}: this is no chat export of WhatsApp; its first line is "{first}". Expected are lines that begin '
            "with `[date, time] name:` or `date, time - name:`."
        )
    order, notes = _order(survey, options, path)
    chat, is_guess = (options.chat, False) if options.chat else _chat_name(path)
    if is_guess:
        notes.append(
            f'The file name does not say which chat this is; it is called "{chat}". --chat gives it another name.'
        )
    return Export(
        (ExportedChat(chat, chat, survey.messages, tuple(survey.participants)),),
        survey.skipped,
        {},
        tuple(notes),
        lambda: _messages(source, chat, order, options),
    )


@dataclass(slots=True)
class _Survey:
    """What the first reading learns: counts, and what the dates can and cannot mean."""

    messages: int = 0
    participants: dict[str, None] = field(default_factory=dict[str, None])
    skipped: Counter[str] = field(default_factory=Counter[str])
    heads: int = 0
    fitting: Counter[Order] = field(default_factory=Counter[Order])
    backwards: Counter[Order] = field(default_factory=Counter[Order])
    last: dict[Order, datetime] = field(default_factory=dict[Order, datetime])
    separators: Counter[str] = field(default_factory=Counter[str])
    differs: bool = False
    misfits: dict[Order, str] = field(default_factory=dict[Order, str])

    def take(self, head: Head, raw: str) -> None:
        self.messages += 1
        self.skipped.update({"file name that no file may have": content_of(raw, {}).refused})
        if head.author is not None and len(self.participants) < PARTICIPANTS_MAX:
            self.participants[head.author] = None
        if head.year_first:
            return
        self.heads += 1
        self.separators[head.separator] += 1
        self.differs |= head.at("dmy") != head.at("mdy")
        for order in ("dmy", "mdy", "ymd"):
            at = head.at(order)
            if at is None:
                self.misfits.setdefault(order, head.shown_date)
                continue
            self.fitting[order] += 1
            if order in self.last and at.date() < self.last[order].date():
                self.backwards[order] += 1
            self.last[order] = at


def _order(survey: _Survey, options: ExportOptions, path: Path) -> tuple[Order, list[str]]:
    """The order of day, month and year, and what is to be said about it. Raises ExportError for one that cannot be."""
    if options.dates is not None:
        if options.dates in survey.misfits:
            raise ExportError(
                f"{path}: with the order {options.dates} the date {survey.misfits[options.dates]} is none. Leave "
                "--dates out, or give the order of the phone that wrote the file."
            )
        return options.dates, []
    most = max(survey.fitting["dmy"], survey.fitting["mdy"])
    if survey.fitting["ymd"] > most:
        return "ymd", []
    day_first, month_first = (survey.fitting[order] for order in ("dmy", "mdy"))
    if day_first != month_first:
        return ("dmy" if day_first > month_first else "mdy"), []
    if survey.backwards["dmy"] != survey.backwards["mdy"]:
        return ("dmy" if survey.backwards["dmy"] < survey.backwards["mdy"] else "mdy"), []
    # No language writes the month first with dots.
    if not survey.differs or not {"/", "-"} & set(survey.separators):
        return "dmy", []
    spoken = next((os.environ[name] for name in ("LC_ALL", "LC_TIME", "LANG") if os.environ.get(name)), "")
    order: Order = "mdy" if spoken.startswith(_MONTH_FIRST) else "dmy"
    words = {"dmy": "day, month, year", "mdy": "month, day, year"}
    other = "mdy" if order == "dmy" else "dmy"
    return order, [
        f"The order of the dates is ambiguous: they were read as {words[order]} ({order}). If that is wrong, import "
        f"the file with --dates {other} instead."
    ]


def _chat_name(path: Path) -> tuple[str, bool]:
    """The chat's name from the file's name, or its folder's; True when neither says it is one."""
    stem = re.sub(r" ?\(\d+\)$", "", trimmed(path.stem))
    for name in [stem] if stem != _INNER else [path.absolute().parent.name]:
        if found := _TITLE.match(name):
            return trimmed(found["name"] or found["before"]), False
    return stem.strip("_") or "chat", True


class _Source:
    """The text of the chat, wherever it lies; `sizes` are the files beside it in a .zip, in bytes, by name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._member: str | None = None
        self.sizes: dict[str, int] = {}
        self.size = path.stat().st_size
        if zipfile.is_zipfile(path):
            self._look_inside()

    def _look_inside(self) -> None:
        with self._zip() as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        texts = [e for e in entries if e.filename.lower().endswith(".txt") and not e.filename.startswith("__MACOSX")]
        chats = [e for e in texts if _TITLE.match(Path(e.filename).stem) or Path(e.filename).stem == _INNER] or texts
        if len(chats) != 1:
            raise ExportError(
                f"{self._path}: this .zip holds {len(chats)} texts that may be a chat; an export of WhatsApp has one."
            )
        self._member = chats[0].filename
        self.size = chats[0].file_size
        self.sizes = {e.filename.rpartition("/")[2]: e.file_size for e in entries if e is not chats[0]}

    @contextmanager
    def _zip(self) -> Generator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield archive
        except (zipfile.BadZipFile, zipfile.LargeZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise ExportError(f"{self._path}: this .zip cannot be read ({error}). Export the chat again.") from error

    @contextmanager
    def _open(self) -> Generator[IO[bytes]]:
        if self._member is None:
            with self._path.open("rb") as file:
                yield file
        else:
            with self._zip() as archive, archive.open(self._member) as file:
                yield file

    def first_line(self) -> str:
        with self._open() as file:
            for raw in iter(lambda: file.readline(LINE_BYTES_MAX), b""):
                if raw.strip():
                    return raw[: 4 * SHOWN_CHARS].decode("utf-8", "replace").rstrip("\r\n")
        return ""

    def records(self, skipped: Counter[str], told: Callable[[int], None]) -> Iterator[tuple[Head, str]]:
        """Each message with its whole text, in order. Stops when the file does not begin like a chat."""
        head: Head | None = None
        parts: list[str] = []
        chars = done = before = 0
        with self._open() as file:
            for raw in iter(lambda: file.readline(LINE_BYTES_MAX), b""):
                done += len(raw)
                told(done)
                line = raw.decode("utf-8", "replace").replace("\r", "")
                found = head_of(line)
                if found is not None:
                    if head is not None:
                        yield head, "".join(parts)
                    head, parts, chars = found, [found.text], len(found.text)
                elif head is None:
                    before += bool(line.strip())
                    if before > PREAMBLE_LINES_MAX:
                        return
                elif chars + len(line) > MESSAGE_CHARS_MAX:
                    skipped[f"line of a message after {MESSAGE_CHARS_MAX} characters"] += 1
                else:
                    parts.append(line)
                    chars += len(line)
        if head is not None:
            yield head, "".join(parts)
            skipped.update({"line before the first message": before})


class _Clock:
    """Wall times as UTC: in the hour that a clock change repeats, a time that would run backwards is the second one."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._last: datetime | None = None

    def utc(self, wall: datetime) -> datetime:
        at = wall.replace(tzinfo=self._zone).astimezone(UTC)
        if self._last is not None and at < self._last - timedelta(minutes=1):
            second = wall.replace(tzinfo=self._zone, fold=1).astimezone(UTC)
            at = second if second >= self._last else at
        self._last = at
        return at


def _messages(source: _Source, chat: str, order: Order, options: ExportOptions) -> Iterator[ExportedMessage]:
    clock = _Clock(options.zone)
    seen: OrderedDict[datetime, Counter[bytes]] = OrderedDict()
    size = source.size
    for head, raw in source.records(Counter(), lambda done: options.progress(size + done, 2 * size)):
        wall = head.at(order) or head.at("dmy") or head.at("mdy") or head.at("ymd")
        assert wall is not None
        at = clock.utc(wall)
        content = content_of(raw, source.sizes)
        sender = head.author or ""
        flags = [
            *(["edited"] if content.is_edited else []),
            *([] if head.is_saved else ["not a saved contact"]),
        ]
        yield ExportedMessage(
            InboundMessage(
                channel="whatsapp",
                chat_id=chat,
                message_id=_message_id(seen, chat, at, sender, content.text),
                sender_id=sender,
                sender_name=sender,
                text=content.text,
                sent_at=at,
                kind="system" if head.author is None else content.kind,
                attachments=content.attachments,
                chat_title=chat,
                wants_answer=False,
            ),
            tuple(flags),
            is_owner=bool(sender) and sender == trimmed(options.me or ""),
        )


def _message_id(seen: OrderedDict[datetime, Counter[bytes]], chat: str, at: datetime, sender: str, text: str) -> str:
    same = seen.setdefault(at, Counter())
    if len(seen) > SAME_TIMES_KEPT:
        seen.popitem(last=False)
    what = json.dumps([chat, at.isoformat(), sender, text]).encode("utf-8")
    digest = hashlib.sha256(what).digest()
    repetition = same[digest]
    same[digest] += 1
    return hashlib.sha256(what + b"%d" % repetition).hexdigest()[:32]

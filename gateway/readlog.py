"""The per-chat read logs: JSON lines made from the database, appended after the commit, healed and made up at start."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agent.removed import is_about, removed_ids
from gateway.limits import READLOG_RETRY_SECONDS
from gateway.store import Store
from gateway.store.types import LogLine

LOG = logging.getLogger(__name__)

NAME_BYTES_MAX = 200
_UNSAFE = re.compile(rb"[^A-Za-z0-9._+=@-]|^\.")


def file_name(chat: str) -> str:
    """A safe file name for a chat id: unsafe bytes as %XX, long names cut and told apart by a hash. No collisions."""
    raw = chat.encode("utf-8", "surrogatepass")
    name = _UNSAFE.sub(lambda found: b"%%%02X" % found.group()[0], raw).decode("ascii")
    # `%` itself is encoded, so no other chat's short name can look like a cut one (`%~`).
    if len(name) > NAME_BYTES_MAX or not name:
        name = f"{name[: NAME_BYTES_MAX - 40]}%~{hashlib.sha256(raw).hexdigest()[:32]}"
    return f"{name}.jsonl"


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every line of a log that parses, in order; the rest is reported with file and line number and passed over."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        line = parse_line(raw)
        if line is None:
            LOG.warning("%s: line %d is not readable and was passed over", path, number)
        else:
            yield line


def kept_lines(path: Path) -> list[dict[str, Any]]:
    """What a log still says: its readable lines in order, without those that a `removed` line takes out, and what is
    said about those (edits, reactions)."""
    lines = list(read_lines(path))
    gone = removed_ids(lines)
    return [line for line in lines if line.get("kind") == "removed" or not is_about(line, gone)]


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """One line as an object, None when it is no JSON object in UTF-8."""
    try:
        value: Any = json.loads(raw.decode("utf-8"))
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def heal(path: Path) -> int:
    """Ends a file on a whole line: a last line that was torn is cut off (the database makes it up again), one that
    is whole but not ended is ended. Returns the size in bytes; 0 for a file that is not there."""
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                return 0
            file.seek(size - 1)
            if file.read(1) == b"\n":
                return size
            start = _last_line_start(file, size)
            file.seek(start)
            if parse_line(file.read()) is not None:
                file.write(b"\n")
                return size + 1
            LOG.warning("%s: the last line was torn at byte %d and was cut off", path, start)
            file.truncate(start)
            return start
    except FileNotFoundError:
        return 0


def _last_line_start(file: Any, size: int) -> int:
    """The offset of the last line of a file that does not end in a newline."""
    position = size
    while position > 0:
        step = min(65_536, position)
        position -= step
        file.seek(position)
        found = file.read(step).rfind(b"\n")
        if found >= 0:
            return position + found + 1
    return 0


@dataclass(slots=True)
class _Chat:
    """What is known of one chat's file. `suspect`: the last append failed, the file's end must be looked at."""

    channel: str
    chat: str
    path: Path
    written: int = 0
    size_bytes: int = 0
    dirty: bool = False
    suspect: bool = True
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ReadLog:
    """Appends what was committed, in the order of the commits. A full disk delays a chat's turns, it loses nothing.

    `append` is the write edge, replaced in tests; `alert` is told once when writing fails and once when it works again.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        append: Callable[[Path, bytes], None] | None = None,
        alert: Callable[[str], None] | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self._folder = folder
        self._store = store
        self._append = append or append_bytes
        self._alert = alert or LOG.error
        self._sleep = sleep
        self._chats: dict[tuple[str, str], _Chat] = {}
        self._failing = False

    async def start(self) -> int:
        """Makes up what the files lack; how many lines were added."""
        added = 0
        for known in await self._store.log_chats():
            chat = self._chat(known.channel, known.chat)
            chat.written, chat.size_bytes = known.marked, known.size_bytes
            size = _size(chat.path)
            if known.last == known.marked and size >= known.size_bytes:
                chat.size_bytes = size
                continue
            if size < known.size_bytes:
                # Shortened or gone since it was marked: compare all of it.
                chat.written = chat.size_bytes = 0
            added += await self._write(chat)
        return added

    def removed(self, channel: str, chat_id: str) -> set[Any]:
        """The ids of the messages that the owner had taken out of this chat, as its file says."""
        path = self._chat(channel, chat_id).path
        try:
            says_so = b'"removed"' in path.read_bytes()
        except FileNotFoundError:
            return set()
        return removed_ids(list(read_lines(path))) if says_so else set()

    async def caught_up(self, channel: str, chat_id: str) -> None:
        """Returns when everything of this chat that is committed by now stands in its file.

        While the disk refuses, it tries again and again: a turn that waits for this starts later, not without its log.
        """
        await self._write(self._chat(channel, chat_id))

    async def _write(self, chat: _Chat) -> int:
        """Appends the lines that the file lacks; how many they were."""

        def consume(lines: list[LogLine]) -> tuple[int, int, int]:
            last = lines[-1].seq if lines else chat.written
            # A file of another length than it was left at: an import beside the running gateway wrote to it.
            suspect = chat.suspect or _size(chat.path) != chat.size_bytes
            if suspect:
                heal(chat.path)
                present = _present(chat.path, chat.size_bytes)
                lines = [line for line in lines if _identity(line.fields) not in present]
            data = _bytes(lines)
            if data:
                self._append(chat.path, data)
            return len(lines), last, _size(chat.path) if suspect else chat.size_bytes + len(data)

        async with chat.lock:
            count, chat.written, chat.size_bytes = await self._retry(
                lambda: self._store.with_log_lines(chat.channel, chat.chat, chat.written, consume), chat
            )
            chat.dirty |= count > 0
        return count

    async def _retry(self, attempt: Callable[[], Any], chat: _Chat) -> Any:
        while True:
            try:
                result = await attempt()
            except OSError as error:
                chat.suspect = True
                if not self._failing:
                    self._failing = True
                    self._alert(
                        f"{chat.path}: the read log cannot be written ({error.strerror}). Messages are kept in the "
                        "database and answered when there is space again."
                    )
                await self._sleep(READLOG_RETRY_SECONDS)
                continue
            chat.suspect = False
            if self._failing:
                self._failing = False
                self._alert("The read logs can be written again; nothing was lost.")
            return result

    async def mark(self) -> None:
        """Brings the files that changed to the disk and notes up to where they are whole."""
        for chat in list(self._chats.values()):
            if not chat.dirty:
                continue
            async with chat.lock:
                seq = chat.written
                # What another process appended is not behind `seq`.
                size = min(await asyncio.to_thread(_sync, chat.path), chat.size_bytes)
                chat.dirty = False
            await self._store.mark_log(chat.channel, chat.chat, seq, size)

    def _chat(self, channel: str, chat_id: str) -> _Chat:
        key = (channel, chat_id)
        chat = self._chats.get(key)
        if chat is None:
            chat = self._chats[key] = _Chat(channel, chat_id, self._folder / channel / file_name(chat_id))
        return chat


def append_bytes(path: Path, data: bytes) -> None:
    """Appends to a file, made with its folder when it is not there."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        file = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)


def _bytes(lines: Sequence[LogLine]) -> bytes:
    return b"".join(
        json.dumps(line.fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n" for line in lines
    )


def _identity(fields: Any) -> tuple[Any, ...]:
    return fields.get("dir"), fields.get("kind"), fields.get("id"), fields.get("at")


def _present(path: Path, after_bytes: int) -> set[tuple[Any, ...]]:
    """What the lines of a file after an offset are about."""
    try:
        with path.open("rb") as file:
            file.seek(after_bytes)
            data = file.read()
    except FileNotFoundError:
        return set()
    return {_identity(line) for raw in data.split(b"\n") if (line := parse_line(raw)) is not None}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sync(path: Path) -> int:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size

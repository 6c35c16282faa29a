"""Where messages stand in the read logs. Looked up in the files themselves, as they are when it is asked.

A log is read once and then only what was appended to it; one that changed in another way is read anew, so that a range
names the right lines also after a file was edited or put back.
"""

from __future__ import annotations

import json
import os
from array import array
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from agent.cortex.rank import Record
from agent.cortex.refs import Ref
from agent.lines import body, one_line
from agent.removed import FOLDER

REACH_LINES = 7
"""So many lines before and after a message are its context,"""
PAUSE_MAX = timedelta(hours=3)
"""up to a pause as long as this."""
_LOG_BYTES_MAX = 64 * 1024 * 1024
"""Messages of a longer log have no context."""
_LINES_KEPT_MAX = 500_000
_END_BYTES = 64


@dataclass(slots=True)
class _Log:
    """What is known of one file: where each line ends, and the line of each message, from 1."""

    file_id: tuple[int, int]
    size: int = 0
    mtime_ns: int = 0
    end: bytes = b""
    ends: array[int] = field(default_factory=lambda: array("Q"))
    lines: dict[int, int] = field(default_factory=dict[int, int])


class ReadLogs:
    """`file_name`: the name of a chat's log within the folder of its channel."""

    def __init__(self, workspace: Path, file_name: Callable[[str], str]) -> None:
        self._workspace = workspace
        self._file_name = file_name
        self._logs: OrderedDict[str, _Log] = OrderedDict()

    def context(self, record: Record) -> str:
        """The reference of the lines around a message; an answer is known by its text. Empty: it stands in no log."""
        if record.source != "conversation":
            return ""
        name = f"{FOLDER}/{record.channel}/{self._file_name(record.chat)}"
        path = self._workspace / name
        try:
            log = self._read(name, path)
            at = log and (log.lines.get(hash(record.message_id)) or log.lines.get(hash(("out", record.text))))
            if not log or not at:
                return ""
            first, last = _around(path, log, at)
        except OSError:
            return ""
        return f"file:{name}#L{first}-L{last}" if last > first else f"file:{name}#L{first}"

    def _read(self, name: str, path: Path) -> _Log | None:
        """What is known of a file after a look at it. None: it is too long."""
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            if stat.st_size > _LOG_BYTES_MAX:
                return None
            log = self._logs.get(name)
            if log is not None and (log.size, log.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
                self._logs.move_to_end(name)
                return log
            if log is None or not self._has_grown(log, file, stat):
                log = _Log((stat.st_dev, stat.st_ino))
            file.seek(log.size)
            for raw in file.read(stat.st_size - log.size).split(b"\n")[:-1]:
                log.size += len(raw) + 1
                log.ends.append(log.size)
                _note(log, raw)
            file.seek(max(0, log.size - _END_BYTES))
            log.end = file.read(min(log.size, _END_BYTES))
        log.mtime_ns = stat.st_mtime_ns
        self._logs[name] = log
        self._logs.move_to_end(name)
        while len(self._logs) > 1 and sum(len(one.ends) for one in self._logs.values()) > _LINES_KEPT_MAX:
            self._logs.popitem(last=False)
        return log

    @staticmethod
    def _has_grown(log: _Log, file: Any, stat: os.stat_result) -> bool:
        if log.file_id != (stat.st_dev, stat.st_ino) or stat.st_size <= log.size:
            return False
        file.seek(max(0, log.size - _END_BYTES))
        return file.read(min(log.size, _END_BYTES)) == log.end


def _note(log: _Log, raw: bytes) -> None:
    line = parse(raw)
    if line is None:
        return
    number = len(log.ends)
    for id_ in (line.get("id"), *(line.get("parts") or ())):
        log.lines.setdefault(hash(str(id_)), number)
    if line.get("dir") == "out":
        log.lines[hash(("out", str(line.get("text"))))] = number


def _around(path: Path, log: _Log, at: int) -> tuple[int, int]:
    """First and last line of what was said around line `at` without a long pause."""
    low, high = max(1, at - REACH_LINES), min(len(log.ends), at + REACH_LINES)
    start = log.ends[low - 2] if low > 1 else 0
    with path.open("rb") as file:
        file.seek(start)
        raws = file.read(log.ends[high - 1] - start).split(b"\n")[:-1]
    times = [_time(parse(raw)) for raw in raws]
    first = last = at
    while first > low and _is_near(times[first - 1 - low], times[first - low]):
        first -= 1
    while last < high and _is_near(times[last - low], times[last + 1 - low]):
        last += 1
    return first, last


def _is_near(one: datetime | None, other: datetime | None) -> bool:
    return one is None or other is None or abs(other - one) <= PAUSE_MAX


def _time(line: dict[str, Any] | None) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(line and line.get("at")))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def parse(raw: bytes | str) -> dict[str, Any] | None:
    """One line of a log as an object. None: it is none."""
    try:
        value: Any = json.loads(raw)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def readable(text: str, ref: Ref, zone: ZoneInfo) -> str:
    """Lines of a log as people read them, each after its number."""
    first = ref.lines[0] if ref.lines else 1
    return "\n".join(f"[L{first + at}] {_shown(raw, zone)}" for at, raw in enumerate(text.split("\n")))


def _shown(raw: str, zone: ZoneInfo) -> str:
    line = parse(raw)
    if line is None:
        return raw
    at = _time(line)
    found: Any = line.get("sender")
    sender = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    who = one_line(str(sender.get("name") or sender.get("id") or "")) or str(line.get("dir") or "")
    kind = str(line.get("kind") or "text")
    note = "" if kind == "text" else f" ({one_line(kind)})"
    when = f"{at.astimezone(zone):%Y-%m-%d %H:%M}" if at else "?"
    return f"{when} {who}{note}\n{body(str(line.get('text') or ''))}".rstrip()

"""`run-history.md`: one readable line for each run that ended and each due time that did not run."""

from __future__ import annotations

import codecs
import logging
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from heartbeat.limits import HISTORY_TAIL_BYTES, NOTE_CHARS_MAX
from heartbeat.types import Run

_log = logging.getLogger(__name__)

TITLE = "# Run history\n\n"


class RunHistory:
    """Appends lines `- ISO time | kind | name | outcome | N.Ns | note`; times with the offset of `zone`."""

    def __init__(self, path: Path, zone: ZoneInfo) -> None:
        self._path = path
        self._zone = zone

    def append(self, *runs: Run) -> None:
        """Adds the lines of runs that have ended. What cannot be written is made up at the next start."""
        if runs:
            self._write([self.line(run) for run in runs])

    def make_up(self, runs: Iterable[Run]) -> None:
        """Adds the lines of those `runs` that ended after the last line was written.

        A file without any line gets none: its owner may have emptied it.
        """
        last = self._last_time()
        if last is None:
            return
        ended = [(run.ended_at.replace(microsecond=0), run) for run in runs if run.ended_at is not None]
        late = sorted((pair for pair in ended if pair[0] > last), key=lambda pair: pair[0])
        if late:
            self._write([self.line(run) for _, run in late])

    def line(self, run: Run) -> str:
        """The line of one run, without its end of line."""
        at = (run.ended_at or run.due_at).astimezone(self._zone).isoformat(timespec="seconds")
        took = 0.0
        if run.started_at is not None and run.ended_at is not None:
            took = max(0.0, (run.ended_at - run.started_at).total_seconds())
        notes = [late_words(run.late_seconds)] if run.started_at is not None else []
        note = "; ".join(part for part in (*notes, _one_line(run.reason)) if part)
        if len(note) > NOTE_CHARS_MAX:
            note = note[: NOTE_CHARS_MAX - 1] + "…"
        return f"- {at} | {run.kind} | {_one_line(run.job)} | {run.outcome} | {took:.1f}s | {note}".rstrip()

    def _write(self, lines: list[str]) -> None:
        try:
            self._append(lines)
        except OSError as error:  # the rows are the truth; no run depends on this file
            _log.warning("%s cannot be written: %s.", self._path, error.strerror)

    def _append(self, lines: list[str]) -> None:
        data = ("\n".join(lines) + "\n").encode("utf-8", errors="replace")
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        with os.fdopen(descriptor, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - HISTORY_TAIL_BYTES))
            torn = file.read().rpartition(b"\n")[2]
            if size == 0:
                data = TITLE.encode() + data
            elif data.startswith(torn):  # nothing torn, or this very line: write the rest of it
                data = data[len(torn) :]
            else:
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
                decoder.decode(torn)
                size -= len(decoder.getstate()[0])  # the bytes of a character cut in half
                data = b"\n" + data
            file.truncate(size)
            file.seek(size)
            file.write(data)

    def _last_time(self) -> datetime | None:
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - HISTORY_TAIL_BYTES))
                tail = file.read().decode("utf-8", errors="replace")
        except OSError:
            return None
        for line in reversed(tail.split("\n")[:-1]):  # the end without a line break is torn
            try:
                last = datetime.fromisoformat(line.removeprefix("- ").partition(" | ")[0])
            except ValueError:
                continue
            if last.tzinfo is not None and line.count(" | ") >= 4:
                return last
        return None


def late_words(late_seconds: float) -> str:
    """`late by 20 min`; empty under a minute."""
    minutes = round(late_seconds / 60)
    if late_seconds < 60:
        return ""
    hours, rest = divmod(minutes, 60)
    return f"late by {hours} h {rest} min" if hours else f"late by {minutes} min"


def _one_line(text: str) -> str:
    """Without line breaks, and without the bar that separates the columns."""
    return " ".join(text.split()).replace("|", "¦")

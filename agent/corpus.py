"""The event log: what each turn did and when, a file a day, for looking into. Kept for a week."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, cast
from zoneinfo import ZoneInfo

from agent.files import append_lines
from agent.limits import CORPUS_DAYS_KEPT, CORPUS_PAUSE_SECONDS, CORPUS_TEXT_CHARS
from agent.lines import flat, one_line
from agent.redaction import REDACT
from agent.types import Turn

_log = logging.getLogger(__name__)
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})\.log\.md")


class _Event(NamedTuple):
    """Something that happened in a turn; made in passing, written later."""

    at: datetime
    scheduled: bool
    turn_id: str
    name: str
    facts: dict[str, object]


class Corpus:
    """The event log `brain/corpus/YYYY-MM-DD.log.md`, days and times in the owner's zone.

    `note` only remembers; a thread writes some 2 seconds later, without secrets. `now` gives aware UTC times.
    """

    def __init__(
        self,
        workspace: Path,
        zone: ZoneInfo,
        now: Callable[[], datetime],
        redact: Callable[[str], str] = REDACT,
    ) -> None:
        self._redact = redact
        self._folder = workspace / "brain" / "corpus"
        self._zone = zone
        self._now = now
        self._waiting: list[_Event] = []
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="corpus")
        self._pruned: date | None = None

    def note(self, turn: Turn, event: str, **facts: object) -> None:
        """Remembers an event. `facts` are JSON values; texts are cut to one line of 200 characters. Neither people's
        words nor a call's arguments belong here. Called on the running event loop."""
        self._waiting.append(_Event(self._now(), turn.origin == "scheduled", turn.id, event, facts))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CORPUS_PAUSE_SECONDS, self._hand_over)

    def prune(self) -> None:
        """Removes the files that are older than a week, in the thread. The first event of a day does it too."""
        today = self._now().astimezone(self._zone).date()
        self._thread.submit(self._prune, today)

    def close(self) -> None:
        """Writes what waits and returns when it is on disk."""
        if self._timer is not None:
            self._timer.cancel()
            self._hand_over()
        self._thread.shutdown(wait=True)

    def _hand_over(self) -> None:
        self._timer = None
        events, self._waiting = self._waiting, []
        self._thread.submit(self._write, events)

    def _write(self, events: Sequence[_Event]) -> None:
        days: dict[date, list[str]] = {}
        for event in events:
            at = event.at.astimezone(self._zone)
            kind = "run" if event.scheduled else "turn"
            facts = json.dumps(_short(event.facts, self._redact), ensure_ascii=False, default=str)
            days.setdefault(at.date(), []).append(
                f"\n## {at:%H:%M:%S}.{at.microsecond // 1000:03} [{kind} {one_line(event.turn_id)}]\n\n"
                f"- {event.name} {facts}"
            )
        for day, lines in days.items():
            try:
                append_lines(self._folder / f"{day}.log.md", "\n".join(lines), head=f"# {day}\n")
            except OSError as error:
                _log.warning("the event log could not be written: %s", error)
            if self._pruned is None or self._pruned < day:
                self._prune(day)

    def _prune(self, today: date) -> None:
        self._pruned = today
        first_kept = f"{today - timedelta(days=CORPUS_DAYS_KEPT)}"
        try:
            for path in self._folder.glob("*.log.md"):
                day = _DAY.fullmatch(path.name)
                if day and day[1] < first_kept:
                    path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("old event logs could not be removed: %s", error)


def _short(value: object, redact: Callable[[str], str]) -> object:
    """The value with every text in it masked and cut."""
    if isinstance(value, str):
        return flat(redact(value), CORPUS_TEXT_CHARS)
    if isinstance(value, dict):
        return {str(key): _short(inner, redact) for key, inner in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_short(inner, redact) for inner in cast("Sequence[object]", value)]
    return value

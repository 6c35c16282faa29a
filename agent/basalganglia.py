"""Notes how each tool call ended, a file a day: the outcome log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.files import append_lines
from agent.limits import (
    DIGEST_CHARS_MAX,
    DIGEST_DAYS,
    DIGEST_ENTRIES_MAX,
    DIGEST_ENTRY_CHARS,
    OUTCOME_LINE_CHARS,
)
from agent.lines import flat, one_line
from agent.types import Outcome, ToolCall, ToolResult, Turn

_log = logging.getLogger(__name__)
_WORDS: dict[Outcome, str] = {
    "success": "output",
    "failed": "error",
    "denied": "reason",
    "blocked": "reason",
    "interrupted": "reason",
}
_ENTRY = re.compile(r"- \d\d:\d\d \| (?P<tool>[^|]+) \| (?P<outcome>\w+)")
_DETAIL = re.compile(r"  - (?P<name>args|reason): (?P<text>.*)")
_FAILED_KEPT = DIGEST_ENTRIES_MAX // 3
"""So many entries are left to failures when there were many refusals."""


@dataclass(slots=True)
class _Noted:
    """A call as a day's file tells it."""

    day: date
    tool: str
    outcome: str
    args: str = ""
    reason: str = ""


class BasalGanglia:
    """Outcome log: `brain/basalganglia/YYYY-MM-DD.md`, days and times in the owner's zone."""

    def __init__(self, workspace: Path, zone: ZoneInfo) -> None:
        self._folder = workspace / "brain" / "basalganglia"
        self._zone = zone

    def record_outcome(self, turn: Turn, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Adds `- HH:MM | tool | outcome` for each call, and under it its args and its reason, error or output.

        A turn without calls writes nothing. A disk that cannot be written is logged.
        """
        if not calls:
            return
        at = turn.started_at.astimezone(self._zone)
        lines: list[str] = []
        for call, result in zip(calls, results, strict=True):
            arguments = json.dumps(dict(call.args), ensure_ascii=False, default=str)
            lines += [
                f"- {at:%H:%M} | {call.name} | {result.outcome}",
                f"  - args: {flat(arguments, OUTCOME_LINE_CHARS)}",
                f"  - {_WORDS[result.outcome]}: {flat(result.text, OUTCOME_LINE_CHARS)}",
            ]
        try:
            append_lines(self._folder / f"{at:%Y-%m-%d}.md", "\n".join(lines), head=f"# {at:%Y-%m-%d}\n\n")
        except OSError as error:
            _log.error("the outcomes of turn %s could not be written: %s", turn.id, error)

    def digest(self, today: date) -> str:
        """What was refused and what failed in the seven days before `today`, at most 12 lines and 2,400 characters;
        empty when nothing did.

        Refused calls come first, the newest before the others, with their arguments; failures are counted by tool.
        What tools said is left out: it may be anyone's words.
        """
        refused: dict[tuple[str, str, str], list[_Noted]] = {}
        failed: dict[str, list[_Noted]] = {}
        for days in range(1, DIGEST_DAYS + 1):
            for noted in reversed(list(self._noted(today - timedelta(days=days)))):
                if noted.outcome in {"denied", "blocked"}:
                    refused.setdefault((noted.tool, noted.outcome, noted.args), []).append(noted)
                elif noted.outcome == "failed":
                    failed.setdefault(noted.tool, []).append(noted)
        often = sorted(failed.values(), key=lambda found: (-len(found), found[0].tool))
        room = DIGEST_ENTRIES_MAX - min(len(often), _FAILED_KEPT)
        lines = [_refusal(found) for found in list(refused.values())[:room]]
        lines += [_failure(found) for found in often[: DIGEST_ENTRIES_MAX - len(lines)]]
        while lines and sum(len(line) + 1 for line in lines) > DIGEST_CHARS_MAX:
            lines.pop()
        return "\n".join(lines)

    def _noted(self, day: date) -> Iterator[_Noted]:
        try:
            text = (self._folder / f"{day}.md").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        noted: _Noted | None = None
        for line in text.splitlines():
            if entry := _ENTRY.fullmatch(line):
                if noted is not None:
                    yield noted
                noted = _Noted(day, entry["tool"], entry["outcome"])
            elif noted is not None and (detail := _DETAIL.fullmatch(line)):
                if detail["name"] == "args":
                    noted.args = detail["text"]
                else:
                    noted.reason = detail["text"]
        if noted is not None:
            yield noted


def _refusal(found: Sequence[_Noted]) -> str:
    newest = found[0]
    times = f" {len(found)} times, last" if len(found) > 1 else ""
    reason = f" ({one_line(newest.reason, 80)})" if newest.outcome == "blocked" else ""
    args = one_line(newest.args, DIGEST_ENTRY_CHARS - 100)
    return f"- {newest.outcome}{times} {newest.day}: {one_line(newest.tool, 64)} {args}{reason}"


def _failure(found: Sequence[_Noted]) -> str:
    times = f"{len(found)} times, last" if len(found) > 1 else "once,"
    return f"- failed {times} {found[0].day}: {one_line(found[0].tool, 64)}"

"""Notes how each tool call ended, a file a day: the outcome log."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.files import append_lines
from agent.limits import OUTCOME_LINE_CHARS
from agent.lines import flat
from agent.types import Outcome, ToolCall, ToolResult, Turn

_log = logging.getLogger(__name__)
_WORDS: dict[Outcome, str] = {
    "success": "output",
    "failed": "error",
    "denied": "reason",
    "blocked": "reason",
    "interrupted": "reason",
}


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

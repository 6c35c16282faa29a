"""Writes one short entry for each turn into the day's file: the episodic memory. No model call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.files import append_lines
from agent.hippocampus.pages import alone
from agent.limits import EPISODE_HEADLINE_CHARS, EPISODE_REPLY_CHARS, EPISODE_USER_CHARS
from agent.lines import flat, one_line
from agent.types import ToolCall, Turn, TurnResult

_log = logging.getLogger(__name__)


class Hippocampus:
    """Episodic memory: `brain/hippocampus/episodes/YYYY-MM-DD.md`, days and times in the owner's zone."""

    def __init__(self, workspace: Path, zone: ZoneInfo) -> None:
        self._folder = workspace / "brain" / "hippocampus" / "episodes"
        self._zone = zone

    def append_episode(self, turn: Turn, calls: Sequence[ToolCall], result: TurnResult) -> None:
        """Adds `## HH:MM [channel] - headline` and the lines User, Tools (where there were any) and Reply.

        `calls` are the turn's calls in the order of `result.tool_results`. A disk that cannot be written is logged:
        the turn and its answer are in the database in any case.
        """
        at = turn.started_at.astimezone(self._zone)
        who = "User" if turn.person.rights == "owner" else f"User ({one_line(turn.person.name)})"
        lines = [
            "",
            f"## {at:%H:%M} [{turn.channel}] - {_headline(turn.text)}",
            f"- {who}: {flat(turn.text, EPISODE_USER_CHARS)}",
        ]
        if calls:
            used = (f"{call.name} ({came.outcome})" for call, came in zip(calls, result.tool_results, strict=True))
            lines.append(f"- Tools: {', '.join(used)}")
        stopped = " (stopped)" if result.status == "stopped" else ""
        lines.append(f"- Reply: {flat(result.reply, EPISODE_REPLY_CHARS)}{stopped}")
        try:
            with alone(self._folder):
                append_lines(self._folder / f"{at:%Y-%m-%d}.md", "\n".join(lines), head=f"# {at:%Y-%m-%d}\n")
        except OSError as error:
            _log.error("the episode of turn %s could not be written: %s", turn.id, error)


def _headline(text: str) -> str:
    """The first line that says something."""
    first = next((line for line in text[: EPISODE_HEADLINE_CHARS * 16].splitlines() if line.strip()), "")
    return flat(first.lstrip("# "), EPISODE_HEADLINE_CHARS) or "(no text)"

"""Where else a turn left its words: the day's episodes and outcomes, its task, prompts kept for looking into."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

from agent.hippocampus.cutting import Cut
from agent.limits import EPISODE_REPLY_CHARS, EPISODE_USER_CHARS, OUTCOME_LINE_CHARS
from agent.lines import flat, lines_of
from agent.types import MessageRecord

TASKS = "brain/motor/tasks"
EPISODES = "brain/hippocampus/episodes"
OUTCOMES = "brain/basalganglia"
QUOTE_CHARS_MIN = 16
"""A shorter text counts as quoted only where an entry begins with it."""
_ENTRY = re.compile(r"## \d\d:\d\d \[")
_SAID = re.compile(r"- (?:User(?: \([^)]*\))?|Reply): (.*)")


class Traces:
    """Reads the files that regions write by themselves; times in the owner's zone."""

    def __init__(self, workspace: Path, zone: ZoneInfo) -> None:
        self._workspace = workspace
        self._zone = zone

    def of(self, messages: Sequence[MessageRecord]) -> list[Cut]:
        """What repeats these messages. What people wrote to each other, with no turn of the agent, left nothing."""
        turned = [message for message in messages if message.turn_id is not None]
        cuts = [Cut(path) for path in self.tasks(message.turn_id or "" for message in turned)]
        days: dict[str, list[MessageRecord]] = {}
        for message in turned:
            for later in (0, 1):
                day = (message.at.astimezone(self._zone) + timedelta(days=later)).date()
                days.setdefault(day.isoformat(), []).append(message)
        for day, said in sorted(days.items()):
            cuts += self._entries(f"{EPISODES}/{day}.md", said)
            cuts += self._outcomes(f"{OUTCOMES}/{day}.md", said)
        return cuts

    def tasks(self, turn_ids: Iterable[str]) -> list[str]:
        """The files of the tasks of these turns that there are."""
        names = (
            f"{TASKS}/TASK-{quote(turn_id, safe='')}{ending}"
            for turn_id in dict.fromkeys(turn_ids)
            for ending in (".md", "-detail.log")
        )
        return [name for name in names if (self._workspace / name).is_file()]

    def _entries(self, path: str, messages: Sequence[MessageRecord]) -> Iterator[Cut]:
        """The entries of a day that quote one of the messages."""
        lines = self._lines(path)
        begins = [at for at, line in enumerate(lines) if _ENTRY.match(line)]
        quotes = [quoted for message in messages if (quoted := _quoted(message))]
        for begin in begins:
            # Any heading ends the entry: what a person wrote after it stays.
            end = next((at for at in range(begin + 1, len(lines)) if lines[at].startswith("#")), len(lines))
            said = [match[1] for line in lines[begin:end] if (match := _SAID.match(line))]
            if any(_repeats(text, quoted) for text in said for quoted in quotes):
                yield Cut(path, begin + 1, tuple(lines[begin:end]))

    def _outcomes(self, path: str, messages: Sequence[MessageRecord]) -> Iterator[Cut]:
        """The lines of a day about the calls of these messages."""
        calls = {
            (call.name, flat(json.dumps(dict(call.args), ensure_ascii=False, default=str), OUTCOME_LINE_CHARS))
            for message in messages
            for call in message.tool_calls
        }
        if not calls:
            return
        lines = self._lines(path)
        for at, line in enumerate(lines[:-1]):
            name = line.split(" | ")[1:2]
            if line.startswith("- ") and name and (name[0], lines[at + 1].removeprefix("  - args: ")) in calls:
                end = next((n for n in range(at + 1, len(lines)) if not lines[n].startswith("  ")), len(lines))
                yield Cut(path, at + 1, tuple(lines[at:end]))

    def _lines(self, path: str) -> list[str]:
        try:
            return lines_of((self._workspace / path).read_bytes().decode("utf-8", "replace"))
        except FileNotFoundError:
            return []


def _quoted(message: MessageRecord) -> str:
    """The beginning of the message, as an entry would hold it."""
    chars = EPISODE_REPLY_CHARS if message.role == "assistant" else EPISODE_USER_CHARS
    return flat(message.text, chars).removesuffix("…").rstrip()


def _repeats(said: str, quoted: str) -> bool:
    whole = said.removesuffix("…").removesuffix(" (stopped)").rstrip()
    if whole.startswith(quoted) or (len(whole) >= QUOTE_CHARS_MIN and quoted.startswith(whole)):
        return True
    return len(quoted) >= QUOTE_CHARS_MIN and quoted in whole

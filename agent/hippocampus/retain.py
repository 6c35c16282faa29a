"""Adds facts to a day file, under `## Retain`. Appends only: nothing that stands there is touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from agent.characters import whole_characters
from agent.files import append_lines
from agent.hippocampus.facts import Day, parse_bullet, parse_day, write_bullet
from agent.hippocampus.pages import alone
from agent.hippocampus.types import EPISODES, Words
from agent.types import ToolFailure

HEADING = "## Retain"
TAKEN = "<!-- facts were taken up to here -->"
"""Behind it stands only what no job has read yet; so a bullet that a person takes out does not come back."""
_SECTION = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$")


@dataclass(frozen=True, slots=True)
class Retained:
    """What came of a fact, and where it stands (`path#L12`)."""

    status: Literal["saved", "known"]
    ref: str

    def as_json(self) -> dict[str, Any]:
        """The shape of `memory retain`: that of `memory save`."""
        return {"status": self.status, "ref": f"file:{self.ref}"}


def retain(workspace: Path, zone: ZoneInfo, words: Words, bullet: str, now: datetime) -> Retained:
    """Adds one bullet to today's file, unless the file has it. Raises ToolFailure with one sentence."""
    line = " ".join(whole_characters(bullet).replace("\0", " ").split())
    if not line.startswith(("- ", "* ", "+ ")):
        line = f"- {line}"
    parsed = parse_bullet(line)
    if isinstance(parsed, str):
        raise ToolFailure(
            f"The bullet is {parsed[:200]}. Write for example: - O(c=0.90) @Peter: Prefers tea in the morning."
        )
    letter, text, entities, confidence = parsed
    before_colon = tuple(name for name in entities if f"@{name}" not in text)
    line = write_bullet(letter, text, before_colon, confidence)
    day = now.astimezone(zone).date()
    try:
        [ref], added = append_facts(workspace, words, day, [line])
    except OSError as error:
        raise ToolFailure(f"The fact could not be written: {error.strerror}.", transient=True) from error
    return Retained("saved" if added else "known", ref)


def append_facts(
    workspace: Path, words: Words, day: date, bullets: Sequence[str], *, taken: bool = False
) -> tuple[list[str], int]:
    """Adds well-formed bullets to a day's file but for those it has; where each stands, and how many were added.

    `taken`: everything above has been looked through. Raises OSError.
    """
    path = day_path(day)
    with alone(workspace / EPISODES):
        before = _day(workspace, day)
        known = {_key(words, bullet): number for number, bullet in _standing(before)}
        fresh = {key: bullet for bullet in bullets if (key := _key(words, bullet)) not in known}
        lines = list(fresh.values())
        if lines or taken:
            if not _ends_in_retain(before.lines):
                lines = [*([""] if before.lines else []), HEADING, *lines]
            append_lines(workspace / path, "\n".join([*lines, *([TAKEN] if taken else [])]), head=f"# {day}\n\n")
        known = {_key(words, bullet): number for number, bullet in _standing(_day(workspace, day))}
    return [f"{path}#L{known.get(_key(words, bullet), 1)}" for bullet in bullets], len(fresh)


def day_path(day: date) -> str:
    return f"{EPISODES}/{day.isoformat()}.md"


def _day(workspace: Path, day: date) -> Day:
    try:
        text = (workspace / day_path(day)).read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    return parse_day(day_path(day), day, text)


def _standing(day: Day) -> list[tuple[int, str]]:
    return [
        (fact.line, write_bullet(fact.letter, fact.text, fact.entities, fact.confidence))
        for fact in reversed(day.facts)
    ]


def _key(words: Words, bullet: str) -> tuple[str, str, frozenset[str]]:
    """A bullet without its confidence: what it says, and of whom."""
    parsed = parse_bullet(bullet)
    if isinstance(parsed, str):
        return "", bullet, frozenset()
    letter, text, entities, _ = parsed
    return letter, words.sameness_key(text), frozenset(words.sameness_key(name) for name in entities)


def _ends_in_retain(lines: Sequence[str]) -> bool:
    fenced = False
    heading = ""
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (found := _SECTION.match(line)):
            heading = found[1].strip()
    return heading.casefold() == "retain"

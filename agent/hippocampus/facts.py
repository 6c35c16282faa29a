"""Reads and writes the bullets of a `## Retain` section: `- TYPE [@Entity ...]: text`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import regex

from agent.hippocampus.types import EPISODES, Fact, Fault
from agent.lines import lines_of

FACT_CHARS_MAX = 2_000
_NAME = r"[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}_\-\u200c'’]*[\p{L}\p{M}\p{N}_])?"
MENTION = regex.compile(rf"(?<![\p{{L}}\p{{M}}\p{{N}}_@./])@({_NAME})")
_BULLET = regex.compile(
    rf"\s*[-*+]\s+(?P<letter>[WBSO])\s*(?:\(\s*c\s*=\s*(?P<c>[^)]*)\))?(?P<who>(?:[\s,،]+@{_NAME})*)\s*[:：]\s*(?P<text>.*)$"
)
_ANY_BULLET = re.compile(r"\s*[-*+]\s+\S")
_MORE = re.compile(r"\s{2,}\S")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DAY_FILE = re.compile(r"(\d{4})-(\d\d)-(\d\d)\.md")
_DIGITS = {ord(letter): str(at % 10) for at, letter in enumerate("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹")} | {0x066B: "."}


@dataclass(frozen=True, slots=True)
class Day:
    """A day file as it was read: its facts, its faults, and its lines."""

    path: str
    day: date
    facts: tuple[Fact, ...]
    faults: tuple[Fault, ...]
    lines: tuple[str, ...]


def day_of(name: str) -> date | None:
    """The day a file name such as `2026-11-27.md` speaks of; None for any other."""
    found = _DAY_FILE.fullmatch(name)
    try:
        return date(int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None


def day_of_ref(ref: str) -> date | None:
    """The day of the file that a reference `path#L12` leads to; None where that is no day file."""
    return day_of(ref.rpartition("#L")[0].rpartition("/")[2])


def read_day(workspace: Path, name: str) -> Day | None:
    """The day file of this name; None when it is no day file or cannot be read."""
    day = day_of(name)
    if day is None:
        return None
    try:
        text = (workspace / EPISODES / name).read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    return parse_day(f"{EPISODES}/{name}", day, text)


def parse_day(path: str, day: date, text: str) -> Day:
    """The bullets of all Retain sections. Lines that are no bullets, comments and fenced code are only text."""
    lines = tuple(lines_of(text.removeprefix("\ufeff")))
    facts: list[Fact] = []
    faults: list[Fault] = []
    for number, bullet in _bullets(lines):
        parsed = parse_bullet(bullet)
        if isinstance(parsed, str):
            faults.append(Fault(path, number, bullet.strip(), parsed))
        else:
            letter, text_, entities, confidence = parsed
            facts.append(Fact(letter, text_, entities, confidence, path, number, day))
    return Day(path, day, tuple(facts), tuple(faults), lines)


def _bullets(lines: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line number and text of each bullet in a Retain section; lines set in below one belong to it."""
    level, fence, comment = 0, "", False
    number, bullet = 0, ""
    for at, line in enumerate(lines, 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        comment, hidden = _comment(comment, line)
        heading = None if fence or mark or hidden else _HEADING.match(line)
        goes_on = level and bullet and not fence and not hidden and _MORE.match(line) and not _ANY_BULLET.match(line)
        if goes_on:
            bullet = f"{bullet} {line.strip()}"
            continue
        if bullet:
            yield number, bullet
            bullet = ""
        if heading:
            depth = len(heading[1])
            if depth > 1 and heading[2].strip().casefold() == "retain":
                level = depth
            elif level and depth <= level:
                level = 0
        elif level and not fence and not mark and not hidden and _ANY_BULLET.match(line):
            number, bullet = at, line
    if bullet:
        yield number, bullet


def _comment(inside: bool, line: str) -> tuple[bool, bool]:
    """Whether a comment is open after the line, and whether the line belongs to one."""
    if inside:
        return "-->" not in line, True
    if line.lstrip().startswith("<!--"):
        return "-->" not in line, True
    return False, False


def parse_bullet(bullet: str) -> tuple[str, str, tuple[str, ...], float | None] | str:
    """Letter, text, entities and confidence of a bullet; or what is wrong with it."""
    found = _BULLET.match(bullet.rstrip())
    if found is None:
        return "not of the form `- TYPE [@Entity ...]: text` with TYPE W, B, S, O or O(c=0.00)"
    letter, text = found["letter"], " ".join(found["text"].replace("\0", " ").split())
    if not text:
        return "there is no text after the colon"
    if len(text) > FACT_CHARS_MAX:
        return f"longer than {FACT_CHARS_MAX:,} characters"
    confidence = None
    if found["c"] is not None:
        if letter != "O":
            return "only O takes a confidence"
        try:
            confidence = float(found["c"].strip().translate(_DIGITS))
        except ValueError:
            return f"{found['c'].strip()!r} is no number; write O(c=0.00) to O(c=1.00)"
        if not 0 <= confidence <= 1:
            return f"the confidence {found['c'].strip()} is not between 0 and 1"
    return letter, text, mentions(f"{found['who']} {text}"), confidence


def mentions(text: str) -> tuple[str, ...]:
    """The names after `@`, each once, in their order."""
    return tuple(dict.fromkeys(unicodedata.normalize("NFC", name) for name in MENTION.findall(text)))


def write_bullet(letter: str, text: str, entities: tuple[str, ...] = (), confidence: float | None = None) -> str:
    """One bullet line, the way `parse_bullet` reads it."""
    mark = letter if confidence is None else f"{letter}(c={confidence:.2f})"
    who = "".join(f" @{name}" for name in entities)
    return f"- {mark}{who}: {' '.join(text.split())}"

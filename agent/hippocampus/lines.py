"""Lines of pages that the index found, as items for recall: what entries and weeks say beside the facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from agent.hippocampus.claims import Reader
from agent.hippocampus.days import Days
from agent.hippocampus.facts import day_of, day_of_ref
from agent.hippocampus.lexicon import Word, shared
from agent.hippocampus.remembered import Item, Remembered, named
from agent.hippocampus.types import CONSOLIDATED, ENTITIES, EPISODES, KNOWLEDGE, OWNER, Kind
from agent.lines import lines_of
from agent.retrieval import Hit

BESIDE_MAX = 12
LINES_A_HIT_MAX = 2
DAY_LINES_MAX = 60
_REF = re.compile(r"file:(?P<path>.+)#L(?P<first>\d+)(?:-L(?P<last>\d+))?$")
_SKIPPED = (
    "agents.core.md", "heartbeat.md", "run-history.md", "identity/soul.md", "agents.md", "memory.md", "bank/",
    "procedures/", "skills/", f"{KNOWLEDGE}/",
)  # fmt: skip
"""Pages that say how to work, and those whose bullets are items of their own."""
_ENTRY = re.compile(r"## \d\d:\d\d \[")
_SAID = re.compile(r"\s*[-*+]\s+(?:User|Reply)(?: \([^)]*\))?: ")
_OWNER_SAID = re.compile(r"\s*[-*+]\s+User: ")
_TOOLS = re.compile(r"\s*[-*+]\s+Tools: ")
_MARKS = re.compile(r"^[\s#*+-]+")
_TOLD = re.compile(r"(?:\d{4}-\d\d-\d\d(?: \d\d:\d\d)?: )?(?P<text>.*\S) \((?P<ref>[^()\s]+#L\d+)\)$")
_WEEK = re.compile(r"(\d{4})-W(\d\d)\.md$")


class Lines:
    """Makes items of lines. What a day's facts say already is left out."""

    def __init__(self, workspace: Path, reader: Reader, found: Remembered) -> None:
        self._workspace = workspace
        self._reader = reader
        self._found = found

    def of_hits(self, hits: Iterable[Hit], text: str) -> list[Item]:
        """The lines of each hit that share most words with the question."""
        words = self._reader.lexicon.content(text)
        items: list[Item] = []
        seen: set[str] = set()
        for hit in hits:
            ref = _REF.match(hit.ref)
            if ref is None or ref["path"].startswith(_SKIPPED):
                continue
            lines = self._lines(ref["path"])
            first, last = int(ref["first"]), int(ref["last"] or ref["first"])
            best = sorted(
                ((self._fit(lines[at - 1], words), at) for at in range(first, min(last, len(lines)) + 1)),
                key=lambda one: (-one[0], one[1]),
            )
            for fit, at in best[:LINES_A_HIT_MAX]:
                source = f"{ref['path']}#L{at}"
                if fit and source not in seen and (item := self._item(ref["path"], at, lines[at - 1])) is not None:
                    seen.add(source)
                    items.append(item)
        return items

    def of_days(self, first: date | None, last: date | None, days: Days) -> list[Item]:
        """What people said in these days, the newest first: the answer to a question without words."""
        if first is None and last is None:
            return []
        items: list[Item] = []
        for day in reversed(days.all()):
            if (first is not None and day.day < first) or (last is not None and day.day > last):
                continue
            for at, line in enumerate(day.lines, 1):
                if line.lstrip().startswith("- User") and (item := self._item(day.path, at, line)) is not None:
                    items.append(item)
            if len(items) >= DAY_LINES_MAX:
                break
        return items[:DAY_LINES_MAX]

    def _lines(self, path: str) -> Sequence[str]:
        try:
            return lines_of((self._workspace / path).read_bytes().decode("utf-8", "replace"))
        except OSError:
            return ()

    def _fit(self, line: str, words: Sequence[Word]) -> int:
        if not line.strip() or line.startswith("#") or _TOOLS.match(line) or line.lstrip().startswith("<!--"):
            return 0
        forms = frozenset(form for word in self._reader.lexicon.content(line) for form in word.forms)
        return shared(tuple(words), forms)

    def _item(self, path: str, at: int, line: str) -> Item | None:
        said = _SAID.sub("", line)
        text = _MARKS.sub("", said).strip()
        day = self._day(path)
        kind: Kind = (
            "observation" if path.startswith(CONSOLIDATED) else "experience" if path.startswith(EPISODES) else "world"
        )
        if path.startswith(EPISODES):
            if not _SAID.match(line):
                return None  # headings repeat what was said, bullets are facts of their own
            key = self._reader.key(text)
            if any(fact in key or key in fact for fact in self._found.taken.get(path, ()) if fact):
                return None
        source = f"{path}#L{at}"
        if kind == "observation" and (told := _TOLD.match(text)):
            # A line of a week says what a day says: a fact is an item itself, all else is shown with its own place.
            if told["ref"] in self._found.refs or told["ref"].startswith(ENTITIES):
                return None
            text, source, day = told["text"], told["ref"], day_of_ref(told["ref"]) or day
            path, _, number = source.partition("#L")
            lines = self._lines(path)
            at = int(number)
            if at < len(lines) and _ENTRY.match(lines[at - 1]) and _SAID.match(lines[at]):
                return self._item(path, at + 1, lines[at])  # a heading is cut short: the line below it is whole
        slugs = named(self._found, self._reader.lexicon.terms(text))
        if not slugs and _OWNER_SAID.match(line) and self._found.entities is not None:
            slugs = frozenset({self._found.entities.slug_of(OWNER)})  # what the owner says of nobody is the owner's
        return Item(kind, text, slugs, (), day, day, day, source, told=path.startswith(EPISODES))

    def _day(self, path: str) -> date:
        name = path.rpartition("/")[2]
        if (day := day_of(name)) is not None:
            return day
        week = _WEEK.search(name)
        try:
            if week:
                return date.fromisocalendar(int(week[1]), int(week[2]), 7)
            return datetime.fromtimestamp((self._workspace / path).stat().st_mtime, UTC).date()
        except (OSError, ValueError):
            return date.min

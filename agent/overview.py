"""What an owner's prompt says of the past at a glance: the memory map, and what went wrong in the last week.

Both are made once a day; the map also whenever a heading of a curated file changes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

from agent.memory_map import memory_map
from agent.retrieval import Coverage
from agent.types import ToolFailure
from agent.workspace import Page, Pages

CURATED = (
    *(f"brain/hippocampus/knowledge/{name}.md" for name in ("projects", "people", "preferences", "technical")),
    "brain/hippocampus/knowledge/decisions.md",
    *(f"bank/{name}.md" for name in ("world", "experience", "opinions")),
)
"""The files whose headings the map shows."""
_HEADING = re.compile(r"^##[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
Headings = tuple[tuple[str, str], ...]


class Counts(Protocol):
    """The memory index, as far as the map needs it."""

    async def coverage(self) -> Coverage:
        """As the owner sees it. Raises ToolFailure when the index cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Glance:
    """The two texts; `last_week` is empty when all went well."""

    map: str
    last_week: str


class Overview:
    """Keeps the newest glance. `digest` gives the text about the days before one; it reads files."""

    def __init__(
        self,
        workspace: Path,
        cortex: Counts,
        zone: ZoneInfo,
        now: Callable[[], datetime],
        digest: Callable[[date], str],
    ) -> None:
        self._pages = Pages(workspace)
        self._cortex = cortex
        self._zone = zone
        self._now = now
        self._digest = digest
        self._found: dict[str, tuple[Page, tuple[str, ...]]] = {}
        self._counted: tuple[date, Coverage, str] | None = None
        self._newest: tuple[Coverage, Headings, Glance] | None = None

    async def refresh(self) -> None:
        """Counts anew now, so that no turn has to wait for it: after the start, after an import."""
        self._counted = None
        await self.current()

    async def current(self) -> Glance:
        """The newest glance; what the index holds is counted by the first to ask on a day."""
        today = self._now().astimezone(self._zone).date()
        if self._counted is None or self._counted[0] != today:
            last_week = await asyncio.to_thread(self._digest, today)
            try:
                coverage = await self._cortex.coverage()
            except ToolFailure as failure:
                return Glance(f"The memory cannot be read now: {failure}", last_week)
            # An index that is still empty is counted again by the next: that costs nothing.
            self._counted = (today, coverage, last_week) if coverage.sources else None
        else:
            _, coverage, last_week = self._counted
        headings = self._headings()
        known = self._newest
        if known is None or known[:2] != (coverage, headings) or known[2].last_week != last_week:
            text = memory_map(replace(coverage, headings=headings), self._zone)
            known = self._newest = coverage, headings, Glance(text, last_week)
        return known[2]

    def _headings(self) -> Headings:
        """(path, heading) of the curated files; a file is read again only when it changed."""
        headings: list[tuple[str, str]] = []
        for path in CURATED:
            page = self._pages.read(path)
            known = self._found.get(path)
            if known is None or known[0] is not page:
                known = self._found[path] = page, tuple(_HEADING.findall(page.text)) if page.text else ()
            headings += [(path, heading) for heading in known[1]]
        return tuple(headings)

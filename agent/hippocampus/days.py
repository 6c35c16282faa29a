"""The day files, read again only when they changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent.hippocampus.facts import Day, day_of, read_day
from agent.hippocampus.types import EPISODES, Fact, Fault


class Days:
    """All day files of a workspace, in the order of their days. Not to be used by two threads at once."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._folder = f"{workspace}/{EPISODES}"
        self._kept: dict[str, tuple[tuple[int, int, int], Day]] = {}
        self.version = 0
        """Goes up whenever a file is read anew or is gone."""

    def all(self) -> list[Day]:
        """A file that cannot be read, or is named otherwise, is left out."""
        try:
            entries = sorted((entry for entry in os.scandir(self._folder)), key=lambda entry: entry.name)
        except OSError:
            entries = []
        found: dict[str, tuple[tuple[int, int, int], Day]] = {}
        for entry in entries:
            if day_of(entry.name) is None:
                continue
            try:
                stat = entry.stat()
            except OSError:
                continue
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            kept = self._kept.get(entry.name)
            if kept is not None and kept[0] == stamp:
                found[entry.name] = kept
            elif (day := read_day(self._workspace, entry.name)) is not None:
                found[entry.name] = stamp, day
                self.version += 1
        self.version += len(self._kept.keys() - found.keys())
        self._kept = found
        return [day for _, day in found.values()]

    def facts(self) -> Iterator[Fact]:
        return (fact for day in self.all() for fact in day.facts)

    def faults(self) -> list[Fault]:
        """The bullets that are kept as text only."""
        return [fault for day in self.all() for fault in day.faults]

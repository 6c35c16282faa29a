"""The files of the index: brings it up to the workspace and the extra folders, whole or file by file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from zoneinfo import ZoneInfo

from agent.cortex.index import IndexedFile, Section, changed_sections, end_file, put_sections, remove_files
from agent.cortex.roots import Roots, Skipped
from agent.cortex.sentences import sentences
from agent.cortex.sources import read_file
from agent.cortex.walk import Look, Stamp, fault_of_name, look, shown
from agent.cortex.watch import Watched

T = TypeVar("T")

_CHARS_A_COMMIT = 40_000
"""Messages are saved between two commits: none may take long."""
_SECTION_OVERHEAD_CHARS = 100
"""What a section costs beside its text."""
_FILES_A_READING = 500
_CHARS_A_READING = 200_000
_ROWS_REMOVED_A_COMMIT = 200
_SQL = sentences("reads.sql")


class Write(Protocol):
    """Runs work in a transaction of the writer on which the index is attached as `idx`; returns after the commit.
    None: the index is damaged, and nothing was done."""

    async def __call__(self, work: Callable[[sqlite3.Connection], Any]) -> Any: ...


class Ask(Protocol):
    """Runs work on the reader; `without` is the answer while there is no index."""

    async def __call__(self, work: Callable[[sqlite3.Connection], T], without: T) -> T: ...


@dataclass(frozen=True, slots=True)
class _Read:
    """Files that were read, those that could not be and why, and how many of the names are done."""

    files: list[IndexedFile]
    lost: dict[str, str]
    done: int


class FileIndex:
    """Files in the index. One look or batch at a time; what others write to the database goes between two batches.

    `left`: so many files that changed are still to be indexed.
    """

    def __init__(self, roots: Roots, ask: Ask, write: Write, zone: ZoneInfo) -> None:
        self.roots = roots
        self._ask = ask
        self._write = write
        self._zone = zone
        self._lock = asyncio.Lock()
        self._look: Look | None = None
        self._folders: frozenset[str] = frozenset()
        self._lost: dict[str, str] = {}
        self.left = 0

    async def update(self) -> int:
        """Compares all files by time and size and indexes what changed; the number of files that changed."""
        async with self._lock:
            known: dict[str, Stamp] = await self._ask(_known, {})
            found = await asyncio.to_thread(look, self.roots, known)
            self._seen(found)
            self._lost = {}
            await self._remove(found.gone)
        count, self.left = len(found.gone), len(found.changed)
        try:
            while self.left:
                first = len(found.changed) - self.left
                count += await self._index(found.changed[first : first + _FILES_A_READING])
                self.left = max(0, self.left - _FILES_A_READING)
        finally:
            self.left = 0
        return count

    async def change(self, places: Collection[str]) -> None:
        """Indexes these files anew, given by their places, or takes them out when they are gone. What is not for the
        index is left alone."""
        names, gone = await asyncio.to_thread(self._sorted_out, places)
        if gone:
            async with self._lock:
                await self._remove([name for name in gone if not _is_file(names[name])])
        await self._index([name for name in names if name not in gone])

    def _sorted_out(self, places: Collection[str]) -> tuple[dict[str, str], set[str]]:
        """The places of what is for the index, by their names; the names of those that are gone."""
        names: dict[str, str] = {}
        for place in places:
            name = self.roots.name_of(place)
            if name is None or self.roots.is_private(name) or self.roots.source_of(name) is None:
                continue
            if fault_of_name(name) is None:
                names[name] = place
        return names, {name for name, place in names.items() if not _is_file(place)}

    def needs_look(self, place: str) -> bool:
        """Whether a change at this place may be one of more than a file: a folder, a link, a pipe came or went."""
        if self._look is None:
            return True
        mode = _mode(place)
        is_known = place in self._folders
        if mode is not None and stat.S_ISREG(mode):
            return is_known
        if mode is None:
            name = self.roots.name_of(place)
            return is_known or (name is not None and shown(name) in self._look.skipped)
        return not (is_known and stat.S_ISDIR(mode))

    async def skipped(self) -> tuple[Skipped, ...]:
        """Everything that is left out, wholly or in part, as of the last look; looks when there was none."""
        found = await self._last_look()
        faults = await self._ask(lambda conn: conn.execute(_SQL["faults"]).fetchall(), [])
        reasons = {**found.skipped, **{path: fault for path, fault in faults}, **self._lost}
        return tuple(Skipped(path, reason) for path, reason in sorted(reasons.items()))

    async def watched(self) -> Watched:
        """What to watch, as of the last look."""
        found = await self._last_look()
        return Watched(self._folders, tuple(found.absent))

    async def _last_look(self) -> Look:
        if self._look is None:
            known: dict[str, Stamp] = await self._ask(_known, {})
            self._seen(await asyncio.to_thread(look, self.roots, known))
        assert self._look is not None
        return self._look

    def _seen(self, found: Look) -> None:
        self._look = found
        self._folders = frozenset(found.folders)

    async def _index(self, names: Sequence[str]) -> int:
        """Reads files and indexes them, batch by batch; how many could be read."""
        at = count = 0
        while at < len(names):
            async with self._lock:
                read = await asyncio.to_thread(self._read, names[at:])
                await self._save(read.files)
                await self._remove(list(read.lost))
            for file in read.files:
                self._lost.pop(file.path, None)
            self._lost |= {shown(name): reason for name, reason in read.lost.items() if reason}
            at += read.done
            count += len(read.files)
        return count

    def changes(self, known: dict[str, Stamp]) -> tuple[list[str], list[str]]:
        """What differs from the files `known`, which is emptied: names that are gone, names to read. In any thread."""
        found = look(self.roots, known)
        return found.gone, found.changed

    def read(self, name: str) -> IndexedFile:
        """One file, in any thread. Raises OSError when it cannot be read."""
        return read_file(self.roots.place(name), name, str(self.roots.source_of(name)), self._zone)

    def _read(self, names: Sequence[str]) -> _Read:
        files: list[IndexedFile] = []
        lost: dict[str, str] = {}
        chars = done = 0
        for name in names:
            done += 1
            try:
                file = self.read(name)
            except FileNotFoundError:
                lost[name] = ""
            except OSError as error:
                lost[name] = f"it cannot be read: {error.strerror}"
            else:
                files.append(file)
                chars += sum(len(section.text) for section in file.sections)
            if done == _FILES_A_READING or chars >= _CHARS_A_READING:
                break
        return _Read(files, lost, done)

    async def _save(self, files: Sequence[IndexedFile]) -> None:
        changes: list[_Change] = await self._ask(
            lambda conn: _changes(conn, files), [(file, file.sections) for file in files]
        )
        for batch in _batches(changes):
            unfinished = await self._write(lambda conn, batch=batch: _put(conn, batch))
            while unfinished:
                unfinished = await self._write(lambda conn, files=unfinished: _end(conn, files))

    async def _remove(self, names: Sequence[str]) -> None:
        while names:
            done = await self._write(lambda conn, names=names: remove_files(conn, names, _ROWS_REMOVED_A_COMMIT))
            if done is None:
                return
            names = names[done:]


_Change = tuple[IndexedFile, Sequence[Section]]
"""A file and those of its sections that are to be written."""
_Part = tuple[IndexedFile, Sequence[Section], bool]
"""Some of these sections; True: the last of them."""


def _changes(conn: sqlite3.Connection, files: Iterable[IndexedFile]) -> list[_Change]:
    """An artifact has one section, whose text names its conversations too: it is always written."""
    return [(file, file.sections if file.source == "artifact" else changed_sections(conn, file)) for file in files]


def _batches(changes: Iterable[_Change]) -> Iterator[list[_Part]]:
    """The changes in parts, as many as one commit takes."""
    batch: list[_Part] = []
    room = _CHARS_A_COMMIT
    for file, sections in changes:
        first = 0
        for at, section in enumerate(sections):
            room -= len(section.text) + _SECTION_OVERHEAD_CHARS
            if room <= 0:
                yield [*batch, (file, sections[first : at + 1], at + 1 == len(sections))]
                batch, room, first = [], _CHARS_A_COMMIT, at + 1
        if first < len(sections) or not sections:
            batch.append((file, sections[first:], True))
    if batch:
        yield batch


def _put(conn: sqlite3.Connection, batch: Iterable[_Part]) -> list[IndexedFile]:
    """Files of which there is more to take out."""
    for file, sections, is_last in batch:
        put_sections(conn, file, sections, is_last=is_last)
    return _end(conn, [file for file, _, is_last in batch if is_last])


def _end(conn: sqlite3.Connection, files: Iterable[IndexedFile]) -> list[IndexedFile]:
    return [file for file in files if end_file(conn, file, _ROWS_REMOVED_A_COMMIT)]


def _known(conn: sqlite3.Connection) -> dict[str, Stamp]:
    return dict(conn.execute(_SQL["files"]))


def _mode(place: str) -> int | None:
    """What kind of file is there; None: nothing."""
    try:
        return os.lstat(place).st_mode
    except OSError:
        return None


def _is_file(place: str) -> bool:
    mode = _mode(place)
    return mode is not None and stat.S_ISREG(mode)

"""The memory index: finds and opens what was said, done and written. Everything it asks runs in one thread of its own.

It reads on a connection of its own; what it writes, it hands to the writer it was given.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import quote
from zoneinfo import ZoneInfo

from agent.cortex import lookup, opening
from agent.cortex.files import FileIndex, Write
from agent.cortex.filters import Filters
from agent.cortex.index import SCHEMA_VERSION, is_damage, is_unusable
from agent.cortex.query import parse_query
from agent.cortex.readlogs import ReadLogs, readable
from agent.cortex.rebuild import new_path
from agent.cortex.refs import Ref, parse_ref
from agent.cortex.roots import Roots, Skipped
from agent.cortex.sentences import sentences
from agent.cortex.words import FoldedWords
from agent.limits import SEARCH_HITS_DEFAULT, SEARCH_HITS_MAX
from agent.removed import is_log
from agent.retrieval import SOURCES, Coverage, Hit, SearchAnswer
from agent.types import ToolFailure, Viewer

T = TypeVar("T")

_SQL = sentences("reads.sql")


class ByMeaning(Protocol):
    """Finds records by what they mean (`agent.cortex.meaning.Meaning`)."""

    async def scores(self, query: str) -> Mapping[int, float]: ...

    async def close(self) -> None: ...


class Heal(Protocol):
    """Called when a request found no index (`reason` None) or could not read it: has it built anew, and returns when
    the request may be repeated. `sure`: the index is damaged; else the request may be at fault as well."""

    async def __call__(self, reason: str | None, *, sure: bool = True) -> None: ...


class Cortex(FoldedWords):
    """The memory index. `indexing` is True while something is known to be missing from it.

    `files` are the files in it; `meaning`, where it is set, finds by more than words. `skip`: folders of the
    workspace, relative to it, that are never indexed nor opened. `folders`: others that are indexed too, and only
    read. `log_name`: the name of a chat's read log in the folder of its channel; without it hits have no context.
    Methods raise ToolFailure.
    While index.db cannot be read, what there is of the one that is built in its place answers.
    """

    def __init__(
        self,
        path: Path,
        workspace: Path,
        write: Write,
        zone: ZoneInfo,
        *,
        skip: Collection[str] = (),
        folders: Iterable[Path] = (),
        log_name: Callable[[str], str] | None = None,
    ) -> None:
        self._path = path
        self._zone = zone
        self._roots = Roots.of(workspace, folders, skip, path.parent)
        self.files = FileIndex(self._roots, self._ask_once, write, zone)
        self._logs = ReadLogs(workspace, log_name) if log_name else None
        self._thread: ThreadPoolExecutor | None = None
        self._conn: sqlite3.Connection | None = None
        self._file_id: tuple[Path, int, int] | None = None
        self._damaged: tuple[Path, int, int] | None = None
        self._covered: tuple[int, Coverage] | None = None
        self._messages_missing = False
        self.meaning: ByMeaning | None = None
        self.heal: Heal | None = None

    @property
    def indexing(self) -> bool:
        return self._messages_missing or self.files.left > 0

    @indexing.setter
    def indexing(self, messages_missing: bool) -> None:
        self._messages_missing = messages_missing

    async def open(self) -> None:
        """Starts the reader; index.db need not exist yet."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cortex")

    async def close(self) -> None:
        """Waits for what runs and closes the reader."""
        if self.meaning is not None:
            await self.meaning.close()
            self.meaning = None
        if self._thread is not None:
            await self._in_thread(self._disconnect)
            self._thread.shutdown()
            self._thread = None

    async def search(
        self,
        viewer: Viewer,
        query: str,
        *,
        sources: str | None = None,
        after: str | None = None,
        before: str | None = None,
        channel: str | None = None,
        chat: str | None = None,
        sender: str | None = None,
        role: str | None = None,
        limit: int = SEARCH_HITS_DEFAULT,
    ) -> SearchAnswer:
        """The best hits for any text a person types, at most 50. Dates: YYYY-MM-DD, inclusive, in the owner's zone."""
        first, end = self.bounds(after, before)
        filters = Filters(
            sources=_sources(sources, viewer),
            sessions=viewer.session_keys,
            channel=channel or None,
            chat=chat or None,
            sender=sender or None,
            roles=(role,) if role else None,
            after=_ms(first),
            before=_ms(end),
        )
        limit = max(1, min(limit, SEARCH_HITS_MAX))
        other = await self.meaning.scores(query) if self.meaning is not None else None
        hits = await self._ask(lambda conn: self._found(conn, viewer, query, filters, limit, other), [])
        hint = None if hits else await self._hint(viewer, query)
        return SearchAnswer(tuple(hits), self.indexing, hint)

    def _found(
        self,
        conn: sqlite3.Connection,
        viewer: Viewer,
        query: str,
        filters: Filters,
        limit: int,
        other: Mapping[int, float] | None,
    ) -> list[Hit]:
        logs = self._logs if viewer.session_keys is None else None  # the files are the owner's
        context = logs.context if logs else None
        return lookup.search(conn, query, filters, limit, zone=self._zone, context=context, other=other)

    async def said(
        self,
        viewer: Viewer,
        query: str,
        *,
        session_key: str | None,
        roles: tuple[str, ...],
        after: str | None,
        before: str | None,
        limit: int,
        snippet_chars: int,
    ) -> SearchAnswer:
        """The best messages of these roles, no calls of tools, in one session or in all; without a hint."""
        first, end = self.bounds(after, before)
        sessions = viewer.session_keys
        if session_key is not None:
            sessions = frozenset({session_key} if sessions is None or session_key in sessions else ())
        filters = Filters(sources=("conversation",), sessions=sessions, roles=roles, after=_ms(first), before=_ms(end))
        hits = await self._ask(
            lambda conn: lookup.search(conn, query, filters, limit, snippet_chars, exact=True, zone=self._zone), []
        )
        return SearchAnswer(tuple(hits), self.indexing)

    async def of_day(self, viewer: Viewer, day: str, *, sources: str | None, limit: int) -> SearchAnswer:
        """What belongs to a day YYYY-MM-DD in the owner's zone: summaries first, then messages in their order."""
        first, end = self.bounds(day, day)
        filters = Filters(
            sources=_sources(sources, viewer), sessions=viewer.session_keys, after=_ms(first), before=_ms(end)
        )
        hits = await self._ask(lambda conn: lookup.of_day(conn, filters, limit), [])
        hint = None if hits else "Nothing is remembered of that day."
        return SearchAnswer(tuple(hits), self.indexing, hint)

    async def conversations(
        self, viewer: Viewer, query: str, *, channel: str | None = None, limit: int = 20
    ) -> list[str]:
        """Ids of the conversations whose messages match, best first."""
        filters = Filters(sources=("conversation",), sessions=viewer.session_keys, channel=channel or None)
        return await self._ask(lambda conn: lookup.conversations(conn, query, filters, limit), [])

    async def candidates(self, viewer: Viewer, text: str, limit: int) -> tuple[Hit, ...]:
        """What may help to answer a text. Costs the same however large the index is."""
        if viewer.session_keys == frozenset():
            return ()
        return tuple(await self._ask(lambda conn: lookup.candidates(conn, text, viewer.session_keys, limit), []))

    async def get(self, viewer: Viewer, ref: str, limit: int) -> str:
        """What a reference names, uncut; a whole file over 12,000 characters as head and tail.

        Other people than the owner open messages of their own sessions only.
        """
        wanted = self.parse_ref(ref)
        if wanted is None:
            raise ToolFailure("That is no reference. Examples: conversation:<id>#3, file:memory.md, file:memory.md#L4.")
        if wanted.kind == "conversation":
            found = await self._ask(
                lambda conn: opening.open_messages(conn, wanted, viewer.session_keys, limit, self._zone), None
            )
            if found is None:
                raise ToolFailure("Nothing is indexed yet.", transient=True)
            return found
        if viewer.session_keys is not None:
            raise ToolFailure("Only the owner may open files and tasks.")
        read = opening.open_task if wanted.kind == "task" else opening.open_file
        text = await self._in_thread(lambda: read(self._roots, wanted))
        return readable(text, wanted, self._zone) if wanted.lines and is_log(wanted.path) else text

    def parse_ref(self, text: str) -> Ref | None:
        """What a reference names; None: it is none. A `#` in the name of a file that there is belongs to the name."""
        return parse_ref(text, self._roots.is_file)

    async def coverage(self, viewer: Viewer | None = None) -> Coverage:
        """What the index holds, by source. None: as the owner sees it. Counted again only after a change."""
        sessions = None if viewer is None else viewer.session_keys

        def work(conn: sqlite3.Connection) -> Coverage:
            if sessions is not None:
                return lookup.coverage(conn, sessions)
            version = conn.execute("PRAGMA data_version").fetchone()[0]
            if self._covered is None or self._covered[0] != version:
                self._covered = version, lookup.coverage(conn, None)
            return self._covered[1]

        return await self._ask(work, Coverage())

    async def update_files(self) -> int:
        """Brings the index up to all files, by time and size; the number of files that changed."""
        return await self.files.update()

    async def file_changed(self, path: Path) -> None:
        """Indexes one file of the workspace anew, or takes it out when it is gone."""
        await self.files.change([str(self._roots.workspace.place / path)])

    async def skipped(self) -> tuple[Skipped, ...]:
        """What is left out of the index, wholly or in part, and why."""
        return await self.files.skipped()

    async def _hint(self, viewer: Viewer, query: str) -> str:
        if not parse_query(query).words:
            return "The query holds no word to search for. Ask with a word that the text may contain."
        covered = await self.coverage(viewer)
        parts = [
            f"{item.source} {item.records:,} ({item.first_at.astimezone(self._zone):%Y-%m-%d} to "
            f"{item.last_at.astimezone(self._zone):%Y-%m-%d})"
            for item in covered.sources
        ]
        if not parts:
            return "Nothing is indexed yet."
        return (
            "Nothing matched. That is no proof of absence: try other words, or fewer filters. "
            f"Searched so far: {', '.join(parts)}."
        )

    def bounds(self, after: str | None, before: str | None) -> tuple[datetime | None, datetime | None]:
        """Two days YYYY-MM-DD, both inclusive, in the owner's zone, as a first moment and one that is too late."""
        return (
            day_start(after, self._zone) if after else None,
            day_start(before, self._zone, days=1) if before else None,
        )

    async def _ask(self, work: Callable[[sqlite3.Connection], T], without: T) -> T:
        """Runs `work` on the reader, once more when the index had to be healed; `without`: there is no index."""
        try:
            answer, was_there = await self._in_thread(lambda: self._asked(work, without))
        except sqlite3.DatabaseError as error:
            is_sure = is_damage(error)
            await self._in_thread(lambda: self._disconnect(is_damaged=is_sure))
            if self.heal is None:
                raise _unreadable(error) from error
            await self.heal(str(error), sure=is_sure)
        else:
            if was_there or self.indexing or self.heal is None:
                return answer
            await self.heal(None)
        return await self._ask_once(work, without)

    async def _ask_once(self, work: Callable[[sqlite3.Connection], T], without: T) -> T:
        """The same without healing, for those whom healing would call again."""
        try:
            return (await self._in_thread(lambda: self._asked(work, without)))[0]
        except sqlite3.DatabaseError as error:
            await self._in_thread(self._disconnect)
            raise _unreadable(error) from error

    def _asked(self, work: Callable[[sqlite3.Connection], T], without: T) -> tuple[T, bool]:
        """What `work` gives, and whether there was an index."""
        conn = self._connect()
        if conn is None:
            return without, False
        # One state of the index for all its sentences: the writer may replace a row between two of them.
        conn.execute("BEGIN")
        try:
            return work(conn), True
        finally:
            if conn.in_transaction:
                conn.execute("ROLLBACK")

    def _in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        if self._thread is None:
            raise ToolFailure("The memory is not open.")
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _connect(self) -> sqlite3.Connection | None:
        """The reader; opened again when another file took the place of index.db."""
        for path in (self._path, new_path(self._path)):
            try:
                stat = os.stat(path)
            except FileNotFoundError:
                continue
            file_id = path, stat.st_dev, stat.st_ino
            if file_id == self._damaged:
                continue
            if (self._conn is not None and self._file_id == file_id) or self._open(path, file_id):
                return self._conn
        self._disconnect()
        return None

    def _open(self, path: Path, file_id: tuple[Path, int, int]) -> bool:
        conn = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None)
        try:
            if not _is_ready(conn):
                conn.close()
                return False
            conn.execute(_SQL["create-terms"])
            conn.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            conn.close()
            if path == self._path and is_unusable(error) and self._is_replaced:
                return False
            raise
        self._disconnect()
        self._conn, self._file_id, self._covered = conn, file_id, None
        return True

    @property
    def _is_replaced(self) -> bool:
        """Whether another index is being built already."""
        return new_path(self._path).exists()

    def _disconnect(self, *, is_damaged: bool = False) -> None:
        if is_damaged and self._file_id is not None and self._file_id[0] == self._path:
            self._damaged = self._file_id
        if self._conn is not None:
            self._conn.close()
            self._conn = self._file_id = None


def _unreadable(error: sqlite3.DatabaseError) -> ToolFailure:
    return ToolFailure(f"The search index cannot be read just now ({error}).", transient=True)


def day_start(text: str, zone: ZoneInfo, days: int = 0) -> datetime:
    """The first moment of a day written YYYY-MM-DD, `days` later, in `zone`. Raises ToolFailure."""
    try:
        day = date.fromisoformat(text.strip())
        day += min(timedelta(days=days), date.max - day)  # nothing is of the last day there is
    except ValueError:
        raise ToolFailure(f"{text[:40]!r} is no date; write it as YYYY-MM-DD.") from None
    return datetime(day.year, day.month, day.day, tzinfo=zone)


def _ms(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def _is_ready(conn: sqlite3.Connection) -> bool:
    """False for a file that has no tables yet, or those of another version of the program."""
    tables = {row[0] for row in conn.execute(_SQL["table-names"]).fetchall()}
    if not {"meta", "record", "words", "conversation", "file"} <= tables:
        return False
    version = conn.execute(_SQL["schema-version"]).fetchone()
    return version is not None and version[0] == SCHEMA_VERSION


def _sources(text: str | None, viewer: Viewer) -> tuple[str, ...] | None:
    """The sources to search; other people than the owner see conversations only. Raises ToolFailure."""
    wanted = tuple(dict.fromkeys(name.strip().lower() for name in (text or "").split(",") if name.strip()))
    unknown = [name for name in wanted if name not in SOURCES]
    if unknown:
        raise ToolFailure(f"There is no source {unknown[0][:40]!r}. The sources are: {', '.join(SOURCES)}.")
    if viewer.session_keys is None:
        return wanted or None
    return tuple(name for name in wanted or SOURCES if name == "conversation")

"""Builds index.db anew beside the old one, from the database and the workspace files, and puts it in its place.

It runs in a thread of its own on connections of its own and reads in slices; an interrupted one goes on at the next
start. At the end it holds the write lock of the database for an instant: then no program writes to either index.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.cortex import index
from agent.cortex.index import IndexedFile
from agent.cortex.rebuild import ROWS_MAX, NewIndex, new_path, remove_index
from agent.cortex.walk import Stamp
from gateway.limits import DATABASE_BUSY_SECONDS
from gateway.store.database import StoreError, ours, primary_code
from gateway.store.indexing import DAMAGED, catch_up, index_call, indexed_call, indexed_message, is_indexed
from gateway.store.sql import SQL

SAID_FIELDS = 11
SLICE_ROWS = 500
SLICE_CHARS = 1_000_000
PAUSE_SECONDS_MAX = 0.05
SWAP_TRIES = 200
SWAP_PAUSE_SECONDS = 0.02
LOCK_SUFFIX = ".lock"


class RebuildStopped(Exception):
    """The program ends; what was built so far is kept."""


class Files(Protocol):
    """The workspace, for whoever indexes it; called in any thread."""

    def changes(self, known: dict[str, Stamp]) -> tuple[list[str], list[str]]:
        """What differs from the files known, which are used up: names that are gone, names to read."""
        ...

    def read(self, name: str) -> IndexedFile:
        """One of those files. Raises OSError when it cannot be read."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a rebuild is; written by its thread, read by others."""

    messages: int = 0
    messages_total: int = 0
    files: int = 0
    files_total: int = 0

    def as_json(self) -> dict[str, int]:
        return {
            "messages": self.messages,
            "messages_total": self.messages_total,
            "files": self.files,
            "files_total": self.files_total,
        }


def is_unfinished(index_path: Path) -> bool:
    """Whether a rebuild was begun and broke off."""
    return new_path(index_path).exists()


class Rebuild:
    """One rebuild. `asked` counts what the writer is asked for: while it grows, this gives way to it."""

    def __init__(self, database: Path, index_path: Path, files: Files, asked: Callable[[], int]) -> None:
        self._database = database
        self._path = index_path
        self._files = files
        self._asked = asked
        self._asked_before = 0
        self._slice_began = 0.0
        self._stopping = threading.Event()
        self.progress = Progress()

    def stop(self) -> None:
        """From any thread: it ends after the slice at hand."""
        self._stopping.set()

    def run(self, *, anew: bool) -> None:
        """Builds the index and puts it in place; `anew`: what an earlier one left is thrown away.

        Raises StoreError, RebuildStopped and OSError; the index that was there is as it was then.
        """
        new = new_path(self._path)
        try:
            with _held(self._path), self._truth() as truth:
                if anew:
                    remove_index(new)
                try:
                    self._build(truth)
                except sqlite3.DatabaseError as error:
                    if primary_code(error) in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
                        remove_index(new)  # messages need the room
                    if not index.is_unusable(error):
                        raise
                    remove_index(new)
                    self._build(truth)
        except sqlite3.Error as error:
            raise ours(error, self._path) from error

    @contextlib.contextmanager
    def _truth(self) -> Generator[sqlite3.Connection]:
        truth = sqlite3.connect(self._database, isolation_level=None, timeout=DATABASE_BUSY_SECONDS)
        truth.row_factory = sqlite3.Row
        try:
            yield truth
        finally:
            truth.close()

    def _build(self, truth: sqlite3.Connection) -> None:
        store_id = truth.execute(SQL["meta_get"], {"key": "store_id"}).fetchone()[0]
        newest = truth.execute(SQL["newest_version"]).fetchone()[0]
        build = NewIndex(new_path(self._path), store_id, newest)
        try:
            self._add_messages(truth, build)
            self._add_files(build)
            build.late(index.retell_artifacts)
            build.tidy()
            while build.late(lambda conn: catch_up(truth, conn)):
                self._give_way()
            build.sync()
            self._swap(truth, build)
        except RebuildStopped:
            build.save()
            raise
        finally:
            build.close()

    def _add_messages(self, truth: sqlite3.Connection, build: NewIndex) -> None:
        range_ = {"after": build.watermark, "last": build.target}
        counted = truth.execute(SQL["count_messages"], range_).fetchone()
        self.progress.messages_total, self.progress.messages = counted["total"], counted["before"]
        after = build.watermark
        while after < build.target:
            rows = self._slice(truth, after, build.target)
            for row, calls in rows:
                if row["attachments"] and is_indexed(row):
                    message = indexed_message(row)
                    build.add(index.message_record(message))
                    build.add_origins(index.origins_of_message(message))
                elif is_indexed(row):
                    build.add(index.said_record(*row[:SAID_FIELDS]))
                for call in calls:
                    indexed = indexed_call(row, call)
                    build.add(index.call_record(indexed))
                    build.add_origins(index.origins_of_call(indexed))
                build.reached(row["version"])
            if not rows:
                build.reached(build.target)
                break
            after = rows[-1][0]["version"]
            self.progress.messages += len(rows)
            self._give_way()

    @staticmethod
    def _slice(truth: sqlite3.Connection, after: int, last: int) -> list[tuple[sqlite3.Row, list[sqlite3.Row]]]:
        """The next messages with their calls, on one snapshot that is let go of before anything is done with them."""
        slice_: list[tuple[sqlite3.Row, list[sqlite3.Row]]] = []
        chars = 0
        truth.execute("BEGIN")
        try:
            for row in truth.execute(SQL["messages_between"], {"after": after, "last": last, "limit": SLICE_ROWS}):
                calls: list[sqlite3.Row] = []
                if row["call_count"]:
                    calls = truth.execute(SQL["calls_of_message"], {"message_seq": row["seq"]}).fetchall()
                slice_.append((row, calls))
                chars += len(row["text"]) + sum(len(call["output"] or "") for call in calls)
                if chars > SLICE_CHARS:
                    break
        finally:
            truth.execute("ROLLBACK")
        return slice_

    def _add_files(self, build: NewIndex) -> None:
        gone, changed = self._files.changes(dict(build.files))
        self.progress.files = len(build.files) - len(gone)
        self.progress.files_total = self.progress.files + len(changed)
        if gone:
            build.late(lambda conn: index.remove_files(conn, gone, ROWS_MAX))
        for found in changed:
            with contextlib.suppress(OSError):
                build.add_file(self._files.read(found))
            self.progress.files += 1
            self._give_way()

    def _give_way(self) -> None:
        """Between two slices: as long as messages come in, every second moment is theirs."""
        if self._stopping.is_set():
            raise RebuildStopped
        now = time.monotonic()
        asked = self._asked()
        if asked != self._asked_before:
            self._asked_before = asked
            self._stopping.wait(min(now - self._slice_began, PAUSE_SECONDS_MAX))
            now = time.monotonic()
        self._slice_began = now

    def _swap(self, truth: sqlite3.Connection, build: NewIndex) -> None:
        """Adds the last rows and puts the new file in place, while nobody can write to the database."""
        for _ in range(SWAP_TRIES):
            truth.execute("BEGIN IMMEDIATE")
            try:
                while build.late(lambda conn: catch_up(truth, conn)):
                    pass
                build.late(lambda conn: _running_calls(truth, conn))
                if build.finish():
                    self._replace(truth)
                    return
            finally:
                if truth.in_transaction:
                    truth.execute("ROLLBACK")
            if self._stopping.wait(SWAP_PAUSE_SECONDS):
                raise RebuildStopped
        raise StoreError(f"{self._path}: a reader did not let go of the new index. Try again.")

    def _replace(self, truth: sqlite3.Connection) -> None:
        _settle(self._path)
        # The old log first: it must never meet the new file. Who has the old files open goes on with them.
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        os.replace(new_path(self._path), self._path)
        truth.execute(SQL["meta_put"], {"key": DAMAGED, "value": "no"})
        truth.execute("COMMIT")


def _running_calls(truth: sqlite3.Connection, conn: sqlite3.Connection) -> None:
    """The calls of turns that run: what one gave changes no version before its turn ends."""
    for message in truth.execute(SQL["running_replies"]).fetchall():
        for call in truth.execute(SQL["calls_of_message"], {"message_seq": message["seq"]}).fetchall():
            index_call(conn, message, call)


def _settle(path: Path) -> None:
    """The log of the old index into its file, as far as it goes: a kill right now leaves a whole one."""
    if not path.exists():
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("PRAGMA busy_timeout = 0")
        old.execute("PRAGMA wal_checkpoint(PASSIVE)")


@contextlib.contextmanager
def _held(index_path: Path) -> Generator[None]:
    """One rebuild at a time, whichever program does it."""
    file = os.open(index_path.with_name(index_path.name + LOCK_SUFFIX), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"{index_path}: another program builds it just now. Wait until it is done.") from error
        yield
    finally:
        os.close(file)

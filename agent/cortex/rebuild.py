"""Builds an index anew in a file of its own, fast: many rows a statement, and no reader or writer in the way.

What it is made from comes in order and without doubles; what changed meanwhile is written afterwards, on `conn`, with
the functions of `agent.cortex.index`. Broken off at any point, it goes on where it was.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

from agent.cortex import index, origins
from agent.cortex.index import IndexedFile, Record
from agent.cortex.origins import Origin
from agent.cortex.sentences import sentences
from agent.cortex.walk import Stamp

T = TypeVar("T")

NEW_SUFFIX = ".new"
ROWS_A_STATEMENT = 500
"""SQLite takes at least 32,766 values a statement; a record has 18."""
CHARS_A_STATEMENT = 500_000
ROWS_A_COMMIT = 10_000
CHARS_A_COMMIT = 8_000_000
ROWS_MAX = 1_000_000_000
ROWS_A_BREATH = 100
"""Folding holds the interpreter: after so many rows others may have it."""
_SQL = sentences("rebuild.sql")
_WRITES = sentences("writes.sql")
_WORDS_MEMORY_BYTES = 16 * 1024 * 1024
"""FTS5 collects so much before it writes; each time it writes is one more part to merge later."""


def new_path(path: Path) -> Path:
    """Where the index that will take the place of `path` is built."""
    return path.with_name(path.name + NEW_SUFFIX)


def remove_index(path: Path) -> None:
    """Deletes an index with what SQLite keeps beside it. The log first: it must never meet another file."""
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class NewIndex:
    """The index that is being built. `target` is the version of the truth up to which `add` is to be given everything.

    Rows are folded by the thread that calls and written by another one. Methods raise sqlite3.Error; after one the
    object can only be closed.
    """

    def __init__(self, path: Path, truth_id: str, newest: int) -> None:
        """Goes on with what is there, when it was made from the same truth by the same version of the program."""
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="new-index")
        self._open: sqlite3.Connection | None = None
        self._written: Future[None] | None = None
        self._rows: list[Record] = []
        self._files: list[IndexedFile] = []
        self._origins: list[Origin] = []
        self._chars = self._rows_since_commit = self._chars_since_commit = 0
        self._version = 0
        try:
            self._run(lambda: self._begin(truth_id, newest))
        except BaseException:
            self.close()
            raise

    @property
    def conn(self) -> sqlite3.Connection:
        assert self._open is not None
        return self._open

    def _begin(self, truth_id: str, newest: int) -> None:
        try:
            self._attach()
            target = index.build_target(self.conn)
            is_usable = (
                index.truth_id(self.conn) in {None, truth_id}
                and index.watermark(self.conn) <= newest
                and (target is None or target <= newest)
            )
        except sqlite3.DatabaseError as error:
            if not index.is_unusable(error):
                raise
            is_usable, target = False, None
        if not is_usable:
            self._detach()
            remove_index(self.path)
            self._attach()
            target = None
        conn = self.conn
        index.set_truth_id(conn, truth_id)
        if target is None:
            target = newest
            index.set_build_target(conn, target)
        self.target = target
        self.watermark = index.watermark(conn)
        self._next_id = conn.execute(_SQL["newest-id"]).fetchone()[0] + 1
        self.files: dict[str, Stamp] = dict(conn.execute(_SQL["files"]))
        conn.execute(_SQL["collect-more"], (_WORDS_MEMORY_BYTES,))
        conn.execute(_SQL["merge-later"])
        conn.execute("BEGIN")

    def _attach(self) -> None:
        conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=64)
        try:
            index.attach(conn, self.path)
        except sqlite3.Error:
            conn.close()
            raise
        conn.execute("PRAGMA idx.cache_size = -16384")
        conn.execute("PRAGMA idx.secure_delete = ON")  # what is removed meanwhile leaves no trace
        conn.execute("PRAGMA idx.wal_autocheckpoint = 4000")
        self._open = conn

    def _detach(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def add(self, record: Record) -> None:
        """One row that the index does not have; written some rows later."""
        self._rows.append(record)
        self._chars += record[15] + 100
        if len(self._rows) >= ROWS_A_STATEMENT or self._chars >= CHARS_A_STATEMENT:
            self._flush()

    def add_origins(self, found: list[Origin]) -> None:
        """Which artifacts a message or call brought; `index.retell_artifacts` tells the artifacts at the end."""
        self._origins += found

    def reached(self, version: int) -> None:
        """Everything of the truth up to this version was added: from here it can go on."""
        self._version = version
        self._commit_when_much()

    def add_file(self, file: IndexedFile) -> None:
        """A file that the index does not have, or had in another state."""
        if file.path in self.files:
            self._flush()
            self._run(lambda: index.remove_files(self.conn, [file.path], ROWS_MAX))
        for record in index.file_records(file, file.sections):
            self.add(record)
        self._files.append(file)
        self._commit_when_much()

    def _commit_when_much(self) -> None:
        if (
            self._rows_since_commit + len(self._rows) >= ROWS_A_COMMIT
            or self._chars_since_commit + self._chars >= CHARS_A_COMMIT
        ):
            self._flush(commit=True)

    def _flush(self, *, commit: bool = False) -> None:
        """Folds what was added while the thread still writes the rows before, then hands it over."""
        rows, files, version = self._rows, self._files, self._version
        found_origins = self._origins
        self._rows, self._files, self._origins = [], [], []
        self._rows_since_commit += len(rows)
        self._chars_since_commit += self._chars
        self._chars = 0
        if commit:
            self._rows_since_commit = self._chars_since_commit = self._version = 0
        words: list[object] = []
        records: list[object] = []
        for row in rows:
            words += (self._next_id, *index.words_of(row))
            records += (self._next_id, *row)
            if self._next_id % ROWS_A_BREATH == 0:
                time.sleep(0)
            self._next_id += 1
        counts = _counts(rows)
        self._wait()

        def write() -> None:
            conn = self.conn
            if rows:
                conn.execute(_many("insert-records", 18, len(rows)), records)
                conn.execute(_many("insert-words", 5, len(rows)), words)
                conn.executemany(_WRITES["count-conversation"], counts)
            origins.put(conn, found_origins)
            conn.executemany(_WRITES["put-file"], [index.file_row(file) for file in files])
            if commit:
                self._commit(version)

        self._written = self._thread.submit(write)

    def _commit(self, version: int) -> None:
        if version:
            index.set_watermark(self.conn, version)
        self.conn.execute("COMMIT")
        self.conn.execute("BEGIN")

    def save(self) -> None:
        """Commits what was added so far."""
        self._flush(commit=True)
        self._wait()

    def late(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs work on the connection to which the new index is attached, in a transaction of its own, after everything
        that was added."""
        self.save()
        done = work(self.conn)
        self._next_id = self.conn.execute(_SQL["newest-id"]).fetchone()[0] + 1
        self._commit(0)
        return done

    def tidy(self) -> None:
        """Merges the parts of the full-text index to one, and leaves its settings as those of any other."""
        self.save()

        def work() -> None:
            self.conn.execute("COMMIT")
            for name in ("merge-all", "merge-as-usual"):
                self.conn.execute(_SQL[name])
            self.conn.execute(_SQL["collect-more"], (1024 * 1024,))
            self.conn.execute("BEGIN")

        self._run(work)

    def sync(self) -> None:
        """Most of what is to be written is on the disk then: `finish` takes an instant."""
        self.save()

        def work() -> None:
            self.conn.execute("COMMIT")
            self.conn.execute("PRAGMA idx.wal_checkpoint(FULL)").fetchone()
            self.conn.execute("BEGIN")

        self._run(work)

    def finish(self) -> bool:
        """Everything into the one file, and closes it. False: a reader is in the way; go on and try again."""

        def work() -> bool:
            conn = self.conn
            conn.execute("COMMIT")
            conn.execute("PRAGMA busy_timeout = 0")
            busy, in_log, moved = conn.execute("PRAGMA idx.wal_checkpoint(FULL)").fetchone()
            conn.execute("BEGIN")
            return not busy and in_log == moved

        if not self._run(work):
            return False
        self._run(self._detach)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Lets go of the file; what was not committed is done again another time."""
        if self._written is not None:
            with contextlib.suppress(sqlite3.Error):
                self._written.result()
            self._written = None
        self._thread.submit(self._detach).result()
        self._thread.shutdown(wait=True)

    def _wait(self) -> None:
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def _run(self, work: Callable[[], T]) -> T:
        self._wait()
        return self._thread.submit(work).result()


def _counts(rows: Iterable[Record]) -> Iterator[tuple[object, ...]]:
    """Rows for `conversation`: how many records each one gets, and from when to when."""
    found: dict[str, list[object]] = {}
    for row in rows:
        if row[0] != "conversation":
            continue
        owner, at = row[1], row[5]
        known = found.get(owner)
        if known is None:
            found[owner] = [owner, row[6], row[7], row[8], 1, at, at]
        else:
            known[4:] = int(str(known[4])) + 1, min(int(str(known[5])), at), max(int(str(known[6])), at)
    return (tuple(values) for values in found.values())


@cache
def _many(name: str, columns: int, rows: int) -> str:
    """A sentence that takes many rows: one step of SQLite, during which other threads run."""
    row = f"({', '.join('?' * columns)})"
    return f"{_SQL[name]} {', '.join([row] * rows)}"

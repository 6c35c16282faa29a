"""The SQLite file: one writer that commits in groups, one reader, numbered schema files, named sentences."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiosqlite

from agent.cortex.index import is_damage
from gateway.limits import COMMIT_ROWS_MAX, DATABASE_BUSY_SECONDS, WAL_BYTES_MAX, WAL_RETRY_SECONDS

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

HERE = Path(__file__).parent
OWN_TABLES = frozenset({"message", "delivery"})
"""By these a database is known as one of ours, whatever its version."""


class StoreError(Exception):
    """The database could not do it; `str()` is one sentence that says what to do."""


class DiskFull(StoreError):
    """No room left for the database."""


class DatabaseBusy(StoreError):
    """Another process holds the database's write lock."""


class Attached(Protocol):
    """The second file of the writer: it may be replaced by another one, and may be damaged."""

    @property
    def path(self) -> Path: ...

    def attach(self, connection: sqlite3.Connection) -> None:
        """Attaches the file that is there, instead of the one before; outside any transaction."""
        ...

    def is_current(self) -> bool:
        """Whether the file at its path is the attached one; asked inside each transaction."""
        ...

    def let_go(self, connection: sqlite3.Connection) -> bool:
        """A commit failed because a file is damaged. True: this one is no longer attached, try again without it."""
        ...


def load_queries(path: Path) -> dict[str, str]:
    """Reads a file of sentences, each after a line `-- name: <name>`, to a dictionary."""
    parts = re.split(r"^-- name: (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: sentence.strip().rstrip(";") for name, sentence in zip(parts[1::2], parts[2::2], strict=True)}


Outcome = tuple[Any, BaseException | None]


def primary_code(error: BaseException | None) -> int:
    """SQLite's primary result code; 0 for any other error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


class _Connection(aiosqlite.Connection):
    """aiosqlite's connection, with a whole function run in its thread: one hop, whatever the function does."""

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        return await self._execute(work, *args)  # type: ignore[no-untyped-call]

    async def run_with_connection(self, work: Work[T]) -> T:
        return await self._execute(work, self._conn)  # type: ignore[no-untyped-call]


def _connect(path: Path, *, read_only: bool) -> _Connection:
    def connector() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=512, timeout=DATABASE_BUSY_SECONDS)
        connection.row_factory = sqlite3.Row
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        return connection

    return _Connection(connector, iter_chunk_size=64)


class Database:
    """hudhud.db. All writes of all callers that wait at the same time share one transaction and one fsync."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: _Connection | None = None
        self._reader: _Connection | None = None
        self._pending: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._attached: Attached | None = None
        self.commits = 0
        self.asked = 0
        """How many writes were asked for since the start: who works in the background gives way while it grows."""

    async def open(self, attached: Attached) -> None:
        """Opens both connections, brings the schema up to date and attaches the second file.

        Raises StoreError when the file is not a database of ours, is newer than this program, or is locked.
        """
        self._attached = attached
        self._writer = _connect(self._path, read_only=False)
        await self._writer
        try:
            await self._writer.run_with_connection(lambda c: check_ours(c, self._path))
            await self._writer.run_with_connection(_configure)
            await self._writer.run_with_connection(_migrate)
            await self._writer.run_with_connection(attached.attach)
            self._reader = _connect(self._path, read_only=True)
            await self._reader
        except sqlite3.Error as error:
            await self._writer.close()
            raise ours(error, self._path) from error
        except StoreError:
            await self._writer.close()
            raise
        self._task = asyncio.create_task(self._commit_groups(), name="database-writer")

    async def close(self) -> None:
        """Commits what still waits, then closes the file."""
        if self._task is not None:
            while self._pending:
                await asyncio.sleep(0)
                self._wake.set()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for connection in (self._reader, self._writer):
            if connection is not None:
                await connection.close()
        self._reader = self._writer = self._task = None

    async def write(self, work: Work[T]) -> T:
        """Runs `work` in a transaction, together with what else waits; returns after the commit.

        `work` may run twice (the group is tried as one, then one by one), so it must have no other effect.
        Raises what `work` raised, or StoreError when the commit failed; then nothing of it is saved.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending.append((work, future))
        self.asked += 1
        self._wake.set()
        return await future

    async def read(self, work: Work[T]) -> T:
        """Runs `work` on the read connection, on a snapshot of what is committed."""
        assert self._reader is not None
        try:
            return await self._reader.run_with_connection(lambda connection: _snapshot(connection, work))
        except sqlite3.Error as error:
            raise ours(error, self._path) from error

    async def maintain(self, work: Work[T]) -> T:
        """Runs `work` on the writer outside any transaction (checkpoint), between two groups."""
        assert self._writer is not None
        try:
            return await self._writer.run_with_connection(work)
        except sqlite3.Error as error:
            raise ours(error, self._path) from error

    @property
    def path(self) -> Path:
        return self._path

    def log_bytes(self) -> int:
        """The size of the write-ahead log."""
        return size_bytes(wal_path(self._path))

    async def _commit_groups(self) -> None:
        assert self._writer is not None
        while True:
            await self._next_write()
            self._wake.clear()
            while self._pending:
                group = self._pending[:COMMIT_ROWS_MAX]
                del self._pending[:COMMIT_ROWS_MAX]
                works = [work for work, future in group if not future.cancelled()]
                futures = [future for _, future in group if not future.cancelled()]
                if not works:
                    continue
                # Shielded: a group that is under way is finished even when the program is stopping.
                outcomes = await asyncio.shield(self._writer.run_with_connection(lambda c, w=works: self._mended(c, w)))
                self.commits += 1
                for future, (value, error) in zip(futures, outcomes, strict=True):
                    if future.done():
                        continue
                    if error is None:
                        future.set_result(value)
                    elif isinstance(error, sqlite3.Error):
                        future.set_exception(ours(error, self._path))
                    else:
                        future.set_exception(error)

    async def _next_write(self) -> None:
        """Waits for work. A log that a long reader let grow is emptied as soon as that reader is gone."""
        assert self._writer is not None
        assert self._attached is not None
        logs = wal_path(self._path), wal_path(self._attached.path)
        while not self._wake.is_set() and any(size_bytes(log) > WAL_BYTES_MAX for log in logs):
            if await asyncio.shield(self._writer.run_with_connection(_empty_log)):
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), WAL_RETRY_SECONDS)
        await self._wake.wait()

    def _mended(self, connection: sqlite3.Connection, works: list[Work[Any]]) -> list[Outcome]:
        assert self._attached is not None
        outcomes = _commit(connection, works, self._attached)
        damaged = [n for n, (_, error) in enumerate(outcomes) if error is not None and is_damage(error)]
        if damaged and self._attached.let_go(connection):
            for n in damaged:
                outcomes[n] = _commit(connection, [works[n]], self._attached)[0]
        return outcomes


def _commit(connection: sqlite3.Connection, works: list[Work[Any]], attached: Attached) -> list[Outcome]:
    """All works in one transaction; if one of them fails, each in its own, so that only the failing one is lost."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        if not attached.is_current():
            connection.execute("ROLLBACK")
            attached.attach(connection)
            connection.execute("BEGIN IMMEDIATE")
        values = [work(connection) for work in works]
        connection.execute("COMMIT")
    except BaseException as error:  # noqa: BLE001 -- handed to the caller that waits for it
        _roll_back(connection)
        if len(works) == 1:
            return [(None, error)]
    else:
        return [(value, None) for value in values]
    return [outcome for work in works for outcome in _commit(connection, [work], attached)]


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Moves the write-ahead logs into their files and cuts them; False, without waiting, when a reader needs one."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    except sqlite3.Error:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(DATABASE_BUSY_SECONDS * 1000)}")


def wal_path(path: Path) -> Path:
    """The write-ahead log of a database."""
    return path.with_name(f"{path.name}-wal")


def size_bytes(path: Path) -> int:
    """0 for a file that is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _snapshot(connection: sqlite3.Connection, work: Work[T]) -> T:
    """All statements of `work` see the same state of the database."""
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        connection.execute("ROLLBACK")


def _roll_back(connection: sqlite3.Connection) -> None:
    # A full disk makes SQLite roll back by itself. When this fails too, the next group says so to its callers.
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 2000")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")


def _schema_files() -> dict[int, Path]:
    return {int(path.name[:4]): path for path in sorted((HERE / "schema").glob("[0-9]*.sql"))}


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses a database of a newer version or of another program, before a byte of it is changed."""
    present = connection.execute("PRAGMA user_version").fetchone()[0]
    newest = max(_schema_files())
    tables = {row["name"] for row in connection.execute("PRAGMA main.table_list") if row["type"] == "table"}
    if not OWN_TABLES & tables if present else tables - {"sqlite_schema", "sqlite_sequence"}:
        raise StoreError(f"{path}: this database is another program's. Move it away, or restore a backup.")
    if present > newest:
        raise StoreError(
            f"{path}: the database was written by a newer version (schema {present}, this program knows {newest}). "
            "Install the newer version again."
        )


def _migrate(connection: sqlite3.Connection) -> None:
    """Runs each schema file whose number is above `user_version`, each in one transaction with its number."""
    files = _schema_files()
    present = connection.execute("PRAGMA user_version").fetchone()[0]
    for number in range(present + 1, max(files) + 1):
        try:
            sentences = files[number].read_text(encoding="utf-8")
            connection.executescript(f"BEGIN IMMEDIATE;\n{sentences}\nPRAGMA user_version = {number};\nCOMMIT;")
        except sqlite3.Error:
            _roll_back(connection)
            raise


def ours(error: sqlite3.Error, path: Path) -> StoreError:
    """What SQLite says of the database in `path`, as one sentence that says what to do."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and "disk" in str(error)):
        return DiskFull(f"{path.parent}: no space left on the disk. Nothing that was saved is lost; free some space.")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return DatabaseBusy(f"{path}: another process holds the database. Close the program that has it open.")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path}: this file is not a database. Move it away, or restore a backup.")
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreError(f"{path}: the database is damaged ({error}). Restore a backup.")
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return StoreError(f"{path}: cannot be opened for writing. Check the folder's owner and rights.")
    return StoreError(f"{path}: {error}")

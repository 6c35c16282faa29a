"""How the index stands, and whether it agrees with the database. Reads only, on connections of its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agent.cortex.check import faults_of
from agent.cortex.index import SCHEMA_VERSION
from agent.cortex.sentences import sentences
from gateway.limits import DATABASE_BUSY_SECONDS
from gateway.store.database import StoreError, size_bytes, wal_path
from gateway.store.sql import SQL

_READS = sentences("check.sql")


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What an index holds. `schema_version` None: it cannot be read. `watermark`: up to which change of the database
    it is complete, `newest` the last one there is."""

    newest: int
    schema_version: int | None = None
    watermark: int | None = None
    records: dict[str, int] = field(default_factory=dict[str, int])
    files: int = 0
    bytes: dict[str, int] = field(default_factory=dict[str, int])

    def as_json(self) -> dict[str, Any]:
        return {
            "schema_version": self.schema_version,
            "program_schema_version": SCHEMA_VERSION,
            "watermark": self.watermark,
            "newest": self.newest,
            "records": self.records,
            "files": self.files,
            "bytes": self.bytes,
        }


def index_facts(database: Path, index_path: Path) -> IndexFacts:
    """Raises StoreError when the database cannot be read."""
    sizes = {
        "database": size_bytes(database),
        "database_wal": size_bytes(wal_path(database)),
        "index": size_bytes(index_path),
        "index_wal": size_bytes(wal_path(index_path)),
    }
    with _opened(database) as truth:
        newest = truth.execute(SQL["newest_version"]).fetchone()[0]
    try:
        with _opened(index_path) as conn:
            meta = dict(conn.execute(_READS["meta"]).fetchall())
            if meta.get("schema_version") != SCHEMA_VERSION:
                return IndexFacts(newest, meta.get("schema_version"), bytes=sizes)
            records = dict(conn.execute(_READS["records-by-source"]).fetchall())
            files = conn.execute(_READS["count-files"]).fetchone()[0]
            return IndexFacts(newest, SCHEMA_VERSION, meta.get("watermark") or 0, records, files, sizes)
    except (sqlite3.Error, StoreError):
        return IndexFacts(newest, bytes=sizes)


def index_faults(database: Path, index_path: Path, *, whole: bool) -> list[str]:
    """What is wrong with the index, a sentence each. `whole`: its pages, and the database's messages are counted too.

    Raises StoreError when one of the two cannot be read just now.
    """
    if not index_path.exists():
        return ["it is not there"]
    try:
        faults = faults_of(index_path, whole=whole)
        if whole and not faults:
            faults = _against_truth(database, index_path)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{index_path}: cannot be checked just now ({error}). Try again.") from error
    return faults


def _against_truth(database: Path, index_path: Path) -> list[str]:
    with _opened(database) as truth, _opened(index_path) as conn:
        # The index first: what is saved meanwhile is in both, or above its watermark.
        conn.execute("BEGIN")
        truth.execute("BEGIN")
        meta = dict(conn.execute(_READS["meta"]).fetchall())
        if meta.get("schema_version") != SCHEMA_VERSION:
            return [f"it has version {meta.get('schema_version')}, this program's is {SCHEMA_VERSION}"]
        store_id = truth.execute(SQL["meta_get"], {"key": "store_id"}).fetchone()
        if store_id is None or meta.get("truth_id") != store_id[0]:
            return ["it was made from another database"]
        newest = truth.execute(SQL["newest_version"]).fetchone()[0]
        if (meta.get("watermark") or 0) < newest:
            return []  # what is missing is caught up; only a complete index can be counted
        saved = truth.execute(SQL["indexed_messages"], {"version": newest}).fetchone()[0]
        held = conn.execute(_READS["count-messages"]).fetchone()[0]
        if saved == held:
            return []
        return [f"it holds {held} messages, of {saved} that the database has"]


@contextlib.contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    try:
        conn = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None, timeout=DATABASE_BUSY_SECONDS
        )
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened ({error}). Check its owner and rights.") from error
    try:
        conn.execute("PRAGMA query_only = ON")
        yield conn
    finally:
        conn.close()

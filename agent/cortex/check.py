"""Whether an index holds together. It reads only: the full-text tables are checked on a copy, as SQLite's own check
would keep the writer waiting."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

from agent.cortex.sentences import sentences

_SQL = sentences("check.sql")
_SHADOWS = ("data", "idx", "docsize", "config")


def faults_of(path: Path, *, whole: bool) -> list[str]:
    """What is wrong with an index, a sentence each; empty for a good one. `whole`: its pages too, which takes longer.

    Raises sqlite3.OperationalError when it cannot be read just now.
    """
    try:
        with contextlib.closing(sqlite3.connect("", isolation_level=None, uri=True)) as conn:
            conn.execute(_SQL["attach"], (f"file:{quote(str(path))}?mode=rw",))
            conn.execute("BEGIN")
            faults = [*_words_faults(conn), *_step_faults(conn)]
            if whole:
                faults += [f"pages: {row[0]}" for row in conn.execute(_SQL["pages"]) if row[0] != "ok"]
            conn.execute("ROLLBACK")
            return faults
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_ERROR:
            raise
        return [f"a table or column is missing ({error})"]
    except sqlite3.DatabaseError as error:
        return [f"it cannot be read ({error})"]


def _words_faults(conn: sqlite3.Connection) -> list[str]:
    """SQLite's own check of each full-text table: https://sqlite.org/fts5.html#the_integrity_check_command"""
    faults: list[str] = []
    conn.execute(_SQL["probe"]).fetchall()
    for name, create in conn.execute(_SQL["full-text-tables"]).fetchall():
        conn.execute(create)
        for shadow in _SHADOWS:
            table = f'"{name}_{shadow}"'
            conn.execute(f"DELETE FROM main.{table}")  # noqa: S608 -- names of tables, as SQLite lists them
            conn.execute(f"INSERT INTO main.{table} SELECT * FROM idx.{table}")  # noqa: S608 -- the same
        try:
            conn.execute(f'INSERT INTO main."{name}" ("{name}") VALUES (\'integrity-check\')')  # noqa: S608 -- the same
        except sqlite3.DatabaseError as error:
            faults.append(f"the full-text table {name} does not hold together ({error})")
        else:
            faults += _lost_pages(conn, name)
    return faults


def _lost_pages(conn: sqlite3.Connection, name: str) -> list[str]:
    """Pages that no look-up reaches, which SQLite's check overlooks: each page on which a term begins has a row in the
    table `idx` (there may be more rows than such pages, while parts are merged).

    A page begins with two 16-bit numbers; the second says where its terms are listed: behind its end for a page with
    none. Page numbers above 10 are pages of terms, unless their bit 36 is set: the notes at the top of fts5_index.c.
    """
    pages = conn.execute(
        f'SELECT length(block), substr(block, 3, 2) FROM main."{name}_data" WHERE id > 10 AND NOT (id >> 36) & 1'  # noqa: S608 -- as above
    )
    begin_terms = sum(int.from_bytes(at) < length for length, at in pages)
    listed = conn.execute(f'SELECT count(*) FROM main."{name}_idx"').fetchone()[0]  # noqa: S608 -- as above
    return [f"pages of the full-text table {name} are not listed"] if listed < begin_terms else []


def _step_faults(conn: sqlite3.Connection) -> list[str]:
    """Records without words, words without a record, and counts that are not those of the records."""
    checks = (
        ("records-without-words", "records cannot be found by their words"),
        ("words-without-record", "entries of the full-text table have no record"),
    )
    counted = [(conn.execute(_SQL[name]).fetchone()[0], what) for name, what in checks]
    faults = [f"{count} {what}" for count, what in counted if count]
    for name, what in (("conversations-miscounted", "conversation"), ("files-miscounted", "file")):
        if conn.execute(_SQL[name]).fetchone()[0]:
            faults.append(f"the records of some {what} are not as many as were counted")
    return faults

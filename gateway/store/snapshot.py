"""A copy of hudhud.db as it is at one moment, and a look at such a copy."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

from gateway.store.database import StoreError, check_ours, ours

_COPY = "VACUUM INTO ?"


def copy_database(path: Path, target: Path) -> None:
    """Writes the committed state of the database at `path` to the new file `target`; a running gateway goes on.

    What was removed from the database is not in the copy, not even in unused pages. Raises StoreError.
    """
    with _opened(path) as connection:
        connection.execute(_COPY, (str(target),))


def check_database(path: Path) -> None:
    """Raises StoreError when the file is damaged, another program's, or newer than this program."""
    with _opened(path) as connection:
        check_ours(connection, path)
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(f"{path}: the database is damaged ({found}).")


@contextlib.contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise ours(error, path) from error

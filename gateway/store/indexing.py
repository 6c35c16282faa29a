"""Keeps index.db beside the truth: the same transaction writes both, and a start catches up what a crash left.

index.db is never mended in place. One that is no good is left alone, messages are saved without it, and a new one is
built beside it (`gateway.store.rebuilding`); the writer takes whatever file has the name when a transaction begins.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agent.cortex import index
from gateway.store.sql import SQL
from gateway.store.types import from_ms

LOG = logging.getLogger(__name__)

T = TypeVar("T")

CATCH_UP_ROWS = 500
IN_PLACE_ROWS_MAX = 2_000
"""With more messages than these an index that is missing is built beside, and much faster, than by the writer."""
DAMAGED = "index_damaged"


class Indexer:
    """Writes index rows on the writer's connection. `trouble` says why it does not, None while all is well: then
    index.db has to be built anew, and no message is lost by it. `behind`: rows are missing, `catch_up` adds them.

    `told` is called, in the writer's thread, when there is new trouble or something to catch up.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file_id: tuple[int, int] | None = None
        self._is_attached = self._was_attached = False
        self.trouble: str | None = None
        self.behind = False
        self.told: Callable[[], object] | None = None

    @property
    def on(self) -> bool:
        return self._is_attached and self.trouble is None

    def attach(self, connection: sqlite3.Connection) -> None:
        """Attaches the file that is there now, or makes one; not inside a transaction."""
        store_id = _meta(connection, "store_id")
        if store_id is None:
            store_id = secrets.token_hex(8)
            connection.execute(SQL["meta_put"], {"key": "store_id", "value": store_id})
        newest = connection.execute(SQL["newest_version"]).fetchone()[0]
        self._let_go(connection)
        self.trouble = None
        is_there = self.path.exists() and self.path.stat().st_size > 0
        if _meta(connection, DAMAGED) == "yes":
            self._distrust(connection, "it was found to be damaged")
        elif not is_there and newest > IN_PLACE_ROWS_MAX:
            self._distrust(connection, "it is not there", warn=False)
        else:
            self._attach(connection, store_id, newest)
        self._file_id = self._id_of_file()
        if self.told is not None and (self.trouble is not None or self.behind):
            self.told()

    def _attach(self, connection: sqlite3.Connection, store_id: str, newest: int) -> None:
        try:
            index.attach(connection, self.path)
            self._is_attached = self._was_attached = True
            made_from, watermark = index.truth_id(connection), index.watermark(connection)
            if made_from is None and watermark == 0:
                index.set_truth_id(connection, store_id)
            elif made_from != store_id or watermark > newest:
                self._let_go(connection)
                self._distrust(connection, "it was made from another database")
            self.behind = watermark < newest
        except sqlite3.DatabaseError as error:
            if not self._was_attached and not index.is_unusable(error):
                raise
            self._let_go(connection)
            self._distrust(connection, str(error), warn=not isinstance(error, index.OtherVersion))

    def is_current(self) -> bool:
        """Whether the attached file still is the one at its path. Asked inside each transaction of the writer: while
        that has the lock of the truth, nobody puts another file there."""
        return self._file_id == self._id_of_file()

    def _id_of_file(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            return None
        return stat.st_dev, stat.st_ino

    def _let_go(self, connection: sqlite3.Connection) -> None:
        if self._is_attached:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("DETACH idx")
            self._is_attached = False

    def let_go(self, connection: sqlite3.Connection) -> bool:
        """A commit failed because one of the two files is damaged: goes on without this one, if it was there."""
        if not self._is_attached:
            return False
        self._let_go(connection)
        with contextlib.suppress(sqlite3.Error):
            self._distrust(connection, "a transaction could not be written")
        return True

    def distrust(self, connection: sqlite3.Connection, reason: str) -> None:
        """Inside a transaction: somebody else found the index to be no good."""
        self._distrust(connection, reason)

    def _distrust(self, connection: sqlite3.Connection, reason: str, *, warn: bool = True) -> None:
        if self.trouble is None:
            LOG.log(
                logging.WARNING if warn else logging.INFO,
                "%s cannot be used (%s); it is built again from the database and the files",
                self.path,
                reason,
            )
            self.trouble = reason
            if self.told is not None:
                self.told()
        self._note(connection)

    def message(self, connection: sqlite3.Connection, row: Any) -> None:
        """Indexes one row of `message` (a mapping with its columns) and moves the watermark."""
        if not self.on:
            self._note(connection)
            return
        if row["n"] is None:
            return
        try:
            index_message(connection, row)
            if not self.behind:
                index.set_watermark(connection, row["version"])
        except sqlite3.DatabaseError as error:
            self._damaged(connection, error)

    def call(self, connection: sqlite3.Connection, message: Any, call: Any) -> None:
        """Indexes one tool call of a message that is saved already."""
        if not self.on:
            return
        try:
            index_call(connection, message, call)
        except sqlite3.DatabaseError as error:
            self._damaged(connection, error)

    def removed(self, connection: sqlite3.Connection, refs: Sequence[str]) -> None:
        """Takes messages, with their calls, out of the index. The watermark stays: what it covers is as it was."""
        self.guarded(connection, lambda c: index.remove_refs(c, refs))

    def guarded(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Runs work that writes to the index only; None, and nothing done, when the index is no good."""
        if not self.on:
            self._note(connection)
            return None
        try:
            return work(connection)
        except sqlite3.DatabaseError as error:
            self._damaged(connection, error)
            return None

    def _damaged(self, connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> None:
        """A damaged index must not cost a message."""
        if not index.is_unusable(error):
            raise error
        self._distrust(connection, str(error))

    def _note(self, connection: sqlite3.Connection) -> None:
        """Leaves word for the next start; again with each write, since the first one may be rolled back."""
        if self.trouble is not None:
            connection.execute(SQL["meta_put"], {"key": DAMAGED, "value": "yes"})

    def catch_up(self, connection: sqlite3.Connection) -> bool:
        """Indexes the next rows that the index has not seen; True when there may be more."""
        return bool(self.guarded(connection, lambda c: catch_up(c, c)))


def catch_up(truth: sqlite3.Connection, conn: sqlite3.Connection) -> bool:
    """Indexes the next rows of `truth` that the index attached to `conn` has not seen; True when there may be more."""
    after = index.watermark(conn)
    rows = truth.execute(SQL["messages_since"], {"version": after, "limit": CATCH_UP_ROWS}).fetchall()
    if not rows:
        index.set_watermark(conn, truth.execute(SQL["newest_version"]).fetchone()[0])
        return False
    by_seq = {row["seq"]: row for row in rows}
    for row in rows:
        index_message(conn, row)
    last = rows[-1]["version"]
    for call in truth.execute(SQL["calls_since"], {"version": after, "last": last}).fetchall():
        index_call(conn, by_seq[call["seq"]], call)
    index.set_watermark(conn, last)
    return len(rows) == CATCH_UP_ROWS


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute(SQL["meta_get"], {"key": key}).fetchone()
    return None if row is None else row[0]


def is_indexed(row: Any) -> bool:
    """Whether a row of `message` is found by its words."""
    flags = row["flags"]
    has_text = row["text"] or (row["attachments"] and json.loads(row["attachments"]))
    return bool(has_text) and row["state"] != "cancelled" and not (flags and "copy" in json.loads(flags))


def index_message(connection: sqlite3.Connection, row: Any) -> None:
    """Indexes one row of `message`, or takes it out when it is no longer to be found."""
    if is_indexed(row):
        index.index_message(connection, indexed_message(row))
    else:
        index.remove_refs(connection, [f"conversation:{row['conversation_id']}#{row['n']}"])


def indexed_message(row: Any) -> index.IndexedMessage:
    """A row of `message` as the index takes it."""
    attached: list[dict[str, Any]] = json.loads(row["attachments"]) if row["attachments"] else []
    return index.IndexedMessage(
        conversation_id=row["conversation_id"],
        n=row["n"],
        role=row["role"],
        text=row["text"] or "\n".join(f"[{item['kind']}: {item['name']}]" for item in attached),
        sender=row["sender_name"],
        sender_id=row["sender_id"],
        session_key=row["session_key"],
        channel=row["channel"],
        chat=row["chat"],
        at=from_ms(row["at"]),
        message_id=row["message_id"],
        attached=tuple(item["path"] for item in attached if item.get("path")),
    )


def index_call(connection: sqlite3.Connection, message: Any, call: Any) -> None:
    """Indexes one row of `tool_call`."""
    index.index_call(connection, indexed_call(message, call))


def indexed_call(message: Any, call: Any) -> index.IndexedCall:
    """A row of `tool_call` as the index takes it."""
    return index.IndexedCall(
        conversation_id=message["conversation_id"],
        n=message["n"],
        call_n=call["n"],
        name=call["name"],
        args=call["args"],
        output=call["output"] or "",
        outcome=call["outcome"] or "",
        session_key=message["session_key"],
        channel=message["channel"],
        chat=message["chat"],
        at=from_ms(call["started_at"]),
        message_id=message["message_id"],
    )

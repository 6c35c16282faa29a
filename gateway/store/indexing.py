"""Keeps index.db beside the truth: the same transaction writes both, and a start catches up what a crash left."""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from agent.cortex import index
from gateway.store.sql import SQL
from gateway.store.types import from_ms

LOG = logging.getLogger(__name__)

CATCH_UP_ROWS = 500
DAMAGED = "index_damaged"


class Indexer:
    """Writes index rows on the writer's connection. Switched off when index.db is damaged: no message is lost by it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.on = False

    def attach(self, connection: sqlite3.Connection) -> None:
        """Attaches index.db; one that is damaged, or of another database than this, is made anew."""
        store_id = _meta(connection, "store_id")
        if store_id is None:
            store_id = secrets.token_hex(8)
            connection.execute(SQL["meta_put"], {"key": "store_id", "value": store_id})
        if _meta(connection, DAMAGED) == "yes":
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        index.attach(connection, self._path)
        connection.execute(SQL["meta_put"], {"key": DAMAGED, "value": "no"})
        newest = connection.execute(SQL["newest_version"]).fetchone()[0]
        if index.truth_id(connection) != store_id or index.watermark(connection) > newest:
            index.reset(connection)
            index.set_truth_id(connection, store_id)
        self.on = True

    def message(self, connection: sqlite3.Connection, row: Any) -> None:
        """Indexes one row of `message` (a mapping with its columns) and moves the watermark."""
        if not self.on or row["n"] is None:
            return
        try:
            _index_message(connection, row)
            index.set_watermark(connection, row["version"])
        except sqlite3.DatabaseError as error:
            self._damaged(connection, error)

    def call(self, connection: sqlite3.Connection, message: Any, call: Any) -> None:
        """Indexes one tool call of a message that is saved already."""
        if not self.on:
            return
        try:
            _index_call(connection, message, call)
        except sqlite3.DatabaseError as error:
            self._damaged(connection, error)

    def _damaged(self, connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> None:
        """A damaged index must not cost a message: it is left alone now, and built again at the next start."""
        if isinstance(error, sqlite3.OperationalError):
            raise error
        self.on = False
        LOG.error(
            "%s is damaged (%s); search is incomplete until the next start, which builds it again", self._path, error
        )
        connection.execute(SQL["meta_put"], {"key": DAMAGED, "value": "yes"})

    def catch_up(self, connection: sqlite3.Connection) -> bool:
        """Indexes the next rows that the index has not seen; True when there may be more."""
        if not self.on:
            return False
        after = index.watermark(connection)
        rows = connection.execute(SQL["messages_since"], {"version": after, "limit": CATCH_UP_ROWS}).fetchall()
        if not rows:
            index.set_watermark(connection, connection.execute(SQL["newest_version"]).fetchone()[0])
            return False
        by_seq = {row["seq"]: row for row in rows}
        for row in rows:
            _index_message(connection, row)
        last = rows[-1]["version"]
        for call in connection.execute(SQL["calls_since"], {"version": after, "last": last}).fetchall():
            _index_call(connection, by_seq[call["seq"]], call)
        index.set_watermark(connection, last)
        return len(rows) == CATCH_UP_ROWS


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute(SQL["meta_get"], {"key": key}).fetchone()
    return None if row is None else row[0]


def _index_message(connection: sqlite3.Connection, row: Any) -> None:
    if row["state"] == "cancelled" or "copy" in json.loads(row["flags"] or "[]") or not row["text"]:
        index.remove_refs(connection, [f"conversation:{row['conversation_id']}#{row['n']}"])
        return
    index.index_message(
        connection,
        index.IndexedMessage(
            conversation_id=row["conversation_id"],
            n=row["n"],
            role=row["role"],
            text=row["text"],
            sender=row["sender_name"],
            sender_id=row["sender_id"],
            session_key=row["session_key"],
            channel=row["channel"],
            chat=row["chat"],
            at=from_ms(row["at"]),
            message_id=row["message_id"],
        ),
    )


def _index_call(connection: sqlite3.Connection, message: Any, call: Any) -> None:
    index.index_call(
        connection,
        index.IndexedCall(
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
        ),
    )

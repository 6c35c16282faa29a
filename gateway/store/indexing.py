"""Keeps index.db beside the truth: the same transaction writes both, and a start catches up what a crash left."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agent.cortex import index
from gateway.store.database import is_damage, primary_code
from gateway.store.sql import SQL
from gateway.store.types import from_ms

LOG = logging.getLogger(__name__)

T = TypeVar("T")

CATCH_UP_ROWS = 500
DAMAGED = "index_damaged"


class Indexer:
    """Writes index rows on the writer's connection. Switched off when index.db is damaged: no message is lost by it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_damaged = False
        self._is_attached = False
        self.on = False

    def attach(self, connection: sqlite3.Connection) -> None:
        """Attaches index.db; one that is damaged, or of another database than this, is made anew."""
        store_id = _meta(connection, "store_id")
        if store_id is None:
            store_id = secrets.token_hex(8)
            connection.execute(SQL["meta_put"], {"key": "store_id", "value": store_id})
        if _meta(connection, DAMAGED) == "yes":
            self._remove()
        try:
            self._attach(connection, store_id)
        except sqlite3.DatabaseError as error:
            if not _says_damaged(error):
                raise
            LOG.error("%s is damaged (%s) and is built again", self._path, error)
            with contextlib.suppress(sqlite3.Error):
                connection.execute("DETACH idx")
            self._remove()
            self._attach(connection, store_id)
        connection.execute(SQL["meta_put"], {"key": DAMAGED, "value": "no"})
        self._is_damaged = False
        self._is_attached = self.on = True

    def let_go(self, connection: sqlite3.Connection) -> bool:
        """A commit failed because one of the two files is damaged: goes on without this one, if it was there."""
        if not self._is_attached:
            return False
        if self.on:
            LOG.error("%s is left alone until the next start, which builds it again", self._path)
        self._is_attached = self.on = False
        self._is_damaged = True
        with contextlib.suppress(sqlite3.Error):
            connection.execute("DETACH idx")
        return True

    def _attach(self, connection: sqlite3.Connection, store_id: str) -> None:
        index.attach(connection, self._path)
        newest = connection.execute(SQL["newest_version"]).fetchone()[0]
        if index.truth_id(connection) != store_id or index.watermark(connection) > newest:
            index.reset(connection)
            index.set_truth_id(connection, store_id)

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def message(self, connection: sqlite3.Connection, row: Any) -> None:
        """Indexes one row of `message` (a mapping with its columns) and moves the watermark."""
        if not self.on:
            self._note(connection)
            return
        if row["n"] is None:
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

    def removed(self, connection: sqlite3.Connection, refs: Sequence[str]) -> None:
        """Takes messages, with their calls, out of the index. The watermark stays: what it covers is as it was."""
        self.guarded(connection, lambda c: index.remove_refs(c, refs))

    def guarded(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Runs work that writes to the index only; None, and nothing done, when the index is damaged."""
        if not self.on:
            self._note(connection)
            return None
        try:
            return work(connection)
        except sqlite3.DatabaseError as error:
            self._damaged(connection, error)
            return None

    def _damaged(self, connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> None:
        """A damaged index must not cost a message: it is left alone now, and built again at the next start."""
        if not _says_damaged(error):
            raise error
        self.on = False
        self._is_damaged = True
        LOG.error(
            "%s is damaged (%s); search is incomplete until the next start, which builds it again", self._path, error
        )
        self._note(connection)

    def _note(self, connection: sqlite3.Connection) -> None:
        """Leaves word for the next start; again with each write, since the first one may be rolled back."""
        if self._is_damaged:
            connection.execute(SQL["meta_put"], {"key": DAMAGED, "value": "yes"})

    def catch_up(self, connection: sqlite3.Connection) -> bool:
        """Indexes the next rows that the index has not seen; True when there may be more."""
        return bool(self.guarded(connection, self._catch_up))

    @staticmethod
    def _catch_up(connection: sqlite3.Connection) -> bool:
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


def _says_damaged(error: sqlite3.DatabaseError) -> bool:
    """Whether an error of the index means that the file is no good: damaged, or with other tables or rows than ours."""
    return is_damage(error) or primary_code(error) in {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute(SQL["meta_get"], {"key": key}).fetchone()
    return None if row is None else row[0]


def _index_message(connection: sqlite3.Connection, row: Any) -> None:
    attached: list[dict[str, Any]] = json.loads(row["attachments"]) if row["attachments"] else []
    text = row["text"] or "\n".join(f"[{item['kind']}: {item['name']}]" for item in attached)
    if row["state"] == "cancelled" or not text or (row["flags"] and "copy" in json.loads(row["flags"])):
        index.remove_refs(connection, [f"conversation:{row['conversation_id']}#{row['n']}"])
        return
    index.index_message(
        connection,
        index.IndexedMessage(
            conversation_id=row["conversation_id"],
            n=row["n"],
            role=row["role"],
            text=text,
            sender=row["sender_name"],
            sender_id=row["sender_id"],
            session_key=row["session_key"],
            channel=row["channel"],
            chat=row["chat"],
            at=from_ms(row["at"]),
            message_id=row["message_id"],
            attached=tuple(item["path"] for item in attached if item.get("path")),
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

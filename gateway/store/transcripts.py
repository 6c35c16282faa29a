"""The saved conversations, read for tools, the page and the command line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agent.types import ConversationRecord, MessageRecord, ToolCallRecord, Viewer
from gateway.store.database import Database
from gateway.store.sql import SQL
from gateway.store.types import from_ms, safe_text, shown_attachments, to_ms

LAST = 1 << 62


def conversation_record(row: sqlite3.Row) -> ConversationRecord:
    """A ConversationRecord from a row of `conversations`."""
    return ConversationRecord(
        row["id"],
        row["session_key"],
        row["channel"],
        row["chat"],
        row["title"],
        from_ms(row["updated_at"]),
        row["message_count"],
        row["last_text"],
        row["ended_at"] is None,
    )


def message_record(row: Any, calls: Sequence[sqlite3.Row]) -> MessageRecord:
    """A MessageRecord from a row of `message` and the rows of its tool calls."""
    return MessageRecord(
        n=row["n"],
        id=row["message_id"],
        role=row["role"],
        text=row["text"],
        sender=row["sender_name"],
        sender_id=row["sender_id"],
        at=from_ms(row["at"]),
        state=row["state"],
        flags=tuple(json.loads(row["flags"] or "[]")),
        attachments=tuple(shown_attachments(row["attachments"])),
        tool_calls=tuple(
            ToolCallRecord(
                call["n"],
                call["name"],
                json.loads(call["args"]),
                call["output"] or "",
                call["outcome"] or "running",
            )
            for call in calls
        ),
        turn_id=row["turn_id"],
    )


class StoredTranscripts:
    """`agent.types.Transcripts` over the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def conversations(
        self,
        viewer: Viewer,
        *,
        channel: str | None = None,
        ids: Sequence[str] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        limit: int = 20,
    ) -> list[ConversationRecord]:
        parameters = {
            "channel": channel,
            "ids": None if ids is None else json.dumps(list(ids)),
            "keys": _keys(viewer),
            "after": None if after is None else to_ms(after),
            "before": None if before is None else to_ms(before),
            "limit": limit,
        }
        return await self._database.read(
            lambda c: [conversation_record(row) for row in c.execute(SQL["conversations"], parameters).fetchall()]
        )

    async def conversation(self, viewer: Viewer, part: str) -> list[ConversationRecord]:
        parameters = {"part": safe_text(part), "keys": _keys(viewer)}

        def work(connection: sqlite3.Connection) -> list[ConversationRecord]:
            # The whole id first: only a part of one is worth a walk over all conversations.
            rows = connection.execute(SQL["conversation_named"], parameters).fetchall()
            rows = rows or connection.execute(SQL["conversations_like"], parameters).fetchall()
            return [conversation_record(row) for row in rows]

        return await self._database.read(work)

    async def session(self, viewer: Viewer, session_key: str) -> list[ConversationRecord]:
        parameters = {"session_key": safe_text(session_key), "keys": _keys(viewer)}
        return await self._database.read(
            lambda c: [
                conversation_record(row) for row in c.execute(SQL["session_conversations"], parameters).fetchall()
            ]
        )

    async def messages(
        self, conversation_id: str, first: int | None = None, last: int | None = None
    ) -> list[MessageRecord]:
        parameters = {
            "conversation_id": conversation_id,
            "first": 1 if first is None else first,
            "last": LAST if last is None else last,
        }

        def work(connection: sqlite3.Connection) -> list[MessageRecord]:
            rows = connection.execute(SQL["conversation_messages"], parameters).fetchall()
            calls: dict[int, list[sqlite3.Row]] = {}
            if any(row["call_count"] for row in rows):
                for call in connection.execute(SQL["conversation_calls"], parameters).fetchall():
                    calls.setdefault(call["message_n"], []).append(call)
            return [message_record(row, calls.get(row["n"], ())) for row in rows]

        return await self._database.read(work)

    async def since(self, version: int, limit: int = 1000) -> list[tuple[int, str, MessageRecord]]:
        """Everything changed after `version`, oldest first: its version, its conversation, the message."""

        def work(connection: sqlite3.Connection) -> list[tuple[int, str, MessageRecord]]:
            rows = connection.execute(SQL["messages_since"], {"version": version, "limit": limit}).fetchall()
            return [
                (
                    row["version"],
                    row["conversation_id"],
                    message_record(
                        row,
                        connection.execute(SQL["calls_of_message"], {"message_seq": row["seq"]}).fetchall()
                        if row["call_count"]
                        else (),
                    ),
                )
                for row in rows
            ]

        return await self._database.read(work)

    async def saved(self, seq: int) -> tuple[int, ConversationRecord, MessageRecord]:
        """One saved message by its row: its version, its conversation as it is now, the message."""

        def work(connection: sqlite3.Connection) -> tuple[int, ConversationRecord, MessageRecord]:
            row = connection.execute(SQL["message_by_seq"], {"seq": seq}).fetchone()
            all_of_it = {"channel": None, "keys": None, "after": None, "before": None, "limit": 1}
            ids = json.dumps([row["conversation_id"]])
            conversation = connection.execute(SQL["conversations"], {**all_of_it, "ids": ids}).fetchone()
            calls = connection.execute(SQL["calls_of_message"], {"message_seq": seq}).fetchall()
            return row["version"], conversation_record(conversation), message_record(row, calls)

        return await self._database.read(work)

    async def newest_version(self) -> int:
        return await self._database.read(lambda c: c.execute(SQL["newest_version"]).fetchone()[0])

    async def latest_open(self, channel: str) -> str | None:
        """The id of the channel's conversation that was used last and is not closed."""

        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(SQL["latest_open_chat"], {"channel": channel}).fetchone()
            return None if row is None else row[0]

        return await self._database.read(work)

    async def conversation_of_key(self, channel: str, key: str) -> str | None:
        """Where the message with this de-duplication key was saved."""

        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(SQL["message_by_key"], {"channel": channel, "dedupe_key": key}).fetchone()
            return None if row is None else row["conversation_id"]

        return await self._database.read(work)


def _keys(viewer: Viewer) -> str | None:
    return None if viewer.session_keys is None else json.dumps(sorted(viewer.session_keys))

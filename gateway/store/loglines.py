"""What the read logs hold, from the database."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from gateway.store.sql import SQL
from gateway.store.types import LogLine, from_ms, shown_attachments


@dataclass(frozen=True, slots=True)
class LogChat:
    """One chat's log: its last entry, and up to where its file was known to be whole."""

    channel: str
    chat: str
    last: int
    marked: int
    size_bytes: int


def chats(connection: sqlite3.Connection) -> list[LogChat]:
    return [
        LogChat(row["channel"], row["chat"], row["last"], row["marked"], row["size_bytes"])
        for row in connection.execute(SQL["log_chats"]).fetchall()
    ]


def lines(connection: sqlite3.Connection, channel: str, chat: str, after: int) -> list[LogLine]:
    """The lines of one chat after entry `after`, in order."""
    rows = connection.execute(SQL["log_lines"], {"channel": channel, "chat": chat, "after": after}).fetchall()
    return [LogLine(row["entry_seq"], row["log_channel"], row["log_chat"], _fields(row)) for row in rows]


def set_mark(connection: sqlite3.Connection, channel: str, chat: str, seq: int, size_bytes: int) -> None:
    connection.execute(SQL["set_mark"], {"channel": channel, "chat": chat, "seq": seq, "size_bytes": size_bytes})


def _fields(row: sqlite3.Row) -> dict[str, Any]:
    """The JSON object of one line (docs/formats.md)."""
    if row["kind"] == "removed":
        return _removed(row)
    sent = row["sent_ids"] is not None
    sent_ids: list[str] = json.loads(row["sent_ids"]) if sent else []
    fields: dict[str, Any] = {
        "id": sent_ids[0] if sent_ids else row["message_id"],
        "at": from_ms(row["sent_at"] if sent else row["at"]).isoformat(timespec="milliseconds"),
        "dir": "out" if sent or row["role"] == "owner" else "in",
        "kind": row["kind"],
        "sender": {"id": row["sender_id"], "name": row["sender_name"]},
        "text": row["original_text"] if row["original_text"] is not None else row["text"],
    }
    if len(sent_ids) > 1:
        fields["parts"] = sent_ids
    optional = {
        "reply_to": row["reply_to"],
        "edits": row["edits"],
        "thread": row["thread"],
        "forwarded_from": row["forwarded_from"],
    }
    fields |= {key: value for key, value in optional.items() if value is not None}
    if row["attachments"]:
        fields["attachments"] = shown_attachments(row["attachments"])
    if row["flags"]:
        fields["flags"] = json.loads(row["flags"])
    return fields


def _removed(row: sqlite3.Row) -> dict[str, Any]:
    """A line that names the lines that no longer count: `ids`, and `ranges` of first and last."""
    return {
        "id": row["message_id"],
        "at": from_ms(row["at"]).isoformat(timespec="milliseconds"),
        "dir": "in",
        "kind": row["kind"],
        "sender": {"id": row["sender_id"], "name": row["sender_name"]},
        "text": "",
        **json.loads(row["edits"]),
    }

"""Which conversation a message belongs to, and new ones."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from datetime import datetime
from typing import Any, Literal

from channels.message import Address
from gateway.limits import ANSWERED_MESSAGES_MAX
from gateway.store.sql import SQL
from gateway.store.types import NewMessage, to_ms

HISTORY = "history"
"""A flag of what the platform tells of afterwards."""


def open_conversation(connection: sqlite3.Connection, new: NewMessage, address: Address) -> dict[str, Any]:
    """The conversation a message belongs to, made when there is none: `id`, `message_count`, `ended_at`."""
    if HISTORY in new.message.flags:
        return _history_conversation(connection, new, address)
    now_ms = to_ms(new.now)
    if new.cut == "chat":
        row = connection.execute(SQL["conversation_by_id"], {"id": address.chat_id}).fetchone()
        if row is not None:
            return dict(row)
        return add_conversation(connection, address.chat_id, address, now_ms)
    if (run := _answered_run(connection, new, address)) is not None:
        return run
    if new.cut == "idle":
        row = connection.execute(SQL["latest_conversation"], {"session_key": address.session_key}).fetchone()
        if row is not None and row["ended_at"] is None:
            rested_ms = max(to_ms(new.message.sent_at), 0) - row["updated_at"]
            if not new.idle_ms or rested_ms <= new.idle_ms:
                return dict(row)
    return add_conversation(connection, new_conversation_id(new.now), address, now_ms)


def _history_conversation(connection: sqlite3.Connection, new: NewMessage, address: Address) -> dict[str, Any]:
    """The conversation of what the platform tells of afterwards: one a chat, as old as its messages, and at rest, so
    that what is said from now on begins one of its own."""
    name = f"history-{hashlib.sha256(address.session_key.encode('utf-8', 'replace')).hexdigest()[:12]}"
    row = connection.execute(SQL["conversation_by_id"], {"id": name}).fetchone()
    return dict(row) if row is not None else add_conversation(connection, name, address, to_ms(new.message.sent_at))


def _answered_run(connection: sqlite3.Connection, new: NewMessage, address: Address) -> dict[str, Any] | None:
    """The conversation of the run whose word the owner answers by a reply to it; None for any other message."""
    if new.message.reply_to is None or new.rights != "owner":
        return None
    values = {"channel": address.channel, "chat": address.chat_id, "reply_to": new.message.reply_to}
    row = connection.execute(SQL["answered_message"], {**values, "limit": ANSWERED_MESSAGES_MAX}).fetchone()
    flags: list[str] = [] if row is None else json.loads(row["flags"] or "[]")
    source = next((flag.removeprefix("from:") for flag in flags if flag.startswith("from:")), "")
    found = connection.execute(SQL["conversation_by_id"], {"id": source.partition("#")[0]}).fetchone()
    return None if found is None else dict(found)


def chat_conversation(
    connection: sqlite3.Connection, address: Address, cut: Literal["idle", "chat", "message"], now: datetime
) -> str:
    """The id of the conversation that the agent's own words in a chat belong to: the open one, else a new one."""
    if cut == "chat":
        present = connection.execute(SQL["conversation_by_id"], {"id": address.chat_id}).fetchone()
        wanted = address.chat_id
    else:
        present = connection.execute(SQL["latest_conversation"], {"session_key": address.session_key}).fetchone()
        if present is not None and present["ended_at"] is not None:
            present = None
        wanted = new_conversation_id(now)
    if present is not None:
        return present["id"]
    add_conversation(connection, wanted, address, to_ms(now))
    return wanted


def new_conversation_id(now: datetime) -> str:
    """`<yymmdd>-<8 hex digits>`: short, sortable by day, any part of it can be typed."""
    return f"{now:%y%m%d}-{secrets.token_hex(4)}"


def add_conversation(
    connection: sqlite3.Connection, conversation_id: str, address: Address, now_ms: int
) -> dict[str, Any]:
    connection.execute(
        SQL["add_conversation"],
        {
            "id": conversation_id,
            "session_key": address.session_key,
            "channel": address.channel,
            "chat": address.chat_id,
            "thread": address.thread_id,
            "title": "",
            "now": now_ms,
        },
    )
    return {"id": conversation_id, "message_count": 0, "title": ""}

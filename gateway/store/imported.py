"""Saving what an export file holds: batches with their log entries and index rows, each message once for all time."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from channels.message import Address, ExportedMessage
from gateway.store.inbound import TITLE_CHARS, next_version
from gateway.store.indexing import Indexer
from gateway.store.sql import SQL
from gateway.store.types import safe_text, to_json, to_ms

LAST_TEXT_CHARS = 200
ORIGIN = "import"


@dataclass(frozen=True, slots=True)
class BatchSaved:
    """How many messages of a batch were new, and the chats (channel, id) that got them."""

    added: int
    chats: frozenset[tuple[str, str]]


def add_batch(
    connection: sqlite3.Connection, indexer: Indexer, batch: Sequence[ExportedMessage], now: datetime
) -> BatchSaved:
    """Saves those messages of a batch that are not there yet, in their order and with their own times."""
    conversations: dict[str, dict[str, Any]] = {}
    version = next_version(connection)
    chats: set[tuple[str, str]] = set()
    added = 0
    for item in batch:
        message = item.message
        moved = connection.execute(SQL["moved_chat"], {"channel": message.channel, "chat": message.chat_id}).fetchone()
        address = Address(message.channel, safe_text(moved[0] if moved is not None else message.chat_id))
        keys = _keys(item, address)
        if _is_present(connection, item, keys):
            continue
        conversation = _conversation(connection, conversations, item, address)
        row = _row(item, address, conversation, keys[0], version, now)
        seq = connection.execute(SQL["add_message"], row).lastrowid or 0
        connection.execute(
            SQL["add_log_entry"],
            {"channel": address.channel, "chat": address.chat_id, "message_seq": seq, "delivery_key": None},
        )
        indexer.message(connection, row)
        conversation["message_count"] = row["n"]
        conversation["last_text"] = row["text"][:LAST_TEXT_CHARS]
        conversation["updated_at"] = max(conversation["updated_at"], row["at"])
        chats.add((address.channel, address.chat_id))
        version += 1
        added += 1
    for conversation in conversations.values():
        connection.execute(SQL["touch_imported"], conversation)
    return BatchSaved(added, frozenset(chats))


def conversation_id(channel: str, chat: str) -> str:
    """The id of an imported chat's one conversation: the same at every import."""
    return f"import-{hashlib.sha256(f'{channel}:{chat}'.encode('utf-8', 'replace')).hexdigest()[:12]}"


def _keys(item: ExportedMessage, address: Address) -> tuple[str, ...]:
    """The keys under which the message may be known; the first is its own.

    Where an export's ids are those that the channel sees, a message that was heard is not saved again; elsewhere the
    same id may be another message.
    """
    message = item.message
    heard = safe_text(f"{address.chat_id}/{message.message_id}")
    own = safe_text(f"import/{message.chat_id}/{message.message_id}")
    return (heard,) if item.shares_ids else (own, heard)


def _is_present(connection: sqlite3.Connection, item: ExportedMessage, keys: Sequence[str]) -> bool:
    channel = item.message.channel
    if connection.execute(SQL["message_by_key"], {"channel": channel, "dedupe_key": keys[0]}).fetchone() is not None:
        return True
    if len(keys) == 1:
        return False
    heard = connection.execute(SQL["heard_message"], {"channel": channel, "dedupe_key": keys[1]}).fetchone()
    return (
        heard is not None
        and heard["at"] // 1000 == to_ms(item.message.sent_at) // 1000
        and (heard["removed_at"] is not None or heard["text"] == safe_text(item.message.text))
    )


def _conversation(
    connection: sqlite3.Connection, known: dict[str, dict[str, Any]], item: ExportedMessage, address: Address
) -> dict[str, Any]:
    """The conversation of an imported chat, made when there is none. It is ended from the start: what is said in that
    chat later, through the channel, begins one of its own."""
    message = item.message
    name = conversation_id(message.channel, message.chat_id)
    if name not in known:
        at = to_ms(message.sent_at)
        values: dict[str, Any] = {
            "id": name,
            "session_key": address.session_key,
            "channel": address.channel,
            "chat": address.chat_id,
            "thread": None,
            "title": safe_text(message.chat_title or "")[:TITLE_CHARS],
            "now": at,
        }
        row = connection.execute(SQL["conversation_by_id"], {"id": name}).fetchone()
        if row is None:
            connection.execute(SQL["add_conversation"], values)
        count, updated = (0, at) if row is None else (row["message_count"], row["updated_at"])
        known[name] = {"id": name, "message_count": count, "updated_at": updated, "last_text": ""}
    return known[name]


def _row(
    item: ExportedMessage, address: Address, conversation: dict[str, Any], key: str, version: int, now: datetime
) -> dict[str, Any]:
    message = item.message
    role = "system" if message.kind == "system" else "owner" if item.is_owner else "user"
    return {
        "version": version,
        "conversation_id": conversation["id"],
        "n": conversation["message_count"] + 1,
        "session_key": address.session_key,
        "channel": address.channel,
        "chat": address.chat_id,
        "thread": None,
        "message_id": safe_text(message.message_id),
        "dedupe_key": key,
        "role": role,
        "kind": message.kind,
        "sender_id": safe_text(message.sender_id),
        "sender_name": safe_text(message.sender_name),
        "rights": "owner" if item.is_owner else "stranger",
        "origin": ORIGIN,
        "text": safe_text(message.text),
        "at": to_ms(message.sent_at),
        "saved_at": to_ms(now),
        "state": "observed",
        "command": None,
        "turn_id": None,
        "reply_to": message.reply_to,
        "edits": None,
        "forwarded_from": None if message.forwarded_from is None else safe_text(message.forwarded_from),
        "attachments": to_json([asdict(attachment) for attachment in message.attachments]),
        "flags": to_json(list(item.flags)),
        "answer_to": None,
        "rounds": None,
        "quote": None,
    }

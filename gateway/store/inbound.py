"""Saving what comes in: de-duplication, queue row, conversation row and index in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from channels.message import KIND_OF, Address, Attachment, InboundMessage
from gateway.store.changes import change, changed_before, is_same, next_version
from gateway.store.conversations import HISTORY, open_conversation
from gateway.store.indexing import Indexer
from gateway.store.moves import current_chat
from gateway.store.sql import SQL
from gateway.store.types import (
    NOWHERE,
    Delivery,
    NewMessage,
    Saved,
    address_text,
    attachments_of,
    from_ms,
    safe_text,
    to_json,
    to_ms,
)

TITLE_CHARS = 80
AGENT_ID = "agent"


def accept(connection: sqlite3.Connection, indexer: Indexer, new: NewMessage) -> Saved:
    """Saves one message once. A message that is there already gives the row of the first time."""
    message = new.message
    chat, place = current_chat(connection, message.channel, message.chat_id)
    key = message.key if message.key is not None else f"{place}{message.message_id}"
    if message.kind == "edit" and message.key is None:
        key = f"{key}/edit/{to_ms(message.sent_at)}"
    values = {"channel": message.channel, "dedupe_key": safe_text(key)}
    present = connection.execute(SQL["message_by_key"], values).fetchone()
    if present is not None:
        return _known(present)
    if message.edits is not None:
        return _about_earlier(connection, indexer, new, chat, place, key)
    address = Address(message.channel, chat, message.thread_id)
    conversation = open_conversation(connection, new, address)
    row = _message_row(connection, new, address, conversation, key)
    seq = add_message(connection, indexer, row, conversation, title=_title(message))
    state = changed_before(connection, indexer, row, place, seq)
    if HISTORY in message.flags:
        connection.execute(SQL["rest_conversation"], {"id": conversation["id"], "at": row["at"]})
    connection.execute(
        SQL["add_log_entry"],
        {"channel": message.channel, "chat": chat, "message_seq": seq, "delivery_key": None},
    )
    if new.ends_conversation:
        connection.execute(SQL["end_conversation"], {"id": conversation["id"], "now": to_ms(new.now)})
    notice = None
    if new.notice is not None and state != "cancelled":
        notice = add_notice(
            connection, indexer, conversation["id"], address, new.notice, f"notice:{seq}", new.now, new.saved_is_sent
        )
    return Saved(
        seq,
        row["version"],
        row["n"],
        row["message_id"],
        conversation["id"],
        address.session_key,
        chat,
        conversation["title"] or _title(message),
        True,
        state,
        notice,
    )


def _known(row: sqlite3.Row) -> Saved:
    return Saved(
        row["seq"],
        row["version"],
        row["n"],
        row["message_id"],
        row["conversation_id"],
        row["session_key"],
        row["chat"],
        "",
        False,
        row["state"],
    )


def _about_earlier(
    connection: sqlite3.Connection, indexer: Indexer, new: NewMessage, chat: str, place: str, key: str
) -> Saved:
    """An edit, a removal or a reaction: a log line of its own, and the earlier message follows."""
    message = new.message
    earlier = connection.execute(
        SQL["message_by_platform_id"], {"channel": message.channel, "dedupe_key": f"{place}{message.edits}"}
    ).fetchone()
    text = safe_text(message.text)
    if message.kind == "edit" and earlier is not None and is_same(earlier, text):
        session_key = earlier["session_key"]
        return Saved(
            0, 0, None, message.message_id, earlier["conversation_id"], session_key, chat, "", False, "observed"
        )
    address = Address(message.channel, chat, message.thread_id)
    conversation = open_conversation(connection, new, address)
    row = _message_row(connection, new, address, conversation, key)
    row |= {"n": None, "state": "observed"}
    if earlier is not None and earlier["removed_at"] is not None:
        # What was removed does not come back as an edit of itself.
        row |= {"text": "", "attachments": None}
        earlier = None
    seq = connection.execute(SQL["add_message"], row).lastrowid or 0
    connection.execute(
        SQL["add_log_entry"],
        {"channel": message.channel, "chat": chat, "message_seq": seq, "delivery_key": None},
    )
    if earlier is not None and earlier["sender_id"] == row["sender_id"]:
        change(connection, indexer, earlier, row)
    session_key = address.session_key
    return Saved(
        seq, row["version"], None, row["message_id"], conversation["id"], session_key, chat, "", True, "observed"
    )


def _message_row(
    connection: sqlite3.Connection, new: NewMessage, address: Address, conversation: Mapping[str, Any], key: str
) -> dict[str, Any]:
    message = new.message
    return {
        "version": next_version(connection),
        "conversation_id": conversation["id"],
        "n": conversation["message_count"] + 1,
        "session_key": address.session_key,
        "channel": address.channel,
        "chat": address.chat_id,
        "thread": address.thread_id,
        "message_id": safe_text(message.message_id),
        "dedupe_key": safe_text(key),
        "role": "owner" if message.is_own else "user",
        "kind": message.kind,
        "sender_id": safe_text(message.sender_id),
        "sender_name": safe_text(message.sender_name),
        "rights": new.rights,
        "origin": message.origin,
        "text": safe_text(message.text),
        "at": to_ms(message.sent_at),
        "saved_at": to_ms(new.now),
        "state": new.state,
        "command": new.command,
        "turn_id": None,
        "reply_to": message.reply_to,
        "edits": message.edits,
        "forwarded_from": None if message.forwarded_from is None else safe_text(message.forwarded_from),
        "attachments": to_json([asdict(attachment) for attachment in message.attachments]),
        "flags": to_json(list(message.flags)),
        "answer_to": NOWHERE if message.answers_nowhere else address_text(message.answer_to),
        "rounds": None,
        "quote": None if message.quote is None else safe_text(to_json(asdict(message.quote)) or ""),
    }


def _title(message: InboundMessage) -> str:
    if message.chat_title:
        return safe_text(message.chat_title)[:TITLE_CHARS]
    first = safe_text(message.text).strip().partition("\n")[0]
    return first[:TITLE_CHARS]


def add_message(
    connection: sqlite3.Connection,
    indexer: Indexer,
    row: dict[str, Any],
    conversation: dict[str, Any],
    *,
    title: str = "",
) -> int:
    """Inserts a numbered message row, moves its conversation on, indexes it; gives back its `seq`."""
    seq = connection.execute(SQL["add_message"], row).lastrowid or 0
    conversation["message_count"] = row["n"]
    connection.execute(
        SQL["touch_conversation"],
        {
            "id": row["conversation_id"],
            "now": row["saved_at"],
            "n": row["n"],
            "last_text": row["text"][:200],
            # What a person writes opens a closed conversation again; the agent's late answer does not.
            "reopen": row["role"] == "user",
            "title": title,
        },
    )
    indexer.message(connection, row)
    return seq


def agent_row(
    connection: sqlite3.Connection,
    conversation_id: str,
    address: Address,
    role: str,
    text: str,
    state: str,
    now: datetime,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A message row of the agent's side (`assistant` or `system`) and its conversation, not inserted yet."""
    conversation = dict(connection.execute(SQL["conversation_by_id"], {"id": conversation_id}).fetchone())
    number = conversation["message_count"] + 1
    row: dict[str, Any] = {
        "version": next_version(connection),
        "conversation_id": conversation_id,
        "n": number,
        "session_key": address.session_key,
        "channel": address.channel,
        "chat": address.chat_id,
        "thread": address.thread_id,
        "message_id": f"{conversation_id}-{number}",
        "dedupe_key": None,
        "role": role,
        "kind": "text",
        "sender_id": AGENT_ID,
        "sender_name": "",
        "rights": "owner",
        "origin": "person",
        "text": safe_text(text),
        "at": to_ms(now),
        "saved_at": to_ms(now),
        "state": state,
        "command": None,
        "turn_id": None,
        "reply_to": None,
        "edits": None,
        "forwarded_from": None,
        "attachments": None,
        "flags": None,
        "answer_to": None,
        "rounds": None,
        "quote": None,
    }
    return row, conversation


def add_notice(
    connection: sqlite3.Connection,
    indexer: Indexer,
    conversation_id: str,
    address: Address,
    text: str,
    key: str,
    now: datetime,
    saved_is_sent: bool,
    role: str = "system",
    attachments: Sequence[Attachment] = (),
    flags: Sequence[str] = (),
) -> Delivery:
    """A `system` message in a conversation and its delivery row."""
    row, conversation = agent_row(connection, conversation_id, address, role, text, "answered", now)
    row |= {"attachments": to_json([asdict(attachment) for attachment in attachments]), "flags": to_json(list(flags))}
    if attachments:
        row |= {"kind": KIND_OF[attachments[0].kind]}
    seq = add_message(connection, indexer, row, conversation)
    return add_delivery(connection, seq, row, key, address, None, now, "sent" if saved_is_sent else "planned")


def add_delivery(
    connection: sqlite3.Connection,
    seq: int,
    row: Mapping[str, Any],
    key: str,
    address: Address,
    reply_to: str | None,
    now: datetime,
    state: Any,
    replaces: str | None = None,
    reason: str | None = None,
) -> Delivery:
    """The delivery row of a saved message; one that counts as sent by being saved gets its log entry at once."""
    sent_ids = [row["message_id"]] if state == "sent" else []
    connection.execute(
        SQL["add_delivery"],
        {
            "key": key,
            "message_seq": seq,
            "channel": address.channel,
            "chat": address.chat_id,
            "thread": address.thread_id,
            "reply_to": reply_to,
            "replaces": replaces,
            "state": state,
            "sent_ids": to_json(sent_ids),
            "reason": reason,
            "now": to_ms(now),
        },
    )
    if state == "sent":
        connection.execute(
            SQL["add_log_entry"],
            {"channel": address.channel, "chat": address.chat_id, "message_seq": seq, "delivery_key": key},
        )
    return Delivery(
        key,
        seq,
        address,
        row["text"],
        state,
        0,
        from_ms(to_ms(now)) if state == "planned" else None,
        reply_to,
        tuple(sent_ids),
        reason,
        row["conversation_id"],
        replaces,
        attachments_of(row["attachments"]),
    )

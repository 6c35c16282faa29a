"""Conversations in the JSON shapes of docs/formats.md; the same for tools, page and command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent.types import ConversationRecord, MessageRecord


def conversation_list_json(records: Iterable[ConversationRecord]) -> dict[str, Any]:
    """The shape of a list of conversations."""
    return {"conversations": [{**_head(record), "message_count": record.message_count} for record in records]}


def conversation_json(record: ConversationRecord, messages: Iterable[MessageRecord]) -> dict[str, Any]:
    """The shape of one conversation with its messages."""
    return {**_head(record), "messages": [message_json(message) for message in messages]}


def message_json(message: MessageRecord) -> dict[str, Any]:
    """The shape of one message with its tool calls."""
    return {
        "n": message.n,
        "id": message.id,
        "role": message.role,
        "text": message.text,
        "sender": message.sender,
        "at": message.at.isoformat(),
        "state": message.state,
        "flags": list(message.flags),
        "attachments": [dict(attachment) for attachment in message.attachments],
        "tool_calls": [
            {"n": call.n, "name": call.name, "args": dict(call.args), "output": call.output, "outcome": call.outcome}
            for call in message.tool_calls
        ],
    }


def _head(record: ConversationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "sessionKey": record.session_key,
        "channel": record.channel,
        "chat": record.chat,
        "title": record.title,
        "updated_at": record.updated_at.isoformat(),
    }

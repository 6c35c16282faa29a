"""The data of the events that the page follows, from what was just saved."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from agent.capabilities.introspect.shapes import message_json
from agent.types import ConversationRecord, MessageRecord
from gateway.store.types import NewMessage, Saved


def message_event(new: NewMessage, saved: Saved) -> dict[str, Any]:
    """`message` for what a person wrote."""
    message = new.message
    return _message(
        conversation=saved.conversation_id,
        session_key=saved.session_key,
        channel=message.channel,
        chat=saved.chat,
        title=saved.title,
        turn=None,
        version=saved.version,
        message={
            "n": saved.n,
            "id": saved.message_id,
            "role": "user",
            "text": message.text,
            "sender": message.sender_name,
            "at": _iso(message.sent_at),
            "state": saved.state,
            "flags": [],
            "attachments": [asdict(replace(attachment, remote=None)) for attachment in message.attachments],
            "tool_calls": [],
        },
    )


def reply_event(
    *,
    conversation: str,
    session_key: str,
    channel: str,
    chat: str,
    turn: str | None,
    version: int,
    n: int,
    text: str,
    role: str,
    flags: list[str],
    at: datetime,
) -> dict[str, Any]:
    """`message` and `done` for what the agent wrote; its tool calls are read with the conversation."""
    return _message(
        conversation=conversation,
        session_key=session_key,
        channel=channel,
        chat=chat,
        title="",
        turn=turn,
        version=version,
        message={
            "n": n,
            "id": f"{conversation}-{n}",
            "role": role,
            "text": text,
            "sender": "",
            "at": _iso(at),
            "state": "answered",
            "flags": flags,
            "attachments": [],
            "tool_calls": [],
        },
    )


def saved_event(version: int, conversation: ConversationRecord, message: MessageRecord) -> dict[str, Any]:
    """`message` for what stands in the database."""
    return {
        "conversation": conversation.id,
        "turn": message.turn_id,
        "version": version,
        "message": message_json(message),
        "summary": summary_json(conversation),
    }


def summary_json(record: ConversationRecord) -> dict[str, Any]:
    """A conversation as the list beside the chat shows it."""
    return {
        "id": record.id,
        "sessionKey": record.session_key,
        "channel": record.channel,
        "chat": record.chat,
        "title": record.title,
        "updated_at": _iso(record.updated_at),
        "message_count": record.message_count,
        "last_text": record.last_text,
    }


def _message(
    *,
    conversation: str,
    session_key: str,
    channel: str,
    chat: str,
    title: str,
    turn: str | None,
    version: int,
    message: dict[str, Any],
) -> dict[str, Any]:
    summary = {
        "id": conversation,
        "sessionKey": session_key,
        "channel": channel,
        "chat": chat,
        "title": title,
        "updated_at": message["at"],
        "message_count": message["n"],
        "last_text": message["text"][:200],
    }
    return {
        "conversation": conversation,
        "turn": turn,
        "version": version,
        "message": message,
        "summary": summary,
    }


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")

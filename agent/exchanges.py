"""The history as the model gets it: in pieces, cut before each message of a person, the newest ones that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.fence import escape, fence
from agent.limits import STUB_AFTER_EXCHANGES, STUB_CHARS_MIN
from agent.tokens import clip, message_tokens
from agent.types import Message

REST = "the rest: conversation_read current"


def exchanges_of(history: Sequence[Message], tokens_max: int) -> list[tuple[tuple[Message, ...], int]]:
    """The history as the model gets it, cut before each message of a person, with the tokens of each piece.

    A text longer than `tokens_max` is cut; long results of tools are stubs but for the last exchanges. What stands
    before the first piece is left out: no model takes an answer to nothing.
    """
    exchanges: list[tuple[tuple[Message, ...], int]] = []
    piece: list[Message] = []
    names = {call.id: call.name for message in history for call in message.calls}
    to_come = sum(message.role == "user" for message in history)
    for message in history:
        if message.role == "user":
            to_come -= 1
            if piece:
                exchanges.append((tuple(piece), message_tokens(piece)))
            words = clip(message.text, tokens_max, REST)
            piece = [_with_text(message, words if message.is_data else escape(words))]
        elif piece and message.role == "tool":
            old = to_come >= STUB_AFTER_EXCHANGES and len(message.text) >= STUB_CHARS_MIN
            name = names.get(message.call_id or "", "")
            piece.append(_stub(message, name) if old else _result(message, name, tokens_max))
        elif piece:
            piece.append(_with_text(message, clip(message.text, tokens_max, REST)))
    if piece:
        exchanges.append((tuple(piece), message_tokens(piece)))
    return exchanges


def _with_text(message: Message, text: str) -> Message:
    return message if text is message.text else replace(message, text=text)


def _result(message: Message, name: str, tokens_max: int) -> Message:
    rest = f"the rest: memory_get {message.ref}" if message.ref else REST
    return replace(message, text=fence(clip(message.text, tokens_max, rest), f"tool {name}"))


def _stub(message: Message, name: str) -> Message:
    """The program's word in the place of a long result."""
    fetch = f"memory_get {message.ref}" if message.ref else "conversation_read current"
    return replace(message, text=f"[{len(message.text):,} characters of {name}, not repeated here; {fetch} gives them]")


def newest(exchanges: Sequence[tuple[tuple[Message, ...], int]], tokens_max: int) -> tuple[tuple[Message, ...], int]:
    """The last exchanges that fit together, in their order, and their tokens."""
    kept: list[tuple[Message, ...]] = []
    used = 0
    for messages, tokens in reversed(exchanges):
        if used + tokens > tokens_max:
            break
        used += tokens
        kept.append(messages)
    return tuple(message for messages in reversed(kept) for message in messages), used

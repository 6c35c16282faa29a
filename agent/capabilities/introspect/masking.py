"""Keeps secrets out of what the retrieval tools answer, before it is cut to size: the limits count what is given."""

from __future__ import annotations

from dataclasses import replace

from agent.redaction import Redactor
from agent.retrieval import Hit, SearchAnswer
from agent.types import ConversationRecord, MessageRecord


def masked_hit(hit: Hit, redact: Redactor) -> Hit:
    return replace(hit, snippet=redact(hit.snippet), title=redact(hit.title))


def masked_answer(answer: SearchAnswer, redact: Redactor) -> SearchAnswer:
    return replace(answer, hits=tuple(masked_hit(hit, redact) for hit in answer.hits))


def masked_conversation(record: ConversationRecord, redact: Redactor) -> ConversationRecord:
    return replace(record, title=redact(record.title), last_text=redact(record.last_text))


def masked_message(message: MessageRecord, redact: Redactor) -> MessageRecord:
    """Its text, and the arguments and outputs of its calls."""
    calls = tuple(replace(call, args=redact.deep(call.args), output=redact(call.output)) for call in message.tool_calls)
    return replace(message, text=redact(message.text), tool_calls=calls)

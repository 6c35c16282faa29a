"""From saved messages to a turn and the messages of its prompt: what was said, with its tool calls, in order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agent.fence import fence
from agent.lines import one_line
from agent.types import EarlierCall, Message, Person, ToolCall, ToolResult, Turn
from gateway.store.types import Claim, HistoryCall, HistoryMessage, Overheard
from gateway.words import FORWARDED, foreign, overheard, said_earlier
from heartbeat.types import Job

NAME_CHARS = 60
UNKNOWN = "interrupted, not known whether it ran"


def turn_of(claim: Claim, text: str, *, style: str, job: Job | None, started_at: datetime) -> Turn:
    """The turn that answers the claimed messages. `style` is their channel's; `job`: the job whose run it is."""
    first = claim.messages[0]
    return Turn(
        id=claim.turn_id,
        session_key=claim.session_key,
        conversation_id=claim.conversation_id,
        text=text,
        person=Person(
            f"{first.address.channel}:{first.sender_id}",
            first.sender_name,
            "owner" if first.rights == "owner" else "allowed",
        ),
        started_at=started_at,
        origin="scheduled" if first.origin == "scheduled" else "person",
        channel=first.address.channel,
        style=style,
        files=claim.files,
        history=prompt_history(claim.history, claim.conversation_id),
        previous_at=claim.history[-1].at if claim.history else None,
        may_ask=first.origin == "person",
        allows=() if job is None else job.tools,
        reads=() if job is None else job.files,
        model="" if job is None else job.model or "",
        earlier_calls=earlier_calls(claim.reply_so_far),
        session_keys=claim.session_keys,
        foreign=foreign(claim.messages, claim.unseen),
    )


def prompt_history(history: Sequence[HistoryMessage], conversation_id: str = "") -> tuple[Message, ...]:
    """Earlier turns as user, assistant and tool messages. Every call has its result right after it.

    With the conversation's id each message knows the reference that opens it again.
    """
    messages: list[Message] = []
    lines: list[Overheard] = []
    for saved in history:
        if saved.overheard is not None:
            lines.append(saved.overheard)
            continue
        if lines:
            messages.append(Message("user", overheard(lines), is_data=True))
            lines = []
        if saved.role != "assistant":
            if saved.role == "user":
                if saved.forwarded_from and saved.text.strip():
                    block = fence(saved.text, FORWARDED, sender=saved.forwarded_from)
                    messages.append(Message("user", block, is_data=True))
                text = said_earlier(saved)
                if not text:
                    continue
                if saved.said_by:
                    text = f"[not the owner, and no order; from {one_line(saved.said_by, NAME_CHARS)}]\n{text}"
                messages.append(Message("user", text, ref=_ref(conversation_id, saved.n)))
            continue
        last_round = max((call.round for call in saved.calls), default=0)
        for number in range(1, last_round + 1):
            calls = [call for call in saved.calls if call.round == number]
            text = saved.rounds[number - 1] if number <= len(saved.rounds) else ""
            messages.append(Message("assistant", text, tuple(_call(call) for call in calls)))
            for call in calls:
                ref = _ref(conversation_id, saved.n, call.n)
                messages.append(Message("tool", _output(call), call_id=call.call_id, ref=ref))
        final = saved.text if not saved.calls else "\n\n".join(text for text in saved.rounds[last_round:] if text)
        if final:
            messages.append(Message("assistant", final, ref=_ref(conversation_id, saved.n)))
    if lines:
        messages.append(Message("user", overheard(lines), is_data=True))
    return tuple(messages)


def earlier_calls(reply: HistoryMessage | None) -> tuple[EarlierCall, ...]:
    """The calls of a turn that broke off, for its next run."""
    if reply is None:
        return ()
    return tuple(
        EarlierCall(
            call.round,
            reply.rounds[call.round - 1] if call.round <= len(reply.rounds) else "",
            _call(call),
            None if call.outcome in {None, "interrupted"} else _result(call),
        )
        for call in reply.calls
    )


def _ref(conversation_id: str, n: int, call: int = 0) -> str:
    if not conversation_id:
        return ""
    return f"conversation:{conversation_id}#{n}.{call}" if call else f"conversation:{conversation_id}#{n}"


def _call(call: HistoryCall) -> ToolCall:
    args: Any = json.loads(call.args)
    return ToolCall(call.call_id, call.name, args, call.fault)


def _result(call: HistoryCall) -> ToolResult:
    outcome: Any = call.outcome
    return ToolResult(call.call_id, outcome == "success", call.output or "", outcome, attempts=call.attempts)


def _output(call: HistoryCall) -> str:
    return UNKNOWN if call.outcome in {None, "interrupted"} else call.output or ""

"""What a turn brings: its calls as they run, and its result with the reply and the delivery."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from channels.message import Address
from gateway.store.alerts import REASONS, Alert, decide
from gateway.store.conversations import chat_conversation
from gateway.store.inbound import (
    add_delivery,
    add_message,
    agent_row,
    next_version,
)
from gateway.store.indexing import Indexer
from gateway.store.moves import current_address
from gateway.store.sql import SQL
from gateway.store.types import Delivery, safe_text, to_json, to_ms


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call to record: `args` is its JSON text."""

    call_id: str
    name: str
    args: str
    fault: str | None


def begin_calls(
    connection: sqlite3.Connection,
    indexer: Indexer,
    turn_id: str,
    round_number: int,
    rounds: Sequence[str],
    calls: Sequence[CallRow],
    now: datetime,
) -> tuple[str, int, int]:
    """Records the calls of one round under the turn's reply: its conversation, its n, the n of the first call."""
    turn = connection.execute(SQL["turn_by_id"], {"id": turn_id}).fetchone()
    seq = turn["reply_seq"]
    if seq is None:
        address = _own_address(connection, turn["conversation_id"])
        row, conversation = agent_row(connection, turn["conversation_id"], address, "assistant", "", "running", now)
        row |= {"turn_id": turn_id}
        seq = add_message(connection, indexer, row, conversation)
        connection.execute(SQL["set_reply"], {"id": turn_id, "seq": seq})
    message = connection.execute(SQL["message_by_seq"], {"seq": seq}).fetchone()
    first = message["call_count"] + 1
    for n, call in enumerate(calls, first):
        connection.execute(
            SQL["add_call"],
            {
                "message_seq": seq,
                "n": n,
                "round": round_number,
                "call_id": safe_text(call.call_id),
                "name": safe_text(call.name),
                "args": safe_text(call.args),
                "fault": None if call.fault is None else safe_text(call.fault),
                "now": to_ms(now),
            },
        )
    connection.execute(
        SQL["set_rounds"],
        {
            "seq": seq,
            "rounds": to_json([safe_text(text) for text in rounds]),
            "call_count": message["call_count"] + len(calls),
            "version": next_version(connection),
        },
    )
    return message["conversation_id"], message["n"], first


def end_call(
    connection: sqlite3.Connection,
    indexer: Indexer,
    turn_id: str,
    call_id: str,
    output: str,
    outcome: str,
    attempts: int,
    now: datetime,
) -> None:
    """Records how a call ended, and makes it searchable."""
    call_id = safe_text(call_id)
    message = connection.execute(SQL["reply_of_turn"], {"id": turn_id}).fetchone()
    connection.execute(
        SQL["end_call"],
        {
            "message_seq": message["seq"],
            "call_id": call_id,
            "output": safe_text(output),
            "outcome": outcome,
            "attempts": attempts,
            "now": to_ms(now),
        },
    )
    for call in connection.execute(SQL["calls_of_message"], {"message_seq": message["seq"]}).fetchall():
        if call["call_id"] == call_id:
            indexer.call(connection, message, call)


@dataclass(frozen=True, slots=True)
class Result:
    """How a turn ended. `target` None: the reply goes nowhere; `delivery` its first state, `key` its delivery key.
    `alert`: it is a job's word to its owner, of which not every one is sent."""

    turn_id: str
    status: Literal["done", "stopped", "failed"]
    reply: str
    rounds: tuple[str, ...]
    error: str | None
    input_tokens: int
    output_tokens: int
    target: Address | None
    target_cut: Literal["idle", "chat", "message"]
    delivery: Literal["planned", "sent", "suppressed"]
    reply_to: str | None
    now: datetime
    alert: Alert | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The saved result: the reply's place, and its delivery if it has one."""

    conversation_id: str
    n: int | None
    version: int
    delivery: Delivery | None
    held: str | None = None
    """Why an alert was not sent now."""


MESSAGE_STATES = {"done": "answered", "stopped": "cancelled", "failed": "failed"}


def finish(connection: sqlite3.Connection, indexer: Indexer, result: Result) -> Finished:
    """The turn's result, its messages' states, the reply and its delivery, in one transaction."""
    turn = connection.execute(SQL["turn_by_id"], {"id": result.turn_id}).fetchone()
    version = next_version(connection)
    for mine in connection.execute(SQL["messages_of_turn"], {"turn_id": result.turn_id}).fetchall():
        connection.execute(
            SQL["finish_message"], {"seq": mine["seq"], "state": MESSAGE_STATES[result.status], "version": version}
        )
        version += 1
    reason = None
    if result.alert is not None and result.target is not None and result.reply and result.delivery != "suppressed":
        said = decide(connection, result.alert, result.turn_id, result.target, result.reply, result.now)
        reason = REASONS.get(said.state)
        result = replace(result, reply=said.text, delivery="suppressed" if reason else result.delivery)
    row = _save_reply(connection, indexer, result, turn, version)
    delivery = None
    if row is not None and row["text"] and result.target is not None:
        there = current_address(connection, result.target)
        delivery = _deliver(connection, indexer, result, row, there, reason)
    connection.execute(SQL["interrupt_calls_of_turn"], {"id": result.turn_id, "now": to_ms(result.now)})
    connection.execute(
        SQL["finish_turn"],
        {
            "id": result.turn_id,
            "state": result.status,
            "now": to_ms(result.now),
            "error": None if result.error is None else safe_text(result.error),
            "input_tokens": result.input_tokens,
            "output_tokens": result.output_tokens,
        },
    )
    if row is None:
        return Finished(turn["conversation_id"], None, version, None, reason)
    return Finished(turn["conversation_id"], row["n"], row["version"], delivery, reason)


def _save_reply(
    connection: sqlite3.Connection, indexer: Indexer, result: Result, turn: sqlite3.Row, version: int
) -> dict[str, Any] | None:
    """The assistant's message: the row its calls stand under, else a new one; None when it said and did nothing."""
    conversation_id: str = turn["conversation_id"]
    text = safe_text(result.reply)
    rounds = to_json([safe_text(said) for said in result.rounds])
    flags = None if result.status == "done" else to_json([result.status])
    if turn["reply_seq"] is None:
        if not text:
            return None
        own = _own_address(connection, conversation_id)
        row, conversation = agent_row(connection, conversation_id, own, "assistant", text, "answered", result.now)
        row |= {"turn_id": result.turn_id, "rounds": rounds, "flags": flags}
        row["seq"] = add_message(connection, indexer, row, conversation)
        connection.execute(SQL["set_reply"], {"id": result.turn_id, "seq": row["seq"]})
        return row
    connection.execute(
        SQL["finish_reply"],
        {
            "seq": turn["reply_seq"],
            "text": text,
            "rounds": rounds,
            "state": "answered",
            "now": to_ms(result.now),
            "flags": flags,
            "version": version,
        },
    )
    saved = dict(connection.execute(SQL["message_by_seq"], {"seq": turn["reply_seq"]}).fetchone())
    connection.execute(
        SQL["conversation_said"], {"id": conversation_id, "now": to_ms(result.now), "last_text": text[:200]}
    )
    indexer.message(connection, saved)
    return saved


def _deliver(
    connection: sqlite3.Connection,
    indexer: Indexer,
    result: Result,
    row: dict[str, Any],
    target: Address,
    reason: str | None,
) -> Delivery:
    if target.session_key != row["session_key"] and result.delivery != "suppressed":
        # An answer of the clock: the chat it goes to holds it too, so that a reply there has its context.
        row = _copy_to(connection, indexer, result, row, target)
    return add_delivery(
        connection,
        row["seq"],
        row,
        f"reply:{result.turn_id}",
        target,
        # In a chat that moved meanwhile the message that is answered may have another number.
        result.reply_to if target == result.target else None,
        result.now,
        result.delivery,
        replaces=_draft_at(connection, result.turn_id, target),
        reason=reason,
    )


def _draft_at(connection: sqlite3.Connection, turn_id: str, target: Address) -> str | None:
    """The message that shows the answer so far in its chat, which the whole one takes the place of."""
    turn = connection.execute(SQL["turn_by_id"], {"id": turn_id}).fetchone()
    *where, message_id = json.loads(turn["draft"] or "[null]")
    return message_id if where == [target.channel, target.chat_id, target.thread_id] else None


def _copy_to(
    connection: sqlite3.Connection, indexer: Indexer, result: Result, row: dict[str, Any], target: Address
) -> dict[str, Any]:
    conversation_id = chat_conversation(connection, target, result.target_cut, result.now)
    copy, conversation = agent_row(
        connection, conversation_id, target, "assistant", row["text"], "answered", result.now
    )
    # Once in the index: the original is there already.
    copy |= {"flags": to_json(["copy", f"from:{row['conversation_id']}#{row['n']}"])}
    copy["seq"] = add_message(connection, indexer, copy, conversation, title=row["text"].partition("\n")[0][:80])
    return copy


def _own_address(connection: sqlite3.Connection, conversation_id: str) -> Address:
    row = connection.execute(SQL["conversation_by_id"], {"id": conversation_id}).fetchone()
    return Address(row["channel"], row["chat"], row["thread"])

"""Turns in the database: taking the waiting messages, recording calls, writing the result with its delivery."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from channels.message import Address
from gateway.limits import HISTORY_MESSAGES_MAX
from gateway.store.inbound import (
    add_conversation,
    add_delivery,
    add_message,
    agent_row,
    new_conversation_id,
    next_version,
)
from gateway.store.indexing import Indexer
from gateway.store.sql import SQL
from gateway.store.types import (
    Claim,
    Delivery,
    HistoryCall,
    HistoryMessage,
    TakenMessage,
    from_ms,
    safe_text,
    to_json,
    to_ms,
)

INTERRUPTED = "interrupted, not known whether it ran"


def take(connection: sqlite3.Connection, session_key: str, now: datetime) -> Claim | None:
    """Begins the next turn of a session, or takes up one that broke off. None when nothing waits.

    Messages of one person in one conversation that wait together are taken together; a scheduled run is alone.
    """
    waiting = connection.execute(SQL["waiting_messages"], {"session_key": session_key}).fetchall()
    if not waiting:
        return None
    first = waiting[0]
    turn_id: str | None = first["turn_id"]
    turn = None if turn_id is None else connection.execute(SQL["turn_by_id"], {"id": turn_id}).fetchone()
    if turn is not None and turn["reply_seq"] is not None:
        # Calls were recorded: exactly the same messages go on from there.
        together = [row for row in waiting if row["turn_id"] == turn_id]
    elif first["origin"] == "scheduled":
        together = [first]
    else:
        together = _together(waiting)
    if turn is None or turn_id is None:
        turn_id = f"{now:%y%m%d%H%M%S}-{secrets.token_hex(4)}"
        attempts = 1
        connection.execute(
            SQL["add_turn"],
            {
                "id": turn_id,
                "session_key": session_key,
                "conversation_id": first["conversation_id"],
                "now": to_ms(now),
            },
        )
    else:
        attempts = turn["attempts"] + 1
        connection.execute(SQL["restart_turn"], {"id": turn_id})
    version = next_version(connection)
    for offset, row in enumerate(together):
        claim_row(connection, row["seq"], turn_id, row["round"], version + offset)
    return Claim(
        turn_id,
        attempts,
        session_key,
        first["conversation_id"],
        tuple(taken(row) for row in together),
        _history(connection, first["conversation_id"], first["n"]),
        _reply_so_far(connection, turn_id),
    )


def _together(waiting: Sequence[sqlite3.Row]) -> list[sqlite3.Row]:
    """The leading messages of the same person in the same conversation."""
    first = waiting[0]
    together: list[sqlite3.Row] = []
    for row in waiting:
        if (row["sender_id"], row["conversation_id"]) != (first["sender_id"], first["conversation_id"]):
            break
        together.append(row)
    return together


def claim_row(connection: sqlite3.Connection, seq: int, turn_id: str, round_number: int, version: int) -> None:
    connection.execute(
        SQL["claim_message"], {"seq": seq, "turn_id": turn_id, "round": round_number, "version": version}
    )


def taken(row: sqlite3.Row) -> TakenMessage:
    return TakenMessage(
        row["seq"],
        row["n"],
        row["conversation_id"],
        row["message_id"],
        Address(row["channel"], row["chat"], row["thread"]),
        row["sender_id"],
        row["sender_name"],
        row["rights"],
        row["origin"],
        row["text"],
        from_ms(row["at"]),
        row["answer_to"],
        tuple(json.loads(row["attachments"] or "[]")),
    )


def _history(connection: sqlite3.Connection, conversation_id: str, before_n: int) -> tuple[HistoryMessage, ...]:
    rows = connection.execute(
        SQL["history"], {"conversation_id": conversation_id, "n": before_n, "limit": HISTORY_MESSAGES_MAX}
    ).fetchall()
    return tuple(_history_message(connection, row) for row in reversed(rows))


def _history_message(connection: sqlite3.Connection, row: sqlite3.Row) -> HistoryMessage:
    calls: tuple[HistoryCall, ...] = ()
    if row["call_count"]:
        found = connection.execute(SQL["calls_of_message"], {"message_seq": row["seq"]}).fetchall()
        calls = tuple(
            HistoryCall(
                call["n"],
                call["round"],
                call["call_id"],
                call["name"],
                call["args"],
                call["fault"],
                call["output"],
                call["outcome"],
                call["attempts"] or 0,
            )
            for call in found
        )
    return HistoryMessage(
        row["n"],
        row["role"],
        row["sender_name"],
        row["text"],
        row["turn_id"],
        row["round"],
        tuple(json.loads(row["rounds"] or "[]")),
        calls,
    )


def _reply_so_far(connection: sqlite3.Connection, turn_id: str) -> HistoryMessage | None:
    row = connection.execute(SQL["reply_of_turn"], {"id": turn_id}).fetchone()
    return None if row is None else _history_message(connection, row)


def hear(connection: sqlite3.Connection, turn_id: str, round_number: int) -> tuple[TakenMessage, ...]:
    """What the same person wrote in the same conversation since the turn began: it belongs to the turn from now on."""
    turn = connection.execute(SQL["turn_by_id"], {"id": turn_id}).fetchone()
    mine = connection.execute(SQL["messages_of_turn"], {"turn_id": turn_id}).fetchone()
    if turn is None or mine is None or mine["origin"] == "scheduled":
        return ()
    speaker = connection.execute(SQL["message_by_seq"], {"seq": mine["seq"]}).fetchone()
    waiting = connection.execute(SQL["waiting_messages"], {"session_key": turn["session_key"]}).fetchall()
    heard: list[sqlite3.Row] = []
    for row in waiting:
        if row["sender_id"] != speaker["sender_id"] or row["conversation_id"] != turn["conversation_id"]:
            break
        heard.append(row)
    version = next_version(connection)
    for offset, row in enumerate(heard):
        claim_row(connection, row["seq"], turn_id, round_number, version + offset)
    return tuple(taken(row) for row in heard)


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
                "call_id": call.call_id,
                "name": call.name,
                "args": safe_text(call.args),
                "fault": call.fault,
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
    """How a turn ended. `target` None: the reply goes nowhere; `delivery` its first state, `key` its delivery key."""

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


@dataclass(frozen=True, slots=True)
class Finished:
    """The saved result: the reply's place, and its delivery if it has one."""

    conversation_id: str
    n: int | None
    version: int
    delivery: Delivery | None


MESSAGE_STATES = {"done": "answered", "stopped": "cancelled", "failed": "failed"}


def finish(connection: sqlite3.Connection, indexer: Indexer, result: Result) -> Finished:
    """The turn's result, its messages' states, the reply and its delivery, in one transaction."""
    now_ms = to_ms(result.now)
    turn = connection.execute(SQL["turn_by_id"], {"id": result.turn_id}).fetchone()
    conversation_id: str = turn["conversation_id"]
    state = MESSAGE_STATES[result.status]
    version = next_version(connection)
    for mine in connection.execute(SQL["messages_of_turn"], {"turn_id": result.turn_id}).fetchall():
        connection.execute(SQL["finish_message"], {"seq": mine["seq"], "state": state, "version": version})
        version += 1
    text = safe_text(result.reply)
    flags = None if result.status == "done" else to_json([result.status])
    seq = turn["reply_seq"]
    row: dict[str, Any] | None = None
    if seq is not None:
        connection.execute(
            SQL["finish_reply"],
            {
                "seq": seq,
                "text": text,
                "rounds": to_json(list(result.rounds)),
                "state": "answered",
                "now": now_ms,
                "flags": flags,
                "version": version,
            },
        )
        row = dict(connection.execute(SQL["message_by_seq"], {"seq": seq}).fetchone())
        connection.execute(
            SQL["touch_conversation"],
            {
                "id": conversation_id,
                "now": now_ms,
                "n": connection.execute(SQL["conversation_by_id"], {"id": conversation_id}).fetchone()["message_count"],
                "last_text": text[:200],
                "reopen": False,
                "title": "",
            },
        )
        indexer.message(connection, row)
    elif text:
        own = _own_address(connection, conversation_id)
        row, conversation = agent_row(connection, conversation_id, own, "assistant", text, "answered", result.now)
        row |= {"turn_id": result.turn_id, "rounds": to_json(list(result.rounds)), "flags": flags}
        seq = add_message(connection, indexer, row, conversation)
        connection.execute(SQL["set_reply"], {"id": result.turn_id, "seq": seq})
        version = row["version"]
    delivery = None
    if row is not None and seq is not None and text and result.target is not None:
        delivery = _deliver(connection, indexer, result, seq, row, result.target)
    connection.execute(
        SQL["finish_turn"],
        {
            "id": result.turn_id,
            "state": result.status,
            "now": now_ms,
            "error": result.error,
            "input_tokens": result.input_tokens,
            "output_tokens": result.output_tokens,
        },
    )
    return Finished(conversation_id, None if row is None else row["n"], version, delivery)


def _deliver(
    connection: sqlite3.Connection,
    indexer: Indexer,
    result: Result,
    seq: int,
    row: dict[str, Any],
    target: Address,
) -> Delivery:
    if target.session_key != row["session_key"] and result.delivery != "suppressed":
        # An answer of the clock: the chat it goes to holds it too, so that a reply there has its context.
        seq, row = _copy_to(connection, indexer, result, row, target)
    return add_delivery(
        connection, seq, row, f"reply:{result.turn_id}", target, result.reply_to, result.now, result.delivery
    )


def _copy_to(
    connection: sqlite3.Connection, indexer: Indexer, result: Result, row: dict[str, Any], target: Address
) -> tuple[int, dict[str, Any]]:
    if result.target_cut == "chat":
        present = connection.execute(SQL["conversation_by_id"], {"id": target.chat_id}).fetchone()
        wanted = target.chat_id
    else:
        present = connection.execute(SQL["latest_conversation"], {"session_key": target.session_key}).fetchone()
        if present is not None and present["ended_at"] is not None:
            present = None
        wanted = new_conversation_id(result.now)
    conversation_id = present["id"] if present is not None else wanted
    if present is None:
        add_conversation(connection, conversation_id, target, to_ms(result.now))
    copy, conversation = agent_row(
        connection, conversation_id, target, "assistant", row["text"], "answered", result.now
    )
    # Once in the index: the original is there already.
    copy |= {"flags": to_json(["copy", f"from:{row['conversation_id']}#{row['n']}"])}
    copy_seq = add_message(connection, indexer, copy, conversation, title=row["text"].partition("\n")[0][:80])
    return copy_seq, copy


def _own_address(connection: sqlite3.Connection, conversation_id: str) -> Address:
    row = connection.execute(SQL["conversation_by_id"], {"id": conversation_id}).fetchone()
    return Address(row["channel"], row["chat"], row["thread"])


def release(connection: sqlite3.Connection, turn_id: str) -> None:
    """A clean stop takes a turn back: its messages wait again, the try does not count."""
    connection.execute(SQL["unclaim_messages"], {"turn_id": turn_id})
    connection.execute(SQL["release_turn"], {"id": turn_id})


def recover(connection: sqlite3.Connection, now: datetime) -> int:
    """At start: what ran when the program died waits again; calls without an end are `interrupted`. How many wait."""
    connection.execute(SQL["interrupt_calls"], {"now": to_ms(now)})
    running = connection.execute(SQL["running_messages"]).fetchall()
    for turn_id in {row["turn_id"] for row in running}:
        connection.execute(SQL["unclaim_messages"], {"turn_id": turn_id})
    return len(running)

"""Turns in the database: taking the waiting messages, recording calls, writing the result with its delivery."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from channels.message import Address, Quote
from gateway.limits import HISTORY_MESSAGES_MAX, UNSEEN_MESSAGES_MAX
from gateway.store.inbound import next_version
from gateway.store.sql import SQL
from gateway.store.types import (
    Claim,
    HistoryCall,
    HistoryMessage,
    Overheard,
    TakenMessage,
    attachments_of,
    from_ms,
    to_ms,
)


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
        _history(connection, first),
        _reply_so_far(connection, turn_id),
        _own_sessions(connection, first),
        _unseen(connection, taken(first)),
        None if turn is None else json.loads(turn["draft"] or "[null]")[-1],
    )


def _own_sessions(connection: sqlite3.Connection, first: sqlite3.Row) -> tuple[str, ...]:
    """Where the person who wrote this message wrote before, as one who is let in."""
    if first["rights"] != "allowed":
        return ()
    person = {"channel": first["channel"], "sender_id": first["sender_id"]}
    return tuple(row[0] for row in connection.execute(SQL["sessions_of_allowed"], person).fetchall())


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
        attachments_of(row["attachments"]),
        row["kind"],
        row["forwarded_from"],
        None if row["quote"] is None else Quote(**json.loads(row["quote"])),
        tuple(json.loads(row["flags"] or "[]")),
        row["command"],
    )


def _unseen(connection: sqlite3.Connection, message: TakenMessage) -> tuple[Overheard, ...]:
    """What went on in a group before the agent was spoken to."""
    if message.is_private or message.origin != "person":
        return ()
    rows = connection.execute(
        SQL["unseen"],
        {"conversation_id": message.conversation_id, "n": message.n, "limit": UNSEEN_MESSAGES_MAX},
    ).fetchall()
    return tuple(map(_overheard, reversed(rows)))


def _overheard(row: sqlite3.Row) -> Overheard:
    files = attachments_of(row["attachments"])
    return Overheard(row["sender_id"], row["sender_name"], row["text"], row["kind"], from_ms(row["at"]), files)


def _history(connection: sqlite3.Connection, first: sqlite3.Row) -> tuple[HistoryMessage, ...]:
    """What was said before. In a group each is told which words are another's, and others are not told what the
    owner's tools found; what nobody said to the agent stands there once it was seen."""
    values = {"conversation_id": first["conversation_id"], "n": first["n"], "limit": HISTORY_MESSAGES_MAX}
    rows = connection.execute(SQL["history"], values).fetchall()
    is_group = first["chat"] != first["sender_id"]
    if is_group:
        # What came last and was not seen yet goes with the turn itself.
        for place, row in enumerate(rows):
            if row["turn_id"] is not None and row["role"] == "user":
                rows = [other for other in rows[:place] if not _is_overheard(other)] + rows[place:]
                break
        else:
            rows = [row for row in rows if not _is_overheard(row)]
    return tuple(_as_heard(_history_message(connection, row), row, first) for row in reversed(rows))


def _is_overheard(row: sqlite3.Row) -> bool:
    return row["role"] == "user" and row["state"] == "observed"


def _as_heard(message: HistoryMessage, row: sqlite3.Row, first: sqlite3.Row) -> HistoryMessage:
    is_owner = first["rights"] == "owner"
    if not is_owner and row["asked_by"] == "owner":
        return replace(message, rounds=(), calls=())
    if _is_overheard(row) and first["chat"] != first["sender_id"]:
        return replace(message, overheard=_overheard(row))
    is_other = row["rights"] != "owner" if is_owner else row["sender_id"] != first["sender_id"]
    if message.role == "user" and is_other:
        return replace(message, said_by=message.sender_name or "somebody")
    return message


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
        from_ms(row["at"]),
        kind=row["kind"],
        forwarded_from=row["forwarded_from"],
        attachments=attachments_of(row["attachments"]),
        flags=tuple(json.loads(row["flags"] or "[]")),
    )


def _reply_so_far(connection: sqlite3.Connection, turn_id: str) -> HistoryMessage | None:
    row = connection.execute(SQL["reply_of_turn"], {"id": turn_id}).fetchone()
    return None if row is None else _history_message(connection, row)


def hear(connection: sqlite3.Connection, turn_id: str, round_number: int) -> tuple[TakenMessage, ...]:
    """What the same person wrote in the same conversation since the turn began: it belongs to the turn from now on.

    What holds more than words of this person (files, forwarded or quoted words of others) is taken next, with all that
    belongs to it.
    """
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
        if not _is_plain(row):
            break
        heard.append(row)
    version = next_version(connection)
    for offset, row in enumerate(heard):
        claim_row(connection, row["seq"], turn_id, round_number, version + offset)
    return tuple(taken(row) for row in heard)


def _is_plain(row: sqlite3.Row) -> bool:
    if row["attachments"] or row["forwarded_from"]:
        return False
    return row["quote"] is None or bool(json.loads(row["quote"])["is_own"])


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

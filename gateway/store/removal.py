"""Taking messages out for good: their text goes, their index rows go with it, the read log is told.

The row stays as a tombstone: numbers stay true, and the platform's second delivery of the message or another import of
the same export finds it there.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.store.database import StoreError
from gateway.store.inbound import TITLE_CHARS, next_version
from gateway.store.indexing import Indexer
from gateway.store.sql import SQL
from gateway.store.types import to_json, to_ms

REMOVED = "removed"
RANGE_LINES_MIN = 4
"""So many lines in a row are named by the first and the last of them."""
LAST_TEXT_CHARS = 200
SCHEDULED = ("heartbeat", "procedure")
COPY_OF = "from:"


class StillUsed(StoreError):
    """A message cannot be removed yet; `str()` says why and what to do."""


@dataclass(frozen=True, slots=True)
class Removed:
    """How many messages of a batch went, and the chats (channel, id) whose logs were told. `more`: others are left."""

    messages: int
    chats: frozenset[tuple[str, str]]
    more: bool


def remove(
    connection: sqlite3.Connection,
    indexer: Indexer,
    conversation_id: str,
    numbers: Sequence[int] | None,
    now: datetime,
    limit: int,
) -> Removed:
    """Removes the next `limit` messages of a conversation, of these numbers or of all (None), in one transaction.

    With them go what is said of them in lines of their own (edits), and the copies of an answer that was sent to
    another chat. What waits is cancelled. Raises StillUsed while one is being answered, or an answer is on its way.
    """
    wanted = {
        "conversation_id": conversation_id,
        "numbers": None if numbers is None else json.dumps(list(numbers)),
        "limit": limit,
    }
    _check_unused(connection.execute(SQL["messages_in_use"], wanted).fetchall(), conversation_id)
    named = connection.execute(SQL["removable_messages"], wanted).fetchall()
    rows = {row["seq"]: row for row in _with_related(connection, named)}
    for row in rows.values():
        about = {**wanted, "conversation_id": row["conversation_id"], "numbers": json.dumps([row["n"]])}
        if row["conversation_id"] != conversation_id:
            _check_unused(connection.execute(SQL["messages_in_use"], about).fetchall(), row["conversation_id"])
    chats: set[tuple[str, str]] = set()
    if rows:
        with _overwriting(connection):
            _blank(connection, indexer, rows, now)
            chats = _tell_logs(connection, rows, conversation_id, now)
    more = len(named) == limit
    for touched in {row["conversation_id"] for row in rows.values()}:
        _retell(connection, touched, rows.values())
    if numbers is None and not more:
        connection.execute(SQL["remove_conversation"], {"id": conversation_id, "now": to_ms(now)})
    return Removed(sum(row["n"] is not None for row in rows.values()), frozenset(chats), more)


class _overwriting:
    """What is deleted meanwhile is overwritten in the files, not only let go."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._before = 0

    def __enter__(self) -> None:
        self._before = self._connection.execute("PRAGMA main.secure_delete").fetchone()[0]
        self._connection.execute("PRAGMA secure_delete = ON").fetchall()

    def __exit__(self, *failure: object) -> None:
        self._connection.execute(f"PRAGMA secure_delete = {self._before}").fetchall()


def _with_related(connection: sqlite3.Connection, named: Iterable[sqlite3.Row]) -> Iterator[sqlite3.Row]:
    """The rows, their copies in other chats or what they are copies of, and the lines about each."""
    for row in named:
        for one in (row, *_copies(connection, row)):
            yield one
            platform_id = one["message_id"]
            sent = connection.execute(SQL["deliveries_of_message"], {"message_seq": one["seq"]}).fetchall()
            ids = {platform_id, *(id_ for delivery in sent for id_ in json.loads(delivery["sent_ids"] or "[]"))}
            about = {"channel": one["channel"], "chat": one["chat"], "ids": json.dumps(sorted(ids))}
            yield from connection.execute(SQL["lines_about"], about).fetchall()


def _copies(connection: sqlite3.Connection, row: sqlite3.Row) -> list[sqlite3.Row]:
    if row["role"] != "assistant":
        return []
    origin = next((flag for flag in json.loads(row["flags"] or "[]") if flag.startswith(COPY_OF)), None)
    if origin is not None:
        conversation_id, _, number = origin.removeprefix(COPY_OF).rpartition("#")
        asked = {"conversation_id": conversation_id, "first": int(number), "last": int(number)}
        return connection.execute(SQL["conversation_messages"], asked).fetchall()
    if row["turn_id"] is None:
        return []
    if row["channel"] in SCHEDULED:
        flag = f'%:{row["conversation_id"]}#{row["n"]}"%'
        return connection.execute(SQL["copies_by_flag"], {"flag": flag}).fetchall()
    return connection.execute(SQL["copies_of_reply"], {"key": f"reply:{row['turn_id']}", "seq": row["seq"]}).fetchall()


def _check_unused(used: Sequence[sqlite3.Row], conversation_id: str) -> None:
    for row in used:
        place = f"conversation:{conversation_id}#{row['n']}"
        if row["used"] == "answered":
            raise StillUsed(f"{place} is being answered just now. Stop that answer, or wait for it, then remove it.")
        raise StillUsed(f"{place} is still on its way to {row['channel']}. Wait until it has arrived, then remove it.")


def _blank(connection: sqlite3.Connection, indexer: Indexer, rows: dict[int, sqlite3.Row], now: datetime) -> None:
    version = next_version(connection)
    flags = to_json([REMOVED])
    for offset, seq in enumerate(rows):
        values = {"seq": seq, "version": version + offset, "now": to_ms(now), "flags": flags}
        connection.execute(SQL["blank_message"], values)
        connection.execute(SQL["blank_calls"], values)
        connection.execute(SQL["close_deliveries"], values)
        connection.execute(SQL["forget_alert"], {"turn_id": rows[seq]["turn_id"]})
        if rows[seq]["channel"] in SCHEDULED:
            connection.execute(SQL["forget_run_note"], {"conversation_id": rows[seq]["conversation_id"]})
    refs = [f"conversation:{row['conversation_id']}#{row['n']}" for row in rows.values() if row["n"] is not None]
    indexer.removed(connection, refs)


def _tell_logs(
    connection: sqlite3.Connection, rows: dict[int, sqlite3.Row], conversation_id: str, now: datetime
) -> set[tuple[str, str]]:
    """One `removed` line for each log that holds lines of these messages."""
    entries = connection.execute(SQL["entries_of_messages"], {"seqs": json.dumps(list(rows))}).fetchall()
    chats = {(entry["channel"], entry["chat"]) for entry in entries}
    session = connection.execute(SQL["conversation_by_id"], {"id": conversation_id}).fetchone()
    for channel, chat in sorted(chats):
        mine = [entry for entry in entries if (entry["channel"], entry["chat"]) == (channel, chat)]
        span = {"channel": channel, "chat": chat, "first": mine[0]["seq"], "last": mine[-1]["seq"]}
        order = {seq: at for at, (seq,) in enumerate(connection.execute(SQL["entries_between"], span).fetchall())}
        values = _line(connection, session, channel, chat, _taken_out(mine, order), now)
        seq = connection.execute(SQL["add_message"], values).lastrowid
        connection.execute(
            SQL["add_log_entry"], {"channel": channel, "chat": chat, "message_seq": seq, "delivery_key": None}
        )
    return chats


def _taken_out(entries: Sequence[sqlite3.Row], order: dict[int, int]) -> dict[str, list[Any]]:
    """The ids of the lines as they stand in the log; of many in a row the first and the last."""
    ids: list[str] = []
    ranges: list[list[str]] = []
    run: list[list[str]] = []
    before = -2
    for entry in (*entries, None):
        at = -2 if entry is None else order[entry["seq"]]
        if run and (entry is None or at != before + 1):
            if len(run) >= RANGE_LINES_MIN:
                ranges.append([run[0][0], run[-1][0]])
            else:
                ids += [id_ for line in run for id_ in line]
            run = []
        if entry is not None:
            run.append(json.loads(entry["sent_ids"] or "null") or [entry["message_id"]])
        before = at
    found: dict[str, list[Any]] = {"ids": list(dict.fromkeys(ids)), "ranges": ranges}
    return {name: value for name, value in found.items() if value}


def _line(
    connection: sqlite3.Connection,
    conversation: sqlite3.Row,
    channel: str,
    chat: str,
    taken_out: dict[str, list[Any]],
    now: datetime,
) -> dict[str, Any]:
    """The row behind a `removed` line; `edits` holds what it names."""
    return {
        "version": next_version(connection),
        "conversation_id": conversation["id"],
        "n": None,
        "session_key": conversation["session_key"],
        "channel": channel,
        "chat": chat,
        "thread": None,
        "message_id": f"{REMOVED}-{secrets.token_hex(8)}",
        "dedupe_key": None,
        "role": "system",
        "kind": REMOVED,
        "sender_id": "owner",
        "sender_name": "",
        "rights": "owner",
        "origin": "person",
        "text": "",
        "at": to_ms(now),
        "saved_at": to_ms(now),
        "state": "observed",
        "command": None,
        "turn_id": None,
        "reply_to": None,
        "edits": json.dumps(taken_out, ensure_ascii=False),
        "forwarded_from": None,
        "attachments": None,
        "flags": None,
        "answer_to": None,
        "rounds": None,
        "quote": None,
    }


def _retell(connection: sqlite3.Connection, conversation_id: str, rows: Iterable[sqlite3.Row]) -> None:
    """The list beside the chat repeats what was said: the last words, and a title made of the first ones."""
    last = connection.execute(SQL["last_said"], {"id": conversation_id}).fetchone()
    conversation = connection.execute(SQL["conversation_by_id"], {"id": conversation_id}).fetchone()
    titles = {title_of(text) for row in rows for text in (row["text"], row["original_text"] or "")}
    values = {
        "id": conversation_id,
        "last_text": "" if last is None else last["text"][:LAST_TEXT_CHARS],
        "title": "" if conversation["title"] in titles else conversation["title"],
    }
    connection.execute(SQL["retell_conversation"], values)


def title_of(text: str) -> str:
    """What a conversation is called after its first message."""
    return text.strip().partition("\n")[0][:TITLE_CHARS]

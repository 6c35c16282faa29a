"""The words of jobs to their owner: equal ones are counted, not sent again; quiet hours hold the others back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from channels.message import Address
from gateway.limits import ALERT_REPEAT_SECONDS
from gateway.store.conversations import chat_conversation
from gateway.store.database import Database
from gateway.store.inbound import add_delivery, add_message, agent_row
from gateway.store.indexing import Indexer
from gateway.store.sql import SQL
from gateway.store.types import Delivery, from_ms, safe_text, to_json, to_ms

Cut = Literal["idle", "chat", "message"]


@dataclass(frozen=True, slots=True)
class Alert:
    """What a job says to its target. `hold_until`: when the quiet hours it came in end; None: it is sent at once.
    `repeated(n)`: the words that tell how often an equal one was not sent."""

    kind: str
    job: str
    hold_until: datetime | None
    repeated: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Held:
    """An alert that was held back."""

    job: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """`sent`, or why not; and the text that goes out or was to go out."""

    state: Literal["sent", "repeat", "held"]
    text: str


REASONS = {"repeat": "equal to the last alert of this job", "held": "held back: quiet hours"}


def decide(
    connection: sqlite3.Connection, alert: Alert, turn_id: str, target: Address, text: str, now: datetime
) -> Decision:
    """What becomes of an alert; written down."""
    same = " ".join(text.casefold().split())
    since = to_ms(now - timedelta(seconds=ALERT_REPEAT_SECONDS))
    last = connection.execute(SQL["alert_last"], {"kind": alert.kind, "job": alert.job}).fetchone()
    if last is not None and last["same"] == same and last["at"] > since:
        connection.execute(SQL["alert_again"], {"turn_id": last["turn_id"]})
        return Decision("repeat", text)
    if last is not None and last["repeats"]:
        text = f"{text}\n\n{alert.repeated(last['repeats'])}"
    hold(connection, alert, turn_id, target, text, same, now)
    return Decision("sent" if alert.hold_until is None else "held", text)


def hold(
    connection: sqlite3.Connection, alert: Alert, turn_id: str, target: Address, text: str, same: str, now: datetime
) -> None:
    """Writes an alert down: sent now, or to be sent when the quiet hours end."""
    connection.execute(
        SQL["add_alert"],
        {
            "turn_id": turn_id,
            "kind": alert.kind,
            "job": alert.job,
            "channel": target.channel,
            "chat": target.chat_id,
            "thread": target.thread_id,
            "text": safe_text(text),
            "same": safe_text(same),
            "at": to_ms(now),
            "release_at": None if alert.hold_until is None else to_ms(alert.hold_until),
        },
    )


def next_release(connection: sqlite3.Connection) -> datetime | None:
    """When something that is held back may go out."""
    at = connection.execute(SQL["alert_release_at"]).fetchone()[0]
    return None if at is None else from_ms(at)


def release(
    connection: sqlite3.Connection,
    indexer: Indexer,
    now: datetime,
    compose: Callable[[Sequence[Held]], str],
    info: Callable[[str], tuple[Cut, bool]],
) -> list[Delivery]:
    """What was held back until `now`, as one message for each chat. `info`: how a channel cuts its conversations, and
    whether saved is sent there."""
    chats: dict[Address, list[sqlite3.Row]] = {}
    for row in connection.execute(SQL["alerts_due"], {"now": to_ms(now)}).fetchall():
        chats.setdefault(Address(row["channel"], row["chat"], row["thread"]), []).append(row)
    return [_released(connection, indexer, now, compose, info, address, rows) for address, rows in chats.items()]


def _released(
    connection: sqlite3.Connection,
    indexer: Indexer,
    now: datetime,
    compose: Callable[[Sequence[Held]], str],
    info: Callable[[str], tuple[Cut, bool]],
    address: Address,
    rows: Sequence[sqlite3.Row],
) -> Delivery:
    cut, saved_is_sent = info(address.channel)
    held = [Held(row["job"], row["text"], from_ms(row["at"])) for row in rows]
    places = [f"{row['conversation_id']}#{row['n']}" for row in rows if row["n"] is not None]
    conversation_id = chat_conversation(connection, address, cut, now)
    row, conversation = agent_row(connection, conversation_id, address, "assistant", compose(held), "answered", now)
    # An answer to a single one goes on in the run's own conversation; what is removed there is removed here too.
    row |= {
        "flags": to_json(copy_flags(places[0]) if len(held) == len(places) == 1 else [f"holds:{one}" for one in places])
    }
    seq = add_message(connection, indexer, row, conversation)
    for released in rows:
        connection.execute(SQL["alert_released"], {"turn_id": released["turn_id"]})
    key, state = f"held:{rows[0]['turn_id']}", "sent" if saved_is_sent else "planned"
    return add_delivery(connection, seq, row, key, address, None, now, state)


def copy_flags(place: str) -> list[str]:
    """The flags of a message that repeats one of another conversation; `place` is `<conversation>#<n>`."""
    return ["copy", f"from:{place}"]


def prune(connection: sqlite3.Connection, before: datetime) -> int:
    """Forgets alerts that can no longer be repeated; how many."""
    return connection.execute(SQL["alerts_pruned"], {"before": to_ms(before)}).rowcount


class StoredAlerts:
    """What the clock has said and holds back, over the database."""

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    async def hold(self, alert: Alert, key: str, target: Address, text: str, now: datetime) -> None:
        """Keeps a notice of the program until the quiet hours end; the same key is the same notice."""
        await self._database.write(lambda c: hold(c, alert, key, target, text, key, now))

    async def next_release(self) -> datetime | None:
        return await self._database.read(next_release)

    async def release(
        self, now: datetime, compose: Callable[[Sequence[Held]], str], info: Callable[[str], tuple[Cut, bool]]
    ) -> list[Delivery]:
        return await self._database.write(lambda c: release(c, self._indexer, now, compose, info))

    async def run_of_turn(self, turn_id: str) -> tuple[str, int] | None:
        """Conversation of a scheduled run and the number of its answer there; None for a person's turn."""

        def work(connection: sqlite3.Connection) -> tuple[str, int] | None:
            row = connection.execute(SQL["run_of_turn"], {"turn_id": turn_id}).fetchone()
            return None if row is None or row["n"] is None else (row["conversation_id"], row["n"])

        return await self._database.read(work)

    async def prune(self, before: datetime) -> int:
        return await self._database.write(lambda c: prune(c, before))

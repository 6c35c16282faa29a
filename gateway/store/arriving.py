"""Messages that were accepted before their files were: what is still to be fetched, and what came of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from channels.message import Attachment
from gateway.store.changes import TRANSCRIPT, next_version
from gateway.store.inbound import add_notice
from gateway.store.indexing import Indexer
from gateway.store.sql import SQL
from gateway.store.turns import taken
from gateway.store.types import Delivery, TakenMessage, safe_text, to_json


def unfetched(connection: sqlite3.Connection) -> list[TakenMessage]:
    """Waiting messages with a file that was not fetched, or a recording without its words."""
    return [taken(row) for row in connection.execute(SQL["unfetched"]).fetchall()]


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came of a message's files. `transcript`: the words of its recording, which are its text from now on.
    `notice` is said to its sender; `is_answered` False: there is nothing in it to answer, the notice is all."""

    seq: int
    attachments: Sequence[Attachment]
    transcript: str | None
    notice: str | None
    is_answered: bool
    now: datetime


def arrived(connection: sqlite3.Connection, indexer: Indexer, result: Arrived, saved_is_sent: bool) -> Delivery | None:
    """Writes it in one transaction with the notice; None when there is none."""
    connection.execute(
        SQL["set_files"],
        {
            "seq": result.seq,
            "attachments": to_json([asdict(attachment) for attachment in result.attachments]),
            "text": None if result.transcript is None else safe_text(result.transcript),
            "flag": None if result.transcript is None else TRANSCRIPT,
            "version": next_version(connection),
        },
    )
    if not result.is_answered:
        connection.execute(SQL["set_observed"], {"seq": result.seq, "version": next_version(connection)})
    row = connection.execute(SQL["message_by_seq"], {"seq": result.seq}).fetchone()
    indexer.message(connection, row)
    if result.notice is None or row["state"] == "cancelled":
        return None
    message = taken(row)
    return add_notice(
        connection,
        indexer,
        message.conversation_id,
        message.address,
        result.notice,
        f"files:{result.seq}",
        result.now,
        saved_is_sent,
    )

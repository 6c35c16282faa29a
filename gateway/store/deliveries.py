"""The way of a reply after it was written: sending, sent, retry, unknown, failed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from gateway.store.sql import SQL
from gateway.store.types import Delivery, DeliveryState, delivery_of, to_json, to_ms


def move(
    connection: sqlite3.Connection,
    key: str,
    state: DeliveryState,
    now: datetime,
    *,
    attempts: int,
    sent_ids: Sequence[str],
    reason: str | None = None,
    next_at: datetime | None = None,
) -> None:
    """Writes a delivery's new state; `sent` adds its line to the read log of the chat."""
    connection.execute(
        SQL["move_delivery"],
        {
            "key": key,
            "state": state,
            "attempts": attempts,
            "next_at": None if next_at is None else to_ms(next_at),
            "sent_ids": to_json(list(sent_ids)),
            "reason": reason,
            "now": to_ms(now),
        },
    )
    if state == "sent":
        row = connection.execute(SQL["delivery_by_key"], {"key": key}).fetchone()
        connection.execute(
            SQL["add_log_entry"],
            {
                "channel": row["channel"],
                "chat": row["chat"],
                "message_seq": row["message_seq"],
                "delivery_key": key,
            },
        )


def still_open(connection: sqlite3.Connection) -> list[Delivery]:
    """Planned, sending and retry, oldest first."""
    return [delivery_of(row) for row in connection.execute(SQL["open_deliveries"]).fetchall()]


def shown(connection: sqlite3.Connection) -> list[Delivery]:
    """Those a person may want to know of: open, unknown and failed ones."""
    return [delivery_of(row) for row in connection.execute(SQL["shown_deliveries"]).fetchall()]


def by_key(connection: sqlite3.Connection, key: str) -> Delivery | None:
    row = connection.execute(SQL["delivery_by_key"], {"key": key}).fetchone()
    return None if row is None else delivery_of(row)

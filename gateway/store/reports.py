"""Sums over what was spent and done, in the shapes of docs/formats.md."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from gateway.store.sql import SQL
from gateway.store.types import to_ms

FIGURES = (
    "requests",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_usd",
    "unpriced_requests",
)
_EVER_MS = 1 << 62


def usage(connection: sqlite3.Connection, after: datetime | None, before: datetime | None) -> dict[str, Any]:
    """What the model calls from `after` to `before` (exclusive) came to: the sum, and each model's part of it."""
    bounds = {"after": 0 if after is None else to_ms(after), "before": _EVER_MS if before is None else to_ms(before)}
    models = [dict(row) for row in connection.execute(SQL["usage_between"], bounds).fetchall()]
    return {**{name: sum(model[name] for model in models) for name in FIGURES}, "models": models}


def performance(connection: sqlite3.Connection, since: datetime) -> dict[str, Any]:
    """How many turns ended how and in what time, and the same of the tools they called."""
    bound = {"since": to_ms(since)}
    return {
        "turns": [dict(row) for row in connection.execute(SQL["turns_since"], bound).fetchall()],
        "tools": [dict(row) for row in connection.execute(SQL["tools_since"], bound).fetchall()],
    }

"""The rows of scheduled runs, one a due time: `heartbeat.types.RunStore` over the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.store.database import Database
from gateway.store.sql import SQL
from gateway.store.types import from_ms, to_ms
from heartbeat.types import Kind, Outcome, QueueState, Run

_QUEUE_STATES: dict[str, QueueState] = {
    "waiting": "open",
    "running": "open",
    "answered": "ok",
    "cancelled": "interrupted",
    "failed": "error",
    "expired": "skipped",
}


class StoredRuns:
    """One row for each (job, due time), claimed once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def seen(self, kind: Kind, timings: Mapping[str, str], now: datetime) -> Mapping[str, datetime]:
        def work(connection: sqlite3.Connection) -> dict[str, datetime]:
            known = {
                row["job"]: (row["timing"], row["first_seen_at"])
                for row in connection.execute(SQL["jobs_seen"], {"kind": kind}).fetchall()
            }
            for job in known.keys() - timings.keys():
                connection.execute(SQL["job_forgotten"], {"kind": kind, "job": job})
            first: dict[str, datetime] = {}
            for job, timing in timings.items():
                if job in known and known[job][0] == timing:
                    first[job] = from_ms(known[job][1])
                    continue
                values = {"kind": kind, "job": job, "timing": timing, "now": to_ms(now)}
                connection.execute(SQL["job_seen"], values)
                first[job] = from_ms(to_ms(now))
            return first

        return await self._database.write(work)

    async def claim(self, job: str, kind: Kind, due_at: datetime, late_seconds: float, now: datetime) -> bool:
        values = {"job": job, "kind": kind, "due_at": to_ms(due_at), "late_seconds": late_seconds, "now": to_ms(now)}
        return await self._database.write(lambda c: c.execute(SQL["run_claim"], values).rowcount == 1)

    async def skip(self, job: str, kind: Kind, due_at: datetime, outcome: Outcome, reason: str, now: datetime) -> bool:
        values = {
            "job": job,
            "kind": kind,
            "due_at": to_ms(due_at),
            "outcome": outcome,
            "reason": reason,
            "now": to_ms(now),
        }
        return await self._database.write(lambda c: c.execute(SQL["run_skip"], values).rowcount == 1)

    async def finish(
        self, job: str, due_at: datetime, outcome: Outcome, reason: str, conversation: str | None, now: datetime
    ) -> Run | None:
        values = {
            "job": job,
            "due_at": to_ms(due_at),
            "outcome": outcome,
            "reason": reason,
            "conversation_id": conversation,
            "now": to_ms(now),
        }

        def work(connection: sqlite3.Connection) -> Run | None:
            rows = connection.execute(SQL["run_finish"], values).fetchall()
            return _run(rows[0]) if rows else None

        return await self._database.write(work)

    async def latest(self, kind: Kind, until: datetime) -> Mapping[str, Run]:
        return await self._database.read(
            lambda c: {
                row["job"]: _run(row)
                for row in c.execute(SQL["run_latest"], {"kind": kind, "until": to_ms(until)}).fetchall()
            }
        )

    async def unfinished(self, kind: Kind) -> Sequence[Run]:
        return await self._database.read(
            lambda c: [_run(row) for row in c.execute(SQL["run_unfinished"], {"kind": kind}).fetchall()]
        )

    async def history(self, limit: int) -> Sequence[Run]:
        return await self._database.read(
            lambda c: [_run(row) for row in c.execute(SQL["run_history"], {"limit": limit}).fetchall()]
        )

    async def state_in_queue(self, kind: Kind, key: str) -> QueueState:
        """What the queue knows of a run: `unknown`, `open`, or how its turn ended."""

        def work(connection: sqlite3.Connection) -> QueueState:
            row = connection.execute(SQL["run_in_queue"], {"kind": kind, "key": key}).fetchone()
            return "unknown" if row is None else _QUEUE_STATES.get(row["state"], "error")

        return await self._database.read(work)


def _run(row: Any) -> Run:
    def at(column: str) -> datetime | None:
        return None if row[column] is None else from_ms(row[column])

    return Run(
        job=row["job"],
        kind=row["kind"],
        due_at=from_ms(row["due_at"]),
        started_at=at("started_at"),
        ended_at=at("ended_at"),
        outcome=row["outcome"],
        late_seconds=row["late_seconds"],
        reason=row["reason"] or "",
        conversation=row["conversation_id"],
    )

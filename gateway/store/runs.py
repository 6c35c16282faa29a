"""The rows of scheduled runs, one a due time: `heartbeat.types.RunStore` over the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.store.database import Database
from gateway.store.sql import SQL
from gateway.store.types import from_ms, to_ms
from heartbeat.types import Key, Kind, Outcome, QueueState, Run, due_of_key

_QUEUE_STATES: dict[str, QueueState] = {
    "waiting": "open",
    "running": "open",
    "answered": "ok",
    "cancelled": "interrupted",
    "failed": "error",
    "expired": "skipped",
}


class StoredRuns:
    """One row for each (kind, job, due time), claimed once."""

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

    async def claim(
        self, job: str, kind: Kind, due_at: datetime, late_seconds: float, now: datetime, *, by_hand: bool = False
    ) -> bool:
        values = {"job": job, "kind": kind, "due_at": to_ms(due_at), "late_seconds": late_seconds, "now": to_ms(now)}
        values["by_hand"] = by_hand
        return await self._database.write(lambda c: c.execute(SQL["run_claim"], values).rowcount == 1)

    async def skip(
        self, job: str, kind: Kind, dues: Sequence[datetime], outcome: Outcome, reason: str, now: datetime
    ) -> Sequence[datetime]:
        values = {"job": job, "kind": kind, "outcome": outcome, "reason": reason, "now": to_ms(now)}

        def work(connection: sqlite3.Connection) -> list[datetime]:
            return [
                due_at
                for due_at in dues
                if connection.execute(SQL["run_skip"], {**values, "due_at": to_ms(due_at)}).rowcount == 1
            ]

        return await self._database.write(work)

    async def finish(
        self,
        job: str,
        kind: Kind,
        due_at: datetime,
        outcome: Outcome,
        reason: str,
        conversation: str | None,
        now: datetime,
    ) -> Run | None:
        values = {
            "job": job,
            "kind": kind,
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

    async def spent_since(self, since: datetime) -> tuple[int, int]:
        values = {"since": to_ms(since)}

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            runs = connection.execute(SQL["runs_started"], values).fetchone()[0]
            return runs, connection.execute(SQL["runs_tokens"], values).fetchone()[0]

        return await self._database.read(work)

    async def switched_off(self) -> frozenset[Key]:
        return await self._database.read(
            lambda c: frozenset((row["kind"], row["job"]) for row in c.execute(SQL["jobs_off"]).fetchall())
        )

    async def switch(self, key: Key, on: bool) -> None:
        values = {"kind": key[0], "job": key[1]}
        await self._database.write(lambda c: c.execute(SQL["job_on" if on else "job_off"], values))

    async def progress(self, key: Key, due_at: datetime, reason: str, conversation: str) -> None:
        """How far a run that has not ended is."""
        values = {"kind": key[0], "job": key[1], "due_at": to_ms(due_at), "reason": reason}
        values["conversation_id"] = conversation
        await self._database.write(lambda c: c.execute(SQL["run_progress"], values))

    async def of_conversation(self, conversation: str) -> tuple[Kind, str, datetime] | None:
        """Kind, job and due time of the run that goes on in a conversation; None when none does."""

        def work(connection: sqlite3.Connection) -> tuple[Kind, str, datetime] | None:
            row = connection.execute(SQL["run_of_conversation"], {"conversation_id": conversation}).fetchone()
            return None if row is None else (row["kind"], row["job"], due_of_key(row["dedupe_key"])[1])

        return await self._database.read(work)

    async def note(self, conversation: str, note: str) -> None:
        """Adds a word to the row of the run that had this conversation."""
        await self._database.write(
            lambda c: c.execute(SQL["run_note"], {"conversation_id": conversation, "note": note})
        )

    async def prune(self, before: datetime) -> int:
        """Removes the rows of built-in jobs that had nothing to tell; how many."""
        return await self._database.write(lambda c: c.execute(SQL["runs_pruned"], {"before": to_ms(before)}).rowcount)

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
        cost_usd=row["cost_usd"],
    )

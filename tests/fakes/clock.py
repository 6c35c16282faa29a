"""A clock to set, a timer to ring, and the rows and the queue of the clock in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from heartbeat.types import DueRun, Kind, Outcome, Parsed, QueueState, Run


class FakeClock:
    """Shows the time it was set to."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def forward(self, **span: float) -> datetime:
        self.at += timedelta(**span)
        return self.at


class FakeTimer:
    """Holds alarms; `ring` is what a real one does when one is due."""

    def __init__(self) -> None:
        self.alarms: dict[str, datetime] = {}
        self.running = False
        self._wake: Callable[[], None] | None = None

    async def start(self, wake: Callable[[], None]) -> None:
        self._wake, self.running = wake, True

    def set(self, name: str, at: datetime) -> None:
        self.alarms[name] = at

    def remove(self, name: str) -> None:
        self.alarms.pop(name, None)

    async def stop(self) -> None:
        self._wake, self.running = None, False
        self.alarms.clear()

    def ring(self) -> None:
        assert self._wake is not None, "the timer was not started"
        self._wake()


class FakeSource:
    """Jobs given as a parsed file; assign `parsed` to edit it."""

    kind: Kind = "heartbeat"

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self._loaded: Parsed | None = None

    def changed(self) -> bool:
        return self.parsed is not self._loaded

    def load(self) -> Parsed:
        self._loaded = self.parsed
        return self.parsed


class FakeRunStore:
    """The rows in memory. `fails`: every write raises it, as a full disk would."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, datetime], Run] = {}
        self.fails: Exception | None = None
        self._seen: dict[tuple[Kind, str], tuple[str, datetime]] = {}

    async def seen(self, kind: Kind, timings: Mapping[str, str], now: datetime) -> Mapping[str, datetime]:
        self._check()
        for key in [key for key in self._seen if key[0] == kind and key[1] not in timings]:
            del self._seen[key]
        for job, timing in timings.items():
            if self._seen.get((kind, job), ("", now))[0] != timing:
                self._seen[kind, job] = (timing, now)
        return {job: self._seen[kind, job][1] for job in timings}

    async def claim(self, job: str, kind: Kind, due_at: datetime, late_seconds: float, now: datetime) -> bool:
        return self._insert(Run(job, kind, due_at, now, None, None, late_seconds))

    async def skip(self, job: str, kind: Kind, due_at: datetime, outcome: Outcome, reason: str, now: datetime) -> bool:
        return self._insert(Run(job, kind, due_at, None, now, outcome, 0.0, reason))

    async def finish(
        self, job: str, due_at: datetime, outcome: Outcome, reason: str, conversation: str | None, now: datetime
    ) -> Run | None:
        self._check()
        run = self.rows.get((job, due_at))
        if run is None or run.outcome is not None:
            return None
        run = replace(run, ended_at=now, outcome=outcome, reason=reason, conversation=conversation)
        self.rows[job, due_at] = run
        return run

    async def latest(self, kind: Kind, until: datetime) -> Mapping[str, Run]:
        rows = sorted(self.rows.values(), key=lambda run: run.due_at)
        return {run.job: run for run in rows if run.kind == kind and run.due_at <= until}

    async def unfinished(self, kind: Kind) -> Sequence[Run]:
        return [run for run in self.rows.values() if run.outcome is None and run.kind == kind]

    async def history(self, limit: int) -> Sequence[Run]:
        return sorted(self.rows.values(), key=lambda run: run.due_at, reverse=True)[:limit]

    def told(self, job: str) -> list[tuple[str, str | None]]:
        """(due time in UTC, outcome) of each row of a job, in order of due times."""
        rows = sorted((run for run in self.rows.values() if run.job == job), key=lambda run: run.due_at)
        return [(run.due_at.astimezone(UTC).strftime("%d %H:%M"), run.outcome) for run in rows]

    def _insert(self, run: Run) -> bool:
        self._check()
        if (run.job, run.due_at) in self.rows:
            return False
        self.rows[run.job, run.due_at] = run
        return True

    def _check(self) -> None:
        if self.fails is not None:
            raise self.fails


class FakeRunQueue:
    """Takes due runs. `fails`: submitting raises it. `states` overrides what is known of a key."""

    def __init__(self) -> None:
        self.submitted: list[DueRun] = []
        self.fails: Exception | None = None
        self.states: dict[str, QueueState] = {}

    async def submit(self, run: DueRun) -> None:
        if self.fails is not None:
            raise self.fails
        self.submitted.append(run)

    async def state(self, kind: Kind, key: str) -> QueueState:
        known = any(run.key == key and run.job.kind == kind for run in self.submitted)
        return self.states.get(key, "open" if known else "unknown")

    @property
    def dues(self) -> list[str]:
        return [f"{run.job.name} {run.due_at.astimezone(UTC):%d %H:%M}" for run in self.submitted]

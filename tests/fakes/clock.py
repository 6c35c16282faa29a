"""A clock to set, a timer to ring, and the rows and the queue of the clock in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.store.alerts import Alert
from heartbeat.types import ByHand, DueRun, Job, Key, Kind, Missed, Outcome, Parsed, QueueState, Run


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

    def __init__(self, parsed: Parsed, kind: Kind = "heartbeat") -> None:
        self.kind: Kind = kind
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
        self.rows: dict[tuple[Kind, str, datetime], Run] = {}
        self.by_hand: set[tuple[Kind, str, datetime]] = set()
        self.off: set[Key] = set()
        self.tokens = 0
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

    async def claim(
        self, job: str, kind: Kind, due_at: datetime, late_seconds: float, now: datetime, *, by_hand: bool = False
    ) -> bool:
        done = self._insert(Run(job, kind, due_at, now, None, None, late_seconds))
        if done and by_hand:
            self.by_hand.add((kind, job, due_at))
        return done

    async def skip(
        self, job: str, kind: Kind, dues: Sequence[datetime], outcome: Outcome, reason: str, now: datetime
    ) -> Sequence[datetime]:
        return [due for due in dues if self._insert(Run(job, kind, due, None, now, outcome, 0.0, reason))]

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
        self._check()
        run = self.rows.get((kind, job, due_at))
        if run is None or run.outcome is not None:
            return None
        run = replace(run, ended_at=now, outcome=outcome, reason=reason, conversation=conversation)
        self.rows[kind, job, due_at] = run
        return run

    async def spent_since(self, since: datetime) -> tuple[int, int]:
        started = [run for run in self.rows.values() if run.started_at is not None and run.started_at >= since]
        own = [run for run in started if (run.kind, run.job, run.due_at) not in self.by_hand]
        return len([run for run in own if run.kind != "built-in"]), self.tokens

    async def switched_off(self) -> frozenset[Key]:
        return frozenset(self.off)

    async def switch(self, key: Key, on: bool) -> None:
        self._check()
        (self.off.discard if on else self.off.add)(key)

    async def latest(self, kind: Kind, until: datetime) -> Mapping[str, Run]:
        rows = sorted(self.rows.values(), key=lambda run: run.due_at)
        return {run.job: run for run in rows if run.kind == kind and run.due_at <= until}

    async def unfinished(self, kind: Kind) -> Sequence[Run]:
        return [run for run in self.rows.values() if run.outcome is None and run.kind == kind]

    async def history(self, limit: int) -> Sequence[Run]:
        told = [run for run in self.rows.values() if run.kind != "built-in" or (run.reason and run.outcome == "ok")]
        return sorted(told, key=lambda run: run.due_at, reverse=True)[:limit]

    def told(self, job: str) -> list[tuple[str, str | None]]:
        """(due time in UTC, outcome) of each row of a job, in order of due times."""
        rows = sorted((run for run in self.rows.values() if run.job == job), key=lambda run: run.due_at)
        return [(run.due_at.astimezone(UTC).strftime("%d %H:%M"), run.outcome) for run in rows]

    def _insert(self, run: Run) -> bool:
        self._check()
        if (run.kind, run.job, run.due_at) in self.rows:
            return False
        self.rows[run.kind, run.job, run.due_at] = run
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


class FakeHerald:
    """Keeps what the owner would be told."""

    def __init__(self) -> None:
        self.missed: list[list[Missed]] = []

    async def looked(self, now: datetime, missed: Sequence[Missed]) -> None:
        if missed:
            self.missed.append(list(missed))


class FakeDesk:
    """`gateway.lanes.ClockDesk`: jobs by name with the tools they may use; keeps how their runs ended."""

    def __init__(self, **tools: tuple[str, ...]) -> None:
        self._tools = tools
        self.ended: list[tuple[str, str, str]] = []

    def job(self, kind: Kind, name: str) -> Job | None:
        if name not in self._tools:
            return None
        return Job(name, kind, "Hourly (0)", ByHand(), "go", 1, tools=self._tools[name])

    def alert(self, kind: Kind, name: str, text: str, now: datetime) -> Alert:
        return Alert(kind, name, None, str)

    async def run_ended(self, kind: Kind, job: str, run_key: str, status: str, conversation_id: str, note: str) -> None:
        self.ended.append((job, run_key, status))

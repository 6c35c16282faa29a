"""The clock: when a job comes due, its run goes into the queue, and what became of it is written down.

Every due time is settled exactly once: it has a row that says it ran, was skipped or was missed, and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from heartbeat.history import RunHistory
from heartbeat.limits import (
    GRACE_SECONDS_DEFAULT,
    MISSED_ROWS_MAX,
    PUNCTUAL_SECONDS,
    RETRY_SECONDS,
    STOP_SECONDS_MAX,
    TICK_SECONDS,
)
from heartbeat.schedule import due_between, job_zone, next_due
from heartbeat.types import (
    CannotRun,
    Catchup,
    DueRun,
    Fault,
    Job,
    JobSource,
    JobState,
    Once,
    Outcome,
    Run,
    RunQueue,
    RunStore,
    Startup,
    Timer,
    UnknownJob,
    run_key,
)

_log = logging.getLogger(__name__)

WAS_DOWN = "the gateway was not running"
WAS_ASLEEP = "the machine was asleep or busy"
STILL_RUNNING = "still running"
NOTHING_TO_DO = "the instruction is empty"
BROKE_OFF = "the gateway stopped before the run began"
LEFT_THE_QUEUE = "taken out of the queue"


@dataclass(slots=True)
class _Watched:
    """A job under watch. All its due times up to `settled` have their row; `next_at` is the next one.

    `timing` is what decides the due times, as written: where it changes, the job counts as first seen anew.
    """

    job: Job
    zone: ZoneInfo
    timing: str
    first_seen: datetime
    settled: datetime
    next_at: datetime | None = None


class Runner:
    """Watches one source of jobs by the wall clock and a timer.

    `target` and `grace_seconds` and `catchup` count where a job names none. `now` gives aware times.
    """

    def __init__(
        self,
        source: JobSource,
        store: RunStore,
        queue: RunQueue,
        history: RunHistory,
        timer: Timer,
        *,
        zone: ZoneInfo,
        now: Callable[[], datetime],
        target: str = "owner",
        grace_seconds: float = GRACE_SECONDS_DEFAULT,
        catchup: Catchup = "once",
    ) -> None:
        self._source = source
        self._store = store
        self._queue = queue
        self._history = history
        self._timer = timer
        self._zone = zone
        self._now = now
        self._target = target
        self._grace_seconds = grace_seconds
        self._catchup: Catchup = catchup
        self._watched: dict[str, _Watched] = {}
        self._faults: tuple[Fault, ...] = ()
        self._active: dict[str, datetime] = {}
        self._alarms: dict[str, datetime] = {}
        self._timer_runs = False
        self._is_stale = True
        self._begun_at: datetime | None = None
        self._looked_at: datetime | None = None
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the file as it was last read."""
        return self._faults

    def start(self) -> None:
        """Begins to watch, in a task of its own; what came due meanwhile is settled there first."""
        self._task = asyncio.create_task(self._watch(), name=f"clock {self._source.kind}")

    async def stop(self) -> None:
        """Ends the watch; a run that is just being handed over is waited for shortly."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS_MAX), self._lock:
                self._task.cancel()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        if self._timer_runs:
            await self._timer.stop()
            self._timer_runs = False
            self._alarms.clear()

    async def _watch(self) -> None:
        while True:
            pause = TICK_SECONDS if await self.tick() else RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()

    async def tick(self) -> bool:
        """One look at the file and the wall clock; settles what is due. False when something could not be written."""
        async with self._lock:
            return await self._look()

    async def reload(self) -> None:
        """Reads the file now, changed or not. Raises what the store raises."""
        async with self._lock:
            await self._read(self._clock())
            await self._set_alarms()

    def _clock(self) -> datetime:
        """Now in UTC, in whole milliseconds as the store keeps times."""
        now = self._now().astimezone(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    async def _look(self) -> bool:
        now = self._clock()
        if await self._contained("The jobs could not be read or their state written", self._prepare(now)) is not None:
            return False
        good = True
        for watched in list(self._watched.values()):
            if watched.next_at is not None and watched.next_at <= now:
                what = f"A due time of `{watched.job.name}` could not be settled"
                good = await self._contained(what, self._settle(watched, now)) is None and good
        return await self._contained("An alarm could not be set", self._set_alarms()) is None and good

    async def _contained(self, what: str, step: Awaitable[None]) -> str | None:
        """Awaits one step of one run; a failure is logged, its reason returned, and stops nothing else."""
        try:
            await step
        except Exception as error:  # noqa: BLE001 - the one fence of the clock: whatever a run does, it goes on
            _log.warning("%s: %s", what, error, exc_info=error)
            return str(error) or type(error).__name__
        return None

    async def _prepare(self, now: datetime) -> None:
        """Brings the watched jobs up to date with the file and the clock."""
        if self._begun_at is None:
            await self._begin(now)
        elif self._is_stale or self._source.changed():
            await self._read(now)
        if self._looked_at is not None and now < self._looked_at - timedelta(seconds=PUNCTUAL_SECONDS):
            for watched in self._watched.values():  # the clock was set back
                self._plan(watched, now)
        self._looked_at = now

    async def _begin(self, now: datetime) -> None:
        """The first look: takes up what the last process left, and looks back to where its rows end."""
        kind = self._source.kind
        await self._read(now)
        latest = await self._store.latest(kind, now)
        await self._take_up(now)
        self._history.make_up(await self._store.history(MISSED_ROWS_MAX))
        self._begun_at = now
        for name, watched in self._watched.items():
            last = latest.get(name)
            known = [watched.first_seen] if last is None else [watched.first_seen, last.due_at]
            # A time to come was written under a clock that went wrong.
            self._plan(watched, max((at for at in known if at <= now), default=now))
            if isinstance(watched.job.schedule, Startup):
                watched.next_at = now

    async def _take_up(self, now: datetime) -> None:
        """Rows that were claimed and never ended: still in the queue, ended there unseen, or never handed over."""
        for run in await self._store.unfinished(self._source.kind):
            state = await self._queue.state(run.kind, run_key(run.job, run.due_at))
            watched = self._watched.get(run.job)
            late_seconds = (now - run.due_at).total_seconds()
            if state == "open":
                self._active[run.job] = run.due_at
            elif state != "unknown":
                await self.finished(run.job, run.due_at, state)
            elif watched is None or late_seconds > self._allowed_seconds(watched.job):
                await self.finished(run.job, run.due_at, "interrupted", BROKE_OFF)
            else:
                await self._hand_over(watched.job, run.due_at, late_seconds)

    async def _read(self, now: datetime) -> None:
        """Loads the file. A job whose timing is unchanged stays under watch as it was."""
        self._is_stale = True
        parsed = self._source.load()
        if parsed.faults != self._faults:
            for fault in parsed.faults:
                _log.warning("%s: `%s` is off: %s", self._source.kind, fault.name, fault)
        self._faults = parsed.faults
        zones = {job.name: job_zone(job, self._zone) for job in parsed.jobs}
        timings = {job.name: f"{job.heading} @{zones[job.name].key}" for job in parsed.jobs}
        first_seen = await self._store.seen(self._source.kind, timings, now)
        watched: dict[str, _Watched] = {}
        for job in parsed.jobs:
            name, old = job.name, self._watched.get(job.name)
            watched[name] = _Watched(job, zones[name], timings[name], first_seen.get(name, now), now)
            self._plan(watched[name], old.settled if old is not None and old.timing == timings[name] else now)
        self._watched = watched
        self._is_stale = False

    def _plan(self, watched: _Watched, settled: datetime) -> None:
        watched.settled = settled
        watched.next_at = next_due(watched.job, settled, self._zone, watched.first_seen)

    async def _set_alarms(self) -> None:
        wanted = {name: watched.next_at for name, watched in self._watched.items() if watched.next_at is not None}
        if wanted and not self._timer_runs and self._task is not None:
            await self._timer.start(self._wake.set)
            self._timer_runs = True
        if not self._timer_runs:
            return
        for name in self._alarms.keys() - wanted.keys():
            self._timer.remove(name)
        for name, at in wanted.items():
            if self._alarms.get(name) != at:
                self._timer.set(name, at)
        self._alarms = wanted

    async def _settle(self, watched: _Watched, now: datetime) -> None:
        """Gives each due time up to `now` its row: the latest may run, earlier ones were missed."""
        job = watched.job
        if isinstance(job.schedule, Startup):
            dues = [watched.next_at or now]
        else:
            dues = due_between(job, watched.settled, now, self._zone, watched.first_seen, MISSED_ROWS_MAX + 1)
        for due_at in dues[:-1]:
            await self._leave(job, due_at, now, "missed", self._why_missed(due_at))
        for due_at in dues[-1:]:
            await self._due(job, due_at, now)
        self._plan(watched, now)

    async def _due(self, job: Job, due_at: datetime, now: datetime) -> None:
        late_seconds = (now - due_at).total_seconds()
        if late_seconds > self._allowed_seconds(job):
            await self._leave(job, due_at, now, "missed", self._why_missed(due_at))
        elif not job.instruction:
            await self._leave(job, due_at, now, "skipped", NOTHING_TO_DO)
        elif await self._still_runs(job):
            await self._leave(job, due_at, now, "skipped", STILL_RUNNING)
        elif await self._store.claim(job.name, job.kind, due_at, late_seconds, now):
            await self._hand_over(job, due_at, late_seconds)

    async def _still_runs(self, job: Job) -> bool:
        """Whether an earlier run of this job is under way. One that left the queue unheard is ended here."""
        due_at = self._active.get(job.name)
        if due_at is None:
            return False
        state = await self._queue.state(job.kind, run_key(job.name, due_at))
        if state == "open":
            return True
        reason = LEFT_THE_QUEUE if state == "unknown" else ""
        await self.finished(job.name, due_at, "interrupted" if state == "unknown" else state, reason)
        return False

    def _why_missed(self, due_at: datetime) -> str:
        return WAS_DOWN if self._begun_at is not None and due_at < self._begun_at else WAS_ASLEEP

    def _allowed_seconds(self, job: Job) -> float:
        """How late a run of this job may begin."""
        if (job.catchup or self._catchup) == "skip":
            return PUNCTUAL_SECONDS
        grace_seconds = self._grace_seconds if job.grace_seconds is None else job.grace_seconds
        return max(grace_seconds, PUNCTUAL_SECONDS)

    async def _hand_over(self, job: Job, due_at: datetime, late_seconds: float) -> str | None:
        """Puts a claimed run into the queue; on failure ends its row and returns the reason."""
        self._active[job.name] = due_at
        run = DueRun(job, due_at, late_seconds, job.target or self._target)
        failure = await self._contained(f"The run of `{job.name}` did not reach the queue", self._queue.submit(run))
        if failure is not None:
            failure = f"did not reach the queue: {failure}"
            await self.finished(job.name, due_at, "error", failure)
        return failure

    async def _leave(self, job: Job, due_at: datetime, now: datetime, outcome: Outcome, reason: str) -> None:
        """The row and the line of a due time that does not run."""
        if await self._store.skip(job.name, job.kind, due_at, outcome, reason, now):
            self._history.append(Run(job.name, job.kind, due_at, None, now, outcome, 0.0, reason))

    async def finished(
        self, job: str, due_at: datetime, outcome: Outcome, note: str = "", conversation: str | None = None
    ) -> None:
        """The turn of this run has ended: ends its row and writes its line. A second call changes nothing."""
        if self._active.get(job) == due_at:
            del self._active[job]
        run = await self._store.finish(job, due_at, outcome, note, conversation, self._clock())
        if run is not None:
            self._history.append(run)

    async def list(self) -> tuple[JobState, ...]:
        """All jobs in file order, the faulty ones after them."""
        kind = self._source.kind
        latest = await self._store.latest(kind, self._clock())
        states = [
            JobState(
                name=name,
                kind=kind,
                schedule=watched.job.heading,
                zone=watched.zone.key,
                enabled=True,
                next_at=None if watched.next_at is None else watched.next_at.astimezone(watched.zone),
                last=latest.get(name),
                fault=_past(watched, latest.get(name)),
            )
            for name, watched in self._watched.items()
        ]
        states += [
            JobState(fault.name, kind, fault.heading, self._zone.key, False, None, latest.get(fault.name), str(fault))
            for fault in self._faults
        ]
        return tuple(states)

    def next(self, name: str | None = None, n: int = 5) -> tuple[tuple[str, datetime], ...]:
        """The next `n` due times of one job, or of all together, as (name, time in the job's zone).

        Raises UnknownJob.
        """
        found: list[tuple[str, datetime]] = []
        for watched in self._watched.values() if name is None else (self._named(name),):
            due = watched.next_at
            for _ in range(n):
                if due is None:
                    break
                found.append((watched.job.name, due.astimezone(watched.zone)))
                due = next_due(watched.job, due, self._zone, watched.first_seen)
        return tuple(sorted(found, key=lambda pair: pair[1])[:n])

    async def run_now(self, name: str) -> DueRun:
        """Starts a run by hand, due this moment; returns when it is in the queue.

        Raises UnknownJob, and CannotRun when it is running already, has no instruction, or was not taken.
        """
        async with self._lock:
            await self._look()
            job = self._named(name).job
            if not job.instruction:
                raise CannotRun(f"`{job.name}` cannot run: {NOTHING_TO_DO}.")
            now = self._clock()
            if await self._still_runs(job) or not await self._store.claim(job.name, job.kind, now, 0.0, now):
                raise CannotRun(f"`{job.name}` is {STILL_RUNNING}.")
            reason = await self._hand_over(job, now, 0.0)
            if reason is not None:
                raise CannotRun(f"`{job.name}` {reason}.")
            return DueRun(job, now, 0.0, job.target or self._target)

    def tools(self, name: str) -> tuple[str, ...]:
        """The tools that a job's `tools:` line lets it use unasked."""
        return self._watched[name].job.tools if name in self._watched else ()

    def _named(self, name: str) -> _Watched:
        if name not in self._watched:
            raise UnknownJob(name)
        return self._watched[name]


def _past(watched: _Watched, last: Run | None) -> str | None:
    """A `Once` whose time had passed before it was seen will never run: say so."""
    if isinstance(watched.job.schedule, Once) and watched.next_at is None and last is None:
        return f"line {watched.job.line}: this time had passed when the job was first seen; it does not run"
    return None

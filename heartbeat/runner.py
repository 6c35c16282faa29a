"""The clock: when a job comes due, its run goes into the queue, and what became of it is written down.

Every due time is settled exactly once: it has a row that says it ran, was skipped or was missed, and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from heartbeat.board import Board, Watched
from heartbeat.history import RunHistory
from heartbeat.limits import (
    LONG_ABSENCE_SECONDS,
    MISSED_LINES_MAX,
    MISSED_ROWS_MAX,
    PUNCTUAL_SECONDS,
    RETRY_SECONDS,
    STOP_SECONDS_MAX,
    TICK_SECONDS,
)
from heartbeat.schedule import due_between
from heartbeat.types import (
    CannotRun,
    Defaults,
    DueRun,
    Herald,
    Job,
    JobSource,
    JobState,
    Key,
    Kind,
    Missed,
    Outcome,
    Run,
    RunQueue,
    RunStore,
    Startup,
    Timer,
    filled,
    run_key,
)

_log = logging.getLogger(__name__)

WAS_DOWN = "the gateway was not running"
WAS_ASLEEP = "the machine was asleep or busy"
STILL_RUNNING = "still running"
NOTHING_TO_DO = "the instruction is empty"
BROKE_OFF = "the gateway stopped before the run began"
LEFT_THE_QUEUE = "taken out of the queue"
SWITCHED_OFF = "switched off"
LONG_ABSENCE = timedelta(seconds=LONG_ABSENCE_SECONDS)


class Runner:
    """Watches all sources of jobs by the wall clock and a timer. `now` gives aware times."""

    def __init__(
        self,
        sources: Sequence[JobSource],
        store: RunStore,
        queue: RunQueue,
        history: RunHistory,
        timer: Timer,
        *,
        zone: ZoneInfo,
        now: Callable[[], datetime],
        defaults: Defaults = Defaults(),  # noqa: B008 - a frozen value
        herald: Herald | None = None,
    ) -> None:
        self.board = Board(sources, store, zone)
        self._store = store
        self._queue = queue
        self._history = history
        self._timer = timer
        self._zone = zone
        self._now = now
        self.defaults = defaults
        self._herald = herald
        self._missed: list[Missed] = []
        self._active: dict[Key, datetime] = {}
        self._alarms: dict[str, datetime] = {}
        self._timer_runs = False
        self._begun_at: datetime | None = None
        self._looked_at: datetime | None = None
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to watch, in a task of its own; what came due meanwhile is settled there first."""
        self._task = asyncio.create_task(self._watch(), name="clock")

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
        """Reads the files now, changed or not. Raises what the store raises."""
        async with self._lock:
            await self.board.read(self._clock(), all_of_it=True)
            await self._set_alarms()

    def _clock(self) -> datetime:
        """Now in UTC, in whole milliseconds as the store keeps times."""
        now = self._now().astimezone(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    async def _look(self) -> bool:
        now = self._clock()
        if await self.contained("The jobs could not be read or their state written", self._prepare(now)) is not None:
            return False
        good = True
        for watched in list(self.board.watched.values()):
            if watched.next_at is not None and watched.next_at <= now:
                what = f"A due time of `{watched.job.name}` could not be settled"
                good = await self.contained(what, self._settle(watched, now)) is None and good
        if self._herald is not None:
            missed, self._missed = self._missed, []
            if await self.contained("The owner could not be told", self._herald.looked(now, missed)) is not None:
                self._missed = missed  # at the next look
        return await self.contained("An alarm could not be set", self._set_alarms()) is None and good

    async def contained(self, what: str, step: Awaitable[None]) -> str | None:
        """Awaits one step of one run; a failure is logged, its reason returned, and stops nothing else."""
        try:
            await step
        except Exception as error:  # noqa: BLE001 - the one fence of the clock: whatever a run does, it goes on
            _log.warning("%s: %s", what, error, exc_info=error)
            return str(error) or type(error).__name__
        return None

    async def _prepare(self, now: datetime) -> None:
        """Brings the watched jobs up to date with the files and the clock."""
        if self._begun_at is None:
            await self._begin(now)
        else:
            await self.board.read(now)
        if self._looked_at is not None and now < self._looked_at - timedelta(seconds=PUNCTUAL_SECONDS):
            for watched in self.board.watched.values():  # the clock was set back
                self.board.plan(watched, now)
        self._looked_at = now

    async def _begin(self, now: datetime) -> None:
        """The first look: takes up what the last process left, and looks back to where its rows end."""
        await self.board.read(now, all_of_it=True)
        latest: dict[Key, Run] = {}
        for kind in self.board.kinds:
            latest |= {(kind, job): run for job, run in (await self._store.latest(kind, now)).items()}
            await self._take_up(kind, now)
        self._history.make_up(await self._store.history(MISSED_LINES_MAX))
        self._begun_at = now
        for key, watched in self.board.watched.items():
            last = latest.get(key)
            known = [watched.first_seen] if last is None else [watched.first_seen, last.due_at]
            # A time to come was written under a clock that went wrong.
            self.board.plan(watched, max((at for at in known if at <= now), default=now))
            if isinstance(watched.job.schedule, Startup):
                watched.next_at = now

    async def _take_up(self, kind: Kind, now: datetime) -> None:
        """Rows that were claimed and never ended: still in the queue, ended there unseen, or never handed over."""
        for run in await self._store.unfinished(kind):
            key: Key = (kind, run.job)
            state = await self._queue.state(kind, run_key(run.job, run.due_at))
            watched = self.board.watched.get(key)
            late_seconds = (now - run.due_at).total_seconds()
            if state == "open":
                self._active[key] = run.due_at
            elif state != "unknown":
                await self.finished(key, run.due_at, state)
            elif watched is None or late_seconds > self._allowed_seconds(watched.job):
                await self.finished(key, run.due_at, "interrupted", BROKE_OFF)
            else:
                await self._hand_over(DueRun(watched.job, run.due_at, late_seconds, self._target(watched.job)))

    async def _set_alarms(self) -> None:
        wanted = {
            f"{kind}:{name}": watched.next_at
            for (kind, name), watched in self.board.watched.items()
            if watched.next_at is not None
        }
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

    async def _settle(self, watched: Watched, now: datetime) -> None:
        """Gives each due time up to `now` its row: the latest may run, earlier ones were missed."""
        job = watched.job
        dues = await self._dues(watched, now)
        if job.key in self.board.off:
            await self._leave(job, dues, now, "skipped", SWITCHED_OFF)
        elif dues:
            # The last row comes last: a start after a kill looks back to it.
            await self._miss(job, dues[:-1], now)
            if not await self._due(job, dues[-1], now):
                await self._miss(job, dues[-1:], now)
                if job.kind != "built-in":
                    self._missed.append(Missed(job, len(dues), dues[-1], self._why_missed(dues[-1])))
        self.board.plan(watched, now)

    async def _dues(self, watched: Watched, now: datetime) -> list[datetime]:
        job = watched.job
        if isinstance(job.schedule, Startup):
            return [watched.next_at or now]
        count = (job, watched.settled, now, self._zone, watched.first_seen, MISSED_ROWS_MAX + 1)
        if now - watched.settled > LONG_ABSENCE:
            return await asyncio.to_thread(due_between, *count)
        return due_between(*count)

    async def _due(self, job: Job, due_at: datetime, now: datetime) -> bool:
        """Runs the job, or says in its row why not; False when it is too late for it."""
        late_seconds = (now - due_at).total_seconds()
        if late_seconds > self._allowed_seconds(job):
            return False
        if not job.instruction:
            await self._leave(job, [due_at], now, "skipped", NOTHING_TO_DO)
        elif await self._still_runs(job):
            await self._leave(job, [due_at], now, "skipped", STILL_RUNNING)
        elif reason := await self._over_limit(job, now):
            await self._leave(job, [due_at], now, "skipped", reason)
        elif await self._store.claim(job.name, job.kind, due_at, late_seconds, now):
            await self._hand_over(DueRun(job, due_at, late_seconds, self._target(job)))
        return True

    async def _over_limit(self, job: Job, now: datetime) -> str:
        """Which limit of the owner's day is reached; empty: none. It is counted on disk."""
        runs_max, tokens_max = self.defaults.daily_runs, self.defaults.daily_tokens
        if job.kind == "built-in" or not (runs_max or tokens_max):
            return ""
        midnight = now.astimezone(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
        runs, tokens = await self._store.spent_since(midnight.astimezone(UTC))
        if runs_max and runs >= runs_max:
            return f"over today's limit of {runs_max} runs"
        return f"over today's limit of {tokens_max:,} tokens" if tokens_max and tokens >= tokens_max else ""

    async def _still_runs(self, job: Job) -> bool:
        """Whether an earlier run of this job is under way. One that left the queue unheard is ended here."""
        due_at = self._active.get(job.key)
        if due_at is None:
            return False
        state = await self._queue.state(job.kind, run_key(job.name, due_at))
        if state == "open":
            return True
        reason = LEFT_THE_QUEUE if state == "unknown" else ""
        await self.finished(job.key, due_at, "interrupted" if state == "unknown" else state, reason)
        return False

    async def _miss(self, job: Job, dues: Sequence[datetime], now: datetime) -> None:
        """Rows of due times when nobody was there, each with its reason."""
        begun_at = self._begun_at or now
        await self._leave(job, [due for due in dues if due < begun_at], now, "missed", WAS_DOWN)
        await self._leave(job, [due for due in dues if due >= begun_at], now, "missed", WAS_ASLEEP)

    def _why_missed(self, due_at: datetime) -> str:
        return WAS_DOWN if self._begun_at is not None and due_at < self._begun_at else WAS_ASLEEP

    def _allowed_seconds(self, job: Job) -> float:
        """How late a run of this job may begin."""
        if (job.catchup or self.defaults.catchup) == "skip":
            return PUNCTUAL_SECONDS
        grace_seconds = self.defaults.grace_seconds if job.grace_seconds is None else job.grace_seconds
        return max(grace_seconds, PUNCTUAL_SECONDS)

    def _target(self, job: Job) -> str:
        return job.target or self.defaults.target

    async def _hand_over(self, run: DueRun) -> str | None:
        """Puts a claimed run into the queue; on failure ends its row and returns the reason."""
        job = run.job
        self._active[job.key] = run.due_at
        failure = await self.contained(f"The run of `{job.name}` did not reach the queue", self._queue.submit(run))
        if failure is not None:
            failure = f"did not reach the queue: {failure}"
            await self.finished(job.key, run.due_at, "error", failure)
        return failure

    async def _leave(self, job: Job, dues: Sequence[datetime], now: datetime, outcome: Outcome, reason: str) -> None:
        """The rows of due times that do not run, and their lines. What the owner switched off, and the program's own
        jobs, have no lines."""
        if not dues:
            return
        written = await self._store.skip(job.name, job.kind, dues, outcome, reason, now)
        if job.kind == "built-in" or reason == SWITCHED_OFF:
            return
        runs = [Run(job.name, job.kind, due, None, now, outcome, 0.0, reason) for due in written]
        earlier, runs = runs[:-MISSED_LINES_MAX], runs[-MISSED_LINES_MAX:]
        if earlier:
            since = earlier[0].due_at.astimezone(self._zone)
            note = f"{len(earlier):,} times since {since:%Y-%m-%d %H:%M}: {reason}"
            runs.insert(0, replace(earlier[-1], reason=note))
        self._history.append(*runs)

    async def finished(
        self, key: Key, due_at: datetime, outcome: Outcome, note: str = "", conversation: str | None = None
    ) -> None:
        """The turn of this run has ended: ends its row and writes its line. A second call changes nothing."""
        if self._active.get(key) == due_at:
            del self._active[key]
        kind, job = key
        run = await self._store.finish(job, kind, due_at, outcome, note, conversation, self._clock())
        if run is not None and (kind != "built-in" or note):
            self._history.append(run)

    async def list(self) -> tuple[JobState, ...]:
        """All jobs in file order, the faulty ones of each kind after the sound ones."""
        return await self.board.states(self._clock())

    def next(self, name: str | None = None, n: int = 5) -> tuple[tuple[str, datetime], ...]:
        """See Board.next. Raises UnknownJob."""
        return self.board.next(name, n)

    def coming(self, job: Job, n: int) -> tuple[datetime, ...]:
        """The next `n` due times of a job that is not under watch, in its zone."""
        return self.board.coming(job, self._clock(), n)

    async def run_now(self, name: str, kind: Kind | None = None, arguments: Mapping[str, str] | None = None) -> DueRun:
        """Starts a run by hand, due this moment; returns when it is in the queue.

        Raises UnknownJob, and CannotRun when it is running already, has no instruction, lacks an argument, or was not
        taken.
        """
        async with self._lock:
            await self._look()
            job = self.board.find(name, kind).job
            if not job.instruction:
                raise CannotRun(f"`{job.name}` cannot run: {NOTHING_TO_DO}.")
            filled(job, arguments or {})
            now = self._clock()
            if await self._still_runs(job):
                raise CannotRun(f"`{job.name}` is {STILL_RUNNING}.")
            while not await self._store.claim(job.name, job.kind, now, 0.0, now, by_hand=True):
                now += timedelta(milliseconds=1)  # a due time of its own has this very moment
            run = DueRun(job, now, 0.0, self._target(job), arguments or {})
            reason = await self._hand_over(run)
            if reason is not None:
                raise CannotRun(f"`{job.name}` {reason}.")
            return run

    async def switch(self, name: str, on: bool, kind: Kind | None = None) -> None:
        """Switches a job on or off without touching its file. Raises UnknownJob."""
        async with self._lock:
            await self.board.read(self._clock())
            await self.board.switch(self.board.find(name, kind).job.key, on)

    def job(self, kind: Kind, name: str) -> Job | None:
        """The job as it stands now; None when there is none."""
        watched = self.board.watched.get((kind, name))
        return None if watched is None else watched.job

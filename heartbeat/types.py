"""The types of the clock, and the Protocols it is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Literal, Protocol

from heartbeat.limits import GRACE_SECONDS_DEFAULT

Kind = Literal["heartbeat", "procedure", "built-in"]
KINDS: tuple[Kind, ...] = ("heartbeat", "procedure", "built-in")
"""In the order in which a bare name is looked up."""
Outcome = Literal["ok", "error", "skipped", "missed", "interrupted"]
Catchup = Literal["once", "skip"]


@dataclass(frozen=True, slots=True)
class Startup:
    """Due once at each start of the program."""


@dataclass(frozen=True, slots=True)
class Once:
    """Due at one wall-clock time. `at` has no zone: it is read in the job's."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Interval:
    """Due every `seconds` of real time, counted from local midnight of the day the job was first seen."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Days:
    """Due at local midnight every `days` days, counted from the day the job was first seen."""

    days: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Due when any of the five-field cron `expressions` matches the wall clock.

    `real_time`: every instant whose local reading matches (twice in a repeated hour, never in a gap). Otherwise
    each local time once: one that does not exist right after the gap, one that exists twice the first time.
    """

    expressions: tuple[str, ...]
    real_time: bool = False


@dataclass(frozen=True, slots=True)
class ByHand:
    """Never due by itself."""


Schedule = Startup | Once | Interval | Days | Calendar | ByHand


@dataclass(frozen=True, slots=True)
class Argument:
    """A blank in the instruction of a procedure, written `{name}`. `default` None: it must be given."""

    name: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it stands in its file.

    `name` and `kind` identify it, `heading` is the schedule as written, `line` where it stands (from 1). The rest are
    its marker lines; None means that the settings decide. `zone` is an IANA name that exists. `target` is `owner`,
    `none` or `<channel>:<chat>`. `title` and `arguments` are a procedure's.
    """

    name: str
    kind: Kind
    heading: str
    schedule: Schedule
    instruction: str
    line: int
    zone: str | None = None
    target: str | None = None
    grace_seconds: float | None = None
    catchup: Catchup | None = None
    quiet: tuple[time, time] | None = None
    urgent: bool = False
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    model: str | None = None
    title: str = ""
    arguments: tuple[Argument, ...] = ()

    @property
    def key(self) -> Key:
        return self.kind, self.name


Key = tuple[Kind, str]
"""Which job: a heartbeat job and a procedure may share a name."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one job (or with the file), where (line from 1) and why; that job is off."""

    name: str
    heading: str
    line: int
    reason: str
    file: str = ""

    def __str__(self) -> str:
        return f"{self.file} line {self.line}: {self.reason}" if self.file else f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's sound jobs and its faults, each in file order."""

    jobs: tuple[Job, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """The row of one due time. `outcome` and `ended_at` are None while it runs; skipped and missed never started.

    Times are aware UTC. (kind, job, due_at) is unique; due times are whole milliseconds.
    """

    job: str
    kind: Kind
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    outcome: Outcome | None
    late_seconds: float
    reason: str = ""
    conversation: str | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class DueRun:
    """A run that is to begin now: the job as it stood when it came due, and where its answer goes."""

    job: Job
    due_at: datetime
    late_seconds: float
    target: str
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def instruction(self) -> str:
        """What to do, with the arguments filled in."""
        return filled(self.job, self.arguments)

    @property
    def key(self) -> str:
        """The name of this due time in the queue."""
        return run_key(self.job.name, self.due_at)


def filled(job: Job, given: Mapping[str, str]) -> str:
    """The instruction with its arguments. Raises CannotRun for one that is lacking or that there is not."""
    known = {argument.name: argument.default for argument in job.arguments}
    for name in given.keys() - known.keys():
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        raise CannotRun(f"`{job.name}` has no argument `{name}`; {takes}.")
    values = {name: given.get(name, default) for name, default in known.items()}
    lacking = [name for name, value in values.items() if value is None]
    if lacking:
        raise CannotRun(f"`{job.name}` needs {', '.join(lacking)}; write for example {lacking[0]}=...")
    # In one pass: what stands in a value is not filled in again.
    return re.sub(r"\{([^{}\s]+)\}", lambda blank: values.get(blank[1]) or blank[0], job.instruction)


def run_key(job: str, due_at: datetime) -> str:
    """`beat:<job>:<due>`, the due time in UTC as ISO 8601: the same due time always has the same key."""
    return f"beat:{job}:{due_at.astimezone(UTC).isoformat()}"


def due_of_key(key: str) -> tuple[str, datetime]:
    """The job and the due time in a key that `run_key` made. Raises ValueError for any other text."""
    found = re.fullmatch(r"beat:(.+):(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00)", key, re.DOTALL)
    if found is None:
        raise ValueError(f"`{key}` is no key of a scheduled run")
    return found[1], datetime.fromisoformat(found[2])


@dataclass(frozen=True, slots=True)
class JobState:
    """One line of the job list. A faulty job has `enabled` False and its fault; `next_at` is in the job's zone."""

    name: str
    kind: Kind
    schedule: str
    zone: str
    enabled: bool
    next_at: datetime | None
    last: Run | None
    fault: str | None


class UnknownJob(LookupError):
    """No sound job has this name."""


class CannotRun(Exception):
    """The job cannot be started by hand now. `str()` is one sentence."""


class RunStore(Protocol):
    """The durable rows of due times; every method has committed when it returns."""

    async def seen(self, kind: Kind, timings: Mapping[str, str], now: datetime) -> Mapping[str, datetime]:
        """When each job (name to timing) was first seen with this timing: `now` for what is new or has changed.

        Jobs of this kind that are not in `timings` are forgotten: they are new when they come back.
        """
        ...

    async def claim(
        self, job: str, kind: Kind, due_at: datetime, late_seconds: float, now: datetime, *, by_hand: bool = False
    ) -> bool:
        """Writes the row of a run that begins now; False, and nothing written, when that due time has a row."""
        ...

    async def skip(
        self, job: str, kind: Kind, dues: Sequence[datetime], outcome: Outcome, reason: str, now: datetime
    ) -> Sequence[datetime]:
        """Writes the rows of due times that do not run (`ended_at` = `now`); those that had no row yet."""
        ...

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
        """Ends the open row and returns it; None, and nothing changed, when there is no open row of that due time."""
        ...

    async def latest(self, kind: Kind, until: datetime) -> Mapping[str, Run]:
        """Of each job the row with the latest due time not after `until`."""
        ...

    async def unfinished(self, kind: Kind) -> Sequence[Run]:
        """The rows that were claimed and never ended."""
        ...

    async def history(self, limit: int) -> Sequence[Run]:
        """The newest rows by due time, newest first; of built-in jobs only those that have something to tell."""
        ...

    async def spent_since(self, since: datetime) -> tuple[int, int]:
        """Runs that the clock itself started since a time (built-in jobs not counted), and the tokens of all runs."""
        ...

    async def switched_off(self) -> frozenset[Key]:
        """The jobs that the owner has switched off."""
        ...

    async def switch(self, key: Key, on: bool) -> None: ...


QueueState = Literal["unknown", "open"] | Outcome


class RunQueue(Protocol):
    """The way into the agent queue."""

    async def submit(self, run: DueRun) -> None:
        """Puts the run into the queue under `run.key`; on disk when it returns. The same key twice is one run.

        Raises when it could not be saved.
        """
        ...

    async def state(self, kind: Kind, key: str) -> QueueState:
        """What the queue knows of that key: `unknown` (never arrived), `open` (waits or runs), or how it ended."""
        ...


class JobSource(Protocol):
    """Where the jobs of one kind are written down."""

    @property
    def kind(self) -> Kind: ...

    def changed(self) -> bool:
        """True when `load` would read something new. Cheap."""
        ...

    def load(self) -> Parsed: ...


class Timer(Protocol):
    """Alarms by name; `wake` is called on the event loop when one is due, early or late by little."""

    async def start(self, wake: Callable[[], None]) -> None: ...

    def set(self, name: str, at: datetime) -> None:
        """Replaces the alarm of that name."""
        ...

    def remove(self, name: str) -> None:
        """Does nothing when there is none."""
        ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Missed:
    """A job whose latest due time passed without a run: how often since when, and why."""

    job: Job
    count: int
    last_due_at: datetime
    reason: str


class Herald(Protocol):
    """Tells the owner what the clock has to say, and what was held back until now."""

    async def looked(self, now: datetime, missed: Sequence[Missed]) -> None:
        """After each look of the clock. Cheap when there is nothing to tell."""
        ...


@dataclass(frozen=True, slots=True)
class Defaults:
    """What counts where a job says nothing. `daily_runs` and `daily_tokens` 0: no limit."""

    target: str = "owner"
    grace_seconds: float = GRACE_SECONDS_DEFAULT
    catchup: Catchup = "once"
    quiet: tuple[time, time] | None = None
    daily_runs: int = 0
    daily_tokens: int = 0

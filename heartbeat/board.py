"""All jobs under watch, from every place where jobs are written down, and when each is due next."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from heartbeat.schedule import job_zone, next_due
from heartbeat.types import KINDS, Fault, Job, JobSource, JobState, Key, Kind, Once, Run, RunStore, UnknownJob

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Watched:
    """A job under watch. All its due times up to `settled` have their row; `next_at` is the next one.

    `timing` is what decides the due times, as written: where it changes, the job counts as first seen anew.
    """

    job: Job
    zone: ZoneInfo
    timing: str
    first_seen: datetime
    settled: datetime
    next_at: datetime | None = None


class Board:
    """`zone` counts where a job names none. `watched` is in the order of the sources and their files."""

    def __init__(self, sources: Sequence[JobSource], store: RunStore, zone: ZoneInfo) -> None:
        self._sources = tuple(sources)
        self._store = store
        self._zone = zone
        self._stale: set[Kind] = {source.kind for source in sources}
        self._faults: dict[Kind, tuple[Fault, ...]] = {}
        self.watched: dict[Key, Watched] = {}
        self.off: frozenset[Key] = frozenset()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(source.kind for source in self._sources)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the files as they were last read."""
        return tuple(fault for kind in self.kinds for fault in self._faults.get(kind, ()))

    async def read(self, now: datetime, *, all_of_it: bool = False) -> None:
        """Loads what changed on disk. A job whose timing is unchanged stays under watch as it was."""
        for source in self._sources:
            if all_of_it or source.kind in self._stale or source.changed():
                self._stale.add(source.kind)
                await self._load(source, now)
                self._stale.discard(source.kind)

    async def _load(self, source: JobSource, now: datetime) -> None:
        kind = source.kind
        parsed = source.load()
        if parsed.faults != self._faults.get(kind, ()):
            for fault in parsed.faults:
                _log.warning("%s: `%s` is off: %s", kind, fault.name, fault)
        self._faults[kind] = parsed.faults
        zones = {job.name: job_zone(job, self._zone) for job in parsed.jobs}
        timings = {job.name: f"{job.heading} @{zones[job.name].key}" for job in parsed.jobs}
        first_seen = await self._store.seen(kind, timings, now)
        self.off = await self._store.switched_off()
        loaded: dict[Key, Watched] = {}
        for job in parsed.jobs:
            name, old = job.name, self.watched.get(job.key)
            loaded[job.key] = Watched(job, zones[name], timings[name], first_seen.get(name, now), now)
            self.plan(loaded[job.key], old.settled if old is not None and old.timing == timings[name] else now)
        by_kind = {known: {} for known in self.kinds} | {kind: loaded}
        for key, watched in self.watched.items():
            if key[0] != kind:
                by_kind[key[0]][key] = watched
        self.watched = {key: watched for jobs in by_kind.values() for key, watched in jobs.items()}

    def plan(self, watched: Watched, settled: datetime) -> None:
        """Everything up to `settled` has its row; what is due next follows from there."""
        watched.settled = settled
        watched.next_at = next_due(watched.job, settled, self._zone, watched.first_seen)

    async def switch(self, key: Key, on: bool) -> None:
        await self._store.switch(key, on)
        self.off = await self._store.switched_off()

    def find(self, name: str, kind: Kind | None = None) -> Watched:
        """The job of this name; of several kinds the heartbeat job, then the procedure. Raises UnknownJob."""
        for known in KINDS if kind is None else (kind,):
            if (known, name) in self.watched:
                return self.watched[known, name]
        raise UnknownJob(name)

    def next(self, name: str | None, n: int) -> tuple[tuple[str, datetime], ...]:
        """The next `n` due times of one job, or of all that are on, as (name, time in the job's zone).

        Built-in jobs count only when they are named. Raises UnknownJob.
        """
        found: list[tuple[str, datetime]] = []
        of_all = (one for key, one in self.watched.items() if key not in self.off and key[0] != "built-in")
        for watched in of_all if name is None else (self.find(name),):
            due = watched.next_at
            for _ in range(n):
                if due is None:
                    break
                found.append((watched.job.name, due.astimezone(watched.zone)))
                due = next_due(watched.job, due, self._zone, watched.first_seen)
        return tuple(sorted(found, key=lambda pair: pair[1])[:n])

    def coming(self, job: Job, now: datetime, n: int) -> tuple[datetime, ...]:
        """The next `n` due times of a job first seen now, in its zone."""
        zone, found, due = job_zone(job, self._zone), list[datetime](), now
        while len(found) < n and (after := next_due(job, due, self._zone, now)) is not None:
            found.append(after.astimezone(zone))
            due = after
        return tuple(found)

    async def states(self, now: datetime) -> tuple[JobState, ...]:
        """All jobs in file order, the faulty ones of each kind after the sound ones."""
        states: list[JobState] = []
        for kind in self.kinds:
            latest = await self._store.latest(kind, now)
            states += [self._state(one, latest) for key, one in self.watched.items() if key[0] == kind]
            states += [
                JobState(
                    fault.name, kind, fault.heading, self._zone.key, False, None, latest.get(fault.name), str(fault)
                )
                for fault in self._faults.get(kind, ())
            ]
        return tuple(states)

    def _state(self, watched: Watched, latest: Mapping[str, Run]) -> JobState:
        job, last = watched.job, latest.get(watched.job.name)
        on = job.key not in self.off
        return JobState(
            name=job.name,
            kind=job.kind,
            schedule=job.heading,
            zone=watched.zone.key,
            enabled=on,
            next_at=watched.next_at.astimezone(watched.zone) if on and watched.next_at is not None else None,
            last=last,
            fault=_past(watched, last),
        )


def _past(watched: Watched, last: Run | None) -> str | None:
    """A `Once` whose time had passed before it was seen will never run: say so."""
    if isinstance(watched.job.schedule, Once) and watched.next_at is None and last is None:
        return f"line {watched.job.line}: this time had passed when the job was first seen; it does not run"
    return None

"""Long runs of the clock under a clock that is set: a year in six zones, months of kills.

`python -m tests.heartbeat.simulations --years 3 --months 200` is the long form of what the suite runs once.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from heartbeat.grammar import parse_heartbeat
from heartbeat.history import RunHistory
from heartbeat.runner import Runner
from heartbeat.types import DueRun, Run
from tests.fakes.clock import FakeClock, FakeRunQueue, FakeRunStore, FakeSource, FakeTimer

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Cairo",
    "Asia/Riyadh",
)
STEP = timedelta(minutes=5)
Rows = set[tuple[str, datetime]]


@dataclass(frozen=True)
class Wanted:
    """A heading, and by which days it is due: worked out here, without the code that is tested.

    `at`: the time of day of a fixed time. `minutes_of`: readings that count each time they are shown.
    `every`: a real-time interval from local midnight of the first day. `days`: whole days between midnights.
    """

    heading: str
    on: Callable[[date], bool] = lambda day: True
    at: time | None = None
    shown: Callable[[datetime], bool] | None = None
    every: timedelta | None = None
    days: int = 0


def last_of_month(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


def fixed(word: str, at: str, on: Callable[[date], bool]) -> Wanted:
    return Wanted(f"{word} ({at})", on, time.fromisoformat(at[-5:]))


def weekday(number: int) -> Callable[[date], bool]:
    return lambda day: day.isoweekday() % 7 == number


def day_of_month(number: int) -> Callable[[date], bool]:
    return lambda day: day.day == number


def jobs() -> list[Wanted]:
    """Forty: at awkward times, where the six zones leap and fall back."""
    found = [fixed("Daily", at, lambda day: True) for at in ("00:00", "01:45", "02:00", "02:15", "02:30", "03:00")]
    found += [fixed("Nightly", at, lambda day: True) for at in ("00:30", "01:30", "23:55")]
    found += [fixed("Weekday", at, lambda day: day.isoweekday() <= 5) for at in ("02:30", "08:00", "00:05")]
    names = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
    found += [fixed("Weekly", f"{names[n]} {at}", weekday(n)) for n in range(7) for at in ("00:00", "02:30")]
    found += [fixed("Monthly", f"{day} 02:30", day_of_month(day)) for day in (1, 15, 28)]
    found += [fixed("Monthly", "31 00:00", last_of_month)]
    found += [fixed("Monthly", "30 02:15", lambda on: on.day == 30 or (on.month == 2 and last_of_month(on)))]
    found += [
        Wanted("Cron (30 2 1 * 1)", lambda on: on.day == 1 or on.isoweekday() == 1, time(2, 30)),
        Wanted("Cron (0 9 * * 7)", weekday(0), time(9)),
        Wanted("Cron (15 */6 * * *)", shown=lambda at: at.minute == 15 and at.hour % 6 == 0),
        Wanted("Cron (45 * 1 * *)", shown=lambda at: at.minute == 45 and at.day == 1),
        Wanted("Hourly (30)", shown=lambda at: at.minute == 30),
        Wanted("Every (7h)", every=timedelta(hours=7)),
        Wanted("Every (595m)", every=timedelta(minutes=595)),
        Wanted("Every (1d)", days=1),
        Wanted("Every (10d)", days=10),
    ]
    assert len(found) == 40
    return found


class Shown:
    """What clocks on the wall of a zone show, every five minutes: read off, not calculated."""

    def __init__(self, zone: ZoneInfo, begin: datetime, end: datetime) -> None:
        self.readings: list[tuple[datetime, datetime]] = []
        self.first: dict[datetime, datetime] = {}
        self.gaps: list[tuple[datetime, datetime, datetime]] = []
        at, before = begin, None
        while at <= end:
            reading = at.astimezone(zone).replace(tzinfo=None)
            self.readings.append((at, reading))
            self.first.setdefault(reading, at)
            if before is not None and reading - before > STEP:
                self.gaps.append((before, reading, at))
            at, before = at + STEP, reading

    def when(self, reading: datetime) -> datetime | None:
        """When it is shown first, or the moment right after the leap over it."""
        leapt = (at for before, after, at in self.gaps if before < reading < after)
        return self.first.get(reading) or next(leapt, None)


def due_times(wanted: Wanted, shown: Shown, zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    first = begin.astimezone(zone).date()
    if wanted.every is not None:
        at = shown.when(datetime.combine(first, time()))
        while at is not None and at <= end:
            yield at
            at += wanted.every
    elif wanted.shown is not None:
        yield from (at for at, reading in shown.readings if wanted.shown(reading))
    else:
        for n in range((end - begin).days + 2):
            day = first + timedelta(days=n)
            if n % wanted.days == 0 if wanted.days else wanted.on(day):
                at = shown.when(datetime.combine(day, wanted.at or time()))
                if at is not None:
                    yield at


async def a_year(folder: Path, year: int) -> int:
    """Forty jobs through a year, spread over six zones; the number of rows. Raises AssertionError."""
    begin, end = datetime(year, 1, 1, 0, 3, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    text, expected = "", Rows()
    zones = {name: ZoneInfo(name) for name in ZONES}
    shown = {name: Shown(zone, begin.replace(minute=0) - timedelta(days=2), end) for name, zone in zones.items()}
    for number, wanted in enumerate(jobs()):
        zone = ZONES[number % len(ZONES)]
        text += f"## {wanted.heading}\nname: job {number}\nzone: {zone}\n\ngo\n\n"
        found = due_times(wanted, shown[zone], zones[zone], begin, end)
        expected |= {(f"job {number}", at) for at in found if begin < at <= end}
    clock, store, queue = FakeClock(begin), FakeRunStore(), FakeRunQueue()
    source = FakeSource(parse_heartbeat(text))
    assert not source.parsed.faults
    runner = Runner(
        [source],
        store,
        queue,
        RunHistory(folder / "history.md", zones[ZONES[0]]),
        FakeTimer(),
        zone=ZoneInfo("UTC"),
        now=clock,
    )
    ended = 0
    while clock.at < end:
        assert await runner.tick()
        for run in queue.submitted[ended:]:
            await runner.finished(run.job.key, run.due_at, "ok")
        ended = len(queue.submitted)
        coming = [watched.next_at for watched in runner.board.watched.values() if watched.next_at is not None]
        clock.at = min(min(coming), end)
    assert await runner.tick()
    rows = {(job, due_at) for _, job, due_at in store.rows}
    assert rows == expected, sorted(rows ^ expected, key=lambda row: row[1])[:5]
    started = [run.key for run in queue.submitted]
    assert len(started) == len(set(started)) == len(rows)
    return len(rows)


class Dies(BaseException):
    """The process ends here and now."""


class Fragile(FakeRunStore, FakeRunQueue):
    """Rows and queue that die at a call chosen by chance: before or after it is written."""

    def __init__(self, chance: random.Random) -> None:
        FakeRunStore.__init__(self)
        self.submitted, self.states, self.chance, self.odds = [], {}, chance, 0.02

    def _insert(self, run: Run) -> bool:
        self._maybe_die()
        done = super()._insert(run)
        self._maybe_die()
        return done

    async def submit(self, run: DueRun) -> None:
        self._maybe_die()
        if all(run.key != other.key for other in self.submitted):
            self.submitted.append(run)
        self._maybe_die()

    def _maybe_die(self) -> None:
        if self.chance.random() < self.odds:
            raise Dies


async def a_month_of_kills(folder: Path, seed: int) -> int:
    """Two jobs through a month in which the process is killed again and again; the number of kills."""
    chance, clock = random.Random(seed), FakeClock(datetime(2027, 3, 1, 0, 30, tzinfo=UTC))
    fragile, zone = Fragile(chance), ZoneInfo("UTC")
    parsed = parse_heartbeat("## Every (2h)\nname: a\n\nx\n## Daily (07:30)\nname: b\n\ny")

    def started() -> Runner:
        history = RunHistory(folder / f"history-{seed}.md", zone)
        return Runner([FakeSource(parsed)], fragile, fragile, history, FakeTimer(), zone=zone, now=clock)

    fragile.odds, runner = 0, started()
    await runner.tick()
    fragile.odds = 0.02
    end, ended, kills = clock.at + timedelta(days=30), 0, 0
    while clock.at < end:
        try:
            await runner.tick()
            if chance.random() < 0.1:
                raise Dies
            for run in fragile.submitted[ended:]:
                await runner.finished(run.job.key, run.due_at, "ok")
                ended += 1
        except Dies:
            kills += 1
            clock.forward(minutes=chance.randint(1, 600))
            runner = started()
        clock.forward(minutes=chance.randint(1, 40))
    fragile.odds = 0
    await runner.tick()
    midnight = datetime(2027, 3, 1, tzinfo=UTC)
    wanted = {("a", midnight + timedelta(hours=2 * n)) for n in range(1, 24 * 40)}
    wanted |= {("b", midnight + timedelta(days=n, hours=7.5)) for n in range(40)}
    assert set(fragile.rows) == {("heartbeat", job, due) for job, due in wanted if due <= clock.at}
    keys = [run.key for run in fragile.submitted]
    assert len(keys) == len(set(keys))
    return kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=1)
    parser.add_argument("--months", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for year in range(2027, 2027 + given.years):
            sys.stdout.write(f"{year}: {asyncio.run(a_year(Path(folder), year))} due times, each with one row\n")
        kills = sum(asyncio.run(a_month_of_kills(Path(folder), seed)) for seed in range(given.months))
        sys.stdout.write(f"{given.months} months, {kills} kills: no due time without a row, none twice\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

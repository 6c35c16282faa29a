"""The due times of a job over zones and clock changes. Pure.

The calendar is matched on wall-clock readings by cronsim; how a reading becomes an instant where clocks change is
decided here, because the rules differ between fixed times and times that follow real time (see `Calendar`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from heartbeat.types import ByHand, Calendar, Days, Interval, Job, Once, Schedule, Startup

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


def next_due(job: Job, after: datetime, zone: ZoneInfo, first_seen: datetime | None = None) -> datetime | None:
    """The first due time of `job` later than `after` (aware), in UTC; None when there is none.

    `zone` counts where the job names none. `first_seen` is what intervals are counted from; None: `after`.
    """
    zone = job_zone(job, zone)
    after = after.astimezone(UTC)
    seen = after if first_seen is None else first_seen.astimezone(UTC)
    return _next(job.schedule, after, zone, seen)


def due_between(
    job: Job, since: datetime, until: datetime, zone: ZoneInfo, first_seen: datetime, count_max: int
) -> list[datetime]:
    """The due times later than `since` and not later than `until`, in order; of more than `count_max` the last.

    Looks back from `until` in growing steps, so that a long absence of a frequent job costs little.
    """
    span = timedelta(hours=1)
    while True:
        start = max(since, until - span)
        found: list[datetime] = []
        due = next_due(job, start, zone, first_seen)
        while due is not None and due <= until:
            found.append(due)
            due = next_due(job, due, zone, first_seen)
        if start == since or len(found) >= count_max:
            return found[-count_max:]
        span *= 2


def job_zone(job: Job, default: ZoneInfo) -> ZoneInfo:
    """The zone a job's times are read in."""
    return default if job.zone is None else ZoneInfo(job.zone)


def _next(schedule: Schedule, after: datetime, zone: ZoneInfo, seen: datetime) -> datetime | None:
    match schedule:
        case Startup() | ByHand():
            return None
        case Once(at):
            due = _instant(at, zone)
            return due if due > after else None
        case Interval(seconds):
            anchor = _instant(_midnight(_reading(seen, zone)), zone)
            step = timedelta(seconds=seconds)
            return anchor + ((after - anchor) // step + 1) * step
        case Days(days):
            start = _midnight(_reading(seen, zone))
            step = timedelta(days=days)
            local = start + (_reading(after, zone) - start) // step * step
            while (due := _instant(local, zone)) <= after:
                local += step
            return due
        case Calendar(expressions, real_time):
            matching = _next_reading if real_time else _next_fixed
            found = [due for text in expressions if (due := matching(text, after, zone)) is not None]
            return min(found, default=None)


def _next_fixed(expression: str, after: datetime, zone: ZoneInfo) -> datetime | None:
    """Each matching wall-clock time once. Later readings never mean earlier instants, so the first hit is it."""
    for local in _matches(expression, _reading(after, zone)):
        due = _instant(local, zone)
        if due > after:  # a reading of the repeated hour can mean an instant already past
            return due
    return None


def _next_reading(expression: str, after: datetime, zone: ZoneInfo) -> datetime | None:
    """Each instant whose reading matches: searched between one change of the clock and the next."""
    start, local = after, _reading(after, zone)
    while True:
        match = next(_matches(expression, local), None)
        if match is None:
            return None
        due = (match - _offset(start, zone)).replace(tzinfo=UTC)
        change = _first_change(start, due, zone)
        if change is None:
            return due
        start, local = change, _reading(change, zone) - _SECOND  # the first reading after the change counts too


def _matches(expression: str, after_local: datetime) -> Iterator[datetime]:
    return CronSim(expression, after_local)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _reading(instant: datetime, zone: ZoneInfo) -> datetime:
    """What a clock on the wall shows, without zone."""
    return instant.astimezone(zone).replace(tzinfo=None)


def _midnight(local: datetime) -> datetime:
    return datetime.combine(local.date(), time())


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    """When the wall clock first shows `local` or, where it leaps over it, the moment after the leap; in UTC."""
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if _reading(first, zone) == local:
        return first
    # In a gap, PEP 495: fold=1 reads with the offset after it, which gives an instant before it.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _first_change(before, first, zone) or first


def _first_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first instant in (start, end] from which another offset holds, to the second."""
    while start < end:
        step = min(start + _DAY, end)
        offset = _offset(start, zone)
        if _offset(step, zone) != offset:
            low, high = start.replace(microsecond=0), step.replace(microsecond=0)
            while high - low > _SECOND:
                middle = low + (high - low) // 2 // _SECOND * _SECOND
                low, high = (middle, high) if _offset(middle, zone) == offset else (low, middle)
            return high
        start = step
    return None

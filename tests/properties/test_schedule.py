"""Due times compared with a count minute by minute, and parsers fed with anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from heartbeat.grammar import parse_heartbeat
from heartbeat.headings import BadSchedule, fold, parse_schedule
from heartbeat.schedule import due_between, next_due
from heartbeat.types import Calendar, Job, Schedule, due_of_key, run_key

MINUTE = timedelta(minutes=1)

CHANGES = {
    "Europe/Berlin": ["2027-03-28", "2027-10-31"],
    "America/New_York": ["2027-03-14", "2027-11-07"],
    "Australia/Lord_Howe": ["2027-04-04", "2027-10-03"],
    "Asia/Kathmandu": ["2027-06-01"],
    "Africa/Cairo": ["2027-04-30", "2027-10-29"],
    "Asia/Riyadh": ["2027-02-28"],
}
WINDOWS = [(zone, day) for zone, days in CHANGES.items() for day in days]


@cache
def readings(zone: str, day: str) -> list[tuple[datetime, datetime]]:
    """(UTC minute, wall-clock reading) of the day before a change until two days after it."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1, hours=12)
    minutes = [start + n * MINUTE for n in range(4 * 24 * 60)]
    return [(minute, minute.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for minute in minutes]


def counted(zone: str, day: str, minutes: set[int], hours: set[int] | None) -> list[datetime]:
    """The rules in their plainest form. No hours: each instant whose reading matches. Else each wanted reading at
    the first instant at which the clock shows it or has leapt over it."""
    table = readings(zone, day)
    if hours is None:
        return [instant for instant, reading in table if reading.minute in minutes]
    found: set[datetime] = set()
    first, last = table[0][1], max(reading for _, reading in table)
    wanted = [
        reading
        for n in range(int((last - first) / MINUTE) + 1)
        if (reading := first + n * MINUTE).hour in hours and reading.minute in minutes
    ]
    at = 0
    for reading in wanted:
        while table[at][1] < reading:
            at += 1
        found.add(table[at][0])
    return sorted(found)


def job(schedule: Schedule) -> Job:
    return Job("j", "heartbeat", "", schedule, "x", 1)


def walk(schedule: Schedule, zone: str, after: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    due = next_due(job(schedule), after, ZoneInfo(zone), after)
    while due is not None and due <= until:
        found.append(due)
        due = next_due(job(schedule), due, ZoneInfo(zone), after)
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(WINDOWS),
    st.sets(st.integers(0, 59), min_size=1, max_size=3),
    st.none() | st.sets(st.integers(0, 5), min_size=1, max_size=3),
    st.integers(0, 3 * 24 * 60),
)
def test_due_times_equal_a_count_minute_by_minute(
    window: tuple[str, str], minutes: set[int], hours: set[int] | None, start: int
) -> None:
    zone, day = window
    hour_field = "*" if hours is None else ",".join(map(str, hours))
    schedule = Calendar((f"{','.join(map(str, minutes))} {hour_field} * * *",), real_time=hours is None)
    table = readings(zone, day)
    after, until = table[start][0], table[-120][0]
    expected = [due for due in counted(zone, day, minutes, hours) if after < due <= until]
    assert walk(schedule, zone, after, until) == expected


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(
        [
            "Hourly (30)",
            "Daily (00:00)",
            "Daily (02:30)",
            "Weekday (02:15)",
            "Weekly (Sun 01:45)",
            "Monthly (31 02:30)",
            "Every (45m)",
            "Every (7h)",
            "Every (1d)",
            "Cron (*/20 1-3 * * *)",
        ]
    ),
    st.integers(0, 3 * 24 * 60 - 1),
    st.integers(0, 59_999),
)
def test_due_times_advance_and_do_not_depend_on_where_one_starts(
    window: tuple[str, str], heading: str, start: int, milliseconds: int
) -> None:
    zone, day = window
    schedule = parse_schedule(heading)
    table = readings(zone, day)
    first_seen, until = table[0][0], table[-1][0]
    after = table[start][0] + timedelta(milliseconds=milliseconds)
    place = ZoneInfo(zone)
    whole: list[datetime] = []
    due = next_due(job(schedule), first_seen, place, first_seen)
    while due is not None and due <= until:
        assert not whole or due > whole[-1]
        whole.append(due)
        due = next_due(job(schedule), due, place, first_seen)
    rest = [due for due in whole if due > after]
    assert due_between(job(schedule), after, until, place, first_seen, 1_000) == rest
    assert due_between(job(schedule), after, until, place, first_seen, 3) == rest[-3:]


LINES = st.sampled_from(
    [
        "## Daily (08:00)",
        "## كل يوم (٨:٠٠)",
        "## x",
        "name: a",
        "zone: Asia/Riyadh",
        "do it",
        "",
        "<!--",
        "-->",
        "```",
        "---",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES | st.text(max_size=20), max_size=25))
def test_any_file_gives_jobs_with_their_own_names_and_faults_with_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    parsed = parse_heartbeat(text)
    file_lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert len({job.name.casefold() for job in parsed.jobs}) == len(parsed.jobs)
    assert all("##" in file_lines[job.line - 1] for job in parsed.jobs)
    assert all(1 <= fault.line <= len(file_lines) and fault.reason for fault in parsed.faults)
    assert parse_heartbeat("\r\n".join(file_lines)) == parsed


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="0123456789*/-,#Ll wWsunMON٣", max_size=20) | st.text(max_size=20))
def test_any_cron_text_is_a_schedule_or_a_fault(text: str) -> None:
    try:
        schedule = parse_schedule(f"Cron ({text})")
    except BadSchedule:
        return
    due = next_due(job(schedule), datetime(2027, 1, 1, tzinfo=UTC), ZoneInfo("Asia/Riyadh"))
    assert due is None or due > datetime(2027, 1, 1, tzinfo=UTC)


@given(st.text(max_size=30))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(min_size=1, max_size=30), st.datetimes(timezones=st.just(UTC)))
def test_a_key_tells_its_job_and_due_time(name: str, due_at: datetime) -> None:
    assert due_of_key(run_key(name, due_at)) == (name, due_at)

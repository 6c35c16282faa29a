"""Due times that are easy to get wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from heartbeat.headings import parse_schedule
from heartbeat.schedule import due_between, next_due
from heartbeat.types import Job


def job(heading: str, zone: str | None = None) -> Job:
    return Job("j", "heartbeat", heading, parse_schedule(heading), "x", 1, zone=zone)


def dues(heading: str, zone: str, start: str, count: int, first_seen: str | None = None) -> list[str]:
    """The next due times after a local time, as local times with offset."""
    place = ZoneInfo(zone)
    after = datetime.fromisoformat(start)
    after = after if after.tzinfo else after.replace(tzinfo=place)
    seen = after if first_seen is None else datetime.fromisoformat(first_seen).replace(tzinfo=place)
    found: list[str] = []
    due: datetime | None = after
    for _ in range(count):
        due = next_due(job(heading), due, place, seen)
        if due is None:
            break
        found.append(due.astimezone(place).isoformat(timespec="minutes"))
    return found


@pytest.mark.parametrize("days", ["1", "mon", "Mon"])
def test_weekday_numbers_and_names_agree(days: str) -> None:
    assert dues(f"Cron (0 9 * * {days})", "Europe/Berlin", "2026-11-30T00:00", 1) == ["2026-11-30T09:00+01:00"]


@pytest.mark.parametrize("days", ["0", "7", "sun"])
def test_zero_and_seven_are_sunday(days: str) -> None:
    assert dues(f"Cron (0 9 * * {days})", "Europe/Berlin", "2026-11-30T00:00", 2) == [
        "2026-12-06T09:00+01:00",
        "2026-12-13T09:00+01:00",
    ]


def test_a_step_over_weekdays_starts_on_sunday() -> None:
    found = dues("Cron (0 9 * * */2)", "Europe/Berlin", "2026-11-30T00:00", 8)
    assert [datetime.fromisoformat(due).strftime("%a") for due in found] == ["Tue", "Thu", "Sat", "Sun"] * 2


@pytest.mark.parametrize("heading", ["Weekday (09:00)", "Cron (0 9 * * 1-5)", "Cron (0 9 * * mon-fri)"])
def test_weekdays_are_monday_to_friday(heading: str) -> None:
    found = dues(heading, "Europe/Berlin", "2026-12-04T09:00", 5)
    assert [datetime.fromisoformat(due).strftime("%a") for due in found] == ["Mon", "Tue", "Wed", "Thu", "Fri"]


def test_day_of_month_and_weekday_together_mean_either() -> None:
    found = dues("Cron (0 9 1 * 1)", "Asia/Riyadh", "2026-11-30T10:00", 2)
    assert found == ["2026-12-01T09:00+03:00", "2026-12-07T09:00+03:00"]


def test_midnight_jobs_skip_no_day_at_the_change_to_summer_time() -> None:
    assert dues("Daily (00:00)", "Europe/Berlin", "2027-03-26T12:00", 4) == [
        "2027-03-27T00:00+01:00",
        "2027-03-28T00:00+01:00",
        "2027-03-29T00:00+02:00",
        "2027-03-30T00:00+02:00",
    ]
    assert dues("Daily (00:00)", "America/Los_Angeles", "2027-03-13T12:00", 3) == [
        "2027-03-14T00:00-08:00",
        "2027-03-15T00:00-07:00",
        "2027-03-16T00:00-07:00",
    ]


def test_a_time_that_does_not_exist_runs_once_right_after_the_gap() -> None:
    assert dues("Daily (02:30)", "Europe/Berlin", "2027-03-27T00:00", 3) == [
        "2027-03-27T02:30+01:00",
        "2027-03-28T03:00+02:00",
        "2027-03-29T02:30+02:00",
    ]
    assert dues("Daily (02:15)", "Australia/Lord_Howe", "2027-10-02T12:00", 2) == [
        "2027-10-03T02:30+11:00",
        "2027-10-04T02:15+11:00",
    ]
    assert dues("Daily (00:00)", "Africa/Cairo", "2027-04-29T12:00", 2) == [
        "2027-04-30T01:00+03:00",
        "2027-05-01T00:00+03:00",
    ]


def test_several_times_in_one_gap_run_once() -> None:
    assert dues("Cron (0,30 2,3 * * *)", "Europe/Berlin", "2027-03-28T00:00", 3) == [
        "2027-03-28T03:00+02:00",
        "2027-03-28T03:30+02:00",
        "2027-03-29T02:00+02:00",
    ]


def test_a_time_that_exists_twice_runs_the_first_time_only() -> None:
    assert dues("Daily (02:30)", "Europe/Berlin", "2027-10-30T12:00", 2) == [
        "2027-10-31T02:30+02:00",
        "2027-11-01T02:30+01:00",
    ]


def test_a_start_inside_the_repeated_hour_goes_forward_only() -> None:
    assert dues("Cron (*/15 2 * * *)", "Europe/Berlin", "2027-10-31T02:20+01:00", 1) == ["2027-11-01T02:00+01:00"]
    assert dues("Hourly (10)", "Europe/Berlin", "2027-10-31T02:20+02:00", 2) == [
        "2027-10-31T02:10+01:00",
        "2027-10-31T03:10+01:00",
    ]


def test_hourly_jobs_follow_real_time() -> None:
    assert dues("Hourly (30)", "Europe/Berlin", "2027-10-31T01:45", 4) == [
        "2027-10-31T02:30+02:00",
        "2027-10-31T02:30+01:00",
        "2027-10-31T03:30+01:00",
        "2027-10-31T04:30+01:00",
    ]
    assert dues("Hourly (30)", "Europe/Berlin", "2027-03-28T01:00", 2) == [
        "2027-03-28T01:30+01:00",
        "2027-03-28T03:30+02:00",
    ]


def test_a_change_of_half_an_hour_repeats_half_an_hour() -> None:
    assert dues("Hourly (45)", "Australia/Lord_Howe", "2027-04-04T01:00", 3) == [
        "2027-04-04T01:45+11:00",
        "2027-04-04T01:45+10:30",
        "2027-04-04T02:45+10:30",
    ]


def test_due_times_always_advance_at_the_end_of_summer_time() -> None:
    athens = ZoneInfo("Europe/Athens")
    last = datetime(2027, 10, 31, 3, 45, tzinfo=athens, fold=1).astimezone(UTC)
    for _ in range(50):
        due = next_due(job("Hourly (30)"), last, athens)
        assert due is not None
        assert timedelta(0) < due - last <= timedelta(hours=1)
        last = due


def test_intervals_of_days_keep_the_wall_clock() -> None:
    assert dues("Every (7d)", "Europe/Berlin", "2027-03-23T16:00", 2) == [
        "2027-03-30T00:00+02:00",
        "2027-04-06T00:00+02:00",
    ]


def test_intervals_of_hours_keep_real_time_from_midnight_of_the_first_day() -> None:
    assert dues("Every (12h)", "Europe/Berlin", "2027-03-27T13:00", 3) == [
        "2027-03-28T00:00+01:00",
        "2027-03-28T13:00+02:00",
        "2027-03-29T01:00+02:00",
    ]
    assert dues("Every (45m)", "Asia/Kathmandu", "2027-01-01T10:10", 2) == [
        "2027-01-01T10:30+05:45",
        "2027-01-01T11:15+05:45",
    ]
    assert dues("Every (7h)", "Asia/Riyadh", "2027-01-02T06:00", 1, first_seen="2027-01-01T22:00") == [
        "2027-01-02T11:00+03:00"
    ]


def test_a_day_the_month_lacks_is_its_last_day() -> None:
    for day, february in ((29, ["28", "29"]), (30, ["28", "29"]), (31, ["28", "29"])):
        for year, last in zip((2027, 2028), february, strict=True):
            found = dues(f"Monthly ({day} 09:00)", "Asia/Riyadh", f"{year}-01-31T12:00", 3)
            april = min(day, 30)
            assert [due[5:10] for due in found] == [f"02-{last}", f"03-{day}", f"04-{april}"]


def test_once_is_once() -> None:
    assert dues("Once (2027-01-31 09:00)", "Asia/Riyadh", "2027-01-01T00:00", 3) == ["2027-01-31T09:00+03:00"]
    assert dues("Once (2027-01-31 09:00)", "Asia/Riyadh", "2027-01-31T09:00", 3) == []


def test_the_zone_of_the_job_goes_before_the_default() -> None:
    due = next_due(job("Daily (08:00)", "Asia/Riyadh"), datetime(2027, 1, 1, tzinfo=UTC), ZoneInfo("America/New_York"))
    assert due == datetime(2027, 1, 1, 5, tzinfo=UTC)


def test_a_due_time_is_later_than_the_moment_asked_for() -> None:
    riyadh = ZoneInfo("Asia/Riyadh")
    at = datetime(2027, 1, 1, 5, tzinfo=UTC)
    assert next_due(job("Daily (08:00)"), at - timedelta(microseconds=1), riyadh) == at
    assert next_due(job("Daily (08:00)"), at, riyadh) == at + timedelta(days=1)


def test_a_long_absence_of_a_frequent_job_gives_the_last_due_times() -> None:
    until = datetime(2028, 1, 1, 0, 0, 30, tzinfo=UTC)
    found = due_between(job("Cron (* * * * *)"), datetime(2027, 1, 1, tzinfo=UTC), until, ZoneInfo("UTC"), until, 51)
    assert len(found) == 51
    assert (found[0], found[-1]) == (datetime(2027, 12, 31, 23, 10, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


def test_a_rare_job_is_found_in_a_long_absence() -> None:
    since, until = datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)
    found = due_between(job("Monthly (15 00:00)"), since, until, ZoneInfo("UTC"), since, 51)
    assert [due.month for due in found] == [12, 1, 2]

"""Headings in English and Arabic."""

from __future__ import annotations

from datetime import datetime

import pytest

from heartbeat.headings import BadSchedule, parse_schedule
from heartbeat.types import Calendar, Days, Interval, Once, Schedule, Startup


def daily(minute: int, hour: int, days: str = "*") -> Calendar:
    return Calendar((f"{minute} {hour} * * {days}",))


@pytest.mark.parametrize(
    ("heading", "schedule"),
    [
        ("Startup", Startup()),
        ("عند بدء التشغيل", Startup()),
        ("Once (2027-01-31 09:05)", Once(datetime.fromisoformat("2027-01-31T09:05"))),
        ("مرة واحدة (٢٠٢٧-٠١-٣١ ٠٩:٠٥)", Once(datetime.fromisoformat("2027-01-31T09:05"))),
        ("Every (45m)", Interval(2_700)),
        ("Every ( 2 h )", Interval(7_200)),
        ("Every (3d)", Days(3)),
        ("كل (45د)", Interval(2_700)),
        ("كل (٤٥ دقيقة)", Interval(2_700)),
        ("كل (ساعتين)", Interval(7_200)),
        ("كل (3 أيام)", Days(3)),
        ("كل (يومين)", Days(2)),
        ("Hourly (15)", Calendar(("15 * * * *",), real_time=True)),
        ("كل ساعة (15)", Calendar(("15 * * * *",), real_time=True)),
        ("Daily (08:00)", daily(0, 8)),
        ("DAILY(8:00)", daily(0, 8)),
        ("Nightly (23:59)", daily(59, 23)),
        ("يوميا (08:00)", daily(0, 8)),
        ("يوميًّا (٠٨:٠٠)", daily(0, 8)),
        ("\u200fكل يوم (08:00)\u200f", daily(0, 8)),
        ("كلّ ليلة (23:00)", daily(0, 23)),
        ("Weekday (07:30)", daily(30, 7, "1-5")),
        ("من الاثنين إلى الجمعة (07:30)", daily(30, 7, "1-5")),
        ("من الأحد إلى الخميس (07:30)", daily(30, 7, "0-4")),
        ("Weekly (Mon 09:00)", daily(0, 9, "1")),
        ("Weekly (sunday 09:00)", daily(0, 9, "0")),
        ("أسبوعيًا (الإثنين 09:00)", daily(0, 9, "1")),
        ("كل أسبوع (يوم الأحد ٠٩:٠٠)", daily(0, 9, "0")),
        ("Monthly (1 09:00)", Calendar(("0 9 1 * *",))),
        ("شهريا (31 09:00)", Calendar(("0 9 L * *",))),
        ("Cron (0 9 * * 1)", daily(0, 9, "1")),
        ("كرون (0 9 * * mon)", daily(0, 9, "mon")),
        ("Cron (*/5 */2 * * *)", Calendar(("*/5 */2 * * *",), real_time=True)),
    ],
)
def test_a_form_of_the_grammar_is_understood(heading: str, schedule: Schedule) -> None:
    assert parse_schedule(heading) == schedule


@pytest.mark.parametrize(
    ("heading", "reason"),
    [
        ("", "no schedule"),
        ("Tomorrow", "no schedule"),
        ("Daily", "lacks its time"),
        ("Daily 08:00", "no schedule"),
        ("Daily (24:00)", "no time of day"),
        ("Daily (8)", "no time of day"),
        ("Startup (08:00)", "takes no time"),
        ("Once (2027-02-30 09:00)", "no such day"),
        ("Once (0001-01-01 09:00)", "out of range"),
        ("Once (tomorrow)", "no date and time"),
        ("Every (0m)", "at least 1m"),
        ("Every (5x)", "no length of time"),
        ("Every (999999999d)", "longer than 366 days"),
        ("Hourly (60)", "no minute"),
        ("Weekly (Xyz 09:00)", "no day and time"),
        ("Weekly (Mon)", "no day and time"),
        ("Monthly (32 09:00)", "no day of the month"),
        ("Monthly (0 09:00)", "no day of the month"),
        ("Cron (* * * *)", "has 4 fields"),
        ("Cron (0 0 9 * * 1)", "has 6 fields"),
        ("Cron (61 9 * * *)", "bad minute"),
        ("Cron (0 9 30 2 *)", "bad day-of-month"),
    ],
)
def test_what_is_no_schedule_says_why(heading: str, reason: str) -> None:
    with pytest.raises(BadSchedule, match=reason):
        parse_schedule(heading)

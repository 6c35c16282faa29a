"""Times as people say them, in English and Arabic: what is read is a sound heading, to come, and nothing is made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.when import read_reminder, read_when
from heartbeat.headings import parse_schedule
from heartbeat.schedule import next_due
from heartbeat.types import Job

RIYADH = ZoneInfo("Asia/Riyadh")
MONDAY = datetime(2026, 11, 30, 14, 21, 30, tzinfo=RIYADH)
ZONES = [ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Riyadh")]
NOWS = st.builds(
    lambda at, zone: at.replace(tzinfo=UTC).astimezone(zone),
    st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - made UTC above
    st.sampled_from(ZONES),
)

SAID = [
    ("tomorrow at 9", "Once (2026-12-01 09:00)"),
    ("every sunday at 9", "Weekly (Sun 09:00)"),
    ("in two hours", "Once (2026-11-30 16:22)"),
    ("in half an hour", "Once (2026-11-30 14:52)"),
    ("in 3 days", "Once (2026-12-03 14:21)"),
    ("in three days at 9", "Once (2026-12-03 09:00)"),
    ("كل يوم أحد الساعة ٩", "Weekly (Sun 09:00)"),
    ("بعد ساعتين", "Once (2026-11-30 16:22)"),
    ("بعد ٤٥ دقيقة", "Once (2026-11-30 15:07)"),
    ("غدًا الساعة التاسعة والنصف صباحًا", "Once (2026-12-01 09:30)"),
    ("بعد غد", "Once (2026-12-02 09:00)"),
    ("يوم الجمعة الساعة ٤ عصرا", "Once (2026-12-04 16:00)"),
    ("كل أحد وخميس الساعة ٧", "Cron (0 7 * * 0,4)"),
    ("كل ساعتين", "Every (2h)"),
    ("كل شهر يوم ١ الساعة ٩", "Monthly (1 09:00)"),
    ("كل يوم الساعة ٨ مساءً", "Daily (20:00)"),
    ("at 9", "Once (2026-11-30 21:00)"),
    ("at 9am", "Once (2026-12-01 09:00)"),
    ("tonight", "Once (2026-11-30 21:00)"),
    ("tomorrow morning", "Once (2026-12-01 08:00)"),
    ("next friday at 5pm", "Once (2026-12-04 17:00)"),
    ("on the 3rd of january at noon", "Once (2027-01-03 12:00)"),
    ("january 3, 2028", "Once (2028-01-03 09:00)"),
    ("2027-01-31 at 18:05", "Once (2027-01-31 18:05)"),
    ("every monday, wednesday and friday at 7:30", "Cron (30 7 * * 1,3,5)"),
    ("every weekday at 8", "Weekday (08:00)"),
    ("every evening", "Daily (18:00)"),
    ("every 90 minutes", "Every (90m)"),
    ("every 3 days", "Every (3d)"),
    ("weekly", "Weekly (Mon 09:00)"),
    ("daily at midnight", "Daily (00:00)"),
    ("every month on the 15th", "Monthly (15 09:00)"),
]


@pytest.mark.parametrize(("said", "heading"), SAID)
def test_what_people_say(said: str, heading: str) -> None:
    found = read_when(said, MONDAY)
    assert found is not None
    assert (found.heading, found.rest, found.said) == (heading, "", said)
    parse_schedule(found.heading)


@pytest.mark.parametrize(
    "said",
    [
        "soon",
        "at 25",
        "",
        "13pm",
        "on the 31st of february",
        "every 3 days at 9",
        "today at 9am",
        "in 0 minutes",
        "in 9999 weeks",
        "every sunday tomorrow",
        "2026-01-01 at 9",
        "لاحقا",
        "الساعة ٢٥",
    ],
)
def test_what_is_not_certain_is_left_alone(said: str) -> None:
    assert read_when(said, MONDAY) is None


@pytest.mark.parametrize(
    ("said", "heading", "of"),
    [
        ("Remind me tomorrow at 9 to call mom.", "Once (2026-12-01 09:00)", "call mom"),
        ("remind me to call Mom tomorrow at 9", "Once (2026-12-01 09:00)", "call Mom"),
        ("please remind me in 20 minutes", "Once (2026-11-30 14:42)", ""),
        ("every sunday at 9 remind me to water the plants", "Weekly (Sun 09:00)", "water the plants"),
        ("ذكرني غدا الساعة ٩ بالاتصال بأمي", "Once (2026-12-01 09:00)", "الاتصال بأمي"),
        ("ذكّرني بعد ساعتين أن أشرب الماء", "Once (2026-11-30 16:22)", "أشرب الماء"),
        ("ذكرني كل يوم أحد الساعة ٩ بسقي الزرع", "Weekly (Sun 09:00)", "بسقي الزرع"),
    ],
)
def test_reminders(said: str, heading: str, of: str) -> None:
    found = read_reminder(said, MONDAY)
    assert found is not None
    assert (found.heading, found.rest) == (heading, of)


@pytest.mark.parametrize(
    "said",
    ["remind me what we said tomorrow", "remind me about milk", "I will be there tomorrow at 9", "ذكرني متى نلتقي غدا"],
)
def test_what_is_no_reminder(said: str) -> None:
    assert read_reminder(said, MONDAY) is None


def due(heading: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    schedule = parse_schedule(heading)
    return next_due(Job("x", "heartbeat", heading, schedule, "go", 1), now, zone)


@given(st.sampled_from([said for said, _ in SAID]), NOWS)
def test_whatever_is_read_is_a_sound_heading_that_comes_due(said: str, now: datetime) -> None:
    found = read_when(said, now)
    if found is not None:
        at = due(found.heading, now, ZoneInfo(found.zone) if found.zone else now.tzinfo)  # type: ignore[arg-type]
        assert at is not None
        assert at > now


@given(st.integers(1, 600), NOWS)
def test_so_many_minutes_from_now_is_never_early_and_at_most_a_minute_late(minutes: int, now: datetime) -> None:
    for said in (f"in {minutes} minutes", f"بعد {minutes} دقيقة"):
        found = read_when(said, now)
        assert found is not None
        at = due(found.heading, now, ZoneInfo(found.zone) if found.zone else now.tzinfo)  # type: ignore[arg-type]
        assert at is not None
        late = at - (now.astimezone(UTC) + timedelta(minutes=minutes))
        assert timedelta(0) <= late < timedelta(minutes=1)


@given(st.text(max_size=120), NOWS)
def test_any_text_is_read_or_left_alone(text: str, now: datetime) -> None:
    for found in (read_when(text, now), read_reminder(f"remind me {text}", now)):
        if found is not None:
            parse_schedule(found.heading)

"""Days and ranges in texts: whatever way a day is written, it is found; whatever the text, nothing breaks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hippocampus.time_words import MONTHS
from agent.hippocampus.times import period, spans, with_dates

TODAY = date(2026, 11, 30)  # a Monday
_ENGLISH = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_ARABIC = [
    "يناير",
    "فبراير",
    "مارس",
    "أبريل",
    "مايو",
    "يونيو",
    "يوليو",
    "أغسطس",
    "سبتمبر",
    "أكتوبر",
    "نوفمبر",
    "ديسمبر",
]
_DAYS = st.dates(date(1990, 1, 1), date(2090, 12, 31))
_EASTERN = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_FORMS: tuple[Callable[[date], str], ...] = (
    lambda d: d.isoformat(),
    lambda d: f"{d.day} {_ENGLISH[d.month - 1]} {d.year}",
    lambda d: f"{_ENGLISH[d.month - 1]} {d.day}, {d.year}",
    lambda d: f"{_ENGLISH[d.month - 1][:3]} {d.day}th {d.year}",
    lambda d: f"the {d.day}. of {_ENGLISH[d.month - 1]}, {d.year}".replace(". of", "th of"),
    lambda d: f"{d.day} {_ARABIC[d.month - 1]} {d.year}",
    lambda d: f"{d.day} {_ARABIC[d.month - 1]} {d.year}".translate(_EASTERN),
    lambda d: f"{d.day:02}.{d.month:02}.{d.year}",
    lambda d: f"{d.year}/{d.month}/{d.day}",
)


@given(_DAYS, st.sampled_from(_FORMS), st.sampled_from(["", "on ", "meet me ", "يوم "]), _DAYS)
def test_a_day_is_found_however_it_is_written(day: date, form: Callable[[date], str], before: str, today: date) -> None:
    text = f"{before}{form(day)} at noon"
    [span] = spans(text, today)
    assert (span.first, span.last) == (day, day), text
    assert text[span.begin : span.end] in text


@given(_DAYS, st.integers(1, 200), st.sampled_from([" to ", " - ", "–", " until ", " إلى "]), st.integers(0, 3))
def test_two_days_with_to_between_are_a_range(first: date, length: int, to: str, form: int) -> None:
    last = first + timedelta(days=length)
    write = _FORMS[form]
    if form == 0 and to.strip() in {"-", "–"}:
        to = " to "
    [span] = spans(f"{write(first)}{to}{write(last)}", TODAY)
    assert (span.first, span.last) == (first, last)


@given(st.text(max_size=300), _DAYS, st.booleans())
def test_any_text_is_read(text: str, today: date, of_record: bool) -> None:
    for span in spans(text, today, of_record=of_record):
        assert span.first <= span.last
        assert 0 <= span.begin < span.end <= len(text)
    asked = period(text, today)
    assert asked.first is None or asked.last is None or asked.first <= asked.last or asked.rest != text
    assert len(with_dates(text, today)) >= len(text)


@given(
    st.lists(
        st.sampled_from([*MONTHS, "27", "2025", "last", "week", "to", "since", "قبل", "أيام", "ثلاثة", "-", ","]),
        max_size=12,
    )
)
def test_heaps_of_date_words_break_nothing(words: list[str]) -> None:
    period(" ".join(words), TODAY)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-11-30", "2026-11-30"),
        ("what did we do yesterday?", "2026-11-29", "2026-11-29"),
        ("the day before yesterday", "2026-11-28", "2026-11-28"),
        ("last week", "2026-11-23", "2026-11-29"),
        ("this week", "2026-11-30", "2026-12-06"),
        ("since last week", "2026-11-23", "2026-11-30"),
        ("in November", "2026-11-01", "2026-11-30"),
        ("in December", "2025-12-01", "2025-12-31"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("November 2025", "2025-11-01", "2025-11-30"),
        ("around 27 November", "2026-11-24", "2026-11-30"),
        ("3 days ago", "2026-11-27", "2026-11-27"),
        ("the last 10 days", "2026-11-20", "2026-11-30"),
        ("between 3 and 7 November", "2026-11-03", "2026-11-07"),
        ("from 1 October until 15 October", "2026-10-01", "2026-10-15"),
        ("Nov 27–Dec 1, 2025", "2025-11-27", "2025-12-01"),
        ("on Friday", "2026-11-27", "2026-11-27"),
        ("2026-W40", "2026-09-28", "2026-10-04"),
        ("in 2025", "2025-01-01", "2025-12-31"),
        ("اليوم", "2026-11-30", "2026-11-30"),
        ("ماذا فعلنا أمس؟", "2026-11-29", "2026-11-29"),
        ("أول أمس", "2026-11-28", "2026-11-28"),
        ("الأسبوع الماضي", "2026-11-23", "2026-11-29"),
        ("خلال الشهر الماضي", "2026-10-01", "2026-10-31"),
        ("قبل ثلاثة أيام", "2026-11-27", "2026-11-27"),
        ("قبل ٣ أيام", "2026-11-27", "2026-11-27"),
        ("قبل يومين", "2026-11-28", "2026-11-28"),
        ("قبل أسبوعين", "2026-11-16", "2026-11-22"),
        ("في نوفمبر", "2026-11-01", "2026-11-30"),
        ("في شهر تشرين الثاني ٢٠٢٥", "2025-11-01", "2025-11-30"),
        ("٢٧ نوفمبر", "2026-11-27", "2026-11-27"),
        ("من 3 إلى 7 نوفمبر", "2026-11-03", "2026-11-07"),
        ("آخر خمسة أيام", "2026-11-25", "2026-11-30"),
        ("منذ أكتوبر", "2026-10-01", "2026-11-30"),
        ("يوم الأحد الماضي", "2026-11-29", "2026-11-29"),
    ],
)  # fmt: skip
def test_a_question_names_its_days(text: str, first: str, last: str) -> None:
    asked = period(text, TODAY)
    assert (str(asked.first), str(asked.last)) == (first, last)


@pytest.mark.parametrize("text", ["you may go", "march on", "version 3.11", "room 2026", "call me at 10", "a mark", ""])
def test_what_is_no_date_is_none(text: str) -> None:
    assert period(text, TODAY).first is None


def test_open_ends() -> None:
    assert period("before November", TODAY) == type(period("", TODAY))(None, date(2026, 10, 31), "")
    assert period("after 5 November", TODAY).first == date(2026, 11, 6)
    assert period("until 5 November", TODAY).last == date(2026, 11, 5)


def test_relative_words_get_their_dates_written_behind_them() -> None:
    said = "I leave tomorrow, وأسافر غدًا؛ back on 5 December"
    assert with_dates(said, TODAY) == "I leave tomorrow (2026-12-01), وأسافر غدًا (2026-12-01)؛ back on 5 December"


@pytest.mark.parametrize(("today", "text", "day"), [
    (date(2024, 2, 29), "قبل سنة", (date(2023, 1, 1), date(2023, 12, 31))),
    (date(2024, 3, 31), "a month ago", (date(2024, 2, 1), date(2024, 2, 29))),
    (date(2026, 1, 3), "last week", (date(2025, 12, 22), date(2025, 12, 28))),
    (date(2026, 1, 3), "on 27 December", (date(2025, 12, 27), date(2025, 12, 27))),
])  # fmt: skip
def test_over_the_edges_of_months_and_years(today: date, text: str, day: tuple[date, date]) -> None:
    asked = period(text, today)
    assert (asked.first, asked.last) == day


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("at the beginning of October", "2026-10-01", "2026-10-10"),
        ("in mid-October", "2026-10-11", "2026-10-20"),
        ("in late November 2025", "2025-11-21", "2025-11-30"),
        ("in the second week of November", "2026-11-08", "2026-11-14"),
        ("in the last week of October", "2026-10-25", "2026-10-31"),
        ("at the end of last month", "2026-10-21", "2026-10-31"),
        ("on the fifth of October", "2026-10-05", "2026-10-05"),
        ("in 2026-10", "2026-10-01", "2026-10-31"),
        ("a fortnight ago", "2026-11-16", "2026-11-22"),
        ("في أوائل أكتوبر", "2026-10-01", "2026-10-10"),
        ("في منتصف شهر نوفمبر", "2026-11-11", "2026-11-20"),
        ("في الأسبوع الأول من أكتوبر", "2026-10-01", "2026-10-07"),
        ("في بداية الشهر الماضي", "2026-10-01", "2026-10-10"),
        ("في اليوم الخامس من أكتوبر", "2026-10-05", "2026-10-05"),
        ("في الحادي والعشرين من نوفمبر", "2026-11-21", "2026-11-21"),
    ],
)
def test_parts_of_months_and_ordinals(text: str, first: str, last: str) -> None:
    found = period(f"Where did he live {text}?", TODAY)
    assert (str(found.first), str(found.last)) == (first, last)

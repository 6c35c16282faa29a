"""One heading of heartbeat.md to a schedule: `Daily (08:00)`, `كل يوم (08:00)`, and the other forms. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime

from cronsim import CronSim, CronSimError

from heartbeat.limits import INTERVAL_SECONDS_MAX
from heartbeat.types import Calendar, Days, Interval, Once, Schedule, Startup


class BadSchedule(ValueError):
    """The text is no schedule. `str()` says why and what is allowed."""


_BIDI = dict.fromkeys(map(ord, "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"))
_LETTERS = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ة": "ه", "ـ": None})


def strip_marks(text: str) -> str:
    """Without direction marks and zero-width spaces, which are invisible where people type."""
    return text.translate(_BIDI)


def fold(text: str) -> str:
    """For comparing words: no case, vowel marks, hamza or taa marbuta differences; any script's digits to 0-9."""
    plain = unicodedata.normalize("NFKC", strip_marks(text)).translate(_LETTERS)
    kept: list[str] = []
    for char in plain:
        if unicodedata.category(char) == "Nd":
            kept.append(str(unicodedata.decimal(char)))
        elif not unicodedata.combining(char):
            kept.append(char)
    return " ".join("".join(kept).casefold().split())


_DAYS = {
    "0": ("sun", "sunday", "الأحد"),
    "1": ("mon", "monday", "الاثنين"),
    "2": ("tue", "tuesday", "الثلاثاء"),
    "3": ("wed", "wednesday", "الأربعاء"),
    "4": ("thu", "thursday", "الخميس"),
    "5": ("fri", "friday", "الجمعة"),
    "6": ("sat", "saturday", "السبت"),
}
_DAY_NUMBERS = {fold(word): number for number, words in _DAYS.items() for word in words}

_UNITS = {
    60: ("m", "د", "دقيقة", "دقائق"),
    3_600: ("h", "س", "ساعة", "ساعات"),
    86_400: ("d", "ي", "يوم", "يوما", "أيام"),
}
_UNIT_SECONDS = {fold(word): seconds for seconds, words in _UNITS.items() for word in words}
_WHOLE_INTERVALS = {
    fold(word): (number, seconds)
    for word, number, seconds in (
        ("دقيقة", 1, 60),
        ("دقيقتين", 2, 60),
        ("ساعة", 1, 3_600),
        ("ساعتين", 2, 3_600),
        ("يوم", 1, 86_400),
        ("يومين", 2, 86_400),
    )
}


def parse_duration(text: str) -> tuple[int, int]:
    """`45m`, `2h`, `3d` (or Arabic units) to (number, seconds of the unit). Raises BadSchedule."""
    folded = fold(text)
    if folded in _WHOLE_INTERVALS:
        return _WHOLE_INTERVALS[folded]
    found = re.fullmatch(r"(\d{1,9})\s*(\D+)", folded)
    seconds = _UNIT_SECONDS.get(found[2]) if found else None
    if found is None or seconds is None:
        raise BadSchedule(f"`{text}` is no length of time; write for example 45m, 2h or 3d")
    if int(found[1]) * seconds > INTERVAL_SECONDS_MAX:
        raise BadSchedule(f"`{text}` is longer than 366 days")
    return int(found[1]), seconds


def parse_clock(text: str) -> tuple[int, int]:
    """`HH:MM` (24 hours) to (hour, minute). Raises BadSchedule."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2})", fold(text))
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise BadSchedule(f"`{text}` is no time of day; write HH:MM from 00:00 to 23:59")
    return int(found[1]), int(found[2])


def _startup(value: str) -> Schedule:
    if value:
        raise BadSchedule("`Startup` takes no time")
    return Startup()


def _once(value: str) -> Schedule:
    found = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2}) (\d{1,2}:\d{2})", value)
    if found is None:
        raise BadSchedule(f"`{value}` is no date and time; write for example Once (2027-01-31 09:00)")
    hour, minute = parse_clock(found[4])
    try:
        at = datetime(int(found[1]), int(found[2]), int(found[3]), hour, minute)  # noqa: DTZ001 - wall clock
    except ValueError as error:
        raise BadSchedule(f"`{value}`: there is no such day") from error
    if not 1970 <= at.year <= 9000:
        raise BadSchedule(f"`{value}`: the year is out of range")
    return Once(at)


def _every(value: str) -> Schedule:
    number, unit_seconds = parse_duration(value)
    if number < 1:
        raise BadSchedule("an interval is at least 1m")
    return Days(number) if unit_seconds == 86_400 else Interval(number * unit_seconds)


def _hourly(value: str) -> Schedule:
    if not re.fullmatch(r"\d{1,2}", value) or int(value) > 59:
        raise BadSchedule(f"`{value}` is no minute; write for example Hourly (15)")
    return Calendar((f"{int(value)} * * * *",), real_time=True)


def _at_days(days: str) -> Callable[[str], Schedule]:
    def form(value: str) -> Schedule:
        hour, minute = parse_clock(value)
        return Calendar((f"{minute} {hour} * * {days}",))

    return form


def _weekly(value: str) -> Schedule:
    day, _, clock = value.removeprefix(fold("يوم") + " ").rpartition(" ")
    number = _DAY_NUMBERS.get(day.strip())
    if number is None:
        raise BadSchedule(f"`{value}` is no day and time; write for example Weekly (Mon 09:00)")
    return _at_days(number)(clock)


def _monthly(value: str) -> Schedule:
    found = re.fullmatch(r"(\d{1,2}) (\S+)", value)
    if found is None or not 1 <= int(found[1]) <= 31:
        raise BadSchedule(f"`{value}` is no day of the month and time; write for example Monthly (1 09:00)")
    day = int(found[1])
    hour, minute = parse_clock(found[2])
    at = f"{minute} {hour}"
    if day == 31:
        return Calendar((f"{at} L * *",))
    # A month that lacks the day has it on its last one: of the days 29 and 30 only February can lack any.
    return Calendar((f"{at} {day} * *", f"{at} L 2 *") if day > 28 else (f"{at} {day} * *",))


def _cron(value: str) -> Schedule:
    fields = value.split()
    if len(fields) != 5:
        raise BadSchedule(f"`{value}` has {len(fields)} fields; a cron line has five: minute hour day month weekday")
    try:
        CronSim(value, datetime(2000, 1, 1))  # noqa: DTZ001 - only to have it checked
    except CronSimError as error:
        raise BadSchedule(f"`{value}` is no cron line: {str(error).lower()}") from error
    return Calendar((value,), real_time=fields[1].startswith("*"))


_FORMS: tuple[tuple[Callable[[str], Schedule], str, tuple[str, ...]], ...] = (
    (_startup, "Startup", ("startup", "عند البدء", "عند بدء التشغيل")),
    (_once, "Once (2027-01-31 09:00)", ("once", "مرة", "مرة واحدة")),
    (_every, "Every (45m)", ("every", "كل")),
    (_hourly, "Hourly (15)", ("hourly", "كل ساعة")),
    (_at_days("*"), "Daily (08:00)", ("daily", "يوميا", "كل يوم")),
    (_at_days("*"), "Nightly (23:00)", ("nightly", "ليليا", "كل ليلة")),
    (_at_days("1-5"), "Weekday (08:00)", ("weekday", "من الاثنين إلى الجمعة")),
    (_at_days("0-4"), "من الأحد إلى الخميس (08:00)", ("من الأحد إلى الخميس",)),
    (_weekly, "Weekly (Mon 09:00)", ("weekly", "أسبوعيا", "كل أسبوع")),
    (_monthly, "Monthly (1 09:00)", ("monthly", "شهريا", "كل شهر")),
    (_cron, "Cron (0 9 * * 1)", ("cron", "كرون")),
)
_BY_WORD = {fold(word): (form, example) for form, example, words in _FORMS for word in words}


def parse_schedule(heading: str) -> Schedule:
    """The schedule of a heading, in English or Arabic words. Raises BadSchedule with the reason."""
    found = re.fullmatch(r"([^()]*?) ?(?:\(([^()]*)\))?", fold(heading))
    if found is None or found[1] not in _BY_WORD:
        raise BadSchedule(
            f"`{heading}` is no schedule; write Startup, Once, Every, Hourly, Daily, Nightly, Weekday, Weekly, "
            "Monthly or Cron, with the time in parentheses"
        )
    form, example = _BY_WORD[found[1]]
    if found[2] is None and example != "Startup":
        raise BadSchedule(f"`{heading}` lacks its time in parentheses; write for example {example}")
    return form((found[2] or "").strip())

"""The ways of saying a day or a stretch of days, in English and Arabic: a pattern and its meaning for each."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import lru_cache

from agent.hippocampus.time_words import MONTHS, NUMBERS, ORDINALS, PAIRS, PARTS, SHORT_MONTHS, UNITS, WEEKDAYS, either

AHEAD_DAYS = 60
"""A day without a year is taken for a coming one when it is so near; else for the last one."""


Days = tuple[date, date, bool]


Read = Callable[[re.Match[str], date, bool], Days | None]


_MONTH, WEEKDAY, _UNIT, _PAIR = either(MONTHS), either(WEEKDAYS), either(UNITS), either(PAIRS)


_N = rf"(?:\d{{1,3}}|{either(NUMBERS)})"


TO = r"\s*(?:-|–|—|\.\.|\bto\b|\buntil\b|\btill\b|\band\b|\bthrough\b|(?<!\w)(?:الي|حتي|و)(?!\w))\s*"


_S, _E = r"(?<![\w])", r"(?![\w])"


_AL = r"(?:و|ب|ل|ف|لل)?"


LAST = r"(?:الماضي|الماضيه|الفائت|الفائته|المنصرم|المنصرمه|السابق|السابقه|اللي\s+فات|الاخير|الاخيره)"


NEXT = r"(?:القادم|القادمه|المقبل|المقبله|الجاي|الجايه|التالي|التاليه)"


def _month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year, month, monthrange(year, month)[1]), True


def _months_away(day: date, months: int) -> date:
    at = day.year * 12 + day.month - 1 + months
    year, month = divmod(at, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _near(month: int, day: int, today: date, of_record: bool) -> date:
    """The day without a year that is meant."""
    years = [year for year in (today.year - 1, today.year, today.year + 1) if _is_day(year, month, day)]
    days = [date(year, month, day) for year in years]
    if of_record:
        return min(days, key=lambda other: abs((other - today).days))
    return max(other for other in days if (other - today).days <= AHEAD_DAYS)


def _is_day(year: int, month: int, day: int) -> bool:
    return 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def _year(text: str) -> int:
    return int(text) + (2000 if len(text) == 2 else 0)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBERS[" ".join(text.split())]


def _unit_days(unit: str, count: int, today: date) -> Days:
    """The last `count` units up to today."""
    if unit == "day":
        return today - timedelta(days=count), today, False
    if unit == "week":
        return today - timedelta(days=7 * count), today, False
    return _months_away(today, -count * (12 if unit == "year" else 1)), today, False


def _ago(unit: str, count: int, today: date) -> Days:
    """The day so long ago; of months and years, and of weeks too, that is only roughly the day."""
    if unit == "day":
        day = today - timedelta(days=count)
        return day, day, False
    if unit == "week":
        return _week(today - timedelta(days=7 * count))
    if unit == "month":
        then = _months_away(today, -count)
        return _month(then.year, then.month)
    return date(today.year - count, 1, 1), date(today.year - count, 12, 31), True


def _week(day: date) -> Days:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6), True


def _unit_at(unit: str, step: int, today: date) -> Days:
    """This unit (0), the last (-1) or the next (1)."""
    if unit == "day":
        return _one(today + timedelta(days=step))
    if unit == "week":
        return _week(today + timedelta(days=7 * step))
    if unit == "month":
        then = _months_away(today.replace(day=1), step)
        return _month(then.year, then.month)
    return date(today.year + step, 1, 1), date(today.year + step, 12, 31), True


def _one(day: date) -> Days:
    return day, day, False


def _weekday(number: int, step: int, today: date) -> Days:
    """The last such day before today (-1), the next after it (1), or the last one, today too (0)."""
    if step > 0:
        return _one(today + timedelta(days=(number - today.weekday() - 1) % 7 + 1))
    back = (today.weekday() - number) % 7
    return _one(today - timedelta(days=back or (7 if step < 0 else 0)))


def _step(word: str | None) -> int:
    if not word:
        return 0
    return (
        1
        if re.fullmatch(rf"next|coming|{NEXT}", word)
        else -1
        if re.fullmatch(rf"last|past|previous|{LAST}", word)
        else 0
    )


def _read_month(m: re.Match[str], today: date, of_record: bool) -> Days | None:
    name = " ".join(m["month"].split())
    month, year = MONTHS[name], m["year"]
    if year:
        return _month(_year(year), month)
    if not m["before"] and name in SHORT_MONTHS:
        return None
    word = (m["before"] or "").strip()
    if word == "next":
        return _month(today.year + (month <= today.month), month)
    if word in {"last", "past"}:
        return _month(today.year - (month >= today.month), month)
    if of_record:
        first = _near(month, 1, today, of_record)
        return _month(first.year, month)
    return _month(today.year - (month > today.month), month)


def _read_day_month(m: re.Match[str], today: date, of_record: bool) -> Days:
    month = MONTHS[" ".join(m["month"].split())]
    first, last = int(m["day"]), int(m["to"] or m["day"])
    if m["year"]:
        year = _year(m["year"])
        return date(year, month, first), date(year, month, last), False
    begin = _near(month, first, today, of_record)
    return begin, begin.replace(day=last), False


def _read_part(m: re.Match[str], today: date, of_record: bool) -> Days:
    """A part of a month: its beginning, its middle, its end, one of its weeks or halves."""
    name = " ".join(m["month"].split())
    if name in MONTHS:
        month = MONTHS[name]
        year = _year(m["year"]) if m["year"] else today.year - (month > today.month)
        if of_record and not m["year"]:
            year = _near(month, 1, today, of_record).year
        first, last, _ = _month(year, month)
    else:
        first, last, _ = _unit_at("month", -1 if re.search(rf"last|past|previous|{LAST}", name) else 0, today)
    if m["part"]:
        begin, end = {"early": (1, 10), "mid": (11, 20), "late": (21, last.day)}[PARTS[" ".join(m["part"].split())]]
    else:
        which = m["which"] or m["which_"]
        length = 7 if m["unit"] or m["unit_"] else (last.day + 1) // 2
        if which in {"last", "الاخير"}:
            begin, end = last.day - length + 1, last.day
        else:
            begin = (ORDINALS[which] - 1) * length + 1
            end = min(begin + length - 1, last.day)
    return first.replace(day=begin), first.replace(day=end), True


def _read_ordinal(m: re.Match[str], today: date, of_record: bool) -> Days:
    month, day = MONTHS[" ".join(m["month"].split())], ORDINALS[" ".join(m["day"].split())]
    return _one(date(_year(m["year"]), month, day) if m["year"] else _near(month, day, today, of_record))


def form(pattern: str, read: Read) -> tuple[re.Pattern[str], Read]:
    """A way of saying it, standing alone."""
    return re.compile(f"{_S}(?:{pattern}){_E}"), read


def _parts_of_months(year: str) -> Iterator[tuple[re.Pattern[str], Read]]:
    some_month = rf"(?P<month>{_MONTH}|(?:the|this|last|past|previous)\s+month|(?:هذا\s+)?الشهر(?:\s+{LAST})?)"
    in_year = rf"(?:,?\s+(?:عام\s+|سنه\s+)?{year})?"
    few = "first|second|third|fourth|1st|2nd|3rd|4th|last"
    yield form(
        rf"(?:the\s+)?(?:(?P<part>{either(PARTS)})(?:\s+(?:in|of|من))?"
        rf"|(?P<which>{few})\s+(?:(?P<unit>week)|half)\s+(?:of|in)"
        r"|(?:(?P<unit_>ال?اسبوع)|النصف)\s+(?P<which_>الاول|الثاني|الثالث|الرابع|الاخير)\s+(?:من|في))"
        rf"[\s-]+(?:شهر\s+)?{some_month}{in_year}",
        _read_part,
    )
    yield form(
        rf"(?:اليوم\s+)?(?P<day>{either(ORDINALS)})\s+(?:of|من)\s+(?:شهر\s+)?(?P<month>{_MONTH}){in_year}",
        _read_ordinal,
    )


def _forms() -> Iterator[tuple[re.Pattern[str], Read]]:
    year = r"(?P<year>(?:19|20)\d\d)"
    yield form(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})", lambda m, t, r: _one(date(int(m[1]), int(m[2]), int(m[3]))))
    yield form(r"(\d{4})-?w(\d{1,2})", lambda m, t, r: _week(date.fromisocalendar(int(m[1]), int(m[2]), 1)))
    yield form(r"(\d{4})-(\d{2})(?!-)", lambda m, t, r: _month(int(m[1]), int(m[2])))
    yield form(r"(\d{1,2})[./](\d{1,2})[./](\d{4})", lambda m, t, r: _one(date(int(m[3]), int(m[2]), int(m[1]))))
    to = rf"(?:{TO}(?P<to>\d{{1,2}})(?:st|nd|rd|th)?)?"
    day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    yield from _parts_of_months(year)
    yield form(
        rf"{day}{to}\s+(?:of\s+|من\s+)?(?:شهر\s+)?(?P<month>{_MONTH})\.?(?:,?\s+(?:عام\s+|سنه\s+)?{year})?",
        _read_day_month,
    )
    yield form(rf"(?P<month>{_MONTH})\.?\s+(?:the\s+)?{day}{to}(?:,?\s*{year})?", _read_day_month)
    before = (
        r"(?:(?P<before>in|during|since|until|till|before|after|of|last|next|past|this|from|to"
        r"|في|خلال|منذ|من|حتي|شهر|بعد|قبل)\s+)?"
    )
    yield form(
        rf"{before}(?:شهر\s+)?(?P<month>{_MONTH})(?:\s+{LAST})?(?:,?\s+(?:of\s+|عام\s+|سنه\s+)?{year})?", _read_month
    )
    yield form(
        r"(?:the\s+)?day\s+before\s+yesterday|اول\s+امس|اول\s+البارحه", lambda m, t, r: _one(t - timedelta(days=2))
    )
    yield form(r"(?:the\s+)?day\s+after\s+tomorrow|بعد\s+(?:غد|بكره)", lambda m, t, r: _one(t + timedelta(days=2)))
    yield form(r"today|tonight|اليوم|الليله", lambda m, t, r: _one(t))
    yield form(r"yesterday|last\s+night|(?:ال)?امس|البارحه|مبارح", lambda m, t, r: _one(t - timedelta(days=1)))
    yield form(r"tomorrow|غدا|بكره", lambda m, t, r: _one(t + timedelta(days=1)))
    yield form(r"a\s+fortnight\s+ago", lambda m, t, r: _ago("week", 2, t))
    yield form(rf"({_N})(?:\s+of)?\s+({_UNIT})\s+ago", lambda m, t, r: _ago(UNITS[m[2]], _number(m[1]), t))
    yield form(rf"(?:قبل|منذ)\s+({_N})\s+({_UNIT})", lambda m, t, r: _ago(UNITS[m[2]], _number(m[1]), t))
    yield form(rf"(?:قبل|منذ)\s+({_PAIR})", lambda m, t, r: _ago(PAIRS[m[1]], 2, t))
    yield form(rf"(?:قبل|منذ)\s+({_UNIT})(?!\s+{NEXT})", lambda m, t, r: _ago(UNITS[m[1]], 1, t))
    yield form(
        rf"(?:last|past|previous|اخر)\s+({_N})\s+({_UNIT})", lambda m, t, r: _unit_days(UNITS[m[2]], _number(m[1]), t)
    )
    yield form(rf"(?:اخر)\s+({_PAIR})", lambda m, t, r: _unit_days(PAIRS[m[1]], 2, t))
    yield form(
        rf"ال(ايام|اسابيع|اشهر|شهور|سنوات)\s+({_N})\s+{LAST}",
        lambda m, t, r: _unit_days(UNITS[m[1]], _number(m[2]), t),
    )
    yield form(
        r"(this|last|past|previous|next|coming)\s+(week|month|year)", lambda m, t, r: _unit_at(m[2], _step(m[1]), t)
    )
    yield form(rf"(?:هذا|هذه)\s+ال({_UNIT})", lambda m, t, r: _unit_at(UNITS[m[1]], 0, t))
    yield form(rf"{_AL}(?:ال)?({_UNIT})\s+({LAST}|{NEXT})", lambda m, t, r: _unit_at(UNITS[m[1]], _step(m[2]), t))
    yield form(
        rf"(?:(last|past|previous|next|coming|on|this)\s+)({either(_long_weekdays())})",
        lambda m, t, r: _weekday(WEEKDAYS[m[2]], _step(m[1]), t),
    )
    yield form(
        rf"(?:يوم\s+)?({ARABIC_WEEKDAY})\s+({LAST}|{NEXT})", lambda m, t, r: _weekday(WEEKDAYS[m[1]], _step(m[2]), t)
    )
    yield form(rf"يوم\s+({ARABIC_WEEKDAY})", lambda m, t, r: _weekday(WEEKDAYS[m[1]], 1 if r else 0, t))
    yield form(r"q([1-4])\s+((?:19|20)\d\d)", _read_quarter)
    yield form(
        r"(?:in|during|since|of|year|في|عام|سنه|منذ|خلال)\s+((?:19|20)\d\d)",
        lambda m, t, r: (date(int(m[1]), 1, 1), date(int(m[1]), 12, 31), True),
    )


def _long_weekdays() -> dict[str, int]:
    return {word: at for word, at in WEEKDAYS.items() if word.isascii() and len(word) > 3}


ARABIC_WEEKDAY = either({word: at for word, at in WEEKDAYS.items() if not word.isascii()})


def _read_quarter(m: re.Match[str], today: date, of_record: bool) -> Days:
    month = int(m[1]) * 3
    return date(int(m[2]), month - 2, 1), _month(int(m[2]), month)[1], True


@lru_cache(maxsize=1)
def all_forms() -> tuple[tuple[re.Pattern[str], Read], ...]:
    """Compiled at first use: most starts of the program never read a date."""
    return tuple(_forms())

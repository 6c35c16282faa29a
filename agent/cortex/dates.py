"""Reads dates out of a query: `May 2023`, `8 May`, `2023-05-08`, `٨ مايو`, `5月8日`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date as date_type
from datetime import datetime
from zoneinfo import ZoneInfo

import regex

from agent.cortex.text import tokens_of

YEARS_MAX = 12
"""A date without a year means that of the latest so many years."""
DATES_MAX = 4

_ENGLISH = (
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "jan feb mar apr may jun jul aug sept oct nov dec",
)
_ARABIC = (
    "يناير فبراير مارس ابريل مايو يونيو يوليو اغسطس سبتمبر اكتوبر نوفمبر ديسمبر",
    "كانون_الثاني شباط اذار نيسان ايار حزيران تموز اب ايلول تشرين_الاول تشرين_الثاني كانون_الاول",
    "جانفي فيفري مارس افريل ماي جوان جويليه اوت سبتمبر اكتوبر نوفمبر ديسمبر",
)
_JOINED_PREFIXES = ("", "ب", "ل", "و")


def _month_names() -> dict[str, int]:
    """Month by name in its folded form; Arabic names also with a joined prefix, where nothing else is spelled so."""
    names = {name: month for line in _ENGLISH for month, name in enumerate(line.split(), 1)}
    for line in _ARABIC:
        for month, name in enumerate(line.split(), 1):
            folded = " ".join(tokens_of(name))
            names |= {prefix + folded: month for prefix in _JOINED_PREFIXES[: 4 if len(folded) > 3 else 1]}
    return names


_MONTHS = _month_names()
_OTHER_SENSE = frozenset(("may", "march", "mar", "jan", "sep", "dec", "اب", "ماي", "اوت"))
"""Words that mean a month only beside a number or after one of these:"""
_BEFORE_MONTH = (
    r"(?:in|during|since|of|last|this|next|early|late|mid|by|until|till|before|after|from|في|شهر|منذ|من|قبل|بعد)"
)
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True)).replace(" ", "·")
_NAMED = re.compile(
    rf"(?<!\S)(?:(?P<day>[0-3]?\d)(?:st|nd|rd|th)? (?:(?:of|من|شهر) )?)?(?P<before>{_BEFORE_MONTH} )?"
    rf"(?P<month>{_MONTH})"
    r"(?: (?P<after>[0-3]?\d)(?:st|nd|rd|th)?(?!\S))?(?: (?:of |في |عام |سنه )?(?P<year>\d{4}))?(?!\S)"
)
_YEAR_FIRST = re.compile(r"(?<![\d.])((?:19|20)\d\d)([-/.])(\d{1,2})(?:\2(\d{1,2}))?(?![\d.])")
_YEAR_LAST = re.compile(r"(?<!\d)(\d{1,2})([-/.])(\d{1,2})\2((?:19|20)\d\d)(?!\d)")
_EAST_ASIAN = re.compile(
    r"(?<!\d)(?:(\d{4}) ?[年년] ?)?(\d{1,2}) ?[月월](?: ?(\d{1,2}) ?[日號号일])?|(?<!\d)(\d{4}) ?[年년]"
)
_YEAR = re.compile(r"(?<![\d.,:/\-])((?:19|20)\d\d)(?![\d:/\-]|[.,]\d)")
_SIGNS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")

TIME_QUESTIONS = frozenset(tokens_of("when متى امتى وقتاش 何时 何時 いつ 언제"))
TIME_WORDS = frozenset(
    tokens_of(
        "yesterday today tomorrow tonight week weeks weekend month months year years ago last next recently since "
        "monday tuesday wednesday thursday friday saturday sunday أمس البارحة اليوم غدا بكرة أسبوع الأسبوع شهر الشهر "
        "سنة السنة عام العام الماضي الماضية القادم القادمة المقبل السبت الأحد الاثنين الثلاثاء الأربعاء الخميس الجمعة "
        "昨天 今天 明天 去年 今年 明年 昨日 今日 明日 先週 来週 어제 오늘 내일 작년"
    )
) | frozenset(name for name in _MONTHS if name not in _OTHER_SENSE)


@dataclass(frozen=True, slots=True)
class Date:
    """A day, a month or a year as it was typed; what was not said is None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def periods(self, zone: ZoneInfo, first_year: int, last_year: int) -> Iterator[tuple[int, int]]:
        """From and until when, in ms since 1970; one without a year in each of the years."""
        years = (self.year,) if self.year else range(max(first_year, last_year - YEARS_MAX + 1), last_year + 1)
        for year in years:
            try:
                start = datetime(year, self.month or 1, self.day or 1, tzinfo=zone)
                if self.day is not None:
                    end = datetime.fromordinal(start.toordinal() + 1).replace(tzinfo=zone)
                elif self.month is not None:
                    end = datetime(year + self.month // 12, self.month % 12 + 1, 1, tzinfo=zone)
                else:
                    end = datetime(year + 1, 1, 1, tzinfo=zone)
            except (ValueError, OverflowError):
                continue
            yield int(start.timestamp() * 1000), int(end.timestamp() * 1000)


def read_dates(text: str) -> tuple[tuple[Date, ...], frozenset[str]]:
    """The dates of a text and the tokens they are written with. `8/5/2023` is read in both orders."""
    digits = "".join([str(int(sign)) if sign.isdecimal() else sign for sign in text])
    found: dict[Date, None] = {}
    written: list[str] = []

    def take(match: re.Match[str], *dates: Date) -> str:
        known = [date for date in dates if _exists(date)]
        if not known:
            return match.group()
        found.update(dict.fromkeys(known))
        written.append(match.group())
        return " "

    rest = _YEAR_FIRST.sub(lambda m: take(m, Date(int(m[1]), int(m[3]), _number(m[4]))), digits)
    rest = _YEAR_LAST.sub(lambda m: take(m, *_both_orders(int(m[1]), int(m[3]), int(m[4]))), rest)
    rest = _EAST_ASIAN.sub(lambda m: take(m, Date(_number(m[1] or m[4]), _number(m[2]), _number(m[3]))), rest)
    years = frozenset(_YEAR.findall(rest))
    for word in _in_words(rest, take).split():
        if word in years and _exists(year := Date(int(word))):
            found[year] = None
            written.append(word)
    tokens = frozenset(token for part in written for token in tokens_of(part))
    return tuple(found)[:DATES_MAX], tokens


def _in_words(text: str, take: Callable[..., str]) -> str:
    words = " ".join(" ".join(tokens_of(part)) for part in _SIGNS.split(text) if part)
    for name in _MONTHS:
        if " " in name:
            words = words.replace(name, name.replace(" ", "·"))

    def one(match: re.Match[str]) -> str:
        name = match["month"].replace("·", " ")
        day = match["day"] or match["after"]
        if name in _OTHER_SENSE and not (day or match["year"] or match["before"]):
            return match.group()
        return take(match, Date(_number(match["year"]), _MONTHS[name], _number(day)))

    return _NAMED.sub(one, words)


def _both_orders(one: int, other: int, year: int) -> tuple[Date, ...]:
    return (Date(year, other, one), Date(year, one, other))


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _exists(date: Date) -> bool:
    try:
        date_type(date.year or 2024, date.month or 1, date.day or 1)
    except ValueError:
        return False
    return True

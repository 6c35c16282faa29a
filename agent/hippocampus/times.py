"""Finds days and stretches of days in a text, in English and Arabic: written out, in figures, or counted from today.

A small grammar of our own: one pattern for each way of saying it, tried in order; a piece that one has taken is not
looked at again. Days are those of the owner's zone, weeks begin on Monday (ISO 8601). Nothing here raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from agent.hippocampus.time_forms import LAST, NEXT, TO, WEEKDAY, Days, Read, all_forms

CHARS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Span:
    """Days `first` to `last`, inclusive, and where in the text they are said. `bare`: a month, year or week as such."""

    first: date
    last: date
    begin: int
    end: int
    bare: bool = False

    def touches(self, first: date | None, last: date | None) -> bool:
        """True when a day lies in both; None is an open end."""
        return (last is None or self.first <= last) and (first is None or self.last >= first)


@dataclass(frozen=True, slots=True)
class Period:
    """What a question asks about: from and to, inclusive; None is an open end. `rest` is the text without it."""

    first: date | None
    last: date | None
    rest: str


def spans(text: str, today: date, *, of_record: bool = False) -> list[Span]:
    """Every day and range that a text names, in its order.

    `of_record`: the text was written on `today`, so that a day without a year is the nearest one; without it the text
    is a question about the past, so that it is the last one (or one that is very near).
    """
    folded, places = _folded(text[:CHARS_MAX])
    found: list[Span] = []
    taken = bytearray(len(folded))
    for pattern, read in all_forms():
        for match in pattern.finditer(folded):
            begin, end = match.span()
            if "before" in pattern.groupindex and (match["before"] or "") not in _PART_OF_MONTH:
                begin = match.start("month")  # since, before: those say how the month is meant, not which
            if any(taken[begin:end]):
                continue
            days = _safely(read, match, today, of_record)
            if days is None:
                continue
            taken[begin:end] = b"\1" * (end - begin)
            found.append(Span(*days[:2], begin, end, days[2]))
    found.sort(key=lambda span: span.begin)
    joined = _joined(found, folded)
    return [Span(s.first, s.last, places[s.begin], places[s.end - 1] + 1, s.bare) for s in joined]


def period(text: str, today: date) -> Period:
    """What days a question is about; both ends open when it names none."""
    folded, places = _folded(text[:CHARS_MAX])
    found = spans(text, today)
    if not found:
        return Period(None, None, text)
    back = {place: at for at, place in reversed(list(enumerate(places)))}
    first, last = min(span.first for span in found), max(span.last for span in found)
    rest = list(text)
    for span in found:
        before = folded[: back.get(span.begin, 0)]
        word = _BEFORE.search(before)
        begin = places[word.start()] if word and word.start() < len(places) else span.begin
        rest[begin : span.end] = " " * (span.end - begin)
        if word is None or len(found) > 1:
            continue
        kind = word[1]
        if _SINCE.fullmatch(kind) and (span.bare or span.first == span.last):
            first, last = span.first, max(today, span.last)
        elif _UNTIL.fullmatch(kind):
            first, last = None, span.last
        elif _BEFORE_IT.fullmatch(kind):
            first, last = None, _shifted(span.first, -1)
        elif _AFTER_IT.fullmatch(kind):
            first, last = _shifted(span.last, 1), None
        elif _AROUND.fullmatch(kind):
            first, last = _shifted(span.first, -AROUND_DAYS), _shifted(span.last, AROUND_DAYS)
    return Period(first, last, " ".join("".join(rest).split()))


AROUND_DAYS = 3
"""What "around" a day means on either side."""


def with_dates(text: str, today: date) -> str:
    """The text with the date in brackets behind each relative word, so that it can be understood later."""
    out: list[str] = []
    at = 0
    for span in spans(text, today, of_record=True):
        said = text[span.begin : span.end]
        if any(letter.isdigit() for letter in said) or not _RELATIVE.search(_folded(said)[0]):
            continue
        days = span.first.isoformat() + ("" if span.first == span.last else f" to {span.last.isoformat()}")
        out += [text[at : span.end], f" ({days})"]
        at = span.end
    return "".join([*out, text[at:]])


_BEFORE = re.compile(
    r"(?<!\w)(since|until|till|up\s+to|before|after|around|about|near|from|during|in|on|within|over|through|by"
    r"|منذ|من|حتي|الي|قبل|بعد|حول|حوالي|قرابه|خلال|في|اثناء|طوال)\s+(?:the\s+|about\s+|يوم\s+|شهر\s+|عام\s+|سنه\s+)?\Z"
)
_SINCE = re.compile("since|from|منذ|من")
_UNTIL = re.compile(r"until|till|up\s+to|by|حتي|الي")
_BEFORE_IT = re.compile("before|قبل")
_AFTER_IT = re.compile("after|بعد")
_PART_OF_MONTH = frozenset({"last", "next", "past", "this"})
_HAS_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_AROUND = re.compile("around|about|near|حول|حوالي|قرابه")
_RELATIVE = re.compile(
    rf"today|tonight|yesterday|tomorrow|this|last|next|past|ago|{WEEKDAY}|اليوم|امس|البارحه|غدا|بكره|قبل|هذا"
    rf"|هذه|{LAST}|{NEXT}"
)
_FOLD = {ord(letter): plain for letter, plain in zip("أإآٱىةؤئ", "اااايهوي", strict=True)} | {
    ord(letter): str(at % 10) for at, letter in enumerate("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹")
}
_MARKS = re.compile("[\u0610-\u061a\u064b-\u065f\u0670\u0640\u06d6-\u06ed\u200c-\u200f\u202a-\u202e]")


def _folded(text: str) -> tuple[str, list[int]]:
    """The text without case, vowel marks and letter forms, and for each of its characters the place in the text."""
    kept: list[str] = []
    places: list[int] = []
    for at, letter in enumerate(text):
        if not letter.isascii():
            if _MARKS.match(letter):
                continue
            letter = letter.translate(_FOLD)  # noqa: PLW2901 -- the folded form of this one letter
        low = letter.lower()
        kept.append(low if len(low) == 1 else letter)
        places.append(at)
    return "".join(kept), places


def _safely(read: Read, match: re.Match[str], today: date, of_record: bool) -> Days | None:
    try:
        days = read(match, today, of_record)
    except (ValueError, OverflowError):
        return None
    return days if days is None or days[0] <= days[1] else (days[1], days[0], days[2])


def _joined(found: list[Span], folded: str) -> list[Span]:
    """Two days with "to" between them are one range."""
    out: list[Span] = []
    for span in found:
        if out and re.fullmatch(TO, folded[out[-1].end : span.begin]):
            out[-1] = _same_year(out[-1], span, folded)
        if out and out[-1].first <= span.last and re.fullmatch(TO, folded[out[-1].end : span.begin]):
            is_and = folded[out[-1].end : span.begin].strip() in {"and", "و"}
            if not is_and or re.search(r"(?:between|بين)\s+\Z", folded[: out[-1].begin]):
                out[-1] = Span(out[-1].first, span.last, out[-1].begin, span.end)
                continue
        out.append(span)
    return out


def _same_year(one: Span, other: Span, folded: str) -> Span:
    """The beginning of a range whose end alone has a year: the last such day before the end."""
    if _HAS_YEAR.search(folded[one.begin : one.end]) or not _HAS_YEAR.search(folded[other.begin : other.end]):
        return one
    for year in (other.last.year, other.last.year - 1):
        try:
            first = one.first.replace(year=year)
        except ValueError:
            continue
        if first <= other.last:
            return Span(first, first + (one.last - one.first), one.begin, one.end, one.bare)
    return one


def _shifted(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return day

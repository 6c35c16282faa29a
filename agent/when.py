"""When somebody means: "tomorrow at 9", "every sunday at 9", "in two hours", «كل يوم أحد الساعة ٩», «بعد ساعتين».

A small grammar of our own for English and Arabic. What it reads becomes a heading of heartbeat.md; what it cannot
read for certain it leaves alone. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from agent.when_words import (
    AFTERNOON,
    ASKS,
    BETWEEN,
    DAY_NAMES,
    DAYS,
    DUALS,
    ELEMENTS,
    LINK,
    MONTHS,
    MORE,
    MORNING,
    NIGHT,
    NUMBERS,
    PARTS,
    QUESTION,
    UNITS,
)

DAY_HOUR = 9
"""The hour of a day for which none was said."""
TOKENS_MAX = 400
"""A longer text is no wish for a time."""


@dataclass(frozen=True, slots=True)
class When:
    """`heading` as heartbeat.md has it, read in `zone` (empty: the owner's). `rest` is what the text says beside it,
    `said` how it names the time."""

    heading: str
    rest: str = ""
    zone: str = ""
    said: str = ""


@dataclass(slots=True)
class _Said:
    """What the elements of one expression came to."""

    kinds: list[str] = field(default_factory=list[str])
    minutes: int = 0
    days: list[int] = field(default_factory=list[int])
    date: date | None = None
    dom: int | None = None
    clock: tuple[int, int] | None = None
    exact: bool = False
    """The half of the day was said, or cannot be meant otherwise."""
    part: int | None = None


def read_when(text: str, now: datetime) -> When | None:
    """The time that a text names, and what else it says; None when it names none for certain. `now` is aware, in the
    owner's zone."""
    folded, starts = _folded(text)
    best: tuple[tuple[int, bool], int, int, When] | None = None
    read_to = 0
    for begin, _ in starts:
        end, said = _expression(folded, begin, now) if begin >= read_to else (begin, None)
        if said is None:
            continue
        read_to = end
        found = _heading(said, now)
        if found is None:
            if len(said.kinds) > 1:
                return None  # a part of it would be another time than was meant
            continue
        whole = (len(said.kinds), begin == 0 or end >= len(folded))
        if best is None or whole > best[0]:
            best = (whole, begin, end, found)
    if best is None:
        return None
    _, begin, end, found = best
    original = {at: place for at, place in starts}
    left = text[: original[begin]].strip()
    right_at = min((place for at, place in starts if at >= end), default=len(text))
    rest = " ".join(part for part in (left, text[right_at:].strip()) if part).strip(" \t\n,،.!?؟;؛:")
    return When(found.heading, rest, found.zone, text[original[begin] : right_at].strip())


def read_reminder(text: str, now: datetime) -> When | None:
    """A wish to be reminded: when, and of what (`rest`, empty when it does not say). None for anything else."""
    plain = " ".join(text.split())
    if len(plain.split(" ")) > TOKENS_MAX:
        return None
    folded, starts = _folded(plain)
    asks = next((found for at, _ in starts if (found := ASKS.match(folded, at))), None)
    if asks is None or QUESTION.match(folded, asks.end()):
        return None  # what was said is to be looked up
    begin = next(place for at, place in starts if at == asks.start())
    end = next((place for at, place in starts if at >= asks.end()), len(plain))
    before = plain[:begin].strip()
    if before:  # "every sunday at 9 remind me to ..."
        first = read_when(before, now)
        if first is None or first.rest:
            return None
    found = read_when(f"{before} {plain[end:]}".strip(), now)
    if found is None:
        return None
    rest, at = _folded(found.rest)
    link = LINK.match(rest)
    begin = next((place for start, place in at if link and start >= link.end()), 0)
    of = found.rest[begin:].strip()
    if link is None and (joined := re.match(r"ب(?=ال|أن|ان)", of)):  # «بالاتصال», «بأن أتصل»
        of = of[joined.end() :]
    return When(found.heading, of, found.zone, found.said)


def _folded(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text for comparing, its words one blank apart; and where each word begins, there and in the text."""
    parts: list[str] = []
    starts: list[tuple[int, int]] = []
    length = 0
    for word in re.finditer(r"\S+", text):
        plain = _plain(word[0])
        if plain:
            starts.append((length, word.start()))
            parts.append(plain)
            length += len(plain) + 1
    return " ".join(parts), starts


_LETTERS = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ة": "ه", "ـ": None, "’": "'"})


def _plain(word: str) -> str:
    """Without case, vowel marks and direction marks; any script's digits as 0-9."""
    kept: list[str] = []
    for char in unicodedata.normalize("NFKC", word).translate(_LETTERS).casefold():
        category = unicodedata.category(char)
        if category == "Nd":
            kept.append(str(unicodedata.decimal(char)))
        elif category not in {"Mn", "Me", "Cf", "Cc"}:
            kept.append(char)
    return "".join(kept)


def _expression(folded: str, begin: int, now: datetime) -> tuple[int, _Said | None]:
    """The elements that stand one after the other from `begin` on, and where they end."""
    said, at = _Said(), begin
    end = begin
    while True:
        match = next(_matches(folded, at), None)
        if match is None or not _take(said, *match, now):
            break
        end = match[1].end()
        at = end + len(folded[end:]) - len(folded[end:].lstrip(" ,،"))
        between = BETWEEN.match(folded, at)
        if between is not None and next(_matches(folded, at), None) is None:
            at = between.end()
    return end, said if said.kinds else None


def _matches(folded: str, at: int) -> Iterator[tuple[str, re.Match[str]]]:
    return ((name, match) for name, pattern in ELEMENTS if (match := pattern.match(folded, at)))


def _group(match: re.Match[str], *names: str) -> str | None:
    groups = match.groupdict()
    return next((groups[name] for name in names if groups.get(name) is not None), None)


_KINDS = {
    "half": "after",
    "quarter": "after",
    "dual": "after",
    "every_dual": "every",
    "hourly": "every",
    "noon": "clock",
    "midnight": "clock",
}
_SPANS = {"half": 30, "quarter": 15, "hourly": 60}
_DAYS_AHEAD = {"today": 0, "tonight": 0, "tomorrow": 1, "in_two_days": 2}


def _take(said: _Said, name: str, match: re.Match[str], now: datetime) -> bool:
    """Adds one element; False when it does not go with those before it."""
    kind = _KINDS.get(name, name)
    if kind in said.kinds:
        return False
    if kind in {"after", "every"}:
        said.minutes = _minutes(name, match)
    elif kind in {"clock", "part"}:
        _take_hour(said, name, match)
    elif name in _DAYS_AHEAD or name in {"day", "date"}:
        _take_day(said, name, match, now)
    else:
        _take_repeat(said, name, match, now)
    said.kinds.append(kind)
    return (name != "date" or said.date is not None) and (name != "clock" or said.clock is not None)


def _minutes(name: str, match: re.Match[str]) -> int:
    if name in _SPANS:
        return _SPANS[name]
    if name in {"dual", "every_dual"}:
        return DUALS[match["dual"]]
    return UNITS[_group(match, "unit", "unit2") or ""] * _number(_group(match, "n", "n2") or "1")


def _take_hour(said: _Said, name: str, match: re.Match[str]) -> None:
    if name == "clock":
        said.clock, said.exact = _clock(match)
    elif name in {"noon", "midnight"}:
        said.clock, said.exact = (12 if name == "noon" else 0, 0), True
    else:
        said.part = AFTERNOON if _group(match, "after") else PARTS[_group(match, "part") or ""]
        if _group(match, "every") is not None:
            said.kinds.append("daily")


def _take_day(said: _Said, name: str, match: re.Match[str], now: datetime) -> None:
    if name == "date":
        said.date = _date(match, now)
    elif name == "day":
        said.date = now.date() + timedelta(days=(DAYS[match["day"]] - now.isoweekday()) % 7 or 7)
    else:
        said.date = now.date() + timedelta(days=_DAYS_AHEAD[name])
        said.part = NIGHT if name == "tonight" else said.part


def _take_repeat(said: _Said, name: str, match: re.Match[str], now: datetime) -> None:
    if name == "workdays":
        said.days = [1, 2, 3, 4, 5]
    elif name == "week":
        said.days = [now.isoweekday() % 7]
    elif name == "month":
        said.dom = int(_group(match, "dom", "dom2") or now.day)
    elif name == "weekly":
        words = re.findall(r"[^\s,،]+", _group(match, "days", "days2", "days3") or "")
        said.days = [DAYS[day] for word in words if (day := word.removeprefix("و")) in DAYS]


def _number(word: str) -> int:
    return int(word) if word.isdigit() else NUMBERS[word]


def _date(match: re.Match[str], now: datetime) -> date | None:
    groups = match.groupdict()
    try:
        if groups.get("iso"):
            year, month, day = map(int, match["iso"].split("-"))
            return date(year, month, day)
        month, day = MONTHS[match["mon"]], int(match["d"])
        if groups.get("y"):
            return date(int(match["y"]), month, day)
        this = date(now.year, month, day)
        return this if this >= now.date() else date(now.year + 1, month, day)
    except ValueError:
        return None


def _clock(match: re.Match[str]) -> tuple[tuple[int, int] | None, bool]:
    groups = match.groupdict()
    hour, minute = _number(match["h"]), int(groups.get("m") or 0)
    more = (groups.get("more") or "").removeprefix("و").strip()
    minute += MORE.get(more, 0)
    half = (groups.get("half") or "").replace(".", "")
    if half:
        if not 1 <= hour <= 12:
            return None, False
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        return None, False
    return (hour, minute), bool(half) or hour > 12 or hour == 0


def _heading(said: _Said, now: datetime) -> When | None:
    """The heading that the elements mean together; None when they mean none."""
    kinds = set(said.kinds)
    if "after" in kinds and kinds > {"after"} and said.minutes % 1_440 == 0 and not kinds - {"after", "clock", "part"}:
        said.date, kinds = now.date() + timedelta(minutes=said.minutes), {"day"}
    if "after" in kinds:
        return _once(now, said.minutes) if kinds == {"after"} else None
    if "every" in kinds and said.minutes < 1_440:
        return When(_every(said.minutes)) if kinds == {"every"} and said.minutes else None
    if "every" in kinds:
        days = said.minutes // 1_440
        return When(f"Every ({days}d)") if kinds == {"every"} and days <= 366 else None
    repeats = kinds & {"workdays", "weekly", "week", "month", "daily"}
    if len(repeats) > 1 or (repeats and said.date is not None):
        return None
    hour, minute = _hour(said)
    at = f"{hour:02}:{minute:02}"
    if "month" in kinds:
        return When(f"Monthly ({said.dom} {at})") if 1 <= (said.dom or 0) <= 31 else None
    if "daily" in kinds:
        return When(f"Daily ({at})")
    if said.days:
        days = sorted(set(said.days))
        if days == [1, 2, 3, 4, 5]:
            return When(f"Weekday ({at})")
        if len(days) == 1:
            return When(f"Weekly ({DAY_NAMES[days[0]]} {at})")
        return When(f"Cron ({minute} {hour} * * {','.join(map(str, days))})")
    return _day(said, hour, minute, now)


def _hour(said: _Said) -> tuple[int, int]:
    """The time of day; without one the usual hour of the part of the day, or of a day."""
    if said.clock is None:
        return (DAY_HOUR if said.part is None else said.part), 0
    hour, minute = said.clock
    if said.exact or said.part is None:
        return hour, minute
    if said.part == MORNING:
        return hour % 12, minute
    if said.part == NIGHT and (hour == 12 or hour < 5):
        return hour % 12, minute
    return (hour if hour == 12 else hour + 12), minute


def _day(said: _Said, hour: int, minute: int, now: datetime) -> When | None:
    """One time on one day. A bare `at 9` is the next time that a clock shows nine."""
    if said.clock is None and said.date is None and said.part is None:
        return None
    day = said.date or now.date()
    wall = now.replace(tzinfo=None)
    local = datetime.combine(day, time(hour, minute))
    is_open = said.clock is not None and not said.exact and said.part is None and day == now.date()
    if local <= wall and is_open and hour < 12 and local + timedelta(hours=12) > wall:
        local += timedelta(hours=12)
    elif local <= wall and said.date is None:
        local += timedelta(days=1)
    return When(f"Once ({local:%Y-%m-%d %H:%M})") if local > wall else None


def _once(now: datetime, minutes: int) -> When | None:
    """So many minutes from now: days by the wall clock, less by real time; never early."""
    if not minutes or minutes > 366 * 1_440:
        return None
    if minutes % 1_440 == 0:
        return When(f"Once ({now.replace(tzinfo=None) + timedelta(minutes=minutes):%Y-%m-%d %H:%M})")
    at = now.astimezone(UTC) + timedelta(minutes=minutes)
    past = timedelta(seconds=at.second, microseconds=at.microsecond)
    at += timedelta(minutes=1) - past if past else past
    local = at.astimezone(now.tzinfo)
    if local.fold:  # shown for the second time: only UTC says which one is meant
        return When(f"Once ({at:%Y-%m-%d %H:%M})", zone="UTC")
    return When(f"Once ({local:%Y-%m-%d %H:%M})")


def _every(minutes: int) -> str:
    return f"Every ({minutes // 60}h)" if minutes % 60 == 0 else f"Every ({minutes}m)"

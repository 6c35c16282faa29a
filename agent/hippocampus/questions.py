"""Reads what is asked of the memory: the words, and the flags that go before them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from agent.hippocampus.times import AROUND_DAYS, period, spans
from agent.hippocampus.types import KINDS, Kind
from agent.types import ToolFailure

K_DEFAULT = 10


K_MAX = 100


TOKENS_DEFAULT = 1_200


TOKENS_MAX = 20_000


_AGO = re.compile(r"\s*(\d{1,4})\s*([dwmy])\s*", re.IGNORECASE)


_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `first` and `last` are days, inclusive, None for an open end.

    `strict`: only what was said in these days, or speaks of them; else also what was said before and still held.
    """

    text: str
    first: date | None = None
    last: date | None = None
    kind: Kind | None = None
    entity: str | None = None
    k: int = K_DEFAULT
    tokens_max: int = TOKENS_DEFAULT
    strict: bool = False


def read_day_word(text: str, today: date, *, last: bool = False) -> date:
    """A day as `--since`, `--until` and `--around` take it: 2025-11-27, 30d, or in words. Raises ToolFailure."""
    ago = _AGO.fullmatch(text)
    if ago:
        try:
            return today - timedelta(days=int(ago[1]) * _DAYS[ago[2].lower()])
        except OverflowError:
            pass
    found = spans(text, today)
    if not found:
        raise ToolFailure(f"{text[:40]!r} is no date; write 2025-11-27, 30d, or for example `last week`.")
    return max(span.last for span in found) if last else min(span.first for span in found)


def question(text: str, today: date, args: dict[str, Any]) -> Question:
    """The question of a call: flags go before what the words say. Raises ToolFailure with one sentence."""
    asked = period(text, today)
    first, last, rest = asked.first, asked.last, asked.rest
    since, until, around = (str(args.get(name) or "").strip() for name in ("since", "until", "around"))
    strict = bool(since or until or around)
    if strict:
        first, last, rest = None, None, text
    if around:
        day, end = read_day_word(around, today), read_day_word(around, today, last=True)
        first, last = day - timedelta(days=AROUND_DAYS), end + timedelta(days=AROUND_DAYS)
    if since:
        first = read_day_word(since, today)
    if until:
        last = read_day_word(until, today, last=True)
    if first is not None and last is not None and first > last:
        raise ToolFailure(f"The range from {first} to {last} is empty: since must not be later than until.")
    kind = str(args.get("kind") or "").strip().lower() or None
    if kind is not None and kind not in KINDS:
        raise ToolFailure(f"There is no kind {kind[:40]!r}; it can be {', '.join(KINDS)}.")
    chosen: Kind | None = next((name for name in KINDS if name == kind), None)
    entity = str(args.get("entity") or "").strip() or None
    k = _whole(args, "k", K_DEFAULT, K_MAX)
    tokens_max = _whole(args, "max_tokens", TOKENS_DEFAULT, TOKENS_MAX)
    return Question(rest, first, last, chosen, entity, k, tokens_max, strict)


def _whole(args: dict[str, Any], name: str, default: int, most: int) -> int:
    value = args.get(name)
    try:
        return max(1, min(default if value is None else int(value), most))
    except (TypeError, ValueError):
        raise ToolFailure(f"{name} must be a whole number from 1 to {most:,}.") from None

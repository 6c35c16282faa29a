"""One line of an exported chat: is it the head of a message, and who wrote it when? Its date may still be of two minds.

The app writes lines in the form and language of the phone; there is no specification. Two forms are known,
`[date, time] name: text` and `date, time - name: text`, with direction marks and special blanks almost anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Order = Literal["dmy", "mdy", "ymd"]

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
BLANKS = " \t\u00a0\u2007\u2009\u202f"
_ENDS = f"{MARKS}{BLANKS}\r\n"
_M = f"[{MARKS}]{{0,4}}"
_B = f"[{BLANKS}{MARKS}]"
_S = f"{_B}{{0,4}}"
"""Bounded, so that no line made for it takes long."""
_MORNING = (
    rf"a\.?{_B}?m\.?|ص(?:باح[اً]*)?|오전|上午|午前|凌晨|早上|清晨|ق\.ظ\.?|π\.μ\.|ÖÖ|SA|PG|de\.|fm|पूर्वाह्न"
    r"|e paradites|PD"
)
_EVENING = (
    rf"p\.?{_B}?m\.?|م(?:ساء[اً]*)?|오후|下午|午後|中午|晚上|傍晚|ب\.ظ\.?|μ\.μ\.|ÖS|CH|PTG|du\.|em|अपराह्न|MD|e pasdites"
)
_DATE = (
    rf"(?P<a>\d{{1,4}}){_S}(?P<sep>[./\-年년]){_S}(?P<b>\d{{1,2}}){_S}[./\-月월]{_S}(?P<c>\d{{1,4}})"
    rf"(?:\.|日|일|{_B}{{0,2}}г\.)?"
)
_TIME = (
    rf"(?:(?:(?P<am1>{_MORNING})|(?P<pm1>{_EVENING})){_S})?"
    rf"(?P<hour>\d{{1,2}})(?:[:.]|{_B}?h{_B}?)(?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"(?:{_S}(?:(?P<am2>{_MORNING})|(?P<pm2>{_EVENING})|ч\.|น\.|Uhr))?"
)
_BETWEEN = rf"(?:{_M}[,،]?{_B}{{1,4}}(?:(?:à|at|um|klo|kl\.?|alle|às|a las|в){_B}{{1,4}})?|{_M}[,،])"
_TIME_FIRST = (
    rf"(?P<hour1>\d{{1,2}}):(?P<minute1>\d{{2}})(?::(?P<second1>\d{{2}}))?{_M},{_B}{{1,4}}"
    rf"(?P<a1>\d{{1,2}})(?P<sep1>[./\-])(?P<b1>\d{{1,2}})[./\-](?P<c1>\d{{2,4}})"
)
"""As on phones in Vietnamese."""
_HEAD = re.compile(
    rf"{_M}(?P<open>\[)?{_S}(?:{_DATE}{_BETWEEN}{_TIME}|{_TIME_FIRST}){_M}(?(open){_S}\]|{_B}{{1,4}}[-–—]{_B})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SYSTEM = re.compile(
    r"\b(?:changed (?:the|this|their|to)|created (?:the |this )?group|pinned a|turned (?:on|off)|"
    r"hat (?:den|die|das) (?:Gruppe|Betreff)|cambió (?:el|la)|ha cambiato|a changé|mudou (?:o|a)|alterou|"
    r"heeft (?:het|de) )|(?:غيّ?ر(?:ت)?|قام(?:ت)? بتغيير) ",
    re.IGNORECASE,
)
_ENCRYPTED = re.compile(
    r"end-to-end encrypted|Ende-zu-Ende-verschlüsselt|de extremo a extremo|de bout en bout|de ponta a ponta|"
    r"تمامًا بين الطرفين",
    re.IGNORECASE,
)
_QUOTES = ('""', "“”", "„“", "«»", "「」")


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a message. `author` None: the app speaks. `is_saved` False: a name not in the contacts."""

    numbers: tuple[int, int, int]
    separator: str
    year_first: bool
    clock: tuple[int, int, int]
    author: str | None
    is_saved: bool
    text: str
    shown_date: str

    def at(self, order: Order) -> datetime | None:
        """The wall time, read in this order; None where that is no date."""
        a, b, c = self.numbers
        year, month, day = {"ymd": (a, b, c), "dmy": (c, b, a), "mdy": (c, a, b)}["ymd" if self.year_first else order]
        if year < 100:
            year += 2000
        elif year > 2400:
            year -= 543  # the Buddhist era
        if not 1990 <= year < 2200:
            return None
        try:
            return datetime(year, month, day, *self.clock)  # noqa: DTZ001 - a wall time; its zone comes with the import
        except ValueError:
            return None


def head_of(line: str) -> Head | None:
    """The head that a line is; None when it goes on with the message before."""
    found = _HEAD.match(line)
    if found is None:
        return None
    part = {name: found[name] or found[f"{name}1"] for name in ("a", "b", "c", "sep", "hour", "minute", "second")}
    hour, minute, second = int(part["hour"]), int(part["minute"]), int(part["second"] or 0)
    if (found["pm1"] or found["pm2"]) and hour < 12:
        hour += 12
    elif (found["am1"] or found["am2"]) and hour == 12:
        hour = 0
    author, text = _author(found["rest"])
    shown = f"{part['a']}{part['sep']}{part['b']}{part['sep']}{part['c']}"
    head = Head(
        (int(part["a"]), int(part["b"]), int(part["c"])),
        part["sep"],
        len(part["a"]) > 2,
        (hour, minute, second),
        trimmed(author).lstrip("~").strip(_ENDS) if author is not None else None,
        author is None or not trimmed(author).startswith("~"),
        text,
        shown,
    )
    return head if any(head.at(order) for order in ("dmy", "mdy", "ymd")) else None


def trimmed(text: str) -> str:
    """Without blanks, line ends and direction marks at its ends."""
    return text.strip(_ENDS)


def _author(rest: str) -> tuple[str | None, str]:
    """Who speaks, and the text; None for a sentence of the app, which may hold a colon too."""
    author, colon, text = rest.partition(":")
    says = text[:1] in {"", *BLANKS, *MARKS, "\r", "\n"}
    if not colon or not says or not trimmed(author).lstrip("~").strip(_ENDS):
        return None, rest
    if _SYSTEM.search(author) or any(_is_open(author, pair) for pair in _QUOTES):
        return None, rest
    words = trimmed(text)
    # In the form with brackets the app speaks in the name of a person or of the group, after a mark.
    is_marked = text.lstrip(BLANKS).startswith("\u200e")
    if is_marked and (_ENCRYPTED.search(words) or (words.startswith(trimmed(author)) and _SYSTEM.search(words))):
        return None, text
    return author, text


def _is_open(text: str, pair: str) -> bool:
    """Whether a quotation begins in the text and does not end there."""
    first, last = pair
    return text.count(first) % 2 == 1 if first == last else text.count(first) > text.count(last)

"""`bank/opinions.md`: what somebody prefers or thinks, how sure that is, and what speaks for and against it.

How a confidence c moves (`moved`), with s the strength of the new evidence (its own `O(c=...)`, else 0.7):

- support: c + 0.10 s (1 - c)
- contradiction: c - 0.15 s c
- a strong one (s >= 0.8) that is at least the third in a row without support, on different days: c - 0.45 s c

An opinion begins with the confidence its first evidence states, else 0.60; it stays between 0.02 and 0.98. Nothing
moves without new evidence: time does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from agent.hippocampus.facts import mentions
from agent.lines import lines_of

BEGIN = 0.60
STRENGTH = 0.70
UP, DOWN, DOWN_FAR = 0.10, 0.15, 0.45
STRONG = 0.80
REPEATED = 3
LEAST, MOST = 0.02, 0.98
_FIELD = re.compile(r"\s*[-*+]\s+(confidence|entities|updated|for|against)\s*:\s*(.*?)\s*$", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}##[ \t]+(.*?)[ \t#]*$")
_REF = re.compile(r"[^\s,؛،]+#L\d+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What bears on an opinion: on which day, how strong, for it or against it, and where it stands."""

    ref: str
    day: date
    strength: float
    supports: bool
    stated: float | None = None


@dataclass(slots=True)
class Opinion:
    """A section of the page. `extra` are lines of a person's in it; `line` counts from 1, 0 for a new one."""

    statement: str
    confidence: float
    entities: tuple[str, ...] = ()
    updated: date | None = None
    supporting: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    line: int = 0
    has_fields: bool = True

    def lines(self) -> list[str]:
        """The section as it is written; one without fields or evidence stays the heading a person wrote."""
        if not (self.has_fields or self.supporting or self.against):
            return [f"## {self.statement}", "", *self.extra]
        lines = [f"## {self.statement}", "", f"- confidence: {self.confidence:.2f}"]
        if self.entities:
            lines.append(f"- entities: {', '.join(f'@{name}' for name in self.entities)}")
        if self.updated is not None:
            lines.append(f"- updated: {self.updated.isoformat()}")
        if self.supporting:
            lines.append(f"- for: {', '.join(self.supporting)}")
        if self.against:
            lines.append(f"- against: {', '.join(self.against)}")
        return [*lines, *self.extra]


@dataclass(slots=True)
class Opinions:
    """The page: what stands before the first opinion, and the opinions in their order; `end` ends its lines."""

    head: list[str]
    all: list[Opinion]
    end: str = "\n"

    def text(self) -> str:
        lines = list(self.head)
        for opinion in self.all:
            while lines and not lines[-1].strip():
                lines.pop()
            lines += ["", *opinion.lines()]
        while lines and not lines[-1].strip():
            lines.pop()
        return self.end.join([*lines, ""])


def parse_opinions(text: str) -> Opinions:
    """Reads the page; a field that cannot be read is kept as a line of a person's, a bad confidence counts as 0.60."""
    page = Opinions([], [], "\r\n" if "\r\n" in text else "\n")
    if not text.strip():
        page.head.append("# Opinions")
    opinion: Opinion | None = None
    for number, line in enumerate(lines_of(text.removeprefix("\ufeff")), 1):
        heading = _HEADING.match(line)
        if heading and heading[1].strip():
            opinion = Opinion(heading[1].strip(), BEGIN, line=number, has_fields=False)
            page.all.append(opinion)
        elif opinion is None:
            page.head.append(line)
        elif (found := _FIELD.match(line)) and _read(opinion, found[1].lower(), found[2]):
            opinion.has_fields = True
        elif line.strip() or opinion.extra:
            opinion.extra.append(line)
    for opinion in page.all:
        while opinion.extra and not opinion.extra[-1].strip():
            opinion.extra.pop()
    return page


def _read(opinion: Opinion, name: str, value: str) -> bool:
    """Puts one field into an opinion; False when its value cannot be read."""
    try:
        if name == "confidence":
            opinion.confidence = min(1.0, max(0.0, float(value)))
        elif name == "updated":
            opinion.updated = date.fromisoformat(value)
        elif name == "entities":
            opinion.entities = mentions(value) or tuple(part.strip() for part in value.split(",") if part.strip())
        else:
            refs = _REF.findall(value)
            if not refs and value:
                return False
            (opinion.supporting if name == "for" else opinion.against).extend(refs)
    except ValueError:
        return False
    return True


def moved(confidence: float, evidence: Evidence, in_a_row: int) -> float:
    """The confidence after one more piece of evidence.

    `in_a_row`: how many days in a row, this one counted, brought contradictions without support in between.
    """
    if evidence.supports:
        confidence += UP * evidence.strength * (1 - confidence)
    elif evidence.strength >= STRONG and in_a_row >= REPEATED:
        confidence -= DOWN_FAR * evidence.strength * confidence
    else:
        confidence -= DOWN * evidence.strength * confidence
    return min(MOST, max(LEAST, confidence))


def confidence_of(evidence: Iterable[Evidence], begin: float | None = None) -> float | None:
    """The confidence that a line of evidence leads to, oldest first; None when nothing supports it.

    `begin` None: the first supporting evidence says where it begins. Else it begins there and all evidence moves it.
    """
    confidence = begin
    contradicted: set[date] = set()
    for item in sorted(evidence, key=lambda item: (item.day, item.ref.rpartition("#L")[0], _line(item.ref))):
        if confidence is None:
            if item.supports:
                confidence = BEGIN if item.stated is None else min(MOST, max(LEAST, item.stated))
            continue
        if item.supports:
            contradicted.clear()
        else:
            contradicted.add(item.day)
        confidence = moved(confidence, item, len(contradicted))
    return confidence


def _line(ref: str) -> int:
    number = ref.rpartition("#L")[2]
    return int(number) if number.isdigit() else 0


def holds(evidence: Sequence[Evidence]) -> bool:
    """True when the newest evidence supports it: what was contradicted last holds no more."""
    newest = max(evidence, key=lambda item: (item.day, item.ref.rpartition("#L")[0], _line(item.ref)), default=None)
    return newest is None or newest.supports

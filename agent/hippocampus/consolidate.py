"""Sums up a week: what happened, decisions, open threads, people, numbers, each with where it stands.

The days decide a week, Monday to Sunday in the owner's zone, whatever files there are. What has proved to hold goes on
into the knowledge files, the newest evidence winning; bullets of a person's stay, and what contradicts one is proposed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from agent.hippocampus.believing import Believing
from agent.hippocampus.claims import Reader, relation
from agent.hippocampus.entities import Entities, plain
from agent.hippocampus.facts import Day
from agent.hippocampus.opinions import parse_opinions
from agent.hippocampus.pages import Change, Written, read_text
from agent.hippocampus.patterns import Pattern
from agent.hippocampus.reflect import Material
from agent.hippocampus.taking import DECISION, Said, said
from agent.hippocampus.tending import PROPOSED, Part, Wanted, key_of, tended
from agent.hippocampus.times import spans
from agent.hippocampus.types import CONSOLIDATED, KNOWLEDGE, OPINIONS, OWNER, Fact
from agent.lines import flat, lines_of, one_line

HAPPENED_MAX = 60
HAPPENED_A_DAY_MAX = 12
OPEN_MAX = 15
LINE_CHARS = 220
KEPT_MAX = 100
STANDING_COMPARED_MAX = 200
PREFERENCE_FROM = 0.60
LEARNED = "Learned"
"""The section of a knowledge file that the weeks fill; the rest of the file is the owner's and memory_save's."""
_WEEK = re.compile(r"(\d{4})-?[Ww](\d{1,2})")
_ENTRY = Pattern(r"## (?P<time>\d\d:\d\d) \[(?P<channel>[^\]]*)\] - (?P<head>.*)$")
_COST = Pattern(r"\|\s*(?:\$(?P<cost>\d+(?:\.\d+)?)|(?P<unknown>unknown))\s*$")
_OPEN = Pattern(
    r"\b(?:to-?do|need to|needs to|have to|has to|must|still (?:open|waiting|need)|waiting (?:for|on)"
    r"|remind me|follow up"
    r"|not (?:yet )?(?:done|decided|sure)|pending|next week|tomorrow|by (?:monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday))\b"
    r"|(?<!\w)(?:يجب|لازم|علي أن|عليّ أن|ما زال|مازال|لم يتم|بانتظار|في انتظار|ذكرني|ذكّرني|غدا|غدًا"
    r"|الأسبوع القادم|لم نقرر|معلق)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, order=True)
class Week:
    """An ISO week."""

    year: int
    number: int

    @property
    def first(self) -> date:
        return date.fromisocalendar(self.year, self.number, 1)

    @property
    def last(self) -> date:
        return self.first + timedelta(days=6)

    @property
    def name(self) -> str:
        """`2026-W48`."""
        return f"{self.year:04}-W{self.number:02}"

    @property
    def page(self) -> str:
        return f"{CONSOLIDATED}/{self.name}.md"


def week_of(day: date) -> Week:
    year, number, _ = day.isocalendar()
    return Week(year, number)


def parse_week(text: str) -> Week | None:
    """`2026-W48`; None for anything else."""
    found = _WEEK.fullmatch(text.strip())
    try:
        week = Week(int(found[1]), int(found[2])) if found else None
        return week if week is None or week.first else None
    except ValueError:
        return None


def weeks_to_make(days: Iterable[Day], written: Written, today: date, since: date | None) -> list[Week]:
    """The weeks that have ended, hold something, and were not made yet, the oldest first.

    `since`: those from its week on, made or not.
    """
    held = sorted({week_of(day.day) for day in days if _holds(day)})
    ended = [week for week in held if week.last < today]
    if since is not None:
        return [week for week in ended if week.last >= since]
    return [week for week in ended if week.name not in written.weeks]


def _holds(day: Day) -> bool:
    return bool(day.facts) or any(_ENTRY.match(line) for line in day.lines)


def week_page(
    workspace: Path, week: Week, days: Sequence[Day], entities: Entities, notes: Sequence[tuple[str, str]] = ()
) -> Wanted:
    """The page of a week. `notes`: what a model said of it, each with its reference."""
    mine = [day for day in days if week.first <= day.day <= week.last]
    facts = [fact for day in mine for fact in day.facts]
    people = [(day, item) for day in mine for item in said(enumerate(day.lines, 1))]
    happened = [f"- {text} ({ref})" for text, ref in notes]
    happened += [line for day in mine for line in _happened(day)][: HAPPENED_MAX - len(happened)]
    decisions = [_fact_line(fact) for fact in facts if _decides(fact)]
    decided = {fact.text.casefold() for fact in facts if _decides(fact)}
    decisions += [
        f"- {day.day}: {flat(_who(item) + item.text, LINE_CHARS)} ({day.path}#L{item.line})"
        for day, item in people
        if DECISION.search(item.text) and not any(text in item.text.casefold() for text in decided)
    ]
    return Wanted(
        f"# {week.name} ({week.first.isoformat()} to {week.last.isoformat()})",
        parts=(
            Part("What happened", tuple(dict.fromkeys(happened))),
            Part("Decisions", tuple(dict.fromkeys(decisions))),
            Part("Open threads", tuple(_open(week, people, facts))),
            Part("People", tuple(_people(entities, facts, people))),
            Part("Numbers", tuple(_numbers(workspace, week, mine))),
            Part("References", tuple(f"- {day.path}#L1" for day in mine)),
        ),
    )


def _happened(day: Day) -> list[str]:
    """A day's facts, then what people began to speak of, none of it twice."""
    lines = [_fact_line(fact) for fact in day.facts if fact.letter in "WBS"]
    told = " ".join(fact.text.casefold() for fact in day.facts)
    for at, line in enumerate(day.lines, 1):
        entry = _ENTRY.match(line)
        if entry and entry["channel"] not in {"heartbeat", "procedure"}:
            head = entry["head"].strip()
            if head.rstrip("…. ").casefold() not in told:
                lines.append(f"- {day.day} {entry['time']}: {flat(head, LINE_CHARS)} ({day.path}#L{at})")
    return lines[:HAPPENED_A_DAY_MAX]


def _fact_line(fact: Fact) -> str:
    return f"- {fact.day}: {flat(plain(fact.text), LINE_CHARS)} ({fact.ref})"


def _decides(fact: Fact) -> bool:
    return fact.letter in "WB" and DECISION.search(fact.text) is not None


def _who(item: Said) -> str:
    return f"{one_line(item.who)}: " if item.who else ""


def _open(week: Week, people: Sequence[tuple[Day, Said]], facts: Sequence[Fact]) -> list[str]:
    """What somebody still has to do, and what is to come after the week."""
    lines = [
        f"- {day.day}: {flat(_who(item) + item.text, LINE_CHARS)} ({day.path}#L{item.line})"
        for day, item in people
        if _OPEN.search(item.text)
    ]
    lines += [
        _fact_line(fact)
        for fact in facts
        if any(span.first > week.last and not span.bare for span in spans(fact.text, fact.day, of_record=True))
    ]
    return list(dict.fromkeys(lines))[:OPEN_MAX]


def _people(entities: Entities, facts: Sequence[Fact], people: Sequence[tuple[Day, Said]]) -> list[str]:
    named = Counter(entities.slug_of(name) for fact in facts for name in fact.entities)
    named.pop(entities.slug_of(OWNER), None)
    wrote = Counter(one_line(item.who) for _, item in people if item.who)
    lines = [
        f"- {entities.pages[slug].name}: facts: {count} ({entities.pages[slug].path}#L1)"
        for slug, count in sorted(named.items(), key=lambda one: (-one[1], one[0]))
    ]
    return lines + [f"- {who} wrote, times: {count}" for who, count in sorted(wrote.items())]


def _numbers(workspace: Path, week: Week, days: Sequence[Day]) -> list[str]:
    entries = [sum(1 for line in day.lines if _ENTRY.match(line)) for day in days]
    cost, unknown = Decimal(0), 0
    for n in range(7):
        path = workspace / "usage" / "daily" / f"{(week.first + timedelta(days=n)).isoformat()}.md"
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            if found := _COST.search(line):
                cost += Decimal(found["cost"] or 0)
                unknown += found["unknown"] is not None
    spend = f"- spend: ${cost:.4f}" + (f", and {unknown} calls of unknown price" if unknown else "")
    return [f"- turns: {sum(entries)}", f"- active days: {sum(1 for count in entries if count)}", spend]


def week_change(written: Written, week: Week, wanted: Wanted) -> Change:
    """The page of a week, made or brought up to date around what a person wrote on it."""

    def make(before: str | None, may_drop: bool) -> str | None:
        return tended(before, wanted, written.knows(week.page), may_drop=may_drop)

    return Change(week.page, make, moves=True)


def knowledge_changes(
    workspace: Path, material: Material, reader: Reader, believing: Believing, until: date
) -> list[Change]:
    """What the weeks up to a day have shown to hold, into preferences.md, people.md and decisions.md."""
    entities = material.entities
    owner = entities.slug_of(OWNER)
    by_ref = {fact.ref: fact for fact in material.facts}
    preferences: list[tuple[Fact, str]] = []
    for opinion in parse_opinions(read_text(workspace / OPINIONS) or "").all:
        evidence = [(by_ref[ref], True) for ref in opinion.supporting if ref in by_ref]
        evidence += [(by_ref[ref], False) for ref in opinion.against if ref in by_ref]
        newest = max(evidence, key=lambda one: (one[0].day, one[0].path, one[0].line), default=None)
        if newest is not None and newest[1] and newest[0].day <= until and opinion.confidence >= PREFERENCE_FROM:
            about_owner = owner in believing.slugs(opinion.entities)
            who = "" if about_owner else f"{', '.join(name.replace('-', ' ') for name in opinion.entities)}: "
            preferences.append((newest[0], f"{who}{opinion.statement}"))
    before = [fact for fact in material.facts if fact.day <= until]
    decisions = [(fact, plain(fact.text)) for fact in before if _decides(fact)]
    others = [
        fact
        for fact in before
        if fact.letter == "W" and not _decides(fact) and {entities.slug_of(name) for name in fact.entities} - {owner}
    ]
    people = [(fact, plain(fact.text)) for fact in standing(others, believing, entities)]
    return [
        _knowledge(material, reader, name, facts)
        for name, facts in (("preferences", preferences), ("decisions", decisions), ("people", people))
        if facts or material.written.knows(f"{KNOWLEDGE}/{name}.md")
    ]


def standing(facts: Sequence[Fact], believing: Believing, entities: Entities) -> list[Fact]:
    """The facts that no later one about the same contradicts."""
    gone: set[Fact] = set()
    by_slug: dict[str, list[Fact]] = {}
    for fact in sorted(facts, key=lambda one: (one.day, one.path, one.line)):
        new = believing.reading(fact.text, fact.entities)
        for slug in {entities.slug_of(name) for name in fact.entities}:
            before = by_slug.setdefault(slug, [])
            for old in before[-STANDING_COMPARED_MAX:]:
                if old not in gone and relation(new, believing.reading(old.text, old.entities)) == "contradicts":
                    gone.add(old)
            before.append(fact)
    return [fact for fact in facts if fact not in gone]


def _knowledge(material: Material, reader: Reader, name: str, facts: Sequence[tuple[Fact, str]]) -> Change:
    page = f"{KNOWLEDGE}/{name}.md"
    written, entities = material.written, material.entities
    newest: dict[str, tuple[Fact, str]] = {}
    for fact, text in sorted(facts, key=lambda one: (one[0].day, one[0].path, one[0].line)):
        newest[reader.key(text)] = (fact, text)
    lines = [f"- {text} ({fact.ref}, {fact.day})" for fact, text in list(newest.values())[-KEPT_MAX:]]

    def make(before: str | None, may_drop: bool) -> str | None:
        known = written.knows(page)
        own = [
            line
            for line in lines_of(before or "")
            if line.lstrip().startswith(("- ", "* ")) and key_of(line) not in known
        ]
        keys = {reader.key(line.lstrip(" -*+")) for line in own}
        read = [reader.read(line.lstrip(" -*+")) for line in own]
        learned, proposed = list[str](), list[str]()
        for (fact, text), line in zip(list(newest.values())[-KEPT_MAX:], lines, strict=True):
            if reader.key(text) in keys:
                continue
            contradicts = any(
                relation(reader.read(text), old) == "contradicts" and _is_about(entities, fact, line_)
                for old, line_ in zip(read, own, strict=True)
            )
            (proposed if contradicts else learned).append(line)
        parts = [Part(LEARNED, tuple(learned))]
        if proposed or PROPOSED in (before or ""):
            parts.append(Part(PROPOSED, tuple(proposed)))
        if before is None and not learned and not proposed:
            return None
        return tended(before, Wanted(f"# {name.capitalize()}", parts=tuple(parts)), known, may_drop=may_drop)

    return Change(page, make, moves=True)


def _is_about(entities: Entities, fact: Fact, line: str) -> bool:
    """True when a line of a person's names somebody the fact is about; the owner's lines need no name."""
    said = f" {entities.words.sameness_key(line)} "
    slugs = {entities.slug_of(name) for name in fact.entities or (OWNER,)}
    if any(f" {entities.key(name)} " in said for slug in slugs for name in entities.names(slug)):
        return True
    others = (name for slug, page in entities.pages.items() if slug not in slugs for name in (page.name, *page.aliases))
    return entities.slug_of(OWNER) in slugs and not any(f" {entities.key(name)} " in said for name in others)

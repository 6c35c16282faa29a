"""Plans what reflection changes: entity pages, opinions, world, experience, and what it proposes for memory.md.

Everything is planned from all facts there are, so that a second run on the same days changes nothing; `apply` in
pages.py then writes it around what persons wrote.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.hippocampus.believing import Believing, Judged, Known, evidence_of
from agent.hippocampus.claims import Reader, Reading, Relation, relation
from agent.hippocampus.entities import (
    SUMMARY_FACTS,
    Entities,
    Told,
    links_of,
    page_facts,
    plain,
    sentence,
    told,
    wanted_page,
)
from agent.hippocampus.opinions import holds, parse_opinions
from agent.hippocampus.pages import Change, Make, UnreadablePage, Written, keys_of, read_text
from agent.hippocampus.tending import PROPOSED, Part, Wanted, key_of, tended, without_proposals
from agent.hippocampus.types import EXPERIENCE, MEMORY, OPINIONS, OWNER, WORLD, Fact, Words
from agent.limits import MEMORY_CHARS_MAX
from agent.lines import lines_of

PROPOSALS_MAX = 5
PROPOSED_FROM = 0.75
PROPOSED_DAYS_MIN = 2
"""An opinion is proposed for memory.md when it is this sure and was supported on so many days."""
_LINE_NUMBER = re.compile(r"#L\d+")


@dataclass(slots=True)
class Plan:
    """The changes, and what is worth a word though nothing was written."""

    changes: list[Change]
    remarks: list[str]
    believing: Believing


@dataclass(slots=True)
class Material:
    """What a reflection works on. `fresh`: the facts that may become evidence now; `summaries`: a model's, by slug."""

    facts: list[Fact]
    fresh: list[Fact]
    known: Known
    entities: Entities
    written: Written
    judged: Judged = field(default_factory=dict[tuple[str, str], Relation])
    summaries: Mapping[str, str] = field(default_factory=dict[str, str])

    def by_slug(self) -> dict[str, list[Fact]]:
        """The facts of each page."""
        pages: dict[str, list[Fact]] = {}
        for fact, slugs in self.slugs().items():
            for slug in slugs:
                pages.setdefault(slug, []).append(fact)
        return pages

    def slugs(self) -> dict[Fact, tuple[str, ...]]:
        return {
            fact: tuple(dict.fromkeys(self.entities.slug_of(name) for name in fact.entities)) for fact in self.facts
        }


def plan(workspace: Path, material: Material, reader: Reader, words: Words) -> Plan:
    """What is to be written, page by page; nothing is written here."""
    believing = Believing(reader, material.entities, material.known, material.written, material.judged)
    remarks: list[str] = []
    changes = [*_entity_pages(material, words, believing), _opinions(material, believing)]
    changes += _dated_pages(material, words)
    proposals = _proposals(workspace, material, believing, words, remarks)
    changes += proposals
    return Plan(changes, remarks, believing)


def _entity_pages(material: Material, words: Words, believing: Believing) -> list[Change]:
    changes: list[Change] = []
    slugs = material.slugs()
    links = links_of(material.facts, slugs)
    pages = material.by_slug()
    for slug in sorted({*pages, *(slug for slug, page in material.entities.pages.items() if page.exists)}):
        entity = material.entities.pages[slug]
        if slug in material.entities.merged:
            changes.append(Change(entity.path, _emptied(material.written, entity.path), moves=True))
            continue
        facts = told(pages.get(slug, ()), words)
        if not facts and not material.written.knows(entity.path):
            continue
        linked = sorted(links.get(slug, Counter[str]()).items(), key=lambda item: (-item[1], item[0]))
        with_pages = [(material.entities.pages[other], count) for other, count in linked]
        wanted = wanted_page(entity, facts, with_pages, material.summaries.get(slug) or _summary(facts, believing))
        changes.append(Change(entity.path, _tending(material.written, entity.path, wanted, facts)))
    return changes


def _summary(facts: Sequence[Told], believing: Believing) -> str:
    """The newest facts that no later one contradicts, as they were said."""
    standing: list[Told] = []
    readings: list[Reading] = []
    for at in sorted(range(len(facts)), key=lambda n: (facts[n].sources[-1].day, n), reverse=True):
        if len(standing) >= SUMMARY_FACTS:
            break
        reading = believing.reading(facts[at].text, facts[at].sources[-1].entities)
        if all(relation(newer, reading) != "contradicts" for newer in readings):
            standing.append(facts[at])
            readings.append(reading)
    return " ".join(sentence(plain(fact.text)) for fact in standing)


def _tending(written: Written, page: str, wanted: Wanted, facts: Sequence[Told]) -> Make:
    def make(before: str | None, may_drop: bool) -> str | None:
        if before is None and not facts:
            return None
        known = written.knows(page)
        # Where a line of the program's was taken out (by hand, or forgotten), a summary may still tell what it said.
        same = before is not None and is_current(before, facts) and set(known) <= set(keys_of(before))
        now = Wanted(wanted.title, wanted.head, None if same else wanted.summary, wanted.parts)
        return tended(before, now, written.knows(page), may_drop=may_drop)

    return make


def is_current(page: str, facts: Sequence[Told]) -> bool:
    """True when a page has these facts already, with their days: its summary then stays as it is."""
    on_page = {_LINE_NUMBER.sub("", line.strip()) for line in lines_of(page)}
    return all(_LINE_NUMBER.sub("", fact.line) in on_page for fact in facts) and len(facts) == sum(
        1 for _, _, _, source in page_facts(page) if source
    )


def _emptied(written: Written, page: str) -> Make:
    """A page whose name is another page's now: what the program wrote there goes, with the page when it was all."""

    def make(before: str | None, may_drop: bool) -> str | None:
        if before is None:
            return None
        empty = Wanted("", (), "", (Part("Facts", ()), Part("Links", ())))
        text = tended(before, empty, written.knows(page), may_drop=may_drop)
        known = written.knows(page)
        left = [line for line in lines_of(text) if line.strip() and not line.startswith(("#", "aliases:"))]
        return text if any(key_of(line) not in known for line in left) else None

    return make


def _opinions(material: Material, believing: Believing) -> Change:
    def make(before: str | None, may_drop: bool) -> str | None:
        return believing.text(before, material.fresh, may_drop=may_drop)

    return Change(OPINIONS, make)


def _dated_pages(material: Material, words: Words) -> list[Change]:
    """What is about nobody in particular goes to world.md, what was done to experience.md, by month."""
    world = told((fact for fact in material.facts if fact.letter == "W" and not fact.entities), words)
    experience = told((fact for fact in material.facts if fact.letter == "B"), words)
    changes: list[Change] = []
    for page, title, facts in ((WORLD, "# World", world), (EXPERIENCE, "# Experience", experience)):
        months: dict[str, list[str]] = {}
        for fact in facts:
            places = "; ".join(source.ref for source in fact.sources)
            day = fact.sources[0].day
            months.setdefault(f"{day:%Y-%m}", []).append(f"- {day}: {plain(fact.text)} ({places})")
        if months or material.written.knows(page):
            parts = tuple(Part(month, tuple(lines)) for month, lines in sorted(months.items()))
            changes.append(Change(page, _dated(material.written, page, title, parts)))
    return changes


def _dated(written: Written, page: str, title: str, parts: tuple[Part, ...]) -> Make:
    def make(before: str | None, may_drop: bool) -> str | None:
        named = {part.heading for part in parts}
        gone = [Part(name, ()) for name in re.findall(r"^## (\d{4}-\d\d)\s*$", before or "", re.MULTILINE)]
        every = (*parts, *(part for part in gone if part.heading not in named))
        return tended(before, Wanted(title, parts=every), written.knows(page), may_drop=may_drop)

    return make


def _proposals(
    workspace: Path, material: Material, believing: Believing, words: Words, remarks: list[str]
) -> list[Change]:
    """What has proved lasting, for the owner to move up or to strike out."""
    try:
        memory = read_text(workspace / MEMORY) or ""
        opinions = believing.text(read_text(workspace / OPINIONS), material.fresh) or ""
    except UnreadablePage as error:
        remarks.append(str(error))
        return []
    kept = words.sameness_key(without_proposals(memory))
    owner = material.entities.slug_of(OWNER)
    lines: list[str] = []
    by_ref = {fact.ref: fact for fact in material.facts}
    for opinion in sorted(parse_opinions(opinions).all, key=lambda o: (-o.confidence, o.statement)):
        evidence = [
            evidence_of(by_ref[ref], supports)
            for refs, supports in ((opinion.supporting, True), (opinion.against, False))
            for ref in refs
            if ref in by_ref
        ]
        days = {item.day for item in evidence if item.supports}
        about_owner = owner in believing.slugs(opinion.entities)
        if (
            opinion.confidence < PROPOSED_FROM
            or len(days) < PROPOSED_DAYS_MIN + (not about_owner)
            or not holds(evidence)
        ):
            continue
        if words.sameness_key(opinion.statement) not in kept:
            who = "" if about_owner else f"{', '.join(name.replace('-', ' ') for name in opinion.entities)}: "
            lines.append(f"- {who}{opinion.statement} ({opinion.supporting[-1]})")
    if not lines and not material.written.knows(MEMORY):
        return []
    if len(memory) > MEMORY_CHARS_MAX:
        remarks.append(f"memory.md has {len(memory):,} characters; at most {MEMORY_CHARS_MAX:,} are used: shorten it")
        return []
    wanted = Wanted("# Memory", parts=(Part(PROPOSED, tuple(lines[:PROPOSALS_MAX])),))

    def make(before: str | None, may_drop: bool) -> str | None:
        return tended(before, wanted, material.written.knows(MEMORY), may_drop=may_drop)

    return [Change(MEMORY, make, moves=True)]

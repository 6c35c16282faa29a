"""Everything that recall can find, as items: facts of the days, opinions, entity pages, knowledge, what persons wrote.

Built from the files alone, and again only when one of them changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from agent.hippocampus.believing import evidence_of
from agent.hippocampus.claims import Reader
from agent.hippocampus.days import Days
from agent.hippocampus.entities import Entities, load_entities, page_facts, plain, told
from agent.hippocampus.lexicon import Word, forms_of
from agent.hippocampus.opinions import Evidence, parse_opinions
from agent.hippocampus.tending import without_proposals
from agent.hippocampus.times import spans
from agent.hippocampus.types import (
    ENTITIES,
    EXPERIENCE,
    KIND_OF,
    KNOWLEDGE,
    MEMORY,
    OPINIONS,
    OWNER,
    WORLD,
    Fact,
    Kind,
    MemoryIndex,
)
from agent.lines import lines_of

PROFILE = "identity/user.md"
_BULLET = re.compile(r"\s*[-*+]\s+(?P<text>.*\S)")
_SOURCE = re.compile(r"\s+\([^()]*#L\d+[^()]*\)\s*$")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d):\s+")


@dataclass(slots=True)
class Item:
    """Something to be found. `first` and `last`: the days it speaks of; `day`: the newest of those that say it.

    `evidence` of an opinion, oldest first; `sources` of a fact, the oldest first.
    """

    kind: Kind
    text: str
    slugs: frozenset[str]
    names: tuple[str, ...]
    day: date
    first: date
    last: date
    source: str
    ranged: bool = False
    speaks: bool = False
    """Its text itself names days."""
    confidence: float | None = None
    evidence: tuple[Evidence, ...] = ()
    sources: tuple[tuple[date, str], ...] = ()
    page: bool = False
    told: bool = False
    """A line of a day's entry: what somebody told, which may hold on."""
    words: tuple[Word, ...] = ()
    forms: frozenset[str] = frozenset()
    respects: frozenset[str] = frozenset()


@dataclass(slots=True)
class Remembered:
    """All items, and which of them hold a word or name an entity."""

    items: list[Item] = field(default_factory=list)
    holding: dict[str, list[int]] = field(default_factory=dict)
    by_slug: dict[str, list[int]] = field(default_factory=dict)
    entities: Entities | None = None
    taken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The folded texts of a day's facts, by the day's file: its entries need not be quoted beside them."""
    refs: frozenset[str] = frozenset()
    """Where the facts stand."""
    names: dict[str, list[tuple[tuple[Word, ...], str]]] = field(default_factory=dict)
    """Names by each form of their first word: all their words, and the page they lead to."""


class Memory:
    """Keeps the newest `Remembered`. Not to be used by two threads at once."""

    def __init__(self, workspace: Path, index: MemoryIndex, reader: Reader, days: Days) -> None:
        self._workspace = workspace
        self._index = index
        self._reader = reader
        self._days = days
        self._stamp: object = None
        self._newest = Remembered()

    def current(self) -> Remembered:
        """What the files say now."""
        self._days.all()
        stamp = (self._days.version, tuple(self._stamps()))
        if stamp != self._stamp:
            self._newest = self._built()
            self._stamp = stamp
        return self._newest

    def _stamps(self) -> Iterator[tuple[str, int, int]]:
        for folder in (ENTITIES, KNOWLEDGE):
            try:
                entries = sorted(os.scandir(self._workspace / folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.name.endswith(".md") and not entry.name.startswith("."):
                    stat = entry.stat()
                    yield f"{folder}/{entry.name}", stat.st_mtime_ns, stat.st_size
        for page in (OPINIONS, WORLD, EXPERIENCE, MEMORY, PROFILE):
            try:
                stat = os.stat(self._workspace / page)
            except OSError:
                continue
            yield page, stat.st_mtime_ns, stat.st_size

    def _built(self) -> Remembered:
        found = Remembered(entities=load_entities(self._workspace, self._index))
        facts = list(self._days.facts())
        taken: dict[str, list[str]] = {}
        for fact in facts:
            taken.setdefault(fact.path, []).append(self._index.sameness_key(plain(fact.text)))
        found.taken = {path: tuple(keys) for path, keys in taken.items()}
        found.refs = frozenset(fact.ref for fact in facts)
        opinions, used = self._opinions(found, facts)
        every = [*opinions, *self._facts(found, [fact for fact in facts if fact.ref not in used])]
        known = {self._index.sameness_key(item.text) for item in every}
        for item in (*self._entity_pages(found), *self._written_by_hand(found)):
            key = self._index.sameness_key(item.text)
            if item.page or key not in known:
                known.add(key)
                every.append(item)
        for item in every:
            self._add(found, item)
        self._add_names(found)
        return found

    def _add(self, found: Remembered, item: Item) -> None:
        words = tuple(self._reader.lexicon.content(item.text))
        item.words = words
        item.forms = forms_of(words)
        item.respects = frozenset(f"~{name}" for word in words for name in word.respects)
        number = len(found.items)
        found.items.append(item)
        for form in item.forms | item.respects:
            found.holding.setdefault(form, []).append(number)
        for slug in item.slugs:
            found.by_slug.setdefault(slug, []).append(number)

    def _slugs(self, found: Remembered, names: tuple[str, ...]) -> frozenset[str]:
        assert found.entities is not None
        return frozenset(found.entities.slug_of(name) for name in names)

    def _opinions(self, found: Remembered, facts: list[Fact]) -> tuple[list[Item], set[str]]:
        """The opinions of the page, and the references of the facts that they stand for."""
        by_ref = {fact.ref: fact for fact in facts}
        items: list[Item] = []
        used: set[str] = set()
        for opinion in parse_opinions(self._read(OPINIONS)).all:
            if opinion.statement.casefold() == "proposed":
                continue
            evidence = [
                evidence_of(by_ref[ref], supports)
                for refs, supports in ((opinion.supporting, True), (opinion.against, False))
                for ref in refs
                if ref in by_ref
            ]
            evidence.sort(key=lambda one: (one.day, int(one.ref.rpartition("#L")[2])))
            used |= {one.ref for one in evidence if one.supports and by_ref[one.ref].letter == "O"}
            days = [one.day for one in evidence if one.supports]
            day = max(days, default=opinion.updated or self._modified(OPINIONS))
            newest = next((one.ref for one in reversed(evidence) if one.supports), f"{OPINIONS}#L{opinion.line}")
            items.append(
                Item(
                    "opinion",
                    opinion.statement,
                    self._slugs(found, opinion.entities or (OWNER,)),
                    opinion.entities,
                    day,
                    min(days, default=day),
                    day,
                    newest,
                    confidence=opinion.confidence,
                    evidence=tuple(evidence),
                )
            )
        return items, used

    def _facts(self, found: Remembered, facts: list[Fact]) -> Iterator[Item]:
        for one in told(facts, self._index):
            newest = one.sources[-1]
            names = tuple(dict.fromkeys(name for fact in one.sources for name in fact.entities))
            first, last, ranged = _days_of(newest)
            slugs = self._slugs(found, names or ((OWNER,) if one.letter == "O" else ()))
            if newest.origin:  # what others say of the owner is news of them
                slugs -= self._slugs(found, (OWNER,))
            yield Item(
                "world" if newest.origin and newest.kind == "opinion" else newest.kind,
                plain(one.text),
                slugs,
                names,
                newest.day,
                first,
                last,
                newest.ref,
                ranged,
                speaks=(first, last) != (newest.day, newest.day),
                confidence=newest.confidence,
                sources=tuple((fact.day, fact.ref) for fact in one.sources),
            )

    def _entity_pages(self, found: Remembered) -> Iterator[Item]:
        """The summary of each page, and the facts that a person wrote there without a source."""
        assert found.entities is not None
        for page in [page for page in found.entities.pages.values() if page.exists]:
            text = self._read(page.path)
            day = self._modified(page.path)
            for number, line in enumerate(lines_of(text), 1):
                if line.startswith("## "):
                    break
                plain_line = line.strip()
                if plain_line and not plain_line.startswith(("#", "aliases:", "- aliases:", "<!--")):
                    slugs = frozenset({found.entities.merged.get(page.slug, page.slug)})
                    yield Item(
                        "observation",
                        plain_line,
                        slugs,
                        (page.name,),
                        day,
                        day,
                        day,
                        f"{page.path}#L{number}",
                        page=True,
                    )
            for number, letter, said, source in page_facts(text):
                if source is None:
                    slugs = frozenset({page.slug})
                    yield Item(KIND_OF[letter], said, slugs, (page.name,), day, day, day, f"{page.path}#L{number}")

    def _written_by_hand(self, found: Remembered) -> Iterator[Item]:
        """Knowledge, memory.md, and the bullets of world.md and experience.md that stand there without a day file."""
        pages: list[tuple[str, Kind]] = [
            (WORLD, "world"),
            (EXPERIENCE, "experience"),
            (MEMORY, "world"),
            (PROFILE, "world"),
        ]
        try:
            names = sorted(os.listdir(self._workspace / KNOWLEDGE))
        except OSError:
            names = []
        kept = [name for name in names if name.endswith(".md") and not name.startswith(".")]
        kinds: dict[str, Kind] = {"preferences.md": "opinion"}
        pages.extend((f"{KNOWLEDGE}/{name}", kinds.get(name, "world")) for name in kept)
        for page, kind in pages:
            text = self._read(page)
            if not text:
                continue
            modified = self._modified(page)
            left = _blank_proposals(text)
            for number, line in enumerate(lines_of(left), 1):
                found_bullet = _BULLET.match(line)
                # A bullet with a source behind it was made of a fact, which is an item itself.
                if found_bullet is None or _SOURCE.search(found_bullet["text"]):
                    continue
                said = found_bullet["text"]
                dated = _DAY.match(said)
                day = date.fromisoformat(dated[1]) if dated and _is_day(dated[1]) else modified
                said = said[dated.end() :] if dated else said
                slugs = self._named(found, said) or frozenset({found.entities.slug_of(OWNER)} if found.entities else ())
                yield Item(kind, said, slugs, (), day, day, day, f"{page}#L{number}")

    def _named(self, found: Remembered, text: str) -> frozenset[str]:
        """The pages whose names stand in a text."""
        if not found.names:
            self._add_names(found)
        return named(found, self._reader.lexicon.terms(text))

    def _add_names(self, found: Remembered) -> None:
        assert found.entities is not None
        found.names = {}
        for slug in found.entities.pages:
            for name in found.entities.names(slug):
                words = tuple(self._reader.lexicon.terms(name))
                if words and len(name) > 1:
                    target = found.entities.merged.get(slug, slug)
                    for form in words[0].forms:
                        found.names.setdefault(form, []).append((words, target))

    def _read(self, page: str) -> str:
        try:
            return (self._workspace / page).read_bytes().decode("utf-8", "replace")
        except OSError:
            return ""

    def _modified(self, page: str) -> date:
        return datetime.fromtimestamp(os.stat(self._workspace / page).st_mtime, UTC).date()


def named(found: Remembered, terms: list[Word]) -> frozenset[str]:
    """The pages whose names stand in a row of words. A name that stands there letter by letter is meant, not one that
    only shares its stem (عمرو and عمر)."""
    slugs: set[str] = set()
    for at, word in enumerate(terms):
        exact: set[str] = set()
        alike: set[str] = set()
        for form in word.forms:
            for words, slug in found.names.get(form, ()):
                rest = terms[at : at + len(words)]
                pairs = list(zip(words, rest, strict=False))
                if len(rest) < len(words):
                    continue
                if all(one.token == other.token for one, other in pairs):
                    exact.add(slug)
                elif all(not one.forms.isdisjoint(other.forms) for one, other in pairs):
                    alike.add(slug)
        slugs |= exact or alike
    return frozenset(slugs)


def _days_of(fact: Fact) -> tuple[date, date, bool]:
    """The days a fact speaks of: those its text names, else its own day; whether they are a range."""
    found = [span for span in spans(fact.text, fact.day, of_record=True) if not span.bare]
    if not found:
        return fact.day, fact.day, False
    ranged = next((span for span in found if span.first != span.last), None)
    chosen = ranged or found[0]
    return chosen.first, chosen.last, ranged is not None


def _blank_proposals(text: str) -> str:
    """The text with the lines of its proposals blank, so that the others keep their numbers."""
    left = without_proposals(text)
    if left == text:
        return text
    at = re.search(r"(?im)^ {0,3}##[ \t]+Proposed[ \t#]*\r?$", text)
    cut = text[at.start() : len(text) - (len(left) - at.start())] if at else ""
    return text.replace(cut, "\n" * cut.count("\n"), 1) if cut else left


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

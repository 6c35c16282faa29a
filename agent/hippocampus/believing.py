"""Takes new facts into the opinions: finds those they bear on, adds them as evidence, moves the confidence.

Evidence is written as `path#L12`; what is remembered of it is the bullet's own words, so that a reference is set right
when lines have moved, and left out when the bullet is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.hippocampus.claims import Reader, Reading, Relation, likeness, relation
from agent.hippocampus.entities import Entities, plain
from agent.hippocampus.facts import day_of_ref
from agent.hippocampus.lexicon import Word
from agent.hippocampus.opinions import STRENGTH, Evidence, Opinion, Opinions, confidence_of, parse_opinions
from agent.hippocampus.pages import Written, line_key
from agent.hippocampus.tending import PROPOSED
from agent.hippocampus.types import OWNER, Fact
from agent.lines import lines_of

STATEMENT_CHARS_MAX = 300
COMPARED_MAX = 100
"""With so many opinions on one entity a fact is compared; of more with the likeliest."""
Judged = Mapping[tuple[str, str], Relation]
"""What a model said of (a fact's key, a statement's key)."""


_State = tuple[dict[str, str], dict[str, tuple[float, tuple[str, ...]]], dict[str, float]]


@dataclass(slots=True)
class Known:
    """All facts by their key: `path|hash of the words`, numbered where one file says the same twice."""

    by_key: dict[str, Fact] = field(default_factory=dict)
    key_of: dict[Fact, str] = field(default_factory=dict)
    by_ref: dict[str, str] = field(default_factory=dict)

    def add(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            base = f"{fact.path}|{line_key(f'{fact.letter} {fact.text}')}"
            key, n = base, 1
            while key in self.by_key:
                n += 1
                key = f"{base}-{n}"
            self.by_key[key] = fact
            self.key_of[fact] = key
            self.by_ref[fact.ref] = key


class Believing:
    """One pass over `bank/opinions.md`. `facts` are all there are; `fresh` the days from which new ones are taken."""

    def __init__(self, reader: Reader, entities: Entities, known: Known, written: Written, judged: Judged) -> None:
        self._reader = reader
        self._entities = entities
        self._known = known
        self._written = written
        self._judged = judged
        self._names: dict[tuple[str, ...], frozenset[str]] = {}
        self.taken: dict[str, str] = {}
        self.settled: dict[str, tuple[float, tuple[str, ...]]] = {}
        self.given: dict[str, float] = {}
        self._made: tuple[tuple[str | None, bool], str | None, _State] | None = None

    def note(self) -> None:
        """Keeps what the last text took in: call it when that text is on the page."""
        self._written.facts, self._written.settled, self._written.given = self.taken, self.settled, self.given

    def text(self, before: str | None, facts: Sequence[Fact], *, may_drop: bool = True) -> str | None:
        """The page with the new facts in it; as it is when nothing changes. Notes what it took in `taken`."""
        if self._made is not None and self._made[0] == (before, may_drop):
            self.taken, self.settled, self.given = self._made[2]
            return self._made[1]
        text = self._text(before, facts, may_drop=may_drop)
        self._made = (before, may_drop), text, (self.taken, self.settled, self.given)
        return text

    def _text(self, before: str | None, facts: Sequence[Fact], *, may_drop: bool) -> str | None:
        page = parse_opinions(before or "")
        self.taken = dict(self._written.facts)
        self.settled, self.given = {}, {}
        keys = self._evidence_keys(page, may_drop=may_drop)
        self._settle(page, keys)
        near = _Near()
        for opinion in page.all:
            if opinion.statement.casefold() != PROPOSED.casefold():
                near.add(opinion, self.slugs(opinion.entities), self.reading(opinion.statement, opinion.entities))
        for fact in sorted(facts, key=lambda fact: (fact.day, fact.path, fact.line)):
            key = self._known.key_of[fact]
            if key in self.taken or fact.letter not in "OW" or fact.origin:
                continue
            self.taken[key] = fact.ref
            self._take(page, fact, key, near, keys)
        self._fold(page, keys)
        self._conclude(page, keys)
        if not page.all and not (before or "").strip():
            return before
        text = page.text()
        return before if _same(before, text) else text

    def slugs(self, names: Sequence[str]) -> frozenset[str]:
        """The pages a fact or an opinion is about; without a name it is about the owner."""
        return frozenset(self._entities.slug_of(name) for name in names or (OWNER,))

    def reading(self, text: str, names: Sequence[str]) -> Reading:
        """What a sentence about these claims."""
        key = tuple(sorted(names))
        if key not in self._names:
            every = [name for slug in self.slugs(names) for name in self._entities.names(slug)]
            forms = (form for name in every for word in self._reader.lexicon.terms(name) for form in word.forms)
            self._names[key] = frozenset(forms)
        return self._reader.read(plain(text), self._names[key])

    def _evidence_keys(self, page: Opinions, *, may_drop: bool) -> dict[int, list[str]]:
        """For each opinion the keys of its evidence, its references set right. A reference to something else than a
        known bullet is a person's: it stays and counts for nothing."""
        was = {ref: key for key, ref in self._written.facts.items()}
        keys: dict[int, list[str]] = {}
        kept: list[Opinion] = []
        for opinion in page.all:
            found: list[str] = []
            had = bool(opinion.supporting)
            for refs in (opinion.supporting, opinion.against):
                right: list[str] = []
                for ref in refs:
                    key = was.get(ref) or self._known.by_ref.get(ref)
                    fact = self._known.by_key.get(key or "")
                    if fact is not None and key is not None:
                        found.append(key)
                        self.taken[key] = fact.ref
                        right.append(fact.ref)
                    elif not may_drop or (key is None and not _is_day(ref)):
                        right.append(ref)
                refs[:] = dict.fromkeys(right)
            own = line_key(opinion.statement) in self._written.given and not opinion.extra
            if may_drop and own and had and not opinion.supporting:
                continue  # every bullet that bore it out is gone
            keys[id(opinion)] = list(dict.fromkeys(found))
            kept.append(opinion)
        page.all = kept
        for key in [key for key in self.taken if key not in self._known.by_key]:
            del self.taken[key]
        return keys

    def _settle(self, page: Opinions, keys: dict[int, list[str]]) -> None:
        """Keeps what a person set: a confidence that is not what the program wrote last begins anew from there."""
        for opinion in page.all:
            name = line_key(opinion.statement)
            if not opinion.has_fields:
                continue
            settled = self._written.settled.get(name)
            given = self._written.given.get(name)
            if given is not None and abs(given - opinion.confidence) < 0.005:
                if settled is not None:
                    self.settled[name] = settled
                continue
            computed = confidence_of(self._evidence(opinion, keys[id(opinion)]))
            if computed is None or abs(round(computed, 2) - opinion.confidence) >= 0.005:
                self.settled[name] = (opinion.confidence, tuple(keys[id(opinion)]))

    def _take(
        self,
        page: Opinions,
        fact: Fact,
        key: str,
        others: _Near,
        keys: dict[int, list[str]],
    ) -> None:
        reading = self.reading(fact.text, fact.entities)
        near = others.of(self.slugs(fact.entities), reading)
        if fact.letter == "W" and not any(claim.stance == "like" or claim.ends for claim in reading.claims):
            return
        supported: tuple[float, Opinion] | None = None
        for opinion in near:
            other = self.reading(opinion.statement, opinion.entities)
            found = self._judged.get((key, line_key(opinion.statement))) or relation(reading, other)
            if found == "contradicts":
                opinion.against.append(fact.ref)
                keys[id(opinion)].append(key)
            elif found == "supports":
                alike = likeness(reading, other)
                if supported is None or alike > supported[0]:
                    supported = alike, opinion
        if supported is not None:
            supported[1].supporting.append(fact.ref)
            keys[id(supported[1])].append(key)
        elif fact.letter == "O":
            opinion = Opinion(statement_of(fact, reading), 0.0, fact.entities, supporting=[fact.ref])
            same = next((o for o in near if line_key(o.statement) == line_key(opinion.statement)), None)
            if same is not None:
                same.supporting.append(fact.ref)
                keys[id(same)].append(key)
                return
            page.all.append(opinion)
            keys[id(opinion)] = [key]
            others.add(opinion, self.slugs(fact.entities), self.reading(opinion.statement, fact.entities))

    def _fold(self, page: Opinions, keys: dict[int, list[str]]) -> None:
        """Makes one of opinions that say the same of the same (a page got another name); a person's stay apart."""
        kept: list[Opinion] = []
        firsts: dict[object, Opinion] = {}
        for opinion in page.all:
            first = firsts.setdefault(self._meaning(opinion), opinion) if opinion.supporting else opinion
            if first is opinion or opinion.extra or line_key(opinion.statement) not in self._written.given:
                kept.append(opinion)
                continue
            first.supporting += [ref for ref in opinion.supporting if ref not in first.supporting]
            first.against += [ref for ref in opinion.against if ref not in first.against]
            keys[id(first)] = list(dict.fromkeys([*keys[id(first)], *keys[id(opinion)]]))
        page.all = kept

    def _meaning(self, opinion: Opinion) -> object:
        """Equal for opinions about the same that claim the same with words of the same meaning."""
        claims = self.reading(opinion.statement, opinion.entities).claims
        said = tuple((claim.stance, claim.holds, claim.strong, _meanings(claim.words)) for claim in claims)
        return self.slugs(opinion.entities), said

    def _evidence(self, opinion: Opinion, keys: Collection[str]) -> list[Evidence]:
        supporting = set(opinion.supporting)
        return [evidence_of(fact, fact.ref in supporting) for key in keys if (fact := self._known.by_key.get(key))]

    def _conclude(self, page: Opinions, keys: dict[int, list[str]]) -> None:
        """Sets each confidence to what its evidence leads to, and notes what is written."""
        for opinion in page.all:
            name = line_key(opinion.statement)
            settled = self.settled.get(name)
            mine = keys[id(opinion)]
            begin, done = settled if settled is not None else (None, ())
            evidence = self._evidence(opinion, [key for key in mine if key not in done])
            computed = confidence_of(evidence, begin)
            if computed is not None:
                opinion.confidence = round(computed, 2)
            days = [item.day for item in self._evidence(opinion, mine)]
            if days and mine != list(done):
                opinion.updated = max(days)
            if opinion.has_fields or mine:
                self.given[name] = opinion.confidence


class _Near:
    """The opinions that a fact may bear on: all on the same entities, or, where these are very many, those that share
    a rare word or a respect with it."""

    def __init__(self) -> None:
        self._by_slug: dict[str, list[Opinion]] = {}
        self._by_word: dict[tuple[str, str], list[Opinion]] = {}

    def add(self, opinion: Opinion, slugs: Iterable[str], reading: Reading) -> None:
        for slug in slugs:
            self._by_slug.setdefault(slug, []).append(opinion)
            for mark in _marks(reading):
                self._by_word.setdefault((slug, mark), []).append(opinion)

    def of(self, slugs: Iterable[str], reading: Reading) -> list[Opinion]:
        found: dict[int, Opinion] = {}
        for slug in slugs:
            every = self._by_slug.get(slug, [])
            if len(every) > COMPARED_MAX:
                every = self._likeliest(slug, reading)
            found.update((id(opinion), opinion) for opinion in every)
        return list(found.values())

    def _likeliest(self, slug: str, reading: Reading) -> list[Opinion]:
        lists = [self._by_word[slug, mark] for mark in _marks(reading) if (slug, mark) in self._by_word]
        likeliest: list[Opinion] = []
        for holding in sorted(lists, key=len):
            if likeliest and len(likeliest) + len(holding) > COMPARED_MAX:
                break
            likeliest += holding[-COMPARED_MAX:]
        return likeliest


def _marks(reading: Reading) -> set[str]:
    """The words of a sentence, and the respects they belong to."""
    words = [word for claim in reading.claims for word in claim.words]
    return {form for word in words for form in word.forms} | {f"~{name}" for word in words for name in word.respects}


def _meanings(words: Iterable[Word]) -> frozenset[str]:
    return frozenset(next((form for form in word.forms if form.startswith("=")), word.token) for word in words)


def evidence_of(fact: Fact, supports: bool) -> Evidence:
    """A fact as evidence: as strong as it says it is."""
    strength = STRENGTH if fact.confidence is None else fact.confidence
    return Evidence(fact.ref, fact.day, strength, supports, fact.confidence)


def statement_of(fact: Fact, reading: Reading) -> str:
    """What an opinion from this fact is called: the part of it that holds, else all of it."""
    whole = " ".join(plain(fact.text).split()).rstrip(".").lstrip("#").strip()
    held = [claim for claim in reading.claims if claim.holds]
    gone = [claim for claim in reading.claims if not claim.holds and claim.text != (held[0].text if held else "")]
    if gone and len({claim.text for claim in held}) == 1 and held[0].stance:
        part = held[0].text.rstrip(".").strip()
        for word in ("but ", "and ", "بل ", "ولكن ", "لكن "):
            part = part.removeprefix(word)
        if len(part.split()) > 1:  # one word alone ("بل عصرا") needs the rest to be understood
            whole = part[:1].upper() + part[1:]
    return whole if len(whole) <= STATEMENT_CHARS_MAX else f"{whole[: STATEMENT_CHARS_MAX - 1]}…"


def _is_day(ref: str) -> bool:
    return day_of_ref(ref) is not None


def _same(before: str | None, text: str) -> bool:
    """True when nothing but line ends and blank lines differs: such a page is left as it is."""
    return [line.rstrip() for line in lines_of(before or "") if line.strip()] == [
        line.rstrip() for line in lines_of(text) if line.strip()
    ]

"""Finds what is remembered: by words, by whom or what it is about, by time, by kind; and packs it into few tokens.

A question is read into words, names, days and what it asks for (a liking, a place). Items are scored by the share of
the question's rare words they hold, by the names, by what they claim, and by how new they are; what was contradicted
by the end of the days asked about counts little. Of opinions the state within those days is shown, from their evidence.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from agent.hippocampus.claims import Claim, Reader, relation
from agent.hippocampus.lexicon import Word, forms_of, shared
from agent.hippocampus.opinions import confidence_of, holds
from agent.hippocampus.patterns import Pattern
from agent.hippocampus.questions import Question
from agent.hippocampus.remembered import Item, Remembered, named
from agent.tokens import estimate_tokens

EVIDENCE_SHOWN = 5
RANKED_MAX = 200
COMPARED_MAX = 24
SURE_MIN = 3
HALF_LIFE_DAYS = 45.0
TOPIC_WEIGHT = 0.6
"""A word that only names the respect (drink, for tea) counts so much."""
SUPERSEDED_WEIGHT = 0.3
OUTSIDE_WEIGHT = 0.9
"""What was said before the days asked about, and may still have held in them."""
OTHERS_WEIGHT = 0.35
"""What is about others than the question names."""
UNFIT_WEIGHT = 0.6
"""What claims something else than is asked: where somebody lives, to a question of what they like."""
_OWN = Pattern(
    r"\b(?:i|i'm|(?<!tell )(?<!show )(?<!give )(?<!remind )me|my|mine|myself|we|our)\b|(?<!\w)(?:أنا|انا|لي"
    r"|عندي|لدي|[أا](?:فض[ّ]?ل|حب[ّ]?|كره|سكن|عيش|عمل|شرب|آكل|كل)|\w+ي المفض[ّ]?لة?)(?!\w)",
    re.IGNORECASE,
)
_ABOUT = Pattern(
    r"\b(?:tell me about|who is|what do (?:you|we) know about|about)\b|(?:أخبرني|اخبرني|حدثني) عن"
    r"|ماذا (?:تعرف|نعرف) عن|من (?:هو|هي)",
    re.IGNORECASE,
)
_HAPPENED = Pattern(r"\bhappen\w*|\bwent on\b|(?<!\w)(?:حدث|حصل|جرى|صار)(?!\w)", re.IGNORECASE)


@dataclass(slots=True)
class Found:
    """A hit, in the shape of docs/formats.md."""

    kind: str
    timestamp: str
    entities: list[str]
    content: str
    source: str
    confidence: float | None
    supporting: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    score: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "timestamp": self.timestamp,
            "entities": self.entities,
            "content": self.content,
            "source": self.source,
            "confidence": self.confidence,
            "evidence": {"for": self.supporting, "against": self.against},
            "score": round(self.score, 4),
        }


@dataclass(slots=True)
class _Asked:
    """A question after it was read."""

    words: list[Word]
    slugs: frozenset[str]
    stance: str
    first: date | None
    last: date | None
    about: bool
    today: date
    strict: bool
    happened: bool


@dataclass(slots=True)
class _Scored:
    item: Item
    score: float
    relevance: float
    shown: Found


class Recall:
    """Answers questions from what is remembered."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._asking = reader.lexicon.of("asking")
        self._looked: tuple[Question, Remembered, _Asked, Sequence[int]] | None = None

    def is_sure(self, asked: Question, found: Remembered, today: date) -> bool:
        """True when the items alone answer a question well: several of them hold all its words, or fit it."""
        read, pool = self._look(asked, found, today)
        if not (read.words or read.slugs):
            return False
        sure = 0
        for number in pool:
            item = found.items[number]
            about = bool(read.slugs) and not item.slugs.isdisjoint(read.slugs)
            holds_all = bool(read.words) and shared(tuple(read.words), item.forms | item.respects) == len(read.words)
            sure += holds_all if read.words else about and (read.about or item.kind == "opinion" or not read.stance)
            if sure >= min(asked.k, SURE_MIN):
                return True
        return False

    def hits(self, asked: Question, found: Remembered, others: Sequence[Item], today: date) -> list[Found]:
        """The best hits, best first, within the limit of tokens. `others`: what the index found beside the items."""
        read, numbers = self._look(asked, found, today)
        pool = [found.items[number] for number in numbers]
        pool += [self._ready(item) for item in others]
        weight = _weights(read.words, found)
        scored = [one for item in pool if (one := self._scored(item, asked, read, weight)) is not None]
        scored.sort(key=lambda one: (-one.score, -one.item.day.toordinal(), one.item.source))
        self._supersede(scored[:COMPARED_MAX])
        scored.sort(key=lambda one: (-one.score, -one.item.day.toordinal(), one.item.source))
        return packed([one.shown for one in _with_scores(scored)], asked.k, asked.tokens_max)

    def _look(self, asked: Question, found: Remembered, today: date) -> tuple[_Asked, Sequence[int]]:
        """The question read, and the numbers of the items worth a look; once for a question."""
        known = self._looked
        if known is None or known[0] is not asked or known[1] is not found:
            read = self._read(asked, found, today)
            known = self._looked = asked, found, read, tuple(self._pool(read, found))
        return known[2], known[3]

    def _read(self, asked: Question, found: Remembered, today: date) -> _Asked:
        terms = self._reader.lexicon.terms(asked.text)
        slugs = set(named(found, terms))
        assert found.entities is not None
        owner = found.entities.slug_of("Owner")
        if not (slugs - {owner}) and _OWN.search(asked.text):
            slugs.add(owner)
        if asked.entity:
            page = found.entities.find(asked.entity)
            slugs = {page.slug} if page else {f"\0{asked.entity}"}
        names = frozenset(
            form
            for slug in slugs
            for name in found.entities.names(slug)
            for word in self._reader.lexicon.terms(name)
            for form in word.forms
        )
        words = [
            word
            for word in self._reader.lexicon.content(asked.text)
            if word.token not in self._asking and word.forms.isdisjoint(names)
        ]
        claims = self._reader.read(asked.text).claims
        stance = _stance_of(asked.text, claims)
        about = bool(_ABOUT.search(asked.text)) or (bool(slugs) and not words and not stance)
        happened = bool(_HAPPENED.search(asked.text)) or not (words or slugs or stance)
        return _Asked(words, frozenset(slugs), stance, asked.first, asked.last, about, today, asked.strict, happened)

    def _pool(self, read: _Asked, found: Remembered) -> Iterable[int]:
        """The numbers of the items worth a look: those that hold a word or are about a name, the likeliest first."""
        points: dict[int, float] = {}
        for word in read.words:
            numbers = {number for form in word.forms for number in found.holding.get(form, ())}
            if numbers:
                weight = math.log(1 + len(found.items) / len(numbers))
                for number in numbers:
                    points[number] = points.get(number, 0.0) + weight
        for slug in read.slugs:
            for number in found.by_slug.get(slug, ()):
                points[number] = points.get(number, 0.0) + 1.0
        if not read.words and not read.slugs:
            points = dict.fromkeys(range(len(found.items)), 0.0)
        if len(points) <= RANKED_MAX:
            return points
        items = found.items
        bounded = read.first is not None or read.last is not None

        def likelihood(n: int) -> tuple[bool, float, int]:
            return bounded and _inside(items[n], read.first, read.last), points[n], items[n].day.toordinal()

        return heapq.nlargest(RANKED_MAX, points, key=likelihood)

    def _ready(self, item: Item) -> Item:
        if not item.words:
            item.words = tuple(self._reader.lexicon.content(item.text))
            item.forms = forms_of(item.words)
            item.respects = frozenset(f"~{name}" for word in item.words for name in word.respects)
        return item

    def _scored(self, item: Item, asked: Question, read: _Asked, weight: dict[str, float]) -> _Scored | None:
        """None for what does not fit the question."""
        if asked.kind is not None and item.kind != asked.kind:
            return None
        if asked.entity is not None and item.slugs.isdisjoint(read.slugs):
            return None
        shown, state = _shown(item, read)
        if shown is None:
            return None
        total = sum(weight.values())
        lexical = 0.0
        for word in read.words:
            if not word.forms.isdisjoint(item.forms):
                lexical += weight[word.token]
            elif not word.forms.isdisjoint(item.respects):
                lexical += TOPIC_WEIGHT * weight[word.token]
        lexical = lexical / total if total else 0.0
        about = bool(read.slugs) and not item.slugs.isdisjoint(read.slugs)
        claims = self._reader.read(item.text).claims if read.stance else ()
        fits = bool(read.stance) and (
            any(claim.stance == read.stance for claim in claims) or (read.stance == "like" and item.kind == "opinion")
        )
        if item.page and not about and not lexical:
            return None
        if not lexical and not about and not fits and (read.words or read.slugs or read.stance):
            return None
        relevance = lexical + 0.8 * about + 0.5 * fits + (0.6 if item.page and about and read.about else 0.0)
        if item.page and not read.about:
            relevance *= 0.5
        if read.slugs and not about:
            relevance *= OTHERS_WEIGHT
        if read.stance and not fits and not item.page:
            relevance *= UNFIT_WEIGHT
        # The last of the days asked about stands for "now" in a question about the past.
        end = min(read.last or read.today, read.today)
        age = abs((end - min(item.day, end)).days)
        if item.speaks and (read.first or read.last) and _speaks(item, read.first, read.last):
            relevance += 0.3
        score = relevance + 0.25 * 0.5 ** (age / HALF_LIFE_DAYS) + 0.1 * (shown.confidence or 0.0)
        return _Scored(item, score * state, relevance, shown)

    def _supersede(self, scored: list[_Scored]) -> None:
        """Of two that contradict each other the older one counts little; an opinion against lines not yet taken."""
        order = sorted(scored, key=lambda one: (one.item.day, one.item.source), reverse=True)
        for at, older in enumerate(order):
            if older.item.page:
                continue
            for newer in order[:at]:
                heard = newer.item.told or not older.item.evidence
                if newer.item.page or newer.item.day <= older.item.day or not heard:
                    continue
                if older.item.slugs and newer.item.slugs and older.item.slugs.isdisjoint(newer.item.slugs):
                    continue
                if self._bears(newer.item, older.item) == "contradicts":
                    older.score *= SUPERSEDED_WEIGHT
                    break

    def _bears(self, newer: Item, older: Item) -> str:
        return relation(self._reader.read(newer.text), self._reader.read(older.text))


def _stance_of(text: str, claims: Sequence[Claim]) -> str:
    low = text.casefold()
    if re.search(
        r"\bprefer|\blike|\blove|favou?rite|\bopinion|\bthinks?\b|\bhate|\bdislike|فض[ّ]?ل|يحب|تحب|أحب|احب"
        r"|رأي|راي|يكره|تكره|يعجب",
        low,
    ):
        return "like"
    if re.search(r"\bwhere\b.*\bwork|\bemploy|\bjob\b|أين (?:ي|ت|أ)عمل|وظيف", low):
        return "work"
    if re.search(
        r"\bwhere\b.*\b(?:live|living|stay|based|reside)|\blives?\b|\bmove[ds]?\b|(?:ي|ت|أ|ا)سكن|(?:ي|ت|أ"
        r"|ا)عيش|(?:ي|ت|أ|ا)قيم|انتقل",
        low,
    ):
        return "live"
    return next((claim.stance for claim in claims if claim.stance in {"live", "work"}), "")


def _weights(words: Sequence[Word], found: Remembered) -> dict[str, float]:
    """How much each word of a question counts: the rarer, the more."""
    count = len(found.items) + 1
    weights: dict[str, float] = {}
    for word in words:
        holding = max((len(found.holding.get(form, ())) for form in word.forms), default=0)
        weights[word.token] = math.log(1 + count / (1 + holding))
    return weights


def _inside(item: Item, first: date | None, last: date | None) -> bool:
    """True when the item was said in these days, or speaks of one of them."""
    said = (first is None or item.day >= first) and (last is None or item.day <= last)
    speaks = _speaks(item, first, last)
    return (
        said
        or speaks
        or any((first is None or day >= first) and (last is None or day <= last) for day, _ in item.sources)
    )


def _speaks(item: Item, first: date | None, last: date | None) -> bool:
    """True when the days that the item's text names touch these."""
    return (last is None or item.first <= last) and (first is None or item.last >= first)


def _shown(item: Item, read: _Asked) -> tuple[Found | None, float]:
    """The item as it was within the days asked about, and how much it counts for that; None: not in them at all."""
    if item.evidence:
        return _opinion(item, read)
    first, last = read.first, read.last
    weight = 1.0
    if (first is not None or last is not None) and not _inside(item, first, last):
        later = last is not None and item.day > last
        # What was said before may still have held; to a question of what happened it is no answer.
        if later or read.strict or read.happened or not (item.told or item.kind in {"world", "opinion"}):
            return None, 0.0
        weight = OUTSIDE_WEIGHT
    sources = [(day, ref) for day, ref in item.sources if (last is None or day <= last)] or list(item.sources)
    inside = [(day, ref) for day, ref in sources if first is None or day >= first] or sources
    source = inside[-1][1] if inside else item.source
    day = inside[-1][0] if inside else item.day
    timestamp = f"{item.first}/{item.last}" if item.ranged else day.isoformat()
    refs = [ref for _, ref in sources[-EVIDENCE_SHOWN:]]
    return Found(
        item.kind, timestamp, list(dict.fromkeys(item.names)), item.text, source, item.confidence, refs
    ), weight


def _opinion(item: Item, read: _Asked) -> tuple[Found | None, float]:
    """The state of an opinion at the end of the days asked about."""
    evidence = [one for one in item.evidence if read.last is None or one.day <= read.last]
    supporting = [one for one in evidence if one.supports]
    if not supporting:
        return None, 0.0
    weight = 1.0
    within = read.first is None or any(one.day >= read.first for one in supporting)
    asks = read.stance == "like" and read.last is not None
    if not within and (read.happened or (read.strict and not asks)):
        return None, 0.0
    if not holds(evidence):
        # It may have held for a part of these days.
        weight = 0.5 if within and read.first is not None else SUPERSEDED_WEIGHT
    elif not within:
        weight = OUTSIDE_WEIGHT
    inside = [one for one in supporting if read.first is None or one.day >= read.first] or supporting
    newest = inside[-1]
    complete = len(evidence) == len(item.evidence)
    confidence = item.confidence if complete else round(confidence_of(evidence) or 0.0, 2)
    found = Found(
        "opinion",
        newest.day.isoformat(),
        list(dict.fromkeys(item.names)),
        item.text,
        newest.ref,
        confidence,
        [one.ref for one in supporting[-EVIDENCE_SHOWN:]],
        [one.ref for one in evidence if not one.supports][-EVIDENCE_SHOWN:],
    )
    return found, weight


def _with_scores(scored: Sequence[_Scored]) -> Iterable[_Scored]:
    """Each content once, with its score."""
    seen: set[str] = set()
    for one in scored:
        one.shown.score = one.score
        key = " ".join(one.shown.content.casefold().split())
        if key not in seen:
            seen.add(key)
            yield one


def packed(hits: Sequence[Found], k: int, tokens_max: int) -> list[Found]:
    """The best hits that fit into so many tokens, in their order; a long one gives way to shorter ones behind it."""
    kept: list[Found] = []
    left = tokens_max
    for hit in hits:
        if len(kept) >= k:
            break
        tokens = estimate_tokens(json.dumps(hit.as_json(), ensure_ascii=False))
        if tokens > left and not kept:
            hit.supporting, hit.against = hit.supporting[-1:], hit.against[-1:]
            spare = tokens_max - estimate_tokens(json.dumps({**hit.as_json(), "content": ""}, ensure_ascii=False))
            if spare < 8:
                continue
            while len(hit.content) > 2 and estimate_tokens(hit.content) > spare:
                hit.content = f"{hit.content[: max(1, len(hit.content) * 3 // 4 - 1)].rstrip()}…"
            tokens = estimate_tokens(json.dumps(hit.as_json(), ensure_ascii=False))
        if tokens <= left:
            kept.append(hit)
            left -= tokens
    return kept

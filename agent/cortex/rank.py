"""Puts found records in order. Pure functions; the same records and words always come out in the same order.

A message counts for its own words (BM25, S. Robertson and H. Zaragoza, 2009) and for those of the messages around
it, the less the farther, so that an answer is found by the words of its question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent.cortex.dates import TIME_QUESTIONS, TIME_WORDS
from agent.cortex.query import Query
from agent.cortex.stems import SKELETON
from agent.cortex.text import fold

NEIGHBOURS = 4
"""So many messages before and after one that matches are looked at with it,"""
PAUSE_MS_MAX = 3 * 3_600_000
"""up to a pause as long as this."""
_FADING = 0.7
"""What a word counts for one message farther away."""
_FADED = 0.05
_SATURATION = 0.9
_LENGTH_SHARE = 0.4
_AROUND_SATURATION = 1.2
_AROUND_LENGTH_SHARE = 0.75
_AROUND_WEIGHT = 2.5
_SIGNS_MIN = 4
_SIGNLESS_SHARE = 0.35
"""What a record keeps that has none of the characters of a query in an unspaced script; one with all of them keeps all.
Pairs of characters that stand apart in the record, or in another order, still show in these."""
_TOGETHER_POWER = 0.25
"""How much it counts that the words of a query are found together, by the share of their weight."""
_ADJACENT_SHARE = 0.25
_PERSON_LIFT = 1.6
_NAME_WEIGHT = 0.2
_TIME_LIFT = 1.2
"""Who asks when something was wants a message that says so."""
_QUESTION_WEIGHT = 0.8
_EXTRA_FORM_WEIGHT = 0.9
_SKELETON_WEIGHT = 0.5
_ECHO_WEIGHT = 0.3
_ECHO_TOKENS_MIN = 3
_CALL_WEIGHT = 0.6
_ASSISTANT_WEIGHT = 0.9
_AUTHORITY = {"knowledge": 1.3, "consolidated": 0.9, "episode": 0.8, "task": 0.7, "feedback": 0.6, "corpus": 0.5,
              "log": 0.5, "usage": 0.6, "artifact": 0.9}  # fmt: skip
_CURATED = ("file:memory.md", "file:identity/", "file:bank/")
_CURATED_LIFT = 1.3
_LIKENESS = 0.9


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the index. `text` is the part of it that is searched, cut to what ranking looks at."""

    id: int
    source: str
    owner: str
    n: int
    part: int
    last: int
    at: int
    session_key: str
    channel: str
    chat: str
    role: str
    sender: str
    sender_id: str
    message_id: str
    context: str
    title: str
    text: str
    cut: bool = False


Counts = dict[int, float]
"""How often each word of the query occurs, by its place in the query."""


@dataclass(slots=True)
class _Profile:
    """What one record has of the query: how often each word, how many tokens, how many words side by side."""

    counts: Counts
    length: float
    adjacent: float = 0.0
    is_echo: bool = False
    names_time: bool = False


def idf(records: int, holding: int) -> float:
    """The weight of a word that `holding` of `records` records hold; never negative."""
    return math.log(1.0 + (records - holding + 0.5) / (holding + 0.5)) if holding < records else 0.01


def ranked(
    query: Query,
    weights: Sequence[float],
    found: Mapping[int, float],
    records: Sequence[Record],
    periods: Sequence[tuple[int, int]] = (),
) -> list[tuple[float, Record]]:
    """Orders `records`, best first.

    `weights`: the idf of each word of the query. `found`: scores of the full-text search by record id; records
    without one are neighbours. `periods`: the dates of the query, from and until when, in ms since 1970; being of one
    of them counts like a word. Records without any merit are left out.
    """
    index = {form: at for at, word in reversed(list(enumerate(query.words))) for form in word.forms}
    known = [record for record in records if record.id in found]
    profiles = {record.id: _profile(index, query.said, weights, record) for record in known}
    chars = sum(len(record.text) for record in known) / (sum(one.length for one in profiles.values()) or 1.0)
    for record in records:
        if record.id not in profiles:  # the full-text search would have found it by any word that counts
            profiles[record.id] = _Profile({}, len(record.text) / (chars or 1.0))
    people = _people(index, records)
    weights = _without_names(weights, people)
    average = sum(profile.length for profile in profiles.values()) / max(1, len(profiles)) or 1.0
    if periods:
        weights = [*weights, _date_it(len(weights), records, profiles, periods)]
    shares = _sign_shares(query.signs, known)
    surroundings = _surroundings(records, profiles)
    average_around = sum(length for _, length in surroundings.values()) / max(1, len(surroundings)) or 1.0
    total = sum(weights) or 1.0
    asks_time = not TIME_QUESTIONS.isdisjoint(query.said)
    scored: list[tuple[float, Record]] = []
    for record in records:
        profile = profiles[record.id]
        counts, length = surroundings.get(record.id) or (profile.counts, profile.length * average_around / average)
        is_cut = record.cut and record.id in found  # its words may stand in the part that is not looked at
        if not counts and not is_cut:
            continue
        own = profile.adjacent
        if profile.counts:
            own += _bm25(weights, profile.counts, profile.length / average, _SATURATION, _LENGTH_SHARE)
        if is_cut:
            own = max(own, -found[record.id] / 2)
        around = _bm25(weights, counts, length / average_around, _AROUND_SATURATION, _AROUND_LENGTH_SHARE)
        together = 1.0 if is_cut else sum([weights[word] for word in counts]) / total
        merit = _merit(record, profile, record.sender in people)
        if asks_time and profile.names_time:
            merit *= _TIME_LIFT
        if shares:
            merit *= _SIGNLESS_SHARE + (1 - _SIGNLESS_SHARE) * shares.get(record.id, 0.0)
        score = (own + _AROUND_WEIGHT * around) * together**_TOGETHER_POWER * merit
        if score > 0:
            scored.append((round(score, 6), record))
    scored.sort(key=lambda pair: (-pair[0], -pair[1].at, pair[1].owner, pair[1].n, pair[1].part))
    return scored


def without_doubles(scored: Sequence[tuple[float, Record]], limit: int) -> list[tuple[float, Record]]:
    """The first `limit` that do not say what a better one said already, word for word or nearly."""
    kept: list[tuple[float, Record]] = []
    seen: list[frozenset[str]] = []
    for score, record in scored:
        words = frozenset(fold(record.text[:600])[0].split())
        if not any(_alike(words, other) for other in seen):
            kept.append((score, record))
            seen.append(words)
            if len(kept) == limit:
                break
    return kept


def is_echo(record: Record, said: frozenset[str]) -> bool:
    """True when a record says nothing that was not just said."""
    return said.issuperset(fold(record.text)[0].split())


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if len(one) < 3:
        return one == other and bool(one)
    both = len(one & other)
    if both < _LIKENESS * (len(one) + len(other) - both):
        return False
    return not any(word.isdigit() for word in one ^ other)


def _profile(index: Mapping[str, int], said: frozenset[str], weights: Sequence[float], record: Record) -> _Profile:
    text, extra = fold(f"{record.title}\n{record.text}" if record.title else record.text)
    tokens, extras = text.split(), extra.split()
    distinct = set(tokens)
    plain, formed = index.keys() & distinct, index.keys() & set(extras)
    counts: Counts = {}
    for token in formed:
        word = index[token]
        counts[word] = counts.get(word, 0.0) + extras.count(token) * (
            _SKELETON_WEIGHT if token[0] == SKELETON else _EXTRA_FORM_WEIGHT
        )
    exact: Counts = {}
    for token in plain:
        exact[index[token]] = exact.get(index[token], 0.0) + tokens.count(token)
    for word, count in exact.items():
        counts[word] = count + max(0.0, counts.get(word, 0.0) - count * _EXTRA_FORM_WEIGHT)
    profile = _Profile(counts, len(tokens))
    profile.is_echo = len(distinct) >= _ECHO_TOKENS_MIN and said.issuperset(distinct)
    profile.names_time = not TIME_WORDS.isdisjoint(distinct)
    if len(plain) > 1:
        profile.adjacent = _adjacent(index, weights, tokens)
    return profile


def _adjacent(index: Mapping[str, int], weights: Sequence[float], tokens: Sequence[str]) -> float:
    """What words are worth that stand side by side here as they do in the query."""
    worth = 0.0
    seen: set[int] = set()
    last = -2
    for token in tokens:
        word = index.get(token, -2)
        if word == last + 1 and word > 0 and word not in seen:
            worth += _ADJACENT_SHARE * min(weights[word], weights[last])
            seen.add(word)
        last = word
    return worth


@lru_cache(maxsize=4096)
def _name_tokens(name: str) -> tuple[str, ...]:
    return tuple(" ".join(fold(name)).split())


def _people(index: Mapping[str, int], records: Sequence[Record]) -> dict[str, frozenset[int]]:
    """Senders that the query names, with the words that name them."""
    senders = {record.sender for record in records if record.sender}
    named = {name: frozenset(index[token] for token in _name_tokens(name) if token in index) for name in senders}
    return {name: words for name, words in named.items() if words}


def _without_names(weights: Sequence[float], people: Mapping[str, frozenset[int]]) -> list[float]:
    """Names lift their bearer's messages; as words they count for little, unless there is nothing else."""
    names = frozenset[int]().union(*people.values())
    if all(at in names for at, weight in enumerate(weights) if weight):
        return list(weights)
    return [weight * _NAME_WEIGHT if at in names else weight for at, weight in enumerate(weights)]


def _surroundings(records: Sequence[Record], profiles: Mapping[int, _Profile]) -> dict[int, tuple[Counts, float]]:
    """By record id: the words in and around a message, fading with the distance, and how long they are."""
    messages = [record for record in records if record.source == "conversation" and record.part == 0]
    messages.sort(key=lambda record: (record.owner, record.n))
    found: dict[int, tuple[Counts, float]] = {}
    run: list[Record] = []
    for record in messages:
        if run and not _follows(run[-1], record):
            found.update(_faded(run, profiles))
            run = []
        run.append(record)
    found.update(_faded(run, profiles))
    return found


def _sign_shares(signs: frozenset[str], records: Sequence[Record]) -> dict[int, float]:
    """By record id the share of these characters that it holds, rare ones counting more; empty for a short query."""
    if len(signs) < _SIGNS_MIN:
        return {}
    held = {record.id: signs.intersection(record.text) for record in records}
    holding = Counter(sign for found in held.values() for sign in found)
    weights = {sign: idf(len(records), holding[sign]) for sign in signs}
    total = sum(weights.values()) or 1.0
    return {id_: sum([weights[sign] for sign in found]) / total for id_, found in held.items()}


def _date_it(
    word: int, records: Sequence[Record], profiles: Mapping[int, _Profile], periods: Sequence[tuple[int, int]]
) -> float:
    """Gives the records of the periods one more word, and says what it weighs."""
    dated = [record for record in records if any(start <= record.at < end for start, end in periods)]
    for record in dated:
        profiles[record.id].counts[word] = 1.0
    return idf(len(records), len(dated))


def _follows(record: Record, after: Record) -> bool:
    return record.owner == after.owner and after.n == record.n + 1 and abs(after.at - record.at) <= PAUSE_MS_MAX


def _faded(run: Sequence[Record], profiles: Mapping[int, _Profile]) -> Iterator[tuple[int, tuple[Counts, float]]]:
    """Each message of an unbroken run with its surroundings: what fades in from before, from after, and its own."""
    if len(run) == 1:
        own = profiles[run[0].id]
        yield run[0].id, (own.counts, own.length)
        return
    before = list(_faded_one_way([profiles[record.id] for record in run]))
    after = list(_faded_one_way([profiles[record.id] for record in reversed(run)]))[::-1]
    for record, (earlier, earlier_length), (later, later_length) in zip(run, before, after, strict=True):
        own = profiles[record.id]
        counts = dict(own.counts)
        for side in (earlier, later):
            for word, count in side.items():
                counts[word] = counts.get(word, 0.0) + count
        yield record.id, (counts, own.length + earlier_length + later_length)


def _faded_one_way(profiles: Iterable[_Profile]) -> Iterator[tuple[Counts, float]]:
    """For each profile the words and the length that those before it leave."""
    counts: Counts = {}
    length = 0.0
    for profile in profiles:
        yield counts, length
        counts = {word: count * _FADING for word, count in counts.items() if count > _FADED}
        for word, count in profile.counts.items():
            counts[word] = counts.get(word, 0.0) + count * _FADING
        length = (length + profile.length) * _FADING


def _bm25(
    weights: Sequence[float], counts: Counts, relative_length: float, saturation: float, length_share: float
) -> float:
    norm = saturation * (1 - length_share + length_share * relative_length)
    return sum([weights[word] * count * (saturation + 1) / (count + norm) for word, count in counts.items()])


def _merit(record: Record, profile: _Profile, is_named: bool) -> float:
    """What stands for or against a record, whatever its words."""
    merit = _AUTHORITY.get(record.source, 1.0)
    if record.owner.startswith(_CURATED):
        merit *= _CURATED_LIFT
    if record.part:
        merit *= _CALL_WEIGHT
    if record.role == "assistant":
        merit *= _ASSISTANT_WEIGHT
    if is_named:
        merit *= _PERSON_LIFT
    if profile.is_echo:  # the question itself, asked before or just now
        merit *= _ECHO_WEIGHT
    if record.text.rstrip().endswith(("?", "؟", "？")):
        merit *= _QUESTION_WEIGHT
    return merit

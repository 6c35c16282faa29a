"""Puts found records in order. Pure functions; the same records and words always come out in the same order.

A message counts for its own words (BM25, S. Robertson and H. Zaragoza, 2009) and for those of the messages around
it, so that an answer is found by the words of its question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent.cortex.query import Query
from agent.cortex.text import fold

NEIGHBOURS = 2
"""So many messages before and after a message are its surroundings,"""
PAUSE_MS_MAX = 3 * 3_600_000
"""unless a pause as long as this lies between."""
_SATURATION = 1.0
_LENGTH_SHARE = 0.5
_SURROUNDINGS_WEIGHT = 1.5
_ADJACENT_SHARE = 0.25
_PERSON_LIFT = 1.6
_NAME_WEIGHT = 0.2
_QUESTION_WEIGHT = 0.8
_EXTRA_FORM_WEIGHT = 0.9
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


@dataclass(slots=True)
class _Profile:
    """What one record has of the query: how often each word, how many tokens, how many words side by side."""

    counts: list[float]
    length: int
    adjacent: float = 0.0
    is_echo: bool = False


def idf(records: int, holding: int) -> float:
    """The weight of a word that `holding` of `records` records hold; never negative."""
    return math.log(1.0 + (records - holding + 0.5) / (holding + 0.5)) if holding < records else 0.01


def ranked(
    query: Query, weights: Sequence[float], found: Mapping[int, float], records: Sequence[Record]
) -> list[tuple[float, Record]]:
    """Orders `records`, best first.

    `weights`: the idf of each word of the query. `found`: scores of the full-text search by record id; records
    without one are neighbours. Records without any merit are left out.
    """
    index = {form: at for at, word in reversed(list(enumerate(query.words))) for form in word.forms}
    profiles = {record.id: _profile(index, query.said, weights, record) for record in records}
    people = _people(index, records)
    weights = _without_names(weights, people)
    average = sum(profile.length for profile in profiles.values()) / max(1, len(profiles)) or 1.0
    places = {(record.owner, record.n): record for record in records if record.part == 0}
    scored: list[tuple[float, Record]] = []
    for record in records:
        profile = profiles[record.id]
        own = _bm25(weights, profile.counts, profile.length / average) + profile.adjacent
        if record.cut and record.id in found:
            own = max(own, -found[record.id] / 2)
        around = own
        if record.source == "conversation" and record.part == 0:
            window = [profiles[near.id] for near in _around(record, places)]
            counts = [sum(column) for column in zip(*(near.counts for near in window), strict=True)]
            length = sum(near.length for near in window)
            around = _bm25(weights, counts, length / average / len(window))
        score = (own + _SURROUNDINGS_WEIGHT * around) * _merit(record, profile, record.sender in people)
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
    profile = _Profile([0.0] * len(weights), len(tokens))
    profile.is_echo = len(distinct) >= _ECHO_TOKENS_MIN and said.issuperset(distinct)
    if formed:
        for token in formed:
            profile.counts[index[token]] += extras.count(token) * _EXTRA_FORM_WEIGHT
    if plain:
        exact = [0] * len(weights)
        for token in plain:
            exact[index[token]] += tokens.count(token)
        for word, count in enumerate(exact):
            if count:
                profile.counts[word] = count + max(0.0, profile.counts[word] - count * _EXTRA_FORM_WEIGHT)
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


def _around(record: Record, places: Mapping[tuple[str, int], Record]) -> list[Record]:
    """The record and its neighbours on both sides, up to a long pause."""
    window = [record]
    for step in (1, -1):
        at = record.at
        for distance in range(1, NEIGHBOURS + 1):
            near = places.get((record.owner, record.n + step * distance))
            if near is None or abs(near.at - at) > PAUSE_MS_MAX:
                break
            window.append(near)
            at = near.at
    return window


def _bm25(weights: Sequence[float], counts: Sequence[float], relative_length: float) -> float:
    norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * relative_length)
    return sum(
        weight * count * (_SATURATION + 1) / (count + norm)
        for weight, count in zip(weights, counts, strict=True)
        if count
    )


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

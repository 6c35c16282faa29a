"""Asks the index. Plain functions on a reader's connection; every row is fetched before a function returns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from agent.cortex.filters import Filters, is_seen, sessions_parameter
from agent.cortex.index import scope_token, sender_token
from agent.cortex.query import Query, QueryWord, parse_query
from agent.cortex.rank import NEIGHBOURS, Record, idf, is_echo, ranked, without_doubles
from agent.cortex.refs import record_ref
from agent.cortex.sentences import sentences
from agent.cortex.snippets import snippet
from agent.cortex.text import tokens_of
from agent.limits import SNIPPET_CHARS
from agent.retrieval import Coverage, Hit, SourceCoverage

POOL_RECORDS = 160
"""So many records of the full-text search are ranked."""
DATED_RECORDS = 80
"""And so many more of each time that the query names."""
SURROUNDED_RECORDS = 60
"""The best so many of them are ranked with the messages around them."""
COMMON_RECORDS = (400, 2_000)
COMMON_SHARES = (0.3, 0.04)
"""A word in more records than these shares of all leaves the query when rarer ones are there: the first share in a
small index, the second in a large one; never below the first number of records, and the first share not above the
second."""
POSTINGS_MAX = 20_000
"""Words are asked for, rarest first, until they would touch more records than this: it bounds the cost of a query."""
OTHER_SHARE = 0.8
"""What a full score of another kind counts beside the best score of the words."""
OTHER_ALONE = 0.5
"""A record without words of the query needs so high a score of the other kind: something is always the nearest."""
RANKED_CHARS = 6_000
RANKED_TOTAL_CHARS = 120_000
"""Of long records fewer are ranked."""
SESSIONS_ASKED_MAX = 64
CANDIDATE_WORDS_MAX = 10
CANDIDATE_POSTINGS = 40
CANDIDATE_MERIT_SHARE = 0.2
HEADINGS_MAX = 200

_SQL = sentences("reads.sql")
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class _Plan:
    """A query after a look at the index: the weight of each word, the full-text expression, whether to rank by it.

    `match` is empty when no word of the query is anywhere in the index.
    """

    query: Query
    weights: tuple[float, ...]
    match: str
    newest_only: bool


def search(
    conn: sqlite3.Connection,
    text: str,
    filters: Filters,
    limit: int,
    snippet_chars: int = SNIPPET_CHARS,
    *,
    exact: bool = False,
    zone: ZoneInfo = _UTC,
    context: Callable[[Record], str] | None = None,
    other: Mapping[int, float] | None = None,
) -> list[Hit]:
    """The best `limit` hits, best first. `exact`: each holds words of the query, none is there as a likely answer.

    `zone`: where the days begin that the query names. `context` gives the range of the read log around a message.
    `other`: scores of another kind, from 0 to 1 by record id, that are mixed with those of the words.
    """
    plan = _plan(conn, parse_query(text), filters)
    scored = _scored(conn, plan, filters, exact=exact, zone=zone) if plan else []
    if other and plan is not None and not plan.query.phrases:
        scored = _mixed(conn, scored, other, filters)
    words = zip(plan.query.words, plan.weights, strict=True) if plan else ()
    weights = {form: weight for word, weight in words for form in word.forms}
    hits = [
        (_hit(conn, record, score, weights, snippet_chars), record) for score, record in without_doubles(scored, limit)
    ]
    if context is None:
        return [hit for hit, _ in hits]
    return [replace(hit, context=hit.context or context(record)) for hit, record in hits]


def of_day(conn: sqlite3.Connection, filters: Filters, limit: int) -> list[Hit]:
    """What belongs to the days between `after` and `before`: summaries first, then messages in their order."""
    if filters.sessions == frozenset():
        return []
    found = _ids_of_day(conn, filters, limit)
    rows = _records(conn, "records", found)
    return [_hit(conn, rows[id_], 0.0, {}) for id_ in found]


def _ids_of_day(conn: sqlite3.Connection, filters: Filters, limit: int) -> list[int]:
    rows = conn.execute(_SQL["of-day"], filters.parameters() | {"limit": limit}).fetchall()
    return [id_ for (id_,) in rows]


def conversations(conn: sqlite3.Connection, text: str, filters: Filters, limit: int) -> list[str]:
    """Ids of the conversations that match, best first; a conversation counts for its three best messages."""
    best: dict[str, list[float]] = {}
    plan = _plan(conn, parse_query(text), filters)
    for score, record in _scored(conn, plan, filters) if plan else []:
        if record.owner.startswith("conversation:"):
            best.setdefault(record.owner, []).append(score)
    order = sorted(best, key=lambda owner: (-sum(best[owner][:3]), owner))
    return [owner.removeprefix("conversation:") for owner in order[:limit]]


def candidates(conn: sqlite3.Connection, text: str, sessions: frozenset[str] | None, limit: int) -> list[Hit]:
    """What may help with a text, at a bounded cost: only the newest records of each of its words are looked at."""
    words = sorted(parse_query(text).words, key=lambda word: -len(word.forms[0]))[:CANDIDATE_WORDS_MAX]
    records = _newest_id(conn)
    scope = _scope(sessions)
    scores: dict[int, float] = {}
    weights: dict[str, float] = {}
    for word in words:
        match = f"{scope}({_either(word.asked)})"
        rows = conn.execute(_SQL["newest-holding"], (match, CANDIDATE_POSTINGS)).fetchall()
        if not rows:
            continue
        holding = len(rows)
        if holding == CANDIDATE_POSTINGS:
            holding = int(records * holding / max(holding, records - rows[-1][0]))
        weight = idf(records, holding)
        weights.update(dict.fromkeys(word.forms, weight))
        for (id_,) in rows:
            scores[id_] = scores.get(id_, 0.0) + weight
    floor = CANDIDATE_MERIT_SHARE * max(scores.values(), default=0.0)
    best = sorted((-score, -id_) for id_, score in scores.items() if score >= floor)[: 4 * limit]
    rows = _records(conn, "records", [-id_ for _, id_ in best])
    said = frozenset(tokens_of(text))
    useful = [
        (-score, rows[-id_])
        for score, id_ in best
        if -id_ in rows and not is_echo(rows[-id_], said) and is_seen(rows[-id_], sessions)
    ]
    return [_hit(conn, record, score, weights) for score, record in without_doubles(useful, limit)]


def coverage(conn: sqlite3.Connection, sessions: frozenset[str] | None) -> Coverage:
    """Counts and date ranges; for other people than the owner of their own conversations only."""
    parameters = {"sessions": sessions_parameter(sessions)}
    count, records, first, last = conn.execute(_SQL["conversations-covered"], parameters).fetchone()
    found = [SourceCoverage("conversation", records, moment(first), moment(last))] if count else []
    if sessions is not None:
        return Coverage(tuple(found), count)
    for source, sections, oldest, newest in conn.execute(_SQL["files-covered"]).fetchall():
        if sections:
            found.append(SourceCoverage(source, sections, moment(oldest), moment(newest)))
    headings = conn.execute(_SQL["knowledge-headings"], (HEADINGS_MAX,)).fetchall()
    return Coverage(tuple(found), count, tuple(dict.fromkeys((path, title) for path, title in headings if title)))


def records_at(conn: sqlite3.Connection, name: str, parameters: Mapping[str, object]) -> list[Record]:
    """The records that a sentence of reads.sql gives for a reference, with their whole text."""
    return [Record(*row[:-1]) for row in conn.execute(_SQL[name], parameters).fetchall()]


def moment(milliseconds: int) -> datetime:
    """Milliseconds since 1970 as an aware UTC time."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _scored(
    conn: sqlite3.Connection, plan: _Plan, filters: Filters, *, exact: bool = False, zone: ZoneInfo = _UTC
) -> list[tuple[float, Record]]:
    query = plan.query
    found = _matching(conn, plan, filters)
    periods = _periods(conn, query, zone)
    for start, end in periods:
        found |= _matching(conn, plan, filters.within(start, end), pool=DATED_RECORDS)
        if query.only_dates and filters.sender is None and not exact:
            found = dict.fromkeys(_ids_of_day(conn, filters.within(start, end), DATED_RECORDS), 0.0) | found
    records = _within(_records(conn, "records", list(found)), found)
    is_question = query.is_question and not exact and filters.sender is None
    if is_question:
        records |= _records(conn, "records-around", list(records)[:SURROUNDED_RECORDS])
    return [
        (score, record)
        for score, record in ranked(query, plan.weights, found, list(records.values()), periods)
        if record.id in found or (is_question and filters.lets_through(record))
    ]


def _matching(conn: sqlite3.Connection, plan: _Plan, filters: Filters, pool: int = POOL_RECORDS) -> dict[int, float]:
    """The best of the full-text search: score by record id, the lower the better."""
    if not plan.match:
        return {}
    parameters: dict[str, object] = {"match": plan.match, "pool": pool}
    name = "newest-filtered" if plan.newest_only else "best"
    if filters.in_sql or plan.newest_only:
        parameters |= filters.parameters()
        name = "newest-filtered" if plan.newest_only else "best-filtered"
    return dict(conn.execute(_SQL[name], parameters).fetchall())


def _periods(conn: sqlite3.Connection, query: Query, zone: ZoneInfo) -> list[tuple[int, int]]:
    """From and until when the dates of a query are, in ms; one without a year in each year that is remembered."""
    first = last = 0
    if any(date.year is None for date in query.dates):
        _, _, oldest, newest = conn.execute(_SQL["conversations-covered"], {"sessions": None}).fetchone()
        if newest is not None:
            first, last = moment(oldest).year, moment(newest).year + 1
    return [period for date in query.dates for period in date.periods(zone, first, last)]


def _within(records: Mapping[int, Record], found: Mapping[int, float]) -> dict[int, Record]:
    """The best found of these that are no more than RANKED_TOTAL_CHARS together."""
    kept: dict[int, Record] = {}
    chars = 0
    for id_ in found:
        record = records[id_]
        chars += len(record.text)
        if kept and chars > RANKED_TOTAL_CHARS:
            break
        kept[id_] = record
    return kept


def _mixed(
    conn: sqlite3.Connection, scored: Sequence[tuple[float, Record]], other: Mapping[int, float], filters: Filters
) -> list[tuple[float, Record]]:
    """Scores of the words, as shares of the best one, and scores of another kind, mixed; records of either are there.

    Scores are mixed and not ranks: an equal fusion of ranks lets the weaker kind push down what the better one found.
    """
    best = max((score for score, _ in scored), default=0.0) or 1.0
    mixed = {record.id: (score / best + OTHER_SHARE * other.get(record.id, 0.0), record) for score, record in scored}
    missing = [id_ for id_, score in other.items() if id_ not in mixed and score >= OTHER_ALONE]
    for id_, record in _records(conn, "records", missing).items():
        if filters.lets_through(record) and filters.sender is None:
            mixed[id_] = OTHER_SHARE * other[id_], record
    return sorted(mixed.values(), key=lambda pair: (-pair[0], -pair[1].at, pair[1].owner, pair[1].n, pair[1].part))


def _plan(conn: sqlite3.Connection, query: Query, filters: Filters) -> _Plan | None:
    """None: there is no word to search for, or the viewer sees nothing."""
    if not query.words or filters.sessions == frozenset():
        return None
    records = _newest_id(conn)
    holding = [_holding(conn, word) for word in query.words]
    known = sorted((count, at) for at, count in enumerate(holding) if count)
    if not known:
        return _Plan(query, (0.0,) * len(holding), "", newest_only=False)
    common = max(COMMON_RECORDS[0], min(COMMON_RECORDS[1], COMMON_SHARES[0] * records), COMMON_SHARES[1] * records)
    rare = [(count, at) for count, at in known if count <= common] or known
    asked, postings = [rare[0]], rare[0][0]
    for count, at in rare[1:]:
        postings += count
        if postings > POSTINGS_MAX:
            break
        asked.append((count, at))
    words = _either([form for _, at in asked for form in query.words[at].asked])
    phrases = "".join(f' AND text : "{" ".join(phrase)}"' for phrase in query.phrases)
    scope = _scope(filters.sessions) or _scope(_sessions_of_chat(conn, filters))
    match = f"{scope}{_sender(filters.sender)}({words}){phrases}"
    weights = tuple(idf(records, count) if count else 0.0 for count in holding)
    return _Plan(query, weights, match, asked[0][0] > POSTINGS_MAX)


def _either(forms: Sequence[str]) -> str:
    return " OR ".join(f'"{form}"' for form in dict.fromkeys(forms))


def _scope(sessions: frozenset[str] | None) -> str:
    """Narrows a full-text expression to few sessions; many are left to the sentence that reads the rows."""
    if sessions is None or not 0 < len(sessions) <= SESSIONS_ASKED_MAX:
        return ""
    return f"scope : ({_either([scope_token(key) for key in sorted(sessions)])}) AND "


def _sessions_of_chat(conn: sqlite3.Connection, filters: Filters) -> frozenset[str] | None:
    """The sessions of the chat that is asked for: a message of it belongs to one of them."""
    if filters.chat is None:
        return None
    return frozenset(key for (key,) in conn.execute(_SQL["sessions-of-chat"], (filters.chat,)).fetchall())


def _sender(sender: str | None) -> str:
    """Narrows a full-text expression to a sender, by id or by the words of the name."""
    if sender is None:
        return ""
    by_id = f'scope : "{sender_token(sender)}"'
    name = " AND ".join(f'"{token}"' for token in tokens_of(sender))
    return f"({by_id} OR head : ({name})) AND " if name else f"({by_id}) AND "


def _newest_id(conn: sqlite3.Connection) -> int:
    return conn.execute(_SQL["newest-id"]).fetchone()[0]


def _holding(conn: sqlite3.Connection, word: QueryWord) -> int:
    """How many records hold the word in one of the forms asked for, counting those with two forms twice."""
    counts = [conn.execute(_SQL["records-holding"], (form,)).fetchone() for form in word.asked]
    return sum(row[0] for row in counts if row)


def _records(conn: sqlite3.Connection, name: str, ids: Sequence[int]) -> dict[int, Record]:
    parameters = {"ids": json.dumps(ids), "chars": RANKED_CHARS, "reach": NEIGHBOURS}
    rows = conn.execute(_SQL[name], parameters).fetchall() if ids else []
    return {row[0]: Record(*row[:-1], cut=bool(row[-1])) for row in rows}


def _hit(
    conn: sqlite3.Connection,
    record: Record,
    score: float,
    weights: Mapping[str, float],
    snippet_chars: int = SNIPPET_CHARS,
) -> Hit:
    text = record.text
    if record.cut:
        text = conn.execute(_SQL["body"], (record.id,)).fetchone()[0]
    return Hit(
        ref=record_ref(record.owner, record.n, record.part, record.last),
        context=record.context,
        source=record.source,
        title=record.title,
        snippet=snippet(text, weights, snippet_chars) or record.title,
        sender=record.sender,
        role=record.role,
        channel=record.channel,
        chat=record.chat,
        message_id=record.message_id,
        at=moment(record.at),
        score=round(score, 4),
        session_key=record.session_key,
    )

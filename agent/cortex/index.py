"""Writes the derived index. Plain functions on the writer's connection, inside the writer's own transaction.

Raises sqlite3 errors as they come; the caller's transaction is rolled back by the caller.
"""
# long because: what becomes of messages, calls and files in the index stands in one place, for all who write it

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path

from agent.cortex import origins
from agent.cortex.refs import Ref, parse_ref
from agent.cortex.sentences import sentences
from agent.cortex.text import clean, fold

SCHEMA_VERSION = 4
"""Goes up whenever tables or folding change: the index is then made anew from its sources."""
CALL_SEARCHED_CHARS = 20_000
"""So much of a tool call can be found by its words; all of it can be read."""
WAL_BYTES_MAX = 16 * 1024 * 1024
_RETRIEVAL_PREFIXES = (
    "memory_search",
    "memory_get",
    "memory_forget",
    "conversation_",
    "sessions_",
    "recall",
    "wolffish_",
)
"""Tools that repeat what is indexed already: neither what they asked nor what they got is found by its words."""

_SQL = sentences("writes.sql")
_GET_META, _SET_META = _SQL["get-meta"], _SQL["set-meta"]
_INSERT_RECORD, _INSERT_WORDS = _SQL["insert-record"], _SQL["insert-words"]
_COUNT_CONVERSATION = _SQL["count-conversation"]
_SECTIONS_OF_OWNER = sentences("reads.sql")["sections-of-owner"]
_Row = tuple[int, str, str, str, str, int, str]
"""id, session_key, sender, sender_id, title, searched, body."""
Record = tuple[str, str, int, int, int, int, str, str, str, str, str, str, str, str, str, int, str]
"""A row of `record` without its id, in the order of the table's columns."""
_WORDS_COLUMNS = itemgetter(6, 10, 11, 14, 15, 16)
_CONVERSATION_COLUMNS = itemgetter(1, 5, 6, 7, 8)


@dataclass(frozen=True, slots=True)
class IndexedMessage:
    """A saved message. `n` counts from 1 within its conversation; `at` is aware; `context` is the read-log range
    around it as a reference, `message_id` the id people and platforms know it by."""

    conversation_id: str
    n: int
    role: str
    text: str
    sender: str
    sender_id: str
    session_key: str
    channel: str
    chat: str
    at: datetime
    context: str = ""
    message_id: str = ""
    attached: tuple[str, ...] = ()
    """Paths of the files that came with it, relative to the workspace."""


@dataclass(frozen=True, slots=True)
class IndexedCall:
    """A tool call of message `n`; `call_n` counts from 1 within it; `args` is JSON text."""

    conversation_id: str
    n: int
    call_n: int
    name: str
    args: str
    output: str
    outcome: str
    session_key: str
    channel: str
    chat: str
    at: datetime
    context: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file: lines `first` to `last`, from 1, inclusive. A file without text has one, at line 0."""

    first: int
    last: int
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file as it is now. `at` is the time it speaks of, in ms since 1970, UTC; `fault`: what is left out of it."""

    path: str
    source: str
    mtime_ns: int
    size: int
    at: int
    sections: tuple[Section, ...]
    fault: str = ""


class OtherVersion(sqlite3.DatabaseError):
    """The file is an index of another version of the program: it is made anew, not read."""


def is_damage(error: BaseException) -> bool:
    """Whether SQLite found a file to be no database, or one that does not hold together or ends too soon."""
    code = getattr(error, "sqlite_errorcode", 0)
    return (code & 0xFF) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or code == sqlite3.SQLITE_IOERR_SHORT_READ


def is_unusable(error: BaseException) -> bool:
    """Whether an error while writing the index means that it is no good: damaged, or with other tables or rows than
    ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return (
        isinstance(error, OtherVersion) or is_damage(error) or code in {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}
    )


def attach(conn: sqlite3.Connection, path: Path) -> None:
    """Attaches index.db as `idx` and makes its tables when it has none; not inside a transaction.

    Raises OtherVersion, and sqlite3.DatabaseError when the file is no database; then nothing stays attached.
    """
    conn.execute("ATTACH DATABASE ? AS idx", (str(path),))
    try:
        _prepare(conn)
    except sqlite3.Error:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        conn.execute("DETACH idx")
        raise


def _prepare(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA idx.journal_mode = WAL").fetchone()
    conn.execute("PRAGMA idx.synchronous = NORMAL")
    conn.execute(f"PRAGMA idx.journal_size_limit = {WAL_BYTES_MAX}").fetchone()
    if _is_ours(conn):
        return
    # Two programs may find it empty at the same time.
    conn.execute("BEGIN IMMEDIATE")
    if not _is_ours(conn):
        for sentence in sentences("schema.sql").values():
            conn.execute(sentence)
        _set_meta(conn, "schema_version", SCHEMA_VERSION)
    conn.execute("COMMIT")


def _is_ours(conn: sqlite3.Connection) -> bool:
    """False for a file without tables. Raises OtherVersion."""
    tables = [name for (name,) in conn.execute(_SQL["list-tables"]).fetchall()]
    if not tables:
        return False
    version = _meta(conn, "schema_version") if "meta" in tables else None
    if version == SCHEMA_VERSION:
        return True
    found = "is another program's" if version is None else f"has version {version}"
    raise OtherVersion(f"the index {found}, this program's is {SCHEMA_VERSION}")


def watermark(conn: sqlite3.Connection) -> int:
    """The version of the truth up to which the index is complete; 0 for an empty index."""
    value = _meta(conn, "watermark")
    return value if isinstance(value, int) else 0


def set_watermark(conn: sqlite3.Connection, version: int) -> None:
    """Notes that everything up to this version of the truth is indexed."""
    _set_meta(conn, "watermark", version)


def truth_id(conn: sqlite3.Connection) -> str | None:
    """The id of the database this index was made from; None for an empty index."""
    value = _meta(conn, "truth_id")
    return value if isinstance(value, str) else None


def set_truth_id(conn: sqlite3.Connection, id: str) -> None:
    """Notes which database this index is made from."""
    _set_meta(conn, "truth_id", id)


def build_target(conn: sqlite3.Connection) -> int | None:
    """The version of the truth up to which an index was built in one go; None: it was not."""
    value = _meta(conn, "build_target")
    return value if isinstance(value, int) else None


def set_build_target(conn: sqlite3.Connection, version: int) -> None:
    """Notes how far the building in one go goes."""
    _set_meta(conn, "build_target", version)


def message_record(row: IndexedMessage) -> Record:
    """The row of `record` that a message becomes."""
    return said_record(
        row.conversation_id, row.n, row.role, row.text, row.sender, row.sender_id, row.session_key, row.channel,
        row.chat, _milliseconds(row.at), row.message_id, row.context,
    )  # fmt: skip


def said_record(
    conversation_id: str, n: int, role: str, text: str, sender: str, sender_id: str, session_key: str, channel: str,
    chat: str, at: int, message_id: str, context: str = "",
) -> Record:  # fmt: skip
    """The same of the fields of an IndexedMessage, in their order; `at` in ms since 1970, UTC."""
    body = clean(text)
    return (
        "conversation", f"conversation:{conversation_id}", n, 0, 0, at, session_key, channel, chat, role,
        clean(sender), sender_id, message_id, context, "", len(body), body,
    )  # fmt: skip


def call_record(row: IndexedCall) -> Record:
    """The row of `record` that a tool call with its output becomes."""
    body = clean(f"{row.name} {row.args}\n{row.outcome}\n{row.output}")
    searched = 0 if row.name.startswith(_RETRIEVAL_PREFIXES) else min(len(body), CALL_SEARCHED_CHARS)
    return (
        "conversation", f"conversation:{row.conversation_id}", row.n, row.call_n, 0, _milliseconds(row.at),
        row.session_key, row.channel, row.chat, "tool", "", "", row.message_id, row.context, clean(row.name), searched,
        body,
    )  # fmt: skip


def words_of(record: Record) -> tuple[str, str, str, str]:
    """The row of `words` for a row of `record`: text, extra, head, scope."""
    session_key, sender, sender_id, title, searched, body = _WORDS_COLUMNS(record)
    return _words(session_key, sender, sender_id, title, body if searched == len(body) else body[:searched])


def index_message(conn: sqlite3.Connection, row: IndexedMessage) -> None:
    """Indexes one message; the same reference again takes the place of what was there."""
    is_new = _put_said(conn, message_record(row))
    if row.attached or not is_new:
        owner = f"conversation:{row.conversation_id}"
        _retell(conn, origins.replace(conn, owner, row.n, 0, origins_of_message(row)))


def index_call(conn: sqlite3.Connection, row: IndexedCall) -> None:
    """Indexes one tool call with its output; the same reference again takes the place of what was there."""
    _put_said(conn, call_record(row))
    if row.outcome == "success":
        owner = f"conversation:{row.conversation_id}"
        _retell(conn, origins.replace(conn, owner, row.n, row.call_n, origins_of_call(row)))


def origins_of_message(row: IndexedMessage) -> list[origins.Origin]:
    """The files that came with a message."""
    return origins.of_message(f"conversation:{row.conversation_id}", row.n, row.attached)


def origins_of_call(row: IndexedCall) -> list[origins.Origin]:
    """The artifacts that a call made or named."""
    if row.outcome != "success":
        return []
    return origins.of_call(f"conversation:{row.conversation_id}", row.n, row.call_n, row.name, row.args, row.output)


def _put_said(conn: sqlite3.Connection, record: Record) -> bool:
    is_new = _put(conn, record)
    if is_new:
        owner, at, session_key, channel, chat = _CONVERSATION_COLUMNS(record)
        conn.execute(_COUNT_CONVERSATION, (owner, session_key, channel, chat, 1, at, at))
    return is_new


def remove_refs(conn: sqlite3.Connection, refs: Iterable[str]) -> None:
    """Removes messages (with their calls), single calls, or all of a conversation (`conversation:<id>#`)."""
    touched: set[str] = set()
    for text in refs:
        ref = parse_ref(text)
        if ref is None or ref.kind != "conversation":
            continue
        owner = f"conversation:{ref.id}"
        touched.add(owner)
        for row in _rows_of(conn, owner, ref):
            _delete(conn, row)
        _retell(conn, origins.forget(conn, owner, ref.n, ref.part))
    for owner in touched:
        conn.execute(_SQL["recount-conversation"], (owner,))
        conn.execute(_SQL["drop-empty-conversation"], (owner,))


def changed_sections(conn: sqlite3.Connection, file: IndexedFile) -> list[Section]:
    """The sections of a file that are not in the index as they are now. `conn` is the reader's connection."""
    known = {n: tuple(same) for n, *same in conn.execute(_SECTIONS_OF_OWNER, (f"file:{file.path}",)).fetchall()}
    return [
        section
        for section in file.sections
        if known.get(section.first) != (file.source, section.last, clean(section.title), clean(section.text))
    ]


def file_records(file: IndexedFile, sections: Iterable[Section], origin: str = "") -> list[Record]:
    """The rows of `record` that sections of a file become; `origin` is added to their text."""
    owner = f"file:{file.path}"
    return [
        (
            file.source, owner, section.first, 0, section.last, file.at, "", "", "", "", "", "", "", "",
            clean(section.title), len(body := clean(section.text) + origin), body,
        )
        for section in sections
    ]  # fmt: skip


def file_row(file: IndexedFile) -> tuple[object, ...]:
    """The row of `file`."""
    return file.path, file.source, file.mtime_ns, file.size, file.at, len(file.sections), file.fault


def put_sections(conn: sqlite3.Connection, file: IndexedFile, sections: Iterable[Section], *, is_last: bool) -> None:
    """Indexes some sections of a file. With others to come the file counts as changed, whatever comes between."""
    if not is_last:
        conn.execute(_SQL["begin-file"], (file.path, file.source, file.at))
    origin = origins.line(conn, file.path) if file.source == "artifact" else ""
    for record in file_records(file, sections, origin):
        _put(conn, record)


def end_file(conn: sqlite3.Connection, file: IndexedFile, rows_max: int) -> bool:
    """Takes out what the file no longer holds, and notes it as indexed. True: there is more to take out."""
    kept = {section.first for section in file.sections}
    owner = f"file:{file.path}"
    stale = [n for (n,) in conn.execute(_SQL["places-of-owner"], (owner,)).fetchall() if n not in kept]
    for n in stale[:rows_max]:
        _delete(conn, conn.execute(_SQL["record-of-ref"], (owner, n, 0)).fetchone())
    if len(stale) > rows_max:
        return True
    conn.execute(_SQL["date-records"], {"owner": owner, "at": file.at})
    conn.execute(_SQL["put-file"], file_row(file))
    return False


def remove_files(conn: sqlite3.Connection, paths: Sequence[str], rows_max: int) -> int:
    """Takes files out of the index, in order, until so many rows are gone; how many of them are done."""
    for done, path in enumerate(paths):
        rows = conn.execute(_SQL["some-records-of-owner"], (f"file:{path}", rows_max)).fetchall()
        for row in rows:
            _delete(conn, row)
        rows_max -= len(rows)
        if rows_max <= 0:
            return done
        conn.execute(_SQL["delete-file"], (path,))
    return len(paths)


def retell_artifacts(conn: sqlite3.Connection) -> None:
    """Writes anew where each artifact comes from: after messages and calls were added in one go."""
    _retell(conn, [path for (path,) in conn.execute(_SQL["artifacts-with-origin"]).fetchall()])


def _retell(conn: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Writes anew where artifacts come from, those that are indexed already."""
    for path in paths:
        row = conn.execute(_SQL["artifact-of-path"], (f"file:{path}",)).fetchone()
        if row is None:
            continue
        *head, title, body = row
        told = body.partition("\n")[0] + origins.line(conn, path)
        if told != body:
            _put(conn, ("artifact", *head, "", "", "", "", "", "", "", "", title, len(told), told))


@lru_cache(maxsize=10_000)
def scope_token(session_key: str) -> str:
    """The token of a session in the `scope` column; its sign is in no folded word."""
    return "§" + blake2b(session_key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _put(conn: sqlite3.Connection, record: Record) -> bool:
    """Writes a record and its words. False: it took the place of an earlier one."""
    cursor = conn.execute(_INSERT_RECORD, record)
    is_new = cursor.rowcount == 1
    if not is_new:
        owner, n, part = record[1:4]
        old = conn.execute(_SQL["record-of-ref"], (owner, n, part)).fetchone()
        _delete(conn, old)
        cursor = conn.execute(_INSERT_RECORD, record)
    conn.execute(_INSERT_WORDS, (cursor.lastrowid, *words_of(record)))
    return is_new


def sender_token(sender_id: str) -> str:
    """The token of a sender in the `scope` column."""
    return scope_token(f"sender {sender_id}")


def _words(session_key: str, sender: str, sender_id: str, title: str, searched: str) -> tuple[str, str, str, str]:
    text, extra = fold(searched)
    return text, extra, _head(f"{sender} {title}"), _scope(session_key, sender_id)


@lru_cache(maxsize=10_000)
def _scope(session_key: str, sender_id: str) -> str:
    session = scope_token(session_key) if session_key else ""
    return f"{session} {sender_token(sender_id)}" if sender_id else session


@lru_cache(maxsize=10_000)
def _head(text: str) -> str:
    return " ".join(fold(text)).strip()


def _delete(conn: sqlite3.Connection, row: _Row) -> None:
    id_, session_key, sender, sender_id, title, searched, body = row
    words = _words(session_key, sender, sender_id, title, body[:searched])
    conn.execute(_SQL["delete-words"], (id_, *words))
    conn.execute(_SQL["delete-record"], (id_,))


def _rows_of(conn: sqlite3.Connection, owner: str, ref: Ref) -> list[_Row]:
    if ref.n is None:
        return conn.execute(_SQL["records-of-owner"], (owner,)).fetchall()
    if ref.part is not None:
        return conn.execute(_SQL["record-of-ref"], (owner, ref.n, ref.part)).fetchall()
    return conn.execute(_SQL["records-of-message"], (owner, ref.n)).fetchall()


def _meta(conn: sqlite3.Connection, key: str) -> object:
    row = conn.execute(_GET_META, (key,)).fetchone()
    return None if row is None else row[0]


def _set_meta(conn: sqlite3.Connection, key: str, value: object) -> None:
    conn.execute(_SET_META, (key, value))


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)

"""Which conversation made or brought an artifact: read from tool calls and attachments, kept beside the records.

Plain functions on the writer's connection; whoever removes a record removes what is kept of it here.
"""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, cast

from agent.cortex.refs import record_ref
from agent.cortex.sentences import sentences

ARTIFACTS = ("files", "uploads", "screenshots", "speech")
"""The folders of the workspace whose files are artifacts."""
PATHS_OF_CALL_MAX = 50
"""A call that names more files lists them: it made the first of them at most."""
OUTPUT_READ_CHARS = 20_000
_PATH_CHARS_MAX = 1_024
_TOPS = "|".join(ARTIFACTS)
_WHOLE = re.compile(rf"(?:file:|\./|/\S*/workspace/)?((?:{_TOPS})/[^\n\r\0]+)\Z")
_IN_TEXT = re.compile(rf"(?:(?<![\w./-])(?:\./)?|/workspace/)((?:{_TOPS})/[^\s\"'`<>|*?\\:;,()\[\]{{}}#]+)")
_MADE, _NAMED = 0, 1
"""What made or brought a file says more about it than what named it."""
_WRITERS = frozenset({"write_file"})
_READERS = (
    "read_file",
    "list_files",
    "load_capability",
    "memory_",
    "conversation_",
    "sessions_",
    "recall",
    "wolffish_",
)
"""Tools that name files they did not make."""

_SQL = sentences("origins.sql")


def note_call(conn: sqlite3.Connection, owner: str, n: int, part: int, name: str, args: str, output: str) -> list[str]:
    """Keeps the artifacts that a successful call named; their paths, and those it no longer names."""
    if name.startswith(_READERS):
        return forget(conn, owner, n, part)
    paths = list(dict.fromkeys(_paths(args, output)))[:PATHS_OF_CALL_MAX]
    return _keep(conn, owner, n, part, name, _MADE if name in _WRITERS else _NAMED, paths)


def note_message(conn: sqlite3.Connection, owner: str, n: int, attached: Iterable[str]) -> list[str]:
    """Keeps the files that came with a message; their paths, and those that no longer do."""
    paths = [path for text in attached if (path := _artifact(text))]
    return _keep(conn, owner, n, 0, "", _MADE, paths)


def forget(conn: sqlite3.Connection, owner: str, n: int | None = None, part: int | None = None) -> list[str]:
    """Forgets what a conversation, a message with its calls, or one of them is known to have made; the paths."""
    where = {"owner": owner, "n": n, "part": part}
    paths = [path for (path,) in conn.execute(_SQL["paths-of"], where).fetchall()]
    if paths:
        conn.execute(_SQL["forget"], where)
    return paths


def line(conn: sqlite3.Connection, path: str) -> str:
    """What is known about the origin of an artifact, as a line of its text; empty: nothing."""
    row = conn.execute(_SQL["first-of-path"], (path,)).fetchone()
    if row is None:
        return ""
    owner, n, part, tool, rank = row
    word = "from" if rank == _MADE else "see"
    return f"\n{word} {record_ref(owner, n, part, 0)}{f' ({tool})' if tool else ''}"


def _keep(conn: sqlite3.Connection, owner: str, n: int, part: int, tool: str, rank: int, paths: list[str]) -> list[str]:
    before = forget(conn, owner, n, part)
    if paths:
        conn.executemany(_SQL["keep"], [(path, rank, owner, n, part, tool) for path in paths])
    return [*paths, *(path for path in before if path not in paths)]


def _paths(args: str, output: str) -> Iterator[str]:
    if _may_hold(args):
        for text in _texts(args):
            whole = _artifact(text)
            if whole is not None:
                yield whole
            elif _may_hold(text):
                yield from _named_in(text)
    head = output[:OUTPUT_READ_CHARS]
    if _may_hold(head):
        yield from _named_in(head)


def _may_hold(text: str) -> bool:
    return any(f"{top}/" in text for top in ARTIFACTS)


def _named_in(text: str) -> Iterator[str]:
    for found in _IN_TEXT.finditer(text):
        path = _artifact(found[1].rstrip(".!"))
        if path is not None:
            yield path


def _artifact(text: str) -> str | None:
    """The path of an artifact, when the whole text is one."""
    found = _WHOLE.match(text.strip()) if len(text) <= _PATH_CHARS_MAX else None
    if found is None:
        return None
    path = posixpath.normpath(found[1])
    return path if path.startswith(tuple(f"{top}/" for top in ARTIFACTS)) and path.isprintable() else None


def _texts(args: str) -> Iterator[str]:
    """Every string in JSON text, at any depth; text that is no JSON as it is."""
    try:
        waiting: list[Any] = [json.loads(args)]
    except (ValueError, RecursionError):
        yield args
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(list(cast("dict[str, Any]", value).values())))
        elif isinstance(value, list):
            waiting.extend(reversed(cast("list[Any]", value)))

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


Origin = tuple[str, int, str, int, int, str]
"""path, rank, owner, n, part, tool: a row of `origin`."""


def of_call(owner: str, n: int, part: int, name: str, args: str, output: str) -> list[Origin]:
    """The artifacts that a successful call made or named."""
    if name.startswith(_READERS):
        return []
    rank = _MADE if name in _WRITERS else _NAMED
    paths = list(dict.fromkeys(_paths(args, output)))[:PATHS_OF_CALL_MAX]
    return [(path, rank, owner, n, part, name) for path in paths]


def of_message(owner: str, n: int, attached: Iterable[str]) -> list[Origin]:
    """The files that came with a message."""
    return [(path, _MADE, owner, n, 0, "") for text in attached if (path := _artifact(text))]


def put(conn: sqlite3.Connection, found: Iterable[Origin]) -> None:
    """Keeps these beside what is there."""
    conn.executemany(_SQL["keep"], found)


def replace(conn: sqlite3.Connection, owner: str, n: int, part: int, found: list[Origin]) -> list[str]:
    """Keeps these in the place of what one record had; the paths of all that changed."""
    before = forget(conn, owner, n, part)
    if found:
        put(conn, found)
    return list(dict.fromkeys([*(path for path, *_ in found), *before]))


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

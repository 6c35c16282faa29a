"""Opens what a reference names: messages and calls from the index, files from the disk. Plain functions."""

from __future__ import annotations

import os
import re
import sqlite3
from datetime import datetime
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

from agent.cortex.lookup import moment, records_at, sessions_parameter
from agent.cortex.rank import Record
from agent.cortex.refs import Ref, record_ref
from agent.cortex.roots import Roots
from agent.cortex.text import tokens_of
from agent.limits import GET_FILE_CHARS
from agent.lines import body, lines_of, one_line
from agent.removed import is_log, without_removed
from agent.types import ToolFailure

_OPENED_BYTES_MAX = 20 * 1024 * 1024
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_STEP = re.compile(r"^=== step (\d+) \| .* \| (\d+) characters ===\n", re.MULTILINE)


def open_messages(
    conn: sqlite3.Connection, ref: Ref, sessions: frozenset[str] | None, limit: int, zone: ZoneInfo
) -> str:
    """One message or call, whole, or the first `limit` of a conversation. Raises ToolFailure when there is none."""
    owner = f"conversation:{ref.id}"
    parameters: dict[str, object] = {"owner": owner, "sessions": sessions_parameter(sessions)}
    if ref.n is not None:
        part = ref.part or 0
        found = records_at(conn, "record-of-ref", parameters | {"n": ref.n, "part": part})
        if not found:
            raise ToolFailure(f"There is no {record_ref(owner, ref.n, part, 0)}. Find references with memory_search.")
        return _shown(found[0], zone)
    found = records_at(conn, "records-of-owner", parameters | {"limit": limit + 1})
    if not found:
        raise ToolFailure(f"There is no {owner}#. conversation_list shows which conversations there are.")
    blocks = [_shown(record, zone) for record in found[:limit]]
    if len(found) > limit:
        blocks.append(f"[More follow after these {limit}: ask with a higher limit, or conversation_read {ref.id}.]")
    return "\n\n".join(blocks)


def open_file(roots: Roots, ref: Ref) -> str:
    """A file or the part of it that a reference names. Raises ToolFailure."""
    path, name = roots.open(ref.path)
    text = _read(path, name)
    if is_log(name):
        text = without_removed(text)
    if ref.lines is not None:
        return _lines(text, ref.lines, name)
    if ref.heading is not None:
        return _section(text, ref.heading, name)
    return _whole(text, name)


def open_task(roots: Roots, ref: Ref) -> str:
    """A task's page with its detail, or one step of the detail. Raises ToolFailure."""
    stem = f"brain/motor/tasks/TASK-{quote(ref.id, safe='')}"
    detail_name = f"{stem}-detail.log"
    has_detail = os.path.isfile(roots.place(detail_name))
    text = _read(roots.open(detail_name)[0], detail_name) if has_detail else ""
    if ref.detail is None:
        page = _read(roots.open(f"{stem}.md")[0], f"task:{ref.id}")
        return _whole(f"{page}\n{text}".rstrip(), f"task:{ref.id}")
    at = 0
    while head := _STEP.search(text, at):
        end = head.end() + int(head[2])
        if int(head[1]) == ref.detail:
            return text[head.end() : end]
        at = end
    raise ToolFailure(f"task:{ref.id} has no detail {ref.detail}.")


def _read(path: Path, name: str) -> str:
    try:
        if path.stat().st_size > _OPENED_BYTES_MAX:
            raise ToolFailure(f"{name} is too large to open here ({path.stat().st_size:,} bytes).")
        data = path.read_bytes()
    except OSError as error:
        raise ToolFailure(f"{name} cannot be read: {error.strerror}.") from error
    if b"\0" in data[:8192]:
        raise ToolFailure(f"{name} is not a text file ({len(data):,} bytes).")
    return data.decode("utf-8", "replace")


def _whole(text: str, name: str) -> str:
    """All of a text, or its head and tail with a mark that says what is left out."""
    if len(text) <= GET_FILE_CHARS:
        return text
    head, tail = GET_FILE_CHARS * 2 // 3, GET_FILE_CHARS // 3
    before = text[:head].count("\n") + 1
    after = len(lines_of(text[: len(text) - tail])) or 1
    mark = (
        f"[... {len(text) - head - tail:,} of {len(text):,} characters left out: lines {before} to {after}; "
        f"open them with file:{name}#L{before}-L{after} ...]"
    )
    if name.startswith("task:"):
        mark = f"[... {len(text) - head - tail:,} of {len(text):,} characters left out; see its #detail parts ...]"
    return f"{text[:head]}\n\n{mark}\n\n{text[-tail:]}"


def _lines(text: str, wanted: tuple[int, int], name: str) -> str:
    lines = lines_of(text)
    first, last = wanted
    if first < 1 or last < first or first > len(lines):
        raise ToolFailure(f"{name} has lines 1 to {len(lines)}, not {first} to {last}.")
    return "\n".join(lines[first - 1 : last])


def _section(text: str, wanted: str, name: str) -> str:
    """From a heading to the next one of its level or above. The heading may be named without case and signs."""
    lines = lines_of(text)
    headings = [(at, len(match[1]), match[2]) for at, line in enumerate(lines) if (match := _HEADING.match(line))]
    key = tokens_of(wanted)
    exact = [item for item in headings if item[2].strip() == wanted.strip("# ")]
    for at, level, _ in exact or [item for item in headings if tokens_of(item[2]) == key]:
        end = next((other for other, depth, _ in headings if other > at and depth <= level), len(lines))
        return "\n".join(lines[at:end]).rstrip()
    known = "; ".join(heading for _, _, heading in headings[:12])
    raise ToolFailure(f"{name} has no section {wanted!r}. " + (f"It has: {known}." if known else "It has no headings."))


def _shown(record: Record, zone: ZoneInfo) -> str:
    who = one_line(record.title or record.sender) or record.role
    role = "" if who == record.role else f" ({record.role})"
    ref = record_ref(record.owner, record.n, record.part, record.last)
    return f"[{ref}] {stamp(moment(record.at), zone)} {who}{role}\n{body(record.text)}"


def stamp(at: datetime, zone: ZoneInfo) -> str:
    """A time as people read it, in the owner's zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"

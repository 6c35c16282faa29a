"""Which files of the workspace are indexed, as what, and in which parts."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.cortex.index import IndexedFile, Section

SECTION_CHARS = 1_500
"""A longer section is cut at a line's end, so that a hit shows where in it the words are."""
DETAIL_CHARS = 8_000
LOG_BYTES = 16 * 1024
FILE_BYTES_MAX = 8 * 1024 * 1024
"""Of a larger text file only the beginning is indexed."""

_PRIVATE_NAMES = frozenset({"config.toml", "config.json", "node_modules"})
_NOT_INDEXED = ("readlog",)
_ARTIFACTS = ("files", "uploads", "screenshots", "speech")
_FOLDERS = (
    ("brain/hippocampus/episodes/", "episode"),
    ("brain/hippocampus/knowledge/", "knowledge"),
    ("brain/hippocampus/consolidated/", "consolidated"),
    ("brain/motor/tasks/", "task"),
    ("brain/basalganglia/", "feedback"),
    ("brain/corpus/", "corpus"),
    ("usage/", "usage"),
)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_STEP = re.compile(r"=== step (\d+) \| (.*) \| \d+ characters ===$")
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_WEEK = re.compile(r"(\d{4})-W(\d{2})")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that belongs in the index. `path` is relative to the workspace, with `/`."""

    path: str
    mtime_ns: int
    size: int


def is_private(path: str, skip: Collection[str] = ()) -> bool:
    """True for what is neither indexed nor opened: dot files and folders, settings, and the folders of `skip`.

    `path` and `skip` are relative to the workspace, with `/`.
    """
    if any(_is_private_name(name) for name in path.split("/")):
        return True
    return _is_skipped(path, skip)


def _is_private_name(name: str) -> bool:
    return name.startswith(".") or name in _PRIVATE_NAMES


def _is_skipped(path: str, skip: Collection[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in skip)


def source_of(path: str) -> str | None:
    """The source a workspace file belongs to; None: it is not indexed."""
    top = path.partition("/")[0]
    if top in _NOT_INDEXED:
        return None
    if top in _ARTIFACTS and "/" in path:
        return "artifact"
    if top == "logs":
        return "log"
    is_text = path.endswith((".md", ".log"))
    for folder, source in _FOLDERS:
        if path.startswith(folder):
            return source if is_text else None
    return "doc" if path.endswith(".md") else None


def walk(workspace: Path, skip: Collection[str] = ()) -> Iterator[FoundFile]:
    """The files of the workspace that are indexed. Links are left out: what they name is found in its own place."""
    yield from _walk(str(workspace), "", skip)


def _walk(folder: str, prefix: str, skip: Collection[str]) -> Iterator[FoundFile]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # gone, or not ours to read
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if _is_private_name(entry.name) or _is_skipped(path, skip) or not _is_text(path):
            continue
        if entry.is_dir(follow_symlinks=False):
            if path not in _NOT_INDEXED:
                yield from _walk(entry.path, f"{path}/", skip)
        elif entry.is_file(follow_symlinks=False) and source_of(path):
            try:
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield FoundFile(path, stat.st_mtime_ns, stat.st_size)


def _is_text(path: str) -> bool:
    """False for a file name whose bytes are no UTF-8: no reference could name it."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_file(workspace: Path, found: FoundFile, zone: ZoneInfo) -> IndexedFile | None:
    """The file in its parts; None when it cannot be read or is not indexed."""
    source = source_of(found.path)
    if source is None:
        return None
    at = _time_of(found, zone)
    if source == "artifact":
        return IndexedFile(found.path, source, found.mtime_ns, found.size, at, (_artifact(found),))
    try:
        with (workspace / found.path).open("rb") as file:
            if source == "log" and found.size > LOG_BYTES:
                file.seek(-LOG_BYTES, os.SEEK_END)
            data = file.read(FILE_BYTES_MAX)
    except OSError:
        return None
    text = "" if b"\0" in data[:4096] else data.decode("utf-8", "replace")
    if source == "log":
        sections = [Section(0, 0, found.path.rpartition("/")[2], text)]
    elif found.path.endswith(".log"):
        sections = list(steps(text))
    else:
        sections = list(markdown_sections(text))
    return IndexedFile(found.path, source, found.mtime_ns, found.size, at, tuple(sections))


def markdown_sections(text: str) -> Iterator[Section]:
    """The parts of a Markdown text, one for each heading; a long one in several. Titles name the headings above too."""
    open_headings: list[tuple[int, str]] = []
    lines: list[str] = []
    first, fence = 1, ""
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        yield from _parts(open_headings, lines, first)
        level = len(heading[1])
        open_headings = [item for item in open_headings if item[0] < level] + [(level, heading[2].strip())]
        lines, first = [], number + 1
    yield from _parts(open_headings, lines, first)


def _parts(headings: list[tuple[int, str]], lines: list[str], first: int) -> Iterator[Section]:
    title = " > ".join(name for _, name in headings if name)
    if any(line.strip() for line in lines):
        yield from _chunks(title, lines, first, SECTION_CHARS)
    elif headings:
        yield Section(first - 1, first - 1, title, "")


def _chunks(title: str, lines: list[str], first: int, chars_max: int) -> Iterator[Section]:
    chunk: list[str] = []
    start, chars = first, 0
    for number, line in enumerate(lines, first):
        if chunk and chars + len(line) > chars_max:
            yield from _chunk(title, chunk, start)
            chunk, start, chars = [], number, 0
        chunk.append(line)
        chars += len(line) + 1
    yield from _chunk(title, chunk, start)


def _chunk(title: str, lines: list[str], first: int) -> Iterator[Section]:
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if filled:
        kept = lines[filled[0] : filled[-1] + 1]
        yield Section(first + filled[0], first + filled[-1], title, "\n".join(kept))


def steps(text: str) -> Iterator[Section]:
    """The parts of a task's detail log: one for each step, a long one in several."""
    title, first = "", 1
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = _STEP.match(line)
        if head is None:
            lines.append(line)
            continue
        yield from _chunks(title, lines, first, DETAIL_CHARS)
        title, lines, first = f"step {head[1]}: {head[2]}", [], number + 1
    yield from _chunks(title, lines, first, DETAIL_CHARS)


def _artifact(found: FoundFile) -> Section:
    folder, _, name = found.path.rpartition("/")
    kind = mimetypes.guess_type(name)[0] or "file"
    return Section(0, 0, name, f"{name} ({kind}, {found.size:,} bytes, in {folder})")


def _time_of(found: FoundFile, zone: ZoneInfo) -> int:
    """The day or week a file's name speaks of, from its first moment; else when it was last written. Ms, UTC."""
    name = found.path.rpartition("/")[2]
    try:
        if day := _DAY.match(name):
            named = date(int(day[1]), int(day[2]), int(day[3]))
        elif week := _WEEK.match(name):
            named = date.fromisocalendar(int(week[1]), int(week[2]), 1)
        else:
            return found.mtime_ns // 1_000_000
        return int(datetime(named.year, named.month, named.day, tzinfo=zone).timestamp() * 1000)
    except (ValueError, OverflowError):
        return found.mtime_ns // 1_000_000

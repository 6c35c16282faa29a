"""Which files of the workspace are indexed, as what, and in which parts."""

from __future__ import annotations

import errno
import mimetypes
import os
import re
import stat
from collections.abc import Collection, Iterator
from datetime import date, datetime
from zoneinfo import ZoneInfo

from agent.cortex.index import IndexedFile, Section
from agent.cortex.origins import ARTIFACTS
from agent.lines import lines_of

SECTION_CHARS = 1_500
"""A longer section is cut at a line's end, so that a hit shows where in it the words are."""
DETAIL_CHARS = 8_000
LOG_BYTES = 16 * 1024
FILE_BYTES_MAX = 8 * 1024 * 1024
"""Of a larger text file only the beginning is indexed."""
TOO_LARGE = f"only its first {FILE_BYTES_MAX // (1024 * 1024)} MB are indexed"
NO_TEXT = "it is not a text file"

NOT_INDEXED = frozenset({"readlog"})
"""Folders of the workspace that can be opened, but hold what is indexed in another way."""
_PRIVATE_NAMES = frozenset({"config.toml", "config.json", "node_modules"})
_MARKDOWN = (".md", ".markdown")
_TEXT = (*_MARKDOWN, ".txt", ".text")
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


def is_private(path: str, skip: Collection[str] = ()) -> bool:
    """True for what is neither indexed nor opened: dot files and folders, settings, and the folders of `skip`.

    `path` and `skip` are relative to the workspace, with `/`.
    """
    if any(is_private_name(name) for name in path.split("/")):
        return True
    return is_skipped(path, skip)


def is_private_name(name: str) -> bool:
    """True for the name of a file or folder that is private wherever it lies."""
    return name.startswith(".") or name in _PRIVATE_NAMES


def is_skipped(path: str, skip: Collection[str]) -> bool:
    """True for what lies in a folder of `skip`."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in skip)


def source_of(path: str) -> str | None:
    """The source a workspace file belongs to; None: it is not indexed."""
    top = path.partition("/")[0]
    if top in NOT_INDEXED:
        return None
    if top in ARTIFACTS and "/" in path:
        return "artifact"
    if top == "logs":
        return "log"
    is_text = path.endswith((".md", ".log"))
    for folder, source in _FOLDERS:
        if path.startswith(folder):
            return source if is_text else None
    return "doc" if path.lower().endswith(_MARKDOWN) else None


def text_source_of(path: str) -> str | None:
    """The same for a file of a folder that is only read: Markdown and text."""
    return "doc" if path.lower().endswith(_TEXT) else None


_MTIME_NS_MAX = 9 * 10**18
"""The year 2255."""


def read_file(place: str, path: str, source: str, zone: ZoneInfo) -> IndexedFile:
    """The file at `place`, known as `path`, in its parts. Raises OSError when it cannot be read or is no file.

    `fault` of the answer says what of it is left out. A link is not followed, and a pipe or a device never opened.
    """
    if source == "artifact":
        found = os.lstat(place)
        _must_be_file(found)
        return IndexedFile(path, source, *_as_found(path, found, zone), (_artifact(path, found.st_size),))
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _must_be_file(found)
        if source == "log" and found.st_size > LOG_BYTES:
            file.seek(-LOG_BYTES, os.SEEK_END)
        data = file.read(FILE_BYTES_MAX)
    fault = TOO_LARGE if source != "log" and found.st_size > FILE_BYTES_MAX else ""
    if b"\0" in data[:4096]:
        data, fault = b"", NO_TEXT
    sections = tuple(_sections(path, source, data.decode("utf-8", "replace")))
    return IndexedFile(path, source, *_as_found(path, found, zone), sections, fault)


def _must_be_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no file")


def _as_found(path: str, found: os.stat_result, zone: ZoneInfo) -> tuple[int, int, int]:
    changed_ns = mtime_ns(found)
    return changed_ns, found.st_size, _time_of(path, changed_ns, zone)


def mtime_ns(found: os.stat_result) -> int:
    """When a file was changed, no farther from 1970 than a column holds it: a clock may have said anything."""
    return max(-_MTIME_NS_MAX, min(found.st_mtime_ns, _MTIME_NS_MAX))


def _sections(path: str, source: str, text: str) -> Iterator[Section]:
    if source == "log":
        yield Section(0, 0, path.rpartition("/")[2], text)
    elif path.endswith(".log"):
        yield from steps(text)
    elif path.lower().endswith(_TEXT) and not path.lower().endswith(_MARKDOWN):
        yield from _chunks("", lines_of(text), 1, SECTION_CHARS)
    else:
        yield from markdown_sections(text)


def markdown_sections(text: str) -> Iterator[Section]:
    """The parts of a Markdown text, one for each heading; a long one in several. Titles name the headings above too."""
    open_headings: list[tuple[int, str]] = []
    lines: list[str] = []
    first, fence = 1, ""
    number = 0
    for number, line in enumerate(lines_of(text), 1):
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
    for number, line in enumerate(lines_of(text), 1):
        head = _STEP.match(line)
        if head is None:
            lines.append(line)
            continue
        yield from _chunks(title, lines, first, DETAIL_CHARS)
        title, lines, first = f"step {head[1]}: {head[2]}", [], number + 1
    yield from _chunks(title, lines, first, DETAIL_CHARS)


def _artifact(path: str, size: int) -> Section:
    folder, _, name = path.rpartition("/")
    kind = mimetypes.guess_type(name)[0] or "file"
    return Section(0, 0, name, f"{name} ({kind}, {size:,} bytes, in {folder})")


def _time_of(path: str, mtime_ns: int, zone: ZoneInfo) -> int:
    """The day or week a file's name speaks of, from its first moment; else when it was last written. Ms, UTC."""
    name = path.rpartition("/")[2]
    try:
        if day := _DAY.match(name):
            named = date(int(day[1]), int(day[2]), int(day[3]))
        elif week := _WEEK.match(name):
            named = date.fromisocalendar(int(week[1]), int(week[2]), 1)
        else:
            return mtime_ns // 1_000_000
        return int(datetime(named.year, named.month, named.day, tzinfo=zone).timestamp() * 1000)
    except (ValueError, OverflowError):
        return mtime_ns // 1_000_000

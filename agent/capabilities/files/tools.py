"""Files of the workspace: read, write, list. Nothing outside it, and nothing lost by overwriting."""

from __future__ import annotations

import asyncio
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.files import replace_file, utf8
from agent.limits import (
    FILES_READ_REMEMBERED_MAX,
    LIST_DEPTH_MAX,
    LIST_ENTRIES_MAX,
    READ_FILE_BYTES_MAX,
    READ_FILE_CHARS,
)
from agent.lines import one_line
from agent.places import inside, shown
from agent.redaction import MARK
from agent.removed import FOLDER, is_log, without_removed
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction

NEVER_WRITTEN = FOLDER
"""What was said in the chats: the program adds to it, nobody rewrites it."""
_SNIFFED_BYTES = 8_192
_Stamp = tuple[int, int, int]


class Files:
    """The tools' code. `zone` is the owner's; each tool raises ToolFailure with one sentence."""

    def __init__(self, workspace: Path, zone: ZoneInfo) -> None:
        self._workspace = workspace
        self._zone = zone
        self._read: OrderedDict[tuple[str, Path], _Stamp] = OrderedDict()

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {"read_file": self.read_file, "write_file": self.write_file, "list_files": self.list_files}

    async def read_file(self, ctx: CallContext, args: JsonObject) -> str:
        place = self._place(args)
        name = shown(self._workspace, place)
        text, stamp = await asyncio.to_thread(_text_of, place, name)
        self._note(ctx, place, stamp)
        if is_log(name):
            text = await asyncio.to_thread(without_removed, text)
        return _window(text, args.get("from"), args.get("to"))

    async def write_file(self, ctx: CallContext, args: JsonObject) -> str:
        place = self._place(args)
        name = shown(self._workspace, place)
        if name == "." or name.split("/")[0] == NEVER_WRITTEN:
            raise ToolFailure(f"{name} is not written to by tools.")
        seen = None if args.get("overwrite") is True else self._read.get((ctx.conversation_id, place), ())
        old = args.get("old")
        stamp = await asyncio.to_thread(_write, place, name, str(args.get("text", "")), old, seen)
        self._note(ctx, place, stamp)
        return f"Written: {name} ({stamp[1]:,} bytes)"

    async def list_files(self, ctx: CallContext, args: JsonObject) -> str:
        place = inside(self._workspace, str(args.get("path", ".")))
        depth = max(1, min(int(args.get("depth") or 1), LIST_DEPTH_MAX))
        lines = await asyncio.to_thread(self._listing, place, depth)
        return "\n".join(lines) or "The folder is empty."

    def _place(self, args: JsonObject) -> Path:
        return inside(self._workspace, str(args.get("path", "")))

    def _note(self, ctx: CallContext, place: Path, stamp: _Stamp) -> None:
        """From now on the model knows the file as it is."""
        key = (ctx.conversation_id, place)
        self._read[key] = stamp
        self._read.move_to_end(key)
        if len(self._read) > FILES_READ_REMEMBERED_MAX:
            self._read.popitem(last=False)

    def _listing(self, place: Path, depth: int) -> list[str]:
        root = self._workspace.resolve()
        name = shown(root, place)
        lines: list[str] = []
        try:
            if not place.is_dir():
                raise ToolFailure(f"{name} is a file." if place.exists() else f"There is no folder {name}.")
            for entry in _entries(place, root, depth):
                if len(lines) == LIST_ENTRIES_MAX:
                    lines.append(f"... more than {LIST_ENTRIES_MAX}: list a folder of it")
                    break
                lines.append(self._line(entry, root))
        except OSError as error:
            raise ToolFailure(f"{name} cannot be listed: {error.strerror}.") from error
        return lines

    def _line(self, entry: Path, root: Path) -> str:
        name = one_line(entry.relative_to(root).as_posix(), 400)
        try:
            found = entry.stat()
        except OSError:
            return f"{name} (cannot be read)"
        if stat.S_ISDIR(found.st_mode):
            return f"{name}/"
        at = datetime.fromtimestamp(found.st_mtime, self._zone)
        return f"{name} {found.st_size:,} bytes {at:%Y-%m-%d %H:%M}"


def _entries(folder: Path, root: Path, depth: int) -> Iterator[Path]:
    """What is in the folder, by name; hidden files and links that leave the workspace are not there."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        try:
            leaves = entry.is_symlink() and not entry.resolve().is_relative_to(root)
        except (OSError, RuntimeError):
            continue
        if leaves:
            continue
        yield entry
        if depth > 1 and entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry, root, depth - 1)


def _text_of(place: Path, name: str) -> tuple[str, _Stamp]:
    """The text of a file and its stamp. Raises ToolFailure."""
    try:
        # Not to hang on a pipe, and not to follow a link that was put there a moment ago.
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ToolFailure(f"There is no file {name}.") from None
    except OSError as error:
        raise ToolFailure(f"{name} cannot be read: {error.strerror}.") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailure(f"{name} is a folder: list_files shows it." if place.is_dir() else f"{name} is no file.")
        if found.st_size > READ_FILE_BYTES_MAX:
            raise ToolFailure(f"{name} has {found.st_size:,} bytes; at most {READ_FILE_BYTES_MAX:,} are read.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(READ_FILE_BYTES_MAX)
    except OSError as error:
        raise ToolFailure(f"{name} cannot be read: {error.strerror}.") from error
    finally:
        os.close(descriptor)
    if b"\0" in data[:_SNIFFED_BYTES]:
        raise ToolFailure(f"{name} is not a text file ({found.st_size:,} bytes).")
    return data.decode("utf-8", "replace"), _stamp(found)


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _window(text: str, first: object, last: object) -> str:
    """Lines `first` to `last` (inclusive, from 1), as many as one answer may hold; the end says how to go on."""
    lines = text.splitlines(keepends=True)
    begin = int(first) if isinstance(first, (int, float)) else 1
    end = min(int(last), len(lines)) if isinstance(last, (int, float)) else len(lines)
    if begin > max(1, len(lines)) or end < begin <= len(lines):
        raise ToolFailure(f"There is no such range: the file has {len(lines):,} lines.")
    kept: list[str] = []
    room = READ_FILE_CHARS
    for line in lines[begin - 1 : end]:
        if len(line) > room and kept:
            break
        kept.append(line if len(line) <= room else f"{line[:room]}… ({len(line):,} characters in this line)\n")
        room -= len(kept[-1])
        if room <= 0:
            break
    shown_to = begin - 1 + len(kept)
    rest = f"\n[lines {begin}-{shown_to} of {len(lines):,}; go on with from: {shown_to + 1}]" if shown_to < end else ""
    return "".join(kept) + rest if kept else "The file is empty."


def _write(place: Path, name: str, text: str, old: object, seen: _Stamp | tuple[()] | None) -> _Stamp:
    """Writes and gives the new stamp. `seen`: how the model knows the file; None: it may be overwritten anyway."""
    try:
        found = place.stat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise ToolFailure(f"{name} cannot be written: {error.strerror}.") from error
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise ToolFailure(f"{name} is no file.")
    if isinstance(old, str):
        text = _replaced(place, name, old, text)
    elif found is not None and seen is not None and seen != _stamp(found):
        why = "changed since you read it" if seen else "exists and you have not read it"
        raise ToolFailure(f"{name} {why}. Read it first, or say overwrite: true. Nothing was written.")
    if found is not None and _masks_more(place, text):
        raise ToolFailure(
            f"The text has the mask of a secret ({MARK} ...]) where {name} may have the secret itself. Read it with "
            "read_file, which masks nothing. Nothing was written."
        )
    try:
        replace_file(place, text)
        return _stamp(place.stat())
    except OSError as error:
        raise ToolFailure(f"{name} cannot be written: {error.strerror}.") from error


def _masks_more(place: Path, text: str) -> bool:
    """Whether a text that came through the memory would put masks in the place of secrets."""
    if MARK not in text:
        return False
    try:
        return text.count(MARK) > place.read_bytes().decode("utf-8", "replace").count(MARK)
    except OSError:
        return False


def _replaced(place: Path, name: str, old: str, new: str) -> str:
    text, _ = _text_of(place, name)
    count = text.count(old) if old else 0
    if count != 1:
        where = "is not in" if count == 0 else f"stands {count} times in"
        raise ToolFailure(f"The passage {where} {name}; it must stand there exactly once. Nothing was written.")
    if "\ufffd" in text and utf8(text) != place.read_bytes():
        raise ToolFailure(f"{name} holds bytes that are no text; they would be lost. Nothing was written.")
    return text.replace(old, new)

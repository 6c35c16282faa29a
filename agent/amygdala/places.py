"""What a path is: inside the workspace, a place of passwords, a raw device, a folder that must not be deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path

from agent.amygdala.table import Table, table
from agent.amygdala.words import Word

MATCHES_MAX = 500
"""A file name pattern in a folder with more entries than this is not looked into."""
RESOLVED_MAX = 300
"""So many paths of one call are resolved; a call with more must be confirmed."""

PATH_CHARS_MAX = 4_096
"""A longer text is no path that could be opened."""
PARTS_MAX = 64
"""A file name pattern with more parts than this is not compared with the places of passwords; it is never safe."""

PROTECTED = ("agents.md", "agents.core.md", "identity", "heartbeat.md", "procedures", "skills")
"""Workspace paths that decide how the agent acts: writing them is always confirmed."""


class Places:
    """Judges paths. `workspace` is in the home folder of this program; `user_home` is the user's."""

    def __init__(self, workspace: Path, user_home: Path) -> None:
        self.workspace = os.path.realpath(workspace)
        self.home = os.path.dirname(self.workspace)
        self.user_home = os.path.abspath(user_home)
        known = table()
        self._table: Table = known
        self._credentials = _one(self._filled(pattern) for pattern in known.credentials)
        self._public = _one(self._filled(pattern) for pattern in known.public)
        self._globbed = tuple(self._filled(pattern).split("/") for pattern in known.credentials)
        self._vital = frozenset(self._filled(path) for path in known.vital) | {
            str(above) for kept in (self.user_home, self.home) for above in Path(kept).parents
        }

    def absolute(self, text: str, folder: str) -> str:
        """The path as it is written, made absolute; a file name pattern stays one."""
        return os.path.normpath("/" + os.path.join(folder, text.replace("\0", "")).lstrip("/"))

    def real(self, text: str, folder: str) -> str:
        """The path with all links followed."""
        return os.path.realpath(os.path.join(folder, text.replace("\0", "")))

    def inside(self, real: str) -> bool:
        """Whether a resolved path is the workspace or in it."""
        return real == self.workspace or real.startswith(self.workspace + os.sep)

    def stream(self, text: str) -> bool:
        """Whether it is the null device or one of the streams every program has."""
        return text in self._table.streams or re.fullmatch(r"/dev/fd/[0-9]+", text) is not None

    def device(self, path: str) -> bool:
        """Whether an absolute path names a raw device."""
        return self._table.devices.match(path) is not None

    def credential(self, path: str) -> bool:
        """Whether an absolute path is a place of passwords or keys, or in one."""
        return self._credentials.match(path) is not None and self._public.match(path) is None

    def credential_by_pattern(self, pattern: str) -> bool:
        """Whether an absolute file name pattern could stand for such a place."""
        parts = pattern.split("/")
        if len(parts) > PARTS_MAX:
            return False
        return any(_meets(parts, wanted) for wanted in self._globbed)

    def vital(self, path: str) -> bool:
        """Whether deleting this absolute path takes the system, a home folder or all that this program keeps."""
        head, _, last = path.rpartition("/")
        if last in {"*", ".*", "{*,.*}", "?*", "**"}:
            path = head or "/"
        return path in self._vital or (path.count("/") == 2 and path.startswith(("/home/", "/Users/")))

    def protected(self, real: str) -> str | None:
        """The name of what a resolved workspace path belongs to when writing there must be confirmed."""
        if not self.inside(real):
            return None
        parts = os.path.relpath(real, self.workspace).split(os.sep)
        if parts[0].casefold() in PROTECTED:
            return parts[0]
        return ".git" if any(part.casefold() == ".git" for part in parts) else None

    def matches(self, word: Word, folder: str) -> list[str] | None:
        """The names a file name pattern stands for; None when that is not looked into: patterns in more than the
        last part, brackets, too many entries."""
        head, slash, last = word.pattern.rpartition("/")
        if re.search(r"[*?\[]", head) or "[" in re.sub(r"\[[*?\[]\]", "", last):
            return None
        names: list[str] = []
        try:
            with os.scandir(os.path.join(folder, head + slash)) as entries:
                for at, entry in enumerate(entries):
                    if at >= MATCHES_MAX:
                        return None
                    if fnmatchcase(entry.name, last):
                        names.append(head + slash + entry.name)
        except (OSError, ValueError):
            return [word.text]
        return sorted(names) or [word.text]

    def _filled(self, pattern: str) -> str:
        if pattern[0] == "~":
            return self.user_home + pattern[1:]
        return self.home + pattern[1:] if pattern[0] == "@" else pattern


def readings(text: str) -> Iterator[str]:
    """The paths that an argument may hold: all of it, what follows `=`, `@`, `:` or a one-letter option."""
    yield text
    if len(text) > 2 and text[0] == "-" and text[1] != "-":
        yield text[2:]
    for mark in ("=", "@", ":"):
        if mark in text:
            yield text.partition(mark)[2]
    if "=@" in text:
        yield text.partition("=@")[2]


def _one(patterns: Iterator[str]) -> re.Pattern[str]:
    """One expression for absolute paths at or under any of the patterns; in these `*` stays within one name."""
    anywhere: list[str] = []
    fixed = ["(?!)"]
    for pattern in patterns:
        body = re.escape(pattern.removeprefix("**/")).replace(r"\*", "[^/]+")
        (anywhere if pattern.startswith("**/") else fixed).append(body)
    return re.compile(f"(?:{'|'.join(fixed)}|(?:.*/)?(?:{'|'.join(anywhere)}))(?:/.*)?\\Z", re.DOTALL | re.IGNORECASE)


def _meets(parts: list[str], wanted: list[str]) -> bool:
    """Whether a pattern, in parts, can name a place or something in it. Only parts with a literal letter count: `*`
    alone would name everything."""
    if wanted[0] == "**":
        tail = wanted[1:]
        return any(_meets_here(parts[at : at + len(tail)], tail) for at in range(len(parts) - len(tail) + 1))
    return _meets_here(parts[: len(wanted)], wanted)


def _meets_here(parts: list[str], wanted: list[str]) -> bool:
    return len(parts) == len(wanted) and all(
        re.search(r"[^*?./]", part) is not None and _compiled(part).match(name) is not None if part != name else True
        for part, name in zip(parts, wanted, strict=True)
    )


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))

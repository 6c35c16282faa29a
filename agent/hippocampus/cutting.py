"""Takes lines out of the workspace's files: at once or not at all, around a person's edits, with the old file kept."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from agent.files import replace_file
from agent.hippocampus.pages import HISTORY, alone, lock_folder, locked
from agent.lines import lines_of
from agent.types import ToolFailure

TRASH = ".trash"
"""A hidden folder of the workspace, so never indexed: what was taken out, as it was."""
_TRIES = 5
"""So often a change is made anew because a person wrote the file in between."""
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)$")
_SUMMARY = re.compile(r"(.*\S)\s+First seen [0-9-]{10}, last seen [0-9-]{10}\.\s*\Z")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")


@dataclass(frozen=True, slots=True)
class Cut:
    """Lines `first` and those after it, as they read when they were shown; none: the whole file."""

    path: str
    first: int = 0
    lines: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        if not self.lines:
            return f"file:{self.path}"
        last = self.first + len(self.lines) - 1
        return f"file:{self.path}#L{self.first}" + (f"-L{last}" if last > self.first else "")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Statement:
    """A bullet with its number (from 1) and what it says, or a heading (`level`) with what it is called."""

    line: int
    text: str
    level: int = 0


def statements(text: str) -> Iterator[Statement]:
    """The bullets and headings of a page, and the summary of an entity's; fenced code is left out."""
    fenced = False
    for number, line in enumerate(lines_of(text), 1):
        if _FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        heading, bullet = _HEADING.match(line), _BULLET.match(line)
        if heading:
            yield Statement(number, heading[2].strip(), len(heading[1]))
        elif bullet and bullet[2].strip():
            yield Statement(number, bullet[2].strip())
        elif summary := _SUMMARY.match(line):
            yield Statement(number, summary[1])


def block_at(path: str, text: str, number: int) -> Cut:
    """The line of this number; of a bullet also what is set in under it, of a heading its section.

    Raises ToolFailure when there is no such line.
    """
    lines = lines_of(text)
    if not 1 <= number <= len(lines):
        raise ToolFailure(f"{path} has lines 1 to {len(lines)}, not {number}.")
    heading, bullet = _HEADING.match(lines[number - 1]), _BULLET.match(lines[number - 1])
    end = number
    if heading:
        end = _section_end(lines, number, len(heading[1]))
    elif bullet:
        while end < len(lines) and lines[end].strip() and _indent(lines[end]) > len(bullet[1]):
            end += 1
    return Cut(path, number, tuple(lines[number - 1 : end]))


def section_named(path: str, text: str, name: str, same: Sequence[str]) -> Cut:
    """The section under a heading; `same`: what the headings are called, in the form in which names are compared."""
    lines = lines_of(text)
    for number, line in enumerate(lines, 1):
        heading = _HEADING.match(line)
        if heading and heading[2].strip() in same:
            return Cut(path, number, tuple(lines[number - 1 : _section_end(lines, number, len(heading[1]))]))
    raise ToolFailure(f"{path} has no section {name[:80]!r}.")


def _section_end(lines: Sequence[str], number: int, level: int) -> int:
    later = (
        at
        for at in range(number, len(lines))
        if (heading := _HEADING.match(lines[at])) is not None and len(heading[1]) <= level
    )
    return next(later, len(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def cut_out(workspace: Path, cuts: Sequence[Cut], stamp: str) -> list[str]:
    """Takes these lines and files out; where the files are as they were before, relative to the workspace.

    Lines that moved are found again by what they say. Raises ToolFailure, with nothing of that file changed, when they
    do not read as they did when they were shown; OSError when the disk refuses.
    """
    kept: list[str] = []
    with locked(workspace):  # no job writes a page meanwhile
        for path in dict.fromkeys(cut.path for cut in cuts):
            mine = [cut for cut in cuts if cut.path == path]
            place = workspace / path
            old = workspace / TRASH / stamp / path
            if any(not cut.lines for cut in mine):
                old.parent.mkdir(parents=True, exist_ok=True)
                os.replace(place, old)
            else:
                with nullcontext() if place.parent == lock_folder(workspace) else alone(place.parent):
                    _cut_lines(place, mine, old)
            kept.append(old.relative_to(workspace).as_posix())
    return kept


def cut_versions(workspace: Path, cuts: Sequence[Cut], says: Callable[[str], bool]) -> None:
    """Takes what was cut out of the earlier versions that are kept of pages too, so that no copy brings it back: the
    same lines of the same page, of every page the lines that `says` it. Raises OSError."""
    root = workspace / HISTORY
    for cut in cuts:
        if not cut.lines:
            shutil.rmtree(root / cut.path, ignore_errors=True)
    for place in sorted(root.rglob("*.md")):
        if not place.is_file():
            continue
        page = place.parent.relative_to(root).as_posix()
        gone = {line for cut in cuts if cut.path == page for line in cut.lines if line.strip()}
        lines = place.read_bytes().decode("utf-8", "surrogateescape").split("\n")
        left = [line for line in lines if line.removesuffix("\r") not in gone and not says(line)]
        if left != lines:
            replace_file(place, "\n".join(left).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _cut_lines(place: Path, cuts: Sequence[Cut], old: Path) -> None:
    for _ in range(_TRIES):
        before = place.read_bytes()
        lines = before.decode("utf-8", "surrogateescape").split("\n")
        gone = {at for cut in cuts for at in _located(lines, cut)}
        left = [line for at, line in enumerate(lines) if at not in gone]
        old.parent.mkdir(parents=True, exist_ok=True)
        old.write_bytes(before)
        if place.read_bytes() == before:
            replace_file(place, _decoded(place, "\n".join(left)))
            return
    raise ToolFailure(f"{place.name} is being edited just now; try again in a moment.", transient=True)


def _decoded(place: Path, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolFailure(f"{place.name} holds bytes that are not UTF-8; repair it first.") from None
    return text


def _located(lines: Sequence[str], cut: Cut) -> range:
    """Where the lines of a cut stand now: in their place, else in the only other place that reads the same."""
    wanted = list(cut.lines)
    bare = [line.removesuffix("\r") for line in lines]
    places = [
        at
        for at in range(len(bare) - len(wanted) + 1)
        if bare[at] == wanted[0] and bare[at : at + len(wanted)] == wanted
    ]
    at = cut.first - 1
    if at not in places:
        if len(places) != 1:
            raise ToolFailure(f"{cut.ref} does not read as it did any more; look at it again.")
        at = places[0]
    return range(at, at + len(wanted))

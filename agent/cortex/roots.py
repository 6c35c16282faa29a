"""Where indexed files lie and how references name them: the workspace, and folders that are only read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.cortex.sources import is_private, source_of, text_source_of
from agent.lines import one_line
from agent.types import ToolFailure

PATH_SHOWN_CHARS = 200
FOLDERS = "folders"
"""Files of the extra folders are named `folders/<name>/...`."""
_NO_NAME = re.compile(r"[#\n\r\0/]")


@dataclass(frozen=True, slots=True)
class Skipped:
    """What is left out of the index, and why. `path` is written as a reference writes it; bytes that are no UTF-8
    stand as `\\xNN`."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Root:
    """A folder whose files are indexed. `prefix` begins the names of its files: empty, or `folders/<name>/`."""

    prefix: str
    place: Path

    def real(self) -> str:
        """Its real place now; it need not be there."""
        return os.path.realpath(self.place)

    def source_of(self, path: str) -> str | None:
        """The source of a file of this folder, by its whole name; None: it is not indexed."""
        return text_source_of(path) if self.prefix else source_of(path)


@dataclass(frozen=True, slots=True)
class Roots:
    """The workspace and the extra folders. `home`: the program's own folder, which no extra folder shows.

    `skip`: folders of the workspace, relative to it, that are neither indexed nor opened.
    """

    workspace: Root
    folders: Mapping[str, Root] = field(default_factory=dict[str, Root])
    skip: frozenset[str] = frozenset()
    home: Path | None = None
    unused: tuple[Skipped, ...] = ()
    """Folders that were named but are no folders of their own."""

    @classmethod
    def of(
        cls, workspace: Path, folders: Iterable[Path] = (), skip: Iterable[str] = (), home: Path | None = None
    ) -> Roots:
        """Each folder gets the name of its last part, a later one of the same name `-2`, `-3`: who adds a folder at
        the end changes no name. One inside the workspace, or named twice, is none of its own."""
        named: dict[str, Root] = {}
        unused: list[Skipped] = []
        seen: set[str] = set()
        real_workspace = os.path.realpath(workspace)
        for place in folders:
            real = os.path.realpath(place)
            if real in seen:
                continue
            seen.add(real)
            if lies_in(real, real_workspace):
                unused.append(Skipped(str(place), "it lies in the workspace, which is indexed already"))
                continue
            name = _free_name(_NO_NAME.sub("_", place.name) or "root", named)
            named[name] = Root(f"{FOLDERS}/{name}/", place)
        return cls(Root("", workspace), named, frozenset(skip), home, tuple(unused))

    def all(self) -> Iterator[Root]:
        yield self.workspace
        yield from self.folders.values()

    def root_of(self, path: str) -> Root:
        """The folder a name belongs to."""
        top, _, rest = path.partition("/")
        if top == FOLDERS and (root := self.folders.get(rest.partition("/")[0])):
            return root
        return self.workspace

    def place(self, path: str) -> str:
        """The place of a file by its name."""
        root = self.root_of(path)
        return os.path.join(root.place, path.removeprefix(root.prefix))

    def source_of(self, path: str) -> str | None:
        """The source of a file by its name; None: it is not indexed."""
        return self.root_of(path).source_of(path)

    def name_of(self, place: str) -> str | None:
        """The name of a place, links of its folder resolved and those of its last part not; None: it is outside."""
        folder, last = os.path.split(place)
        real = os.path.join(os.path.realpath(folder), last)
        for root in (*self.folders.values(), self.workspace):
            top = root.real()
            if lies_in(real, top) and real != top:
                return f"{root.prefix}{real[len(top) :].lstrip('/')}"
        return None

    def is_private(self, path: str) -> bool:
        """True for a name that is neither indexed nor opened."""
        root = self.root_of(path)
        return is_private(path.removeprefix(root.prefix), () if root.prefix else self.skip)

    def open(self, path: str) -> tuple[Path, str]:
        """The real place and the name of the file that a reference names. Of an extra folder only what is indexed can
        be opened. Raises ToolFailure for what lies outside, is private or is no file."""
        root = self.root_of(path)
        where = f"the folder {one_line(root.place.name)}" if root.prefix else "the workspace"
        shown = one_line(path, PATH_SHOWN_CHARS)
        try:
            top = root.place.resolve()
            real = (top / path.removeprefix(root.prefix)).resolve()
            name = f"{root.prefix}{real.relative_to(top).as_posix()}"
        except (ValueError, OSError, RuntimeError):
            raise ToolFailure(f"{shown!r} names nothing inside {where}.") from None
        if self.is_private(name) or (root.prefix and root.source_of(name) is None):
            raise ToolFailure(f"{shown} is private: it is neither searched nor opened.")
        if not os.path.isfile(real):
            raise ToolFailure(f"There is no file {shown} in {where}.")
        return real, name

    def is_file(self, path: str) -> bool:
        """Whether a reference may name this."""
        try:
            self.open(path)
        except ToolFailure:
            return False
        return True

    def own_places(self) -> frozenset[str]:
        """Real places that an extra folder does not show when it holds them: they are other folders' or the home's."""
        places = {root.real() for root in self.all()}
        return frozenset(places | ({os.path.realpath(self.home)} if self.home else set()))


def lies_in(place: str, folder: str) -> bool:
    """True for the folder itself too; both are real places."""
    return place == folder or place.startswith(f"{folder.rstrip('/')}/")


def _free_name(name: str, taken: Mapping[str, Root]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free

"""Looks through the indexed folders: what changed, what is gone, what is left out and why."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent.cortex.roots import Root, Roots, lies_in
from agent.cortex.sources import NOT_INDEXED, is_private_name, is_skipped, mtime_ns

Stamp = int
"""When a file was last written (ns since 1970) plus its size in bytes: one number is compared sooner than two, and two
states of a file that differ would have to differ by as many bytes as nanoseconds to have the same."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. Names are those of references, `folders` and `absent` real places.

    - `folders`: every folder in which a file may be indexed.
    - `absent`: indexed folders that are not there.
    """

    changed: list[str] = field(default_factory=list[str])
    gone: list[str] = field(default_factory=list[str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    folders: list[str] = field(default_factory=list[str])
    absent: list[str] = field(default_factory=list[str])


def look(roots: Roots, known: dict[str, Stamp]) -> Look:
    """Compares the indexed folders with what is `known`, by time and size, and empties `known` on the way.

    No file is opened and no link followed: what a link inside names is found in its own place.
    """
    found = Look(skipped={item.path: item.reason for item in roots.unused})
    own_places = roots.own_places()
    for root in roots.all():
        top = root.real()
        if os.path.isdir(top):
            _Walk(roots, root, top, own_places - {top}, known, found).run()
        else:
            found.absent.append(top)
    found.gone.extend(known)
    return found


@dataclass(frozen=True, slots=True)
class _Walk:
    """One root. `run` is the start of every program: for a file that is as it was it does as little as can be."""

    roots: Roots
    root: Root
    top: str
    own_places: frozenset[str]
    known: dict[str, Stamp]
    found: Look

    def run(self) -> None:
        folders = [(self.top, self.root.prefix)]
        while folders:
            place, prefix = folders.pop()
            try:
                # By its number the files of a folder are asked for without a way through all the folders above.
                folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                self.found.skipped[prefix or "."] = _unreadable(error)
                continue
            try:
                self.found.folders.append(place)
                with os.scandir(folder) as entries:
                    folders += [
                        (f"{place}/{name}", f"{prefix}{name}/") for name in self._entries(entries, place, prefix)
                    ]
            finally:
                os.close(folder)

    def _entries(self, entries: Iterator[os.DirEntry[str]], place: str, prefix: str) -> list[str]:
        """Compares the files of one folder; the names of the folders in it that are to be looked through."""
        folders: list[str] = []
        pop, is_other = self.known.pop, self._is_other
        for entry in entries:
            name = prefix + entry.name
            stamp = pop(name, None)
            if stamp is not None:
                try:
                    stat = entry.stat(follow_symlinks=False)
                except OSError:
                    self.found.gone.append(name)
                    continue
                if stat.st_mtime_ns + stat.st_size == stamp or mtime_ns(stat) + stat.st_size == stamp:
                    continue
            if is_other(entry, place, name):
                if stamp is not None:
                    self.found.gone.append(name)
                if entry.is_dir(follow_symlinks=False) and self._is_entered(entry, place, name):
                    folders.append(entry.name)
            else:
                self.found.changed.append(name)
        return folders

    def _is_other(self, entry: os.DirEntry[str], place: str, name: str) -> bool:
        """False for a file that is to be indexed; notes why one that looks like it is not."""
        if entry.is_dir(follow_symlinks=False) or is_private_name(entry.name) or self._is_skipped(name):
            return True
        reason = None
        if entry.is_symlink():
            reason = self._fault_of_link(f"{place}/{entry.name}", name)
        elif self.root.source_of(name) is not None:
            reason = fault_of_name(entry.name)
            if reason is None and entry.is_file(follow_symlinks=False):
                return False
            reason = reason or "it is a pipe, a socket or a device"
        if reason is not None:
            self.found.skipped[shown(name)] = reason
        return True

    def _is_entered(self, entry: os.DirEntry[str], place: str, name: str) -> bool:
        if is_private_name(entry.name) or self._is_skipped(name) or name in NOT_INDEXED:
            return False
        if self.root.prefix and f"{place}/{entry.name}" in self.own_places:
            return False
        reason = fault_of_name(entry.name)
        if not self.root.prefix and self.roots.root_of(f"{name}/").prefix:
            reason = "a folder of memory.folders has that name"
        if reason is not None:
            self.found.skipped[shown(name)] = reason
        return reason is None

    def _is_skipped(self, name: str) -> bool:
        return not self.root.prefix and is_skipped(name, self.roots.skip)

    def _fault_of_link(self, link: str, name: str) -> str | None:
        """Why what a link names is not indexed; None: it is found in its own place, or the link looks like no text."""
        looks_indexed = self.root.source_of(name) is not None
        try:
            target = os.path.realpath(link, strict=True)
            is_folder = os.path.isdir(target)
        except OSError as error:
            return _broken(error) if looks_indexed else None
        if not looks_indexed and not is_folder:
            return None
        if not lies_in(target, self.top):
            return f"it is a link that leaves {'its folder' if self.root.prefix else 'the workspace'}"
        inside = self.root.prefix + target[len(self.top) :].lstrip("/")
        if self.roots.is_private(inside):
            return "it is a link to what is private"
        if not is_folder and self.root.source_of(inside) is None:
            return f"it is a link to {shown(inside)}, which is not indexed under that name"
        return None


def fault_of_name(name: str) -> str | None:
    """Why no reference can name a file; None: one can."""
    if "\n" in name:
        return "its name has a line break"
    if name.isascii():
        return None
    try:
        name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return None


def shown(name: str) -> str:
    """A name as it can be printed: bytes that are no UTF-8 and signs that move a line stand as escapes."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _broken(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link that leads in a circle"
    if isinstance(error, FileNotFoundError):
        return "it is a link that leads nowhere"
    return _unreadable(error)


def _unreadable(error: OSError) -> str:
    return f"it cannot be read: {error.strerror}"

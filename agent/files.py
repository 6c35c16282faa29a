"""How the agent writes files: whole files at once or not at all, and appends that heal a torn last line."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import mkstemp

from agent.characters import whole_characters


def replace_file(path: Path, text: str, *, durable: bool = True) -> None:
    """Puts `text` in the place of the whole file: temporary file beside it, fsync, rename.

    A reader sees the old file or the new one, and a failure leaves the old one untouched and no temporary file. The
    file keeps its mode, a new one is the owner's alone; where `path` is a link, the file it points to is replaced.
    `durable=False` leaves the fsync out: for files that can be made again. Raises OSError.
    """
    mode = 0o600
    try:
        known = os.lstat(path)
        if stat.S_ISLNK(known.st_mode):
            path = path.resolve()
            known = os.stat(path)
        mode = stat.S_IMODE(known.st_mode)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    try:
        try:
            _write_all(descriptor, utf8(text))
            os.fchmod(descriptor, mode)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError:
        _remove(temporary)
        raise
    if durable:
        _sync_folder(path.parent)


def append_lines(path: Path, text: str, *, head: str = "") -> None:
    """Adds whole lines at the end; `head` comes first in a file that is new or empty.

    A last line without its line break (a write that once broke off) is ended before, so it spoils nothing that
    comes after it. `text` gets its own line break when it has none. Raises OSError.
    """
    data = utf8(text if text.endswith("\n") else f"{text}\n")
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            data = utf8(head) + data
        elif os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def utf8(text: str) -> bytes:
    """UTF-8 of any string; a lone surrogate, which has none, becomes U+FFFD."""
    return whole_characters(text).encode()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _sync_folder(folder: Path) -> None:
    """Makes the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""What the library handed over and the gateway has not saved yet, on disk.

The library tells WhatsApp that a message has arrived before anybody here has seen it, so a message that were only in
memory would be gone with the program. Each event is a file from the moment it comes until it is saved.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOG = logging.getLogger(__name__)

_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Entry:
    """One event: its number among the library's kinds of event, and where it is."""

    kind: int
    path: Path

    def data(self) -> bytes:
        """The event as the library wrote it. Raises OSError."""
        return self.path.read_bytes()


class Journal:
    """A folder with a file for each event; names sort by arrival. May be used by several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._next: int | None = None

    def put(self, kind: int, data: bytes) -> Entry:
        """Writes an event to disk and returns when it is there. Raises OSError."""
        number = self._number()
        path = self._folder / f"{number:012d}.{kind}"
        temporary = path.with_suffix(f".{kind}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
            self._sync_folder()
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return Entry(kind, path)

    def _sync_folder(self) -> None:
        """A new name is on disk only when its folder is."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def waiting(self) -> Iterator[Entry]:
        """What was not taken out, in the order of arrival. Raises OSError."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            number, _, kind = path.name.partition(".")
            if number.isdigit() and kind.isdigit():
                yield Entry(int(kind), path)
            elif kind.endswith(".tmp"):
                path.unlink(missing_ok=True)

    def done(self, entry: Entry) -> None:
        """Takes an event out: it is saved."""
        try:
            entry.path.unlink(missing_ok=True)
        except OSError as error:
            # It comes again at the next start, and is known then.
            LOG.warning("%s cannot be removed (%s)", entry.path, error.strerror)

    def _number(self) -> int:
        with self._lock:
            if self._next is None:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                numbers = [int(path.name.partition(".")[0]) for path in self._folder.glob("[0-9]*")]
                self._next = max(numbers, default=0) + 1
            number = self._next
            self._next += 1
            return number

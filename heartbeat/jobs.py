"""The jobs as they stand on disk: heartbeat.md, read again when it changes, and the text it starts with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from heartbeat.grammar import parse_heartbeat
from heartbeat.limits import FILE_BYTES_MAX
from heartbeat.types import Fault, Kind, Parsed


def default_text() -> str:
    """The heartbeat.md of a new workspace: examples in a comment, so nothing runs."""
    return (files("heartbeat") / "default.md").read_text(encoding="utf-8")


class HeartbeatFile:
    """`heartbeat.md` as a JobSource. A missing file has no jobs; one that cannot be read keeps the last ones."""

    kind: Kind = "heartbeat"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: tuple[int, int, int] | None = None
        self._parsed = Parsed()

    def changed(self) -> bool:
        """True when the file is another one than was loaded (by inode, size and time of change)."""
        return self._stamp() != self._loaded

    def load(self) -> Parsed:
        """Reads the file. What cannot be read becomes a fault; it raises nothing."""
        self._loaded = self._stamp()
        try:
            with self._path.open("rb") as file:
                raw = file.read(FILE_BYTES_MAX + 1)
            if len(raw) > FILE_BYTES_MAX:
                return self._kept(f"the file is larger than {FILE_BYTES_MAX:,} bytes")
            self._parsed = parse_heartbeat(raw.decode("utf-8-sig"))
        except FileNotFoundError:
            self._parsed = Parsed()
        except OSError as error:
            return self._kept(f"the file cannot be read ({error.strerror})")
        except UnicodeDecodeError:
            return self._kept("the file is not UTF-8 text")
        return self._parsed

    def _kept(self, reason: str) -> Parsed:
        fault = Fault(self._path.name, "", 1, f"{reason}; the jobs read before stay in force")
        return Parsed(self._parsed.jobs, (fault,))

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

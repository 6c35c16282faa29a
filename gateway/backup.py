"""A home in one file, and a home made of such a file again.

The file is a tar archive, compressed with gzip: a manifest, `config.toml`, `hudhud.db` and `workspace/`. What can be
made again (the index) and what belongs to one machine (locks, logins) is not in it.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from channels.registry import CHANNELS
from gateway import __version__
from gateway.home import CONFIG
from gateway.store import StoreError
from gateway.store.snapshot import check_database, copy_database

MANIFEST = "hudhud-backup.json"
FORMAT = 1
DATABASE = "hudhud.db"
WORKSPACE = "workspace"
CREDENTIALS = tuple(sorted(CHANNELS))
"""Folders of the home where channels keep their logins."""
_COMPRESSION = 3
"""Text shrinks nearly as far as with 9, in a third of the time."""
_MANIFEST_BYTES_MAX = 100_000

Told = Callable[[int, int], None]
"""Is told how many bytes are done, of how many."""


class BackupError(Exception):
    """The backup could not be written or read; `str()` is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What is in a backup. `skipped` names what was left out though it lies in the workspace, with the reason."""

    files: int
    size_bytes: int
    skipped: tuple[tuple[str, str], ...]


def back_up(
    home: Path, file: Path, *, with_credentials: bool = False, told: Told = lambda _done, _all: None
) -> BackedUp:
    """Writes a backup of a home, running or not, to the new file `file`, which only its owner may read.

    The database comes first: what comes in afterwards may stand in a read log and not in the database, never the other
    way round. Raises BackupError, StoreError and OSError; then there is no such file.
    """
    if file.exists():
        raise BackupError(f"{file} is there already. Name another file.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}. Make it first.")
    if file.resolve().is_relative_to((home / WORKSPACE).resolve()):
        raise BackupError(f"{file} lies in the workspace that is backed up. Name a file outside.")
    part = file.with_name(f".{file.name}.part")
    skipped: list[tuple[str, str]] = []
    folders = (WORKSPACE, *(CREDENTIALS if with_credentials else ()))
    try:
        with TemporaryDirectory(prefix=".hudhud-", dir=file.parent) as folder, _new(part) as archive:
            database = Path(folder) / DATABASE
            _add_bytes(archive, MANIFEST, json.dumps(_manifest(with_credentials), indent=1).encode())
            if (home / DATABASE).exists():
                copy_database(home / DATABASE, database)
            found = list(_files(home, folders, skipped))
            total = sum(size for _, size in found) + (database.stat().st_size if database.exists() else 0)
            done = files = 0
            for path, name in [(database, DATABASE), (home / CONFIG, CONFIG), *((home / one, one) for one, _ in found)]:
                size = _add(archive, path, name, skipped)
                if size is not None:
                    files += not path.is_dir()
                    done += size
                    told(done, max(total, done))
        _sync(part)
        os.replace(part, file)
        _sync(file.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return BackedUp(files, file.stat().st_size, tuple(skipped))


def restore(file: Path, home: Path, *, told: Told = lambda _done, _all: None) -> int:
    """Makes the home `home`, which must be absent or empty, of a backup; the number of files.

    All or nothing: the folder appears when everything is in it and the database was looked through. Raises
    BackupError, StoreError and OSError.
    """
    if home.is_symlink() or (home.exists() and (not home.is_dir() or any(home.iterdir()))):
        raise BackupError(f"{home} is not empty. A backup is restored only into a new or empty folder.")
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{home.name}-", dir=home.parent) as folder:
        made = Path(folder) / "home"
        made.mkdir(mode=0o700)
        try:
            count = _unpack(file, made, told)
        except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError) as error:
            raise BackupError(f"{file} is no whole backup of Hudhud ({error}). Nothing was restored.") from error
        if (made / DATABASE).exists():
            try:
                check_database(made / DATABASE)
            except StoreError as error:
                reason = str(error).removeprefix(f"{made / DATABASE}: ")
                raise BackupError(f"{file}: {reason} Nothing was restored.") from error
        os.replace(made, home)
    return count


def _manifest(with_credentials: bool) -> dict[str, object]:
    return {
        "format": FORMAT,
        "version": __version__,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "credentials": with_credentials,
    }


def _new(part: Path) -> tarfile.TarFile:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.close(descriptor)
    return tarfile.open(part, "w:gz", compresslevel=_COMPRESSION, format=tarfile.PAX_FORMAT)


def _files(home: Path, folders: tuple[str, ...], skipped: list[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Files, folders and links in these folders of the home: name in the archive, and size in bytes."""
    for top in folders:
        for folder, below, names in os.walk(home / top):
            below.sort()
            place = Path(folder).relative_to(home)
            yield str(place), 0
            links = [name for name in below if (Path(folder) / name).is_symlink()]
            for name in sorted(names) + links:
                path = Path(folder) / name
                try:
                    size = path.lstat().st_size
                except OSError:
                    continue  # gone since it was listed
                if path.is_symlink() and not path.resolve().is_relative_to(home.resolve() / top):
                    skipped.append((str(place / name), "a link that leads out of the workspace"))
                else:
                    yield str(place / name), size


def _add(archive: tarfile.TarFile, path: Path, name: str, skipped: list[tuple[str, str]]) -> int | None:
    """Adds one entry as it is now; its size in bytes, None when there is nothing to add."""
    try:
        kind = path.lstat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
            skipped.append((name, "no file but a device, a pipe or a socket"))
            return None
        info = archive.gettarinfo(path, name)
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if not stat.S_ISREG(kind):
            archive.addfile(info)
            return 0
        with path.open("rb") as file:
            info.size = os.fstat(file.fileno()).st_size
            info.type, info.linkname = tarfile.REGTYPE, ""
            archive.addfile(info, _Exactly(file, info.size))
    except FileNotFoundError:
        return None  # gone since it was listed
    except PermissionError as error:
        skipped.append((name, error.strerror or "not readable"))
        return None
    return info.size


class _Exactly(io.RawIOBase):
    """So many bytes of a file that may grow or shrink meanwhile; what is missing at its end is blank."""

    def __init__(self, file: io.BufferedReader, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= wanted
        return data.ljust(wanted, b"\n")


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    archive.addfile(info, io.BytesIO(data))


def _unpack(file: Path, made: Path, told: Told) -> int:
    """Takes the archive apart into an empty folder; the number of files. Raises what `tarfile` raises."""
    total = file.stat().st_size
    count = 0
    with file.open("rb") as raw, gzip.open(raw) as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as archive:
        first = archive.next()
        if first is None or first.name != MANIFEST or first.size > _MANIFEST_BYTES_MAX:
            raise ValueError("it does not begin with the manifest")
        content = archive.extractfile(first)
        assert content is not None
        manifest: Any = json.loads(content.read())
        if not isinstance(manifest, dict) or cast("dict[str, Any]", manifest).get("format") != FORMAT:
            raise ValueError("its form is that of another version")
        for entry in archive:
            if entry.name == MANIFEST:
                continue
            top = Path(entry.name).parts[:1]
            if not top or top[0] not in {CONFIG, DATABASE, WORKSPACE, *CREDENTIALS}:
                raise ValueError(f"it holds {entry.name!r}, which is no part of a home")
            archive.extract(entry, made, filter="data")
            count += entry.isfile()
            told(raw.tell(), total)
        while unzipped.read(1_000_000):  # to the end, where the checksum stands
            pass
    if not (made / CONFIG).is_file():
        raise ValueError(f"there is no {CONFIG} in it")
    (made / CONFIG).chmod(0o600)
    return count


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

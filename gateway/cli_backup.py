"""`hudhud backup` and `hudhud restore`: a home in one file, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gateway.backup import BackupError, back_up
from gateway.backup import restore as restore_from
from gateway.cli_errors import failed, no_such, used_wrongly
from gateway.cli_options import Place
from gateway.cli_output import complain, print_json, say
from gateway.cli_progress import Progress
from gateway.home import CONFIG

T = TypeVar("T")


def backup(place: Place, file: str, *, with_credentials: bool, as_json: bool) -> None:
    """Raises CliError when there is no home, or the file cannot be written."""
    if not (place.home / CONFIG).exists():
        raise no_such(f"There is no home at {place.home}.", "Name it with --home.")
    path = Path(file).expanduser().absolute()
    with Progress("Backing up") as told:
        made = _tried(lambda: back_up(place.home, path, with_credentials=with_credentials, told=told))
    if as_json:
        skipped = [{"path": name, "reason": reason} for name, reason in made.skipped]
        print_json({"file": str(path), "files": made.files, "size_bytes": made.size_bytes, "skipped": skipped})
        return
    for name, reason in made.skipped:
        complain(f"Left out: {name} ({reason}).")
    say(f"{path}: {made.files:,} files, {made.size_bytes / 1_000_000:,.1f} MB. It holds your messages: keep it safe.")


def restore(file: str, home: Path, *, as_json: bool) -> None:
    """Raises CliError when the file is no backup, or the folder is not empty."""
    path = Path(file).expanduser().absolute()
    if not path.is_file():
        raise no_such(f"There is no file {path}.", "Name the file that `hudhud backup` wrote.")
    with Progress("Restoring") as told:
        files = _tried(lambda: restore_from(path, home, told=told))
    if as_json:
        print_json({"home": str(home), "files": files})
    else:
        say(f"{home}: {files:,} files restored. Start it with `hudhud run --home {home}`; the index is built anew.")


def _tried(work: Callable[[], T]) -> T:
    try:
        return work()
    except BackupError as error:
        message, stop, remedy = str(error).partition(". ")
        raise used_wrongly(message + stop.rstrip(), remedy) from error
    except OSError as error:
        raise failed(
            "io", f"{error.filename or 'The file'}: {error.strerror or error}.", "Check space and rights."
        ) from error

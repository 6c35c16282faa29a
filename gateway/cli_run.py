"""`hudhud run`: the gateway in the foreground, from the first line to a clean stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from agent.redaction import Redactor
from gateway.app import App
from gateway.cli_options import Place
from gateway.cli_output import print_json, remark, say
from gateway.config import Settings, known_secrets
from gateway.home import HomeError, prepare
from gateway.limits import LOG_FILE_BYTES_MAX, LOG_FILES_MAX

CHATTY = (
    "aiohttp.access",
    "anthropic",
    "apscheduler",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "openai",
    "telegram",
)
"""Libraries that write a line for every request, some with the address and a token in it."""


def run(place: Place, *, verbose: bool, as_json: bool) -> None:
    """Returns after a clean stop. Raises what App.start raises."""
    prepare(place.home, place.settings.agent.name)
    _log_to(place.home / "workspace" / "logs", place.settings, logging.INFO if verbose else logging.WARNING)
    gc.disable()  # A start makes much and drops little: collecting meanwhile costs a tenth of it.
    try:
        asyncio.run(_serve(App(place.home, place.settings), as_json=as_json))
    finally:
        gc.enable()


async def _serve(app: App, *, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop_now() -> None:
        # The next Ctrl-C finds the system's own handler and ends the program at once.
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in signals:
        loop.add_signal_handler(number, stop_now)
    starting = asyncio.create_task(app.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return
    try:
        await starting
        # What a start makes stays to the end: the collector need not walk it again and again.
        gc.freeze()
        gc.enable()
        _announce(app, as_json=as_json)
        await stopping
        remark("Stopping. Ctrl-C again ends it at once; what was accepted is kept either way.")
    finally:
        stopping.cancel()
        if not starting.cancelled() and starting.exception() is None:
            await app.stop()


def _announce(app: App, *, as_json: bool) -> None:
    """The one line. A one-time code is for the eyes of whoever sits here, so it goes to a terminal only."""
    address = None if app.server is None else app.server.address
    if address is not None and sys.stdout.isatty():
        address = app.new_link()
    if as_json:
        print_json({"address": address, "pid": os.getpid()})
    else:
        say(f"Hudhud runs at {address}" if address is not None else "Hudhud runs; its page is switched off.")


def _log_to(folder: Path, settings: Settings, level: int) -> None:
    """Warnings (or more) to stderr, everything worth keeping to a file that is opened with its first line."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HomeError(f"{folder}: cannot be made ({error.strerror}). Check its owner and rights.") from error
    screen = logging.StreamHandler(sys.stderr)
    screen.setLevel(level)
    screen.setFormatter(_Sentences(settings))
    file = RotatingFileHandler(
        folder / "gateway.log",
        maxBytes=LOG_FILE_BYTES_MAX,
        backupCount=LOG_FILES_MAX - 1,
        encoding="utf-8",
        errors="backslashreplace",
        delay=True,
    )
    file.setLevel(logging.INFO)
    file.setFormatter(_Lines(settings))
    logging.basicConfig(level=logging.INFO, handlers=[screen, file], force=True)
    # A full disk must not print the trace of the logger itself.
    logging.raiseExceptions = False
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


class _Lines(logging.Formatter):
    """For the file: times in UTC, secrets masked."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redact = Redactor(known_secrets(settings))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(self._line(record))

    def _line(self, record: logging.LogRecord) -> str:
        return super().format(record)


class _Sentences(_Lines):
    """For the screen: what happened; where in the code is in the file."""

    def _line(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        cause = "" if error is None else f" ({type(error).__name__}: {error})"
        return f"{record.levelname.lower()}: {record.getMessage()}{cause}"

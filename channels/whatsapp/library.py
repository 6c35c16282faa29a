"""The library neonize, imported only when the channel is on, and kept quiet.

Importing it adds a handler to the root logger, starts a thread that prints the logs of its native side, and sets an
event loop for the whole process at the first connection; the native side prints to stdout. All that is taken back here.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from channels.whatsapp.limits import REACH_SECONDS_MAX

LOG = logging.getLogger(__name__)
_NATIVE = logging.getLogger("whatsmeow")
_HOST = "web.whatsapp.com"
_SESSION_ID = "hudhud"
_MODULES = {
    "client": "neonize.aioze.client",
    "events": "neonize.events",
    "loop_events": "neonize.aioze.events",
    "errors": "neonize.exc",
    "proto": "neonize.proto.Neonize_pb2",
    "e2e": "neonize.proto.waE2E.WAWebProtobufsE2E_pb2",
    "enums": "neonize.utils.enum",
    "logs": "neonize.utils.log",
    "protobuf": "google.protobuf.message",
}

REMEDY = "Install it with: pip install 'hudhud[whatsapp]'"
_MAGIC_REMEDY = "Install it: apt install libmagic1 (Debian, Ubuntu), apk add libmagic (Alpine), brew install libmagic"


@dataclass(frozen=True, slots=True)
class Library:
    """What the channel needs of neonize: its modules, by what is in them."""

    client: Any
    events: Any
    loop_events: Any
    errors: Any
    proto: Any
    e2e: Any
    enums: Any
    logs: Any
    protobuf: Any

    def new_client(self, database: Path) -> Any:
        """A client of that session file; nothing is opened before it connects."""
        device = self.client.DeviceProps
        shown = device(os="Hudhud", platformType=device.CHROME)
        made = self.client.NewAClient(quote(str(database)), props=shown, uuid=_SESSION_ID)
        # Its calls go to threads of asyncio's pool, which a program waits for at its end: a dial that hangs would
        # hold up the end. Daemon threads do not.
        made._NewAClient__client = _Calls(self.client.gocode)
        # It would stop the native side once more at the program's end, and wait for it.
        finalizer = getattr(made, "_stop_finalizer", None)
        if finalizer is not None:
            finalizer.detach()
        return made


def load() -> Library:
    """Imports neonize, some 0.5 s. Raises ImportError: one sentence that says what is missing and what to do."""
    with _root_logger_untouched():
        try:
            # neonize needs it, and its own error says less.
            import_module("magic")
        except ModuleNotFoundError as error:
            raise ImportError(f"WhatsApp needs the library neonize, which is not installed. {REMEDY}.") from error
        except ImportError as error:
            raise ImportError(f"WhatsApp needs the system library libmagic. {_MAGIC_REMEDY}.") from error
        try:
            found: dict[str, Any] = {name: import_module(path) for name, path in _MODULES.items()}
        except ModuleNotFoundError as error:
            raise ImportError(f"WhatsApp needs the library neonize, which is not installed. {REMEDY}.") from error
        except (ImportError, OSError, RuntimeError) as error:
            raise ImportError(
                f"The native part of neonize cannot be loaded here ({_first_line(error)}). It exists for Linux, macOS "
                f"and Windows on x86-64 and arm64; there, {REMEDY[0].lower()}{REMEDY[1:]}."
            ) from error
    # It warns of programs that only its own pictures and voice notes need.
    logging.getLogger("neonize").setLevel(logging.ERROR)
    _end_log_thread(found["logs"])
    library = Library(**found)
    library.client.log_whatsmeow = _log_native
    return library


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


@contextmanager
def _root_logger_untouched() -> Generator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _end_log_thread(logs: Any) -> None:
    """The thread started by the import reads a queue and ends with None in it; the logs come to `_log_native`."""
    queue, thread = getattr(logs, "_log_queue", None), getattr(logs, "_thread", None)
    if queue is not None and thread is not None and thread.is_alive():
        queue.put(None)


def _log_native(binary: int, size: int) -> None:
    """A log line of the native side, on one of its threads. Its warnings are many and mostly mended by itself, so they
    are for the file; what is below names people, and is left out."""
    if not binary or size <= 0:
        return
    entry: Any = import_module("neonize.proto.Neonize_pb2").LogEntry()
    try:
        entry.ParseFromString(ctypes.string_at(binary, size))
    except import_module("google.protobuf.message").DecodeError:
        return
    level = {"WARN": logging.INFO, "WARNING": logging.INFO, "ERROR": logging.WARNING}.get(entry.Level.upper())
    if level is not None:
        _NATIVE.log(level, "%s: %s", entry.Name, entry.Message)


class _Calls:
    """The native functions by name, each as a coroutine function that runs it in a daemon thread."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._native, name)

        async def call(*args: Any) -> Any:
            try:
                return await in_thread(name, function, *args)
            except asyncio.CancelledError:
                if name != "Neonize":
                    raise
                # The library would now stop its native side on this thread and wait for a dial under way.
                return b""

        return call


async def in_thread(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Runs a blocking function in a daemon thread of its own; cancelled, it goes on there and nobody waits for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(value: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        value, fault = None, None
        try:
            value = function(*args)
        except (OSError, ValueError, TypeError, RuntimeError, ctypes.ArgumentError) as error:
            fault = error
        try:
            loop.call_soon_threadsafe(tell, value, fault)
        except RuntimeError:
            LOG.debug("%s ended after the program's loop", name)

    threading.Thread(target=work, name=f"whatsapp {name}", daemon=True).start()
    return await done


async def look_for_network() -> None:
    """Whether there is a way to WhatsApp at all. Raises OSError, TimeoutError.

    Each dial of the native side leaves a file open for good, so none begins while there is no network: a night without
    one would use up all that a program may open.
    """
    proxy = "" if proxy_bypass(_HOST) else getproxies().get("https", "")
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    address = (parts.hostname or _HOST, parts.port or 80) if proxy else (_HOST, 443)
    connection = await asyncio.wait_for(
        in_thread("reach", socket.create_connection, address, REACH_SECONDS_MAX), REACH_SECONDS_MAX
    )
    connection.close()


class Printed:
    """While it is open, what native code prints to file descriptor 1 goes to the log instead; Python's own stdout goes
    where it went. Nothing is captured where stdout is not that descriptor (tests) or the platform cannot watch a pipe.
    """

    def __init__(self) -> None:
        self._closers: list[Callable[[], object]] = []

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            if self._closers or sys.stdout.fileno() != 1:
                return
            sys.stdout.flush()
            kept = os.dup(1)
            read_end, write_end = os.pipe()
        except (OSError, ValueError, AttributeError):
            return
        os.set_blocking(read_end, False)
        python_stdout: Any = sys.stdout
        os.dup2(write_end, 1)
        os.close(write_end)
        own_stdout: Any = open(  # noqa: SIM115 -- closed by `close`
            kept, "w", encoding=python_stdout.encoding, errors=python_stdout.errors, buffering=1
        )
        sys.stdout = own_stdout

        def close() -> None:
            own_stdout.flush()
            os.dup2(own_stdout.fileno(), 1)
            if sys.stdout is own_stdout:
                sys.stdout = python_stdout
            own_stdout.close()

        try:
            loop.add_reader(read_end, _log_printed, read_end)
            self._closers = [close, lambda: loop.remove_reader(read_end), lambda: os.close(read_end)]
        except NotImplementedError:
            close()
            os.close(read_end)

    def close(self) -> None:
        for closer in self._closers:
            closer()
        self._closers = []


def _log_printed(read_end: int) -> None:
    try:
        text = os.read(read_end, 65536).decode("utf-8", "replace")
    except BlockingIOError:
        return
    for line in filter(None, map(str.strip, text.splitlines())):
        # It may be a pairing code: for those who look for faults only.
        LOG.debug("neonize printed: %s", line)

"""Runs another program: in a process group of its own, with no secrets, with bounded output, and with nothing left."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.limits import PROGRAM_DRAIN_SECONDS, PROGRAM_GRACE_SECONDS
from agent.lines import bounded

_HARMLESS = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "SSL_CERT_FILE"}
)
"""Variables that a program gets. A list of what is allowed: keys and tokens have any name."""
_HARMLESS_PREFIXES = ("LC_", "XDG_")
_UTF8_BYTES_MAX = 4
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Colours, cursor moves and window titles: ECMA-48 control sequences, and xterm's operating system commands."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. `exit_code` is negative for a signal; `output` is stdout and stderr as they came."""

    exit_code: int
    output: str
    timed_out: bool = False

    @property
    def how(self) -> str:
        return f"exit code {self.exit_code}" if self.exit_code >= 0 else f"ended by signal {-self.exit_code}"


def child_environment(environ: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """The variables a program gets: the harmless ones and those named in `also`."""
    wanted = {*_HARMLESS, *also}
    kept = {name: value for name, value in environ.items() if name in wanted or name.startswith(_HARMLESS_PREFIXES)}
    return {**kept, "TERM": "dumb"}


async def run_program(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    chars_max: int,
    data: bytes = b"",
    timeout_seconds: float | None = None,
    errors: bool = True,
) -> Ended:
    """Runs `command` in `folder` until it ends, with `data` on its stdin. `errors` False: what it writes to stderr is
    thrown away.

    The output is at most `chars_max` characters, head and tail. When the time is over or the caller is cancelled, the
    whole process group is ended; what the program left running in it is ended in any case. Raises OSError or
    ValueError when it cannot be started.
    """
    output = Tail(chars_max)
    write_end = await output.open()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE if data else DEVNULL,
                stdout=write_end,
                stderr=write_end if errors else DEVNULL,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        timed_out = False
        try:
            async with asyncio.timeout(timeout_seconds):
                await _feed(process, data)
                await process.wait()
        except TimeoutError:
            timed_out = True
        finally:
            await _end_group(process)
        # Only what left the group can still hold the pipe open.
        with suppress(TimeoutError):
            async with asyncio.timeout(PROGRAM_DRAIN_SECONDS):
                await output.ended.wait()
    finally:
        output.close()
    code = process.returncode
    return Ended(-signal.SIGKILL if code is None else code, output.text(), timed_out)


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    try:
        process.stdin.write(data)
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        return  # It may end without reading.
    finally:
        process.stdin.close()


async def _end_group(process: Process) -> None:
    """Ends every process of the group: the program itself with a moment to tidy up."""
    try:
        if process.returncode is None:
            _signal(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(PROGRAM_GRACE_SECONDS):
                    await process.wait()
    finally:
        _signal(process.pid, signal.SIGKILL)
    await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


class Tail(asyncio.Protocol):
    """Keeps the head (two thirds) and the tail of what comes through a pipe. `ended` is set when nothing more comes.

    `open` gives the descriptor to write to, which is the caller's to close; `close` ends the reading.
    """

    def __init__(self, chars_max: int) -> None:
        self._chars_max = chars_max
        self._head_max = chars_max * _UTF8_BYTES_MAX
        self._tail_max = chars_max * _UTF8_BYTES_MAX
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._transport: asyncio.ReadTransport | None = None
        self.ended = asyncio.Event()

    async def open(self) -> int:
        read_end, write_end = os.pipe()
        reader = os.fdopen(read_end, "rb", 0)
        try:
            self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: self, reader)
        except BaseException:
            reader.close()
            os.close(write_end)
            raise
        return write_end

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        room = self._head_max - len(self._head)
        self._head += data[:room]
        self._tail += data[max(0, room) :]
        # Trimmed only now and then: cutting the front moves everything behind it.
        if len(self._tail) > 2 * self._tail_max:
            over = len(self._tail) - self._tail_max
            del self._tail[:over]
            self._left_out += over

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def text(self) -> str:
        """What was kept, as text: bytes that are no UTF-8 become U+FFFD, control sequences of terminals go."""
        if not self._left_out:
            return bounded(_plain(self._head + self._tail), self._chars_max)
        mark = f"\n\n[... about {self._left_out:,} bytes and more left out ...]\n\n"
        room = self._chars_max - len(mark)
        head, tail = _plain(self._head)[: room * 2 // 3], _plain(self._tail)[-(room // 3) :]
        return f"{head}{mark}{tail}"


def _plain(data: bytes | bytearray) -> str:
    return _ESCAPES.sub("", data.decode("utf-8", "replace").replace("\r\n", "\n")).replace("\0", "\ufffd")

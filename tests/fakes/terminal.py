"""Commands as a person gives them: in this process, in one of their own, at a terminal; and a gateway beside them."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.app import App
from gateway.cli import main
from gateway.config import load_settings
from gateway.home import CONFIG, prepare

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
SECONDS_MAX = 30.0
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes the terminal the one that Ctrl-C comes from, then becomes the command."""
FREE_PORT = "[channels.inapp]\nport = 0\n"


@dataclass(frozen=True, slots=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


class Shell:
    """Runs commands on one home. `gateway` runs beside them where a test has started it."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: str = "", anywhere: bool = False) -> Said:
        """Runs `hudhud` in this process. `anywhere`: without naming the home."""
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main([*arguments] if anywhere else [*arguments, "--home", str(self.home)])
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def write(self, path: str, text: str) -> None:
        """Writes a file of the home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def prepared(self, config: str = FREE_PORT) -> Shell:
        """With a home that has these settings."""
        prepare(self.home, config=config)
        return self

    @contextlib.contextmanager
    def gateway(self) -> Iterator[Gateway]:
        """A gateway on this home, in a thread of this process."""
        gateway = Gateway(self.home)
        try:
            yield gateway
        finally:
            gateway.stop()


class Gateway:
    """A running gateway, in a thread with its own event loop."""

    def __init__(self, home: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway")
        self._thread.start()
        self.app = App(home, load_settings(home / CONFIG))
        try:
            self.do(self.app.start())
        except BaseException:
            self._end()
            raise

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something on the gateway's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS_MAX)

    def stop(self) -> None:
        try:
            self.do(self.app.stop())
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def environment() -> dict[str, str]:
    """For a process of its own: this checkout, and no colours that would stand between the words."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "80", "TERM": "xterm"}


def hudhud(*arguments: str, home: Path) -> list[str]:
    """The command line of `hudhud` as a process."""
    return [sys.executable, "-m", "gateway", *arguments, "--home", str(home)]


class Terminal:
    """A process at a terminal of 80 columns: what it shows, what is typed."""

    def __init__(self, *arguments: str, home: Path) -> None:
        self._master, slave = pty.openpty()
        os.set_inheritable(slave, True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *hudhud(*arguments, home=home)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(),
            start_new_session=True,
        )
        os.close(slave)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0
        self.shown = ""

    def wait_for(self, text: str) -> None:
        """Reads until `text` was shown after what was waited for before."""
        deadline = time.monotonic() + SECONDS_MAX
        while (at := self.shown.find(text, self._seen)) < 0:
            if not self._read(deadline):
                pytest.fail(f"{text!r} was not shown, but {self.shown[self._seen :]!r}")
        self._seen = at + len(text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ended(self) -> int:
        """Reads to the end; the exit code."""
        deadline = time.monotonic() + SECONDS_MAX
        while self._read(deadline):
            pass
        return self.process.wait(SECONDS_MAX)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            piece = os.read(self._master, 65_536)
        except OSError:  # the other side was closed
            return False
        self.shown = (self.shown + self._decoder.decode(piece)).replace("\r\n", "\n")
        return bool(piece)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

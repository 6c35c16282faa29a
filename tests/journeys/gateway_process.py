"""The gateway as a process of its own, started and killed by its handle."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0


class GatewayFailed(Exception):
    """The gateway ended by itself, or did not get ready or stop in time; what it printed is in `stderr`."""


class GatewayProcess:
    """One home's gateway. Use as an async context manager: at its end no process is left, whatever happened."""

    def __init__(self, home: Path, stderr: Path) -> None:
        self._home = home
        self._stderr = stderr
        self._process: asyncio.subprocess.Process | None = None
        self._spawned = 0.0
        self.starts = 0

    async def __aenter__(self) -> GatewayProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Returns when the process exists; `ready` waits until it works."""
        self._spawned = time.monotonic()
        with self._stderr.open("ab") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gateway", "run", "--home", str(self._home), "--json"),
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
            )
        self.starts += 1

    async def ready(self) -> float:
        """Waits for the line that says so; seconds since the start. Raises GatewayFailed."""
        process = self._running()
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                line = await process.stdout.readline()
        except TimeoutError as error:
            raise GatewayFailed(f"not ready after {READY_SECONDS_MAX:g} s; see {self._stderr}") from error
        if b'"address"' not in line:
            code = await process.wait()
            raise GatewayFailed(f"ended at start with {code}, saying {line.decode()!r}; see {self._stderr}")
        return time.monotonic() - self._spawned

    def check_alive(self) -> None:
        """Raises GatewayFailed when it ended by itself."""
        process = self._running()
        if process.returncode is not None:
            raise GatewayFailed(f"ended by itself with {process.returncode}; see {self._stderr}")

    async def kill(self) -> None:
        """SIGKILL; returns when the process is gone. Nothing happens when none runs."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        # Reads what is left in the pipe too: its end belongs to the process's.
        await process.communicate()

    async def stop(self) -> int:
        """SIGTERM; the exit code. Raises GatewayFailed."""
        process = self._running()
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.communicate()
        except TimeoutError as error:
            raise GatewayFailed(f"did not stop in {STOP_SECONDS_MAX:g} s; see {self._stderr}") from error
        self._process = None
        assert process.returncode is not None
        return process.returncode

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "start it first"
        return self._process

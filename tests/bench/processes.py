"""Programs in processes of their own, and what the system says they used."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS_MAX = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its threads (proc(5), stat, fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_megabytes(pid: int) -> float:
    """Resident memory of a process (proc(5), statm, second field)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@asynccontextmanager
async def program(*arguments: str, clean_stop: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python program of this repository. At the end it is killed, since it works on folders that go away; with
    `clean_stop` it is told to stop first."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate() if clean_stop else process.kill()
        await process.communicate()


async def until_ready(process: asyncio.subprocess.Process, port: int, token: str = "") -> None:
    """Returns as soon as `/readyz` answers with 200. Raises TimeoutError, and RuntimeError when the program ended."""
    request = _request("GET", "/readyz", token, b"")
    async with asyncio.timeout(START_SECONDS_MAX):
        while True:
            try:
                line = await Line.open(port)
                status, _ = await line.exchange(request)
                line.close()
            except (OSError, asyncio.IncompleteReadError):
                status = 0
            if status == 200:
                return
            if process.returncode is not None:
                raise RuntimeError(f"the program ended with {process.returncode} before it was ready")
            await asyncio.sleep(0.005)


async def wall_seconds(*arguments: str) -> float:
    """How long a Python program takes from start to end."""
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
    )
    if await process.wait():
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return time.perf_counter() - begun


class Line:
    """A kept-alive HTTP connection that costs the asking side next to nothing, so that the figures are the server's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Sends a whole request; status and body of the answer, which must have a Content-Length."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(length)

    async def post(self, path: str, token: str, body: bytes) -> tuple[int, bytes]:
        return await self.exchange(_request("POST", path, token, body))

    def close(self) -> None:
        self._writer.close()


def _request(method: str, path: str, token: str, body: bytes) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body

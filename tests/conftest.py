"""What holds for every test: no network but this machine, nothing left running."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# `--hypothesis-profile=long` tries what the property tests check on many more inputs.
settings.register_profile("long", max_examples=20_000, deadline=None)

_foreign: list[str] = []


def _is_here(host: object) -> bool:
    """True for loopback addresses and the names that mean this machine; None and "" are the wildcard of a bind."""
    if host is None or host in {"", "localhost", b"localhost"}:
        return True
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return name == socket.gethostname()
    return address.is_loopback or address.is_unspecified


def _refuse(host: object) -> None:
    _foreign.append(str(host))


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Iterator[None]:
    """Connections and look-ups that leave this machine fail as if there were no network, and are written down."""
    patch = pytest.MonkeyPatch()
    look_up = socket.getaddrinfo

    def getaddrinfo(host: object, *args: Any, **options: Any) -> Any:
        if not _is_here(host):
            _refuse(host)
            raise socket.gaierror(socket.EAI_NONAME, "no network in tests")
        return look_up(host, *args, **options)  # pyright: ignore[reportArgumentType]

    def guarded(name: str, position: int) -> None:
        original = getattr(socket.socket, name)

        def call(self: socket.socket, *args: Any) -> Any:
            address = args[position]
            if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_here(address[0]):
                _refuse(address[0])
                raise OSError(101, "no network in tests")
            return original(self, *args)

        patch.setattr(socket.socket, name, call)

    patch.setattr(socket, "getaddrinfo", getaddrinfo)
    guarded("connect", 0)
    guarded("connect_ex", 0)
    guarded("sendto", -1)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def foreign_hosts() -> Iterator[list[str]]:
    """Fails the test that tried to leave this machine, also when the program took the refusal calmly."""
    _foreign.clear()
    yield _foreign
    if _foreign:
        hosts = ", ".join(sorted(set(_foreign)))
        pytest.fail(f"The test reached for {hosts}: use a fake on 127.0.0.1 and a free port.", pytrace=False)


_running: dict[str, str] = {}


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Remembers during which test a process or thread was first seen."""
    for name in _children() | _threads():
        _running.setdefault(name, nodeid)


@pytest.fixture(autouse=True, scope="session")
def _nothing_left_running() -> Iterator[None]:
    """Set up first and taken down last: what runs then was forgotten."""
    before = _children() | _threads()
    yield
    deadline = time.monotonic() + 2  # what was told to stop a moment ago may still be stopping
    while left := (_children() | _threads()) - before:
        if time.monotonic() > deadline:
            lines = [f"  {name}, first seen in {_running.get(name, 'the last test')}" for name in sorted(left)]
            pytest.fail("\n".join(["Tests left running (stop it where it was started):", *lines]), pytrace=False)
        time.sleep(0.05)


def _threads() -> set[str]:
    """Threads that would keep the program from ending."""
    return {f"thread {thread.name}" for thread in threading.enumerate() if not thread.daemon}


def _children() -> set[str]:
    """Child processes of this one that have not ended, with their command lines; empty where there is no /proc."""
    found: set[str] = set()
    for listing in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in _text(listing).split():
            if command := _text(Path(f"/proc/{pid}/cmdline")).replace("\0", " ").strip():
                found.add(f"process {pid} ({command[:100]})")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""

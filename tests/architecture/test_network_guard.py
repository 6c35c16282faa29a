"""The guard of tests/conftest.py refuses what leaves this machine, and nothing else."""

from __future__ import annotations

import socket

import pytest


@pytest.mark.parametrize("host", ["example.com", "192.0.2.1", "2001:db8::1"])
def test_other_machines_cannot_be_reached(host: str, foreign_hosts: list[str]) -> None:
    with pytest.raises(OSError, match="no network in tests"):
        socket.create_connection((host, 80), timeout=1)
    assert host in foreign_hosts
    foreign_hosts.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_can_be_reached(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((host, port), timeout=5) as connection:
            assert connection.getpeername() == ("127.0.0.1", port)

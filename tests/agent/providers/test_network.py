"""Whether there is a network, known without leaving this machine."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from agent.providers import network


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "a.localhost"])
def test_this_machine_is_loopback(host: str) -> None:
    assert network.is_loopback(host)


@pytest.mark.parametrize("host", ["", "example.com", "10.0.0.1", "localhost.example.com", "0.0.0.0", "::2"])
def test_other_machines_are_not(host: str) -> None:
    assert not network.is_loopback(host)


async def test_a_server_on_this_machine_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "has_route", lambda: False)
    assert await network.online("127.0.0.1")


async def test_without_a_way_out_the_machine_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "getproxies", dict)
    monkeypatch.setattr(network, "has_route", lambda: False)
    assert not await network.online("api.example")


async def test_behind_a_proxy_only_the_proxy_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "has_route", lambda: False)
    monkeypatch.setattr(network, "getproxies", lambda: {"https": "http://proxy:3128"})
    assert await network.online("api.example")


async def test_a_name_that_has_no_address_means_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(network, "getproxies", dict)
    monkeypatch.setattr(network, "has_route", lambda: True)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert not await network.online("api.example")


async def test_that_there_is_no_network_is_known_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()

    def hanging(*_: Any, **__: Any) -> list[Any]:
        hang.wait(20)
        return [()]

    monkeypatch.setattr(network, "getproxies", dict)
    monkeypatch.setattr(network, "has_route", lambda: True)
    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    begun = time.monotonic()
    assert not await network.online("api.example")
    assert time.monotonic() - begun < 1
    hang.set()


async def test_a_look_up_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()

    def hanging(*_: Any, **__: Any) -> list[Any]:
        hang.wait(20)
        return [()]

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    assert not await network.resolves("api.example", within_seconds=0.02)
    hang.set()


async def test_a_name_with_an_address_resolves() -> None:
    assert await network.resolves("localhost", within_seconds=10)


def test_looking_for_a_way_out_sends_nothing_and_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoRoute(socket.socket):
        def connect(self, address: Any) -> None:
            raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "socket", NoRoute)
    assert not network.has_route()

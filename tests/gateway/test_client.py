"""The line to a running gateway, and what becomes of it when the gateway is not one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from gateway.client import Client, GatewayGone, GatewayRefused
from tests.fakes.terminal import Shell


@contextmanager
def answering(*pieces: bytes) -> Iterator[str]:
    """A server that answers its first request with these bytes, whatever it was, and hangs up; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                for piece in pieces:
                    connection.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_a_wrong_token_is_refused_with_the_remedy(shell: Shell) -> None:
    with shell.prepared().gateway() as gateway, pytest.raises(GatewayRefused) as refused:
        Client(gateway.app.server.address, "wrong").get("/api/status")
    assert (refused.value.status, refused.value.code) == (401, "unauthorized")
    assert refused.value.remedy


def test_names_with_any_letters_reach_the_gateway_whole(shell: Shell) -> None:
    shell.prepared()
    with shell.gateway():
        said = shell("heartbeat", "run", "كل يوم (08:00) / a%2Fb?#")
    assert said.code == 3
    assert "كل يوم (08:00) / a%2Fb?#" in said.err


def test_nobody_at_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(GatewayGone, match="does not answer at its address"):
        Client(f"http://127.0.0.1:{port}", "t").get("/api/status")


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"])
def test_something_else_at_the_address(answer: bytes) -> None:
    with answering(answer) as address, pytest.raises(GatewayGone):
        Client(address, "t").get("/api/status")


def test_events_come_whole_however_they_are_cut() -> None:
    stream = ': connected\n\nid: 1.1\nevent: delta\ndata: {"text": "مر"}\n\n: still here\n\nevent: done\ndata: {}\n\n'
    text = stream.encode()
    with answering(HEAD, *(text[at : at + 3] for at in range(0, len(text), 3))) as address:
        events = Client(address, "t").events()
        try:
            assert list(islice(events, 4)) == [("", {}), ("delta", {"text": "مر"}), ("", {}), ("done", {})]
        finally:
            events.close()


def test_a_gateway_that_dies_ends_the_events() -> None:
    with answering(HEAD, b'event: delta\ndata: {"te') as address:
        events = Client(address, "t").events()
        try:
            with pytest.raises(GatewayGone):
                next(iter(events))
        finally:
            events.close()

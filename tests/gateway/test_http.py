"""The one server: probes without a token, 503 until it is ready, faults as one sentence."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from gateway.app import App
from gateway.health import Health
from gateway.http import HttpError, HttpServer, is_loopback
from tests.fakes.program import program, settings_for


async def breaks(request: web.Request) -> web.Response:
    raise ZeroDivisionError("secret detail")


async def teapot(request: web.Request) -> web.Response:
    raise web.HTTPTooManyRequests(text="slowly")


@pytest.fixture
def health() -> Health:
    return Health(lambda: datetime.now(UTC))


@pytest.fixture
async def server(health: Health) -> AsyncIterator[HttpServer]:
    routes = [web.get("/breaks", breaks), web.get("/busy", teapot)]
    running = HttpServer("127.0.0.1", 0, routes, health)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.address) as session:
        yield session


async def test_alive_from_the_start_and_ready_when_told(client: aiohttp.ClientSession, health: Health) -> None:
    async with client.get("/healthz") as response:
        assert (response.status, await response.json()) == (200, {"alive": True})
    report = health.add("telegram", enabled=True)
    for ready, status in ((False, 503), (True, 200), (False, 503)):
        health.ready = ready
        async with client.get("/readyz") as response:
            assert response.status == status
            assert (await response.json())["ready"] is ready
    health.ready = True
    report.state("rejected", "wrong token")
    async with client.get("/readyz") as response:
        assert response.status == 200, "a channel that is down does not fail the probe"
        assert (await response.json())["channels"][0]["state"] == "rejected"


async def test_a_fault_is_one_sentence_without_what_it_was(client: aiohttp.ClientSession, caplog: Any) -> None:
    async with client.get("/breaks") as response:
        body = await response.text()
        assert response.status == 500
    assert "secret" not in body
    assert '"code": "internal"' in body
    assert "secret detail" in caplog.text
    async with client.get("/busy") as response:
        assert response.status == 429
    async with client.get("/nothing/here") as response:
        assert response.status == 404


@pytest.mark.parametrize(("host", "said"), [("203.0.113.1", "cannot be listened on"), ("127.0.0.1", "is in use")])
async def test_an_address_that_cannot_be_had_is_one_sentence(health: Health, host: str, said: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(HttpError, match=said) as caught:
            await HttpServer(host, port, [], health).start()
    assert f"{host}:{port}" in str(caught.value)
    assert "[channels.inapp]" in str(caught.value)


async def test_the_program_is_ready_between_start_and_stop_only(tmp_path: Path) -> None:
    app = App(tmp_path / "h", settings_for())
    begun: list[bool] = []
    recover = app._recover

    async def looks() -> None:
        """The server listens already, and what was left of the last run is not taken up yet."""
        assert app.server is not None
        async with aiohttp.ClientSession(app.server.address) as session:
            for path, status in (("/healthz", 200), ("/readyz", 503)):
                async with session.get(path) as response:
                    assert response.status == status
            headers = {"Authorization": "Bearer the-token-of-the-page"}
            async with session.post("/api/messages", json={"text": "too early"}, headers=headers) as response:
                assert response.status == 503
                assert response.headers["Retry-After"]
        begun.append(True)
        await recover()

    app._recover = looks  # type: ignore[method-assign]
    await app.start()
    assert begun
    assert app.health.ready
    assert app.server is not None
    address = app.server.address
    await app.stop()
    assert not app.health.ready
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"{address}/healthz")


async def test_a_page_that_is_switched_off_listens_nowhere(tmp_path: Path) -> None:
    app = App(tmp_path / "h", settings_for(channels={"inapp": {"enabled": False}}))
    await app.start()
    assert app.server is None
    assert app.new_link() is None
    await app.stop()


async def test_a_stop_with_a_reader_of_the_events_does_not_hang(tmp_path: Path) -> None:
    async with program(tmp_path / "h") as gateway:
        response = await gateway.http.get("/api/events")
        assert response.status == 200
        async with asyncio.timeout(4):
            await gateway.app.stop()
        response.close()


async def test_a_request_that_cannot_be_read_leaves_none_of_itself_in_the_log(server: HttpServer, caplog: Any) -> None:
    port = int(server.address.rpartition(":")[2])
    for line in ("GET /?code=the-secret\xe9 HTTP/1.1", "GET / HTTP/1.1\r\nAuthorization: Bearer the-secret\x01"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{line}\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert b"400" in await reader.readline()
        writer.close()
    assert "127.0.0.1" in caplog.text
    assert "the-secret" not in caplog.text


async def test_metrics_speak_of_the_queue_the_channels_and_the_models(tmp_path: Path) -> None:
    async with program(tmp_path) as running:
        server = running.app.server
        assert server is not None
        async with aiohttp.ClientSession(server.address) as client, client.get("/metrics") as response:
            assert response.status == 200
            text = await response.text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["hudhud_queue_waiting_messages"].samples[0].value == 0
    assert families["hudhud_model_requests"].samples[0].value == 0
    states = {sample.labels["channel"]: sample.value for sample in families["hudhud_channel_connected"].samples}
    assert states["inapp"] == 1
    assert families["hudhud_file_bytes"].samples
    assert text.count("# TYPE") == len(families)


@pytest.mark.parametrize(
    ("address", "is_here"),
    [("127.0.0.1", True), ("::1", True), ("192.0.2.7", False), ("::ffff:192.0.2.7", False), ("", False), (None, False)],
)
def test_metrics_are_for_this_machine_alone(address: str | None, is_here: bool) -> None:
    assert is_loopback(address) is is_here

"""Linking through the gateway: the supervisor wakes, the API answers, the commands show it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from channels.channel import Accept, ChannelDown, ChannelInfo, LinkState
from channels.message import OutboundMessage, Receipt
from gateway.health import Health
from gateway.linking import Linking, NoLink
from gateway.supervise import supervise
from tests.fakes.backend import FakeBackend, PageServer
from tests.fakes.waiting import until


def now() -> datetime:
    return datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


class Linkable:
    """A channel that is down for good until it is linked."""

    def __init__(self) -> None:
        self.info = ChannelInfo("made-up")
        self.state = LinkState()
        self.runs = 0
        self.is_silent = False

    @property
    def link_state(self) -> LinkState:
        return self.state

    def link(self, phone: str | None) -> None:
        self.state = LinkState("starting", code=phone, version=self.state.version + 1)

    async def logout(self) -> bool:
        self.state = LinkState()
        return True

    async def probe(self) -> None:
        if self.is_silent:
            raise ChannelDown("unreachable", "no answer", remedy="Wait.")

    async def run(self, accept: Accept) -> None:
        del accept
        self.runs += 1
        if self.state.state == "off":
            raise ChannelDown("logged_out", "not linked", remedy="Link it.", terminal=True)
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> Receipt:
        raise NotImplementedError(message)


async def accept(message: Any) -> Any:
    raise NotImplementedError(message)


async def test_a_channel_without_a_link_waits_and_is_started_when_it_is_to_be_linked() -> None:
    channel, health = Linkable(), Health(now)
    report = health.add("made-up", enabled=True)
    linking = Linking({"made-up": channel}, {"made-up": report})
    task = asyncio.create_task(supervise(channel, accept, report, now=now))
    await until(lambda: health.channels()["channels"][0]["state"] == "logged_out")
    assert health.channels()["channels"][0]["next_retry_at"] is None
    assert not task.done()
    assert linking.begin("made-up", None)["state"] == "starting"
    await until(lambda: channel.runs == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_link_cuts_the_pause_of_a_channel_that_fell() -> None:
    class Falls(Linkable):
        async def run(self, accept: Accept) -> None:
            del accept
            self.runs += 1
            raise ChannelDown("unreachable", "no network")

    channel, health = Falls(), Health(now)
    report = health.add("made-up", enabled=True)
    pauses: list[float] = []

    async def forever(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    task = asyncio.create_task(supervise(channel, accept, report, now=now, sleep=forever))
    await until(lambda: len(pauses) == 1)
    Linking({"made-up": channel}, {"made-up": report}).begin("made-up", None)
    await until(lambda: channel.runs == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_probe_is_seen_in_the_state() -> None:
    channel, health = Linkable(), Health(now)
    report = health.add("made-up", enabled=True)
    report.state("connected")
    linking = Linking({"made-up": channel}, {"made-up": report})
    await linking.probe()
    assert health.channels()["channels"][0]["state"] == "connected"
    channel.is_silent = True
    await linking.probe()
    found = health.channels()["channels"][0]
    assert (found["state"], found["detail"], found["remedy"]) == ("unreachable", "no answer", "Wait.")


def test_what_cannot_be_linked_is_said_with_what_can() -> None:
    linking = Linking({"made-up": Linkable()}, {})
    with pytest.raises(NoLink, match="made-up"):
        linking.begin("other", None)


async def test_the_page_links_a_channel(tmp_path: Any) -> None:
    backend = FakeBackend(tmp_path)
    backend.links["made-up"] = {"channel": "made-up", "state": "off", "qr": None, "code": None, "version": 0}
    server = PageServer(backend, tmp_path, token="the-token")
    await server.start()
    headers = {"Authorization": "Bearer the-token"}
    async with aiohttp.ClientSession(server.url) as client:
        async with client.get("/api/channels/made-up/link") as answer:
            assert answer.status == 401
        async with client.get("/api/channels/other/link", headers=headers) as answer:
            assert answer.status == 404
        async with client.get("/api/channels/made-up/link.svg", headers=headers) as answer:
            assert answer.status == 404
        async with client.post("/api/channels/made-up/link", json={"phone": "x"}, headers=headers) as answer:
            assert answer.status == 400
            assert "country code" in (await answer.json())["error"]["message"]
        async with client.post("/api/channels/made-up/link", headers=headers) as answer:
            assert (await answer.json())["state"] == "starting"
        backend.links["made-up"] = {**backend.links["made-up"], "state": "shown", "qr": "2@secret"}
        async with client.get("/api/channels/made-up/link.svg", headers=headers) as answer:
            assert answer.headers["Content-Type"] == "image/svg+xml"
            assert answer.headers["Cache-Control"] == "no-store"
            picture = await answer.text()
            assert picture.startswith("<?xml")
            assert "secret" not in picture
        async with client.post("/api/channels/made-up/logout", headers=headers) as answer:
            assert await answer.json() == {"channel": "made-up", "told": True}
        async with client.get("/api/channels?probe=1", headers=headers) as answer:
            assert await answer.json() == {"channels": []}
    assert backend.probes == 1
    await server.stop()

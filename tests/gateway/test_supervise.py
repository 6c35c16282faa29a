"""A channel that falls is started again, alone, after growing pauses; one that cannot work is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from channels.channel import Accept, ChannelDown, ChannelInfo
from channels.message import OutboundMessage, Receipt
from gateway.health import ChannelReport, Health
from gateway.limits import CHANNEL_PAUSES_SECONDS
from gateway.supervise import supervise
from tests.fakes.bot_api import BotApi
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import FakeClock
from tests.fakes.program import EchoProvider, program, settings_for
from tests.fakes.waiting import until

START = datetime(2027, 1, 1, tzinfo=UTC)


class Falls:
    """A channel whose runs end as scripted: an exception, None (ends by itself), or a span of time before the fall."""

    def __init__(self, clock: FakeClock, *ends: BaseException | timedelta | None) -> None:
        self.clock = clock
        self.ends = list(ends)
        self.runs = 0

    @property
    def info(self) -> ChannelInfo:
        return ChannelInfo("falls")

    async def run(self, accept: Accept) -> None:
        self.runs += 1
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, timedelta):
            self.clock.at += end
            raise ChannelDown("unreachable", "gone again")
        if end is not None:
            raise end

    async def send(self, message: OutboundMessage) -> Receipt:
        raise NotImplementedError


async def accept(message: Any) -> Any:
    raise NotImplementedError


class Watch:
    """Health and pauses of one supervised channel; time passes only in its pauses."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.health = Health(self.clock)
        self.report = self.health.add("falls", enabled=True)
        self.pauses: list[float] = []
        self.promised: list[datetime | None] = []

    @property
    def state(self) -> dict[str, Any]:
        return self.health.channels()["channels"][0]

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        shown = self.state["next_retry_at"]
        self.promised.append(None if shown is None else datetime.fromisoformat(shown))
        assert self.promised[-1] == self.clock.at + timedelta(seconds=seconds)
        self.clock.forward(seconds=seconds)

    async def over(self, *ends: BaseException | timedelta | None) -> Falls:
        channel = Falls(self.clock, *ends)
        await asyncio.wait_for(supervise(channel, accept, self.report, now=self.clock, sleep=self.sleep), 5)
        return channel


def down(**fields: Any) -> ChannelDown:
    return ChannelDown("unreachable", "no network", remedy="Check the network.", **fields)


async def test_pauses_grow_to_their_longest_and_the_next_try_is_announced() -> None:
    watch = Watch()
    channel = await watch.over(*(down() for _ in range(8)))
    assert watch.pauses == [*CHANNEL_PAUSES_SECONDS, 60.0, 60.0]
    assert channel.runs == 9


async def test_the_platforms_own_wait_counts_when_it_is_longer() -> None:
    watch = Watch()
    await watch.over(down(retry_after_seconds=149.0), down(retry_after_seconds=0.1))
    assert watch.pauses == [149.0, 2.0]


async def test_after_a_long_good_time_pauses_begin_anew() -> None:
    watch = Watch()
    await watch.over(down(), down(), timedelta(hours=1), down())
    assert watch.pauses == [1.0, 2.0, 1.0, 2.0]


async def test_a_channel_that_cannot_work_stops_and_promises_no_retry() -> None:
    watch = Watch()
    channel = await watch.over(
        down(), ChannelDown("rejected", "wrong token", remedy="Get a token.", terminal=True), down()
    )
    assert channel.runs == 2
    state = watch.state
    assert (state["state"], state["detail"], state["remedy"]) == ("rejected", "wrong token", "Get a token.")
    assert state["next_retry_at"] is None
    assert not state["connected"]


async def test_a_fault_in_a_channel_is_a_state_and_another_try(caplog: Any) -> None:
    watch = Watch()
    seen: list[str] = []
    watch.health.on_change = lambda channel: seen.append(f"{channel.state}: {channel.detail}")
    channel = await watch.over(ZeroDivisionError("secret detail"), None)
    assert channel.runs == 2
    assert seen[0] == "degraded: stopped by a fault (ZeroDivisionError)"
    assert "secret detail" in caplog.text


async def test_a_channel_that_ended_by_itself_is_off() -> None:
    watch = Watch()
    await watch.over(None)
    assert watch.state["state"] == "off"


@pytest.mark.parametrize("end", [lambda: ZeroDivisionError(), lambda: down(terminal=True)])
async def test_the_fall_of_one_stops_no_other(end: Callable[[], BaseException]) -> None:
    watch = Watch()
    other = watch.health.add("other", enabled=True)
    up = asyncio.Event()

    class Stays(Falls):
        async def run(self, accept: Accept) -> None:
            other.state("connected")
            up.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(supervise(Stays(watch.clock), accept, other, now=watch.clock))
    await up.wait()
    await watch.over(end(), end(), None)
    assert not task.done()
    assert watch.health.channels()["channels"][1]["state"] == "connected"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Watched(FakeChannel):
    """Connects, then says nothing more unless `speaks`."""

    def __init__(self, *, speaks: bool) -> None:
        super().__init__("watched", silence_seconds_max=100.0)
        self.speaks = speaks
        self.runs = 0
        self.report: ChannelReport | None = None

    async def run(self, accept: Accept) -> None:
        self.runs += 1
        assert self.report is not None
        self.report.state("connected")
        await asyncio.Event().wait()


@pytest.mark.parametrize("speaks", [True, False])
async def test_silence_is_not_death_but_no_sign_of_life_is(speaks: bool) -> None:
    time = [datetime(2026, 11, 2, 9, tzinfo=UTC)]
    health = Health(lambda: time[0])
    channel = Watched(speaks=speaks)
    channel.report = report = health.add("watched", enabled=True)
    looks = 0

    async def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        time[0] += timedelta(seconds=seconds)
        if speaks:
            report.received()
        await asyncio.sleep(0)

    task = asyncio.create_task(supervise(channel, nobody, report, now=lambda: time[0], sleep=sleep))
    await until(lambda: looks > 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (channel.runs == 1) is speaks


async def nobody(message: Any) -> Any:
    raise AssertionError(message)


async def test_a_channel_that_ended_is_told_once_on_another(tmp_path: Path) -> None:
    async with BotApi() as api:
        settings = settings_for(api, channels={"telegram": {"token": "4242:wrong"}})
        home: dict[str, Any] = {}
        for _ in range(2):
            async with program(tmp_path / "home", api, settings=settings, provider=EchoProvider()) as gateway:
                await until(lambda gateway=gateway: _is_rejected(gateway))
                told = "SELECT 1 FROM channel_fact WHERE key = 'telegram' AND value LIKE '% told'"
                await until(lambda gateway=gateway, told=told: bool(gateway.rows(told)))
                await gateway.quiet()
                home = await gateway.get("/api/conversations/home")
    (alert,) = home["messages"]
    assert alert["role"] == "system"
    assert "Telegram rejected the token" in alert["text"]
    assert "@BotFather" in alert["text"]


async def _is_rejected(gateway: Any) -> bool:
    channels = (await gateway.get("/api/status"))["channels"]
    return [one["state"] for one in channels if one["channel"] == "telegram"] == ["rejected"]

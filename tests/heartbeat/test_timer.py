"""The real timer on the real scheduler."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from heartbeat.timer import SchedulerTimer


async def test_an_alarm_in_the_past_or_now_wakes_at_once() -> None:
    timer, woken = SchedulerTimer(), asyncio.Event()
    await timer.start(woken.set)
    try:
        for ago in (0, 3_600):
            timer.set("a", datetime.now(UTC) - timedelta(seconds=ago))
            async with asyncio.timeout(5):
                await woken.wait()
            woken.clear()
    finally:
        await timer.stop()


async def test_an_alarm_that_was_replaced_or_removed_does_not_ring() -> None:
    timer, rings = SchedulerTimer(), asyncio.Semaphore(0)
    await timer.start(rings.release)
    try:
        now = datetime.now(UTC)
        for name, seconds in (("replaced", 0.05), ("removed", 0.05), ("kept", 0.15)):
            timer.set(name, now + timedelta(seconds=seconds))
        timer.set("replaced", now + timedelta(days=1))
        timer.remove("removed")
        timer.remove("never set")
        async with asyncio.timeout(5):
            await rings.acquire()
        assert datetime.now(UTC) >= now + timedelta(seconds=0.15)
        assert rings.locked()
    finally:
        await timer.stop()


async def test_a_timer_may_be_stopped_unstarted_and_started_again() -> None:
    timer, woken = SchedulerTimer(), asyncio.Event()
    await timer.stop()
    await timer.start(woken.set)
    await timer.stop()
    await timer.start(woken.set)
    timer.set("a", datetime.now(UTC))
    async with asyncio.timeout(5):
        await woken.wait()
    await timer.stop()

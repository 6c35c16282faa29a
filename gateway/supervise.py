"""Keeps the channels running: one that falls, or is silently dead, is started again after growing pauses, alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from channels.channel import Accept, Channel, ChannelDown, HasLink
from gateway.health import ChannelReport
from gateway.limits import CHANNEL_PAUSES_SECONDS, WATCH_SECONDS

LOG = logging.getLogger(__name__)

Ended = Callable[[str, ChannelDown], Awaitable[None]]
"""Hears of a channel that stays down until a person acts."""


async def supervise(
    channel: Channel,
    accept: Accept,
    report: ChannelReport,
    *,
    now: Callable[[], datetime],
    sleep: Callable[[float], Any] = asyncio.sleep,
    ended: Ended | None = None,
) -> None:
    """Runs one channel until it is cancelled, or until it says that trying again is useless. One that can be linked
    waits then until somebody wakes it.

    The pauses start again from the shortest once the channel has been up for as long as the longest of them.
    """
    falls = 0
    name = channel.info.name
    while True:
        started = now()
        report.retry_at(None)
        try:
            await _watched(channel, accept, report, now, sleep)
        except ChannelDown as error:
            report.state(error.state, error.detail, error.remedy)
            LOG.warning("%s: %s", name, error.detail)
            if error.terminal and ended is not None:
                await ended(name, error)
            if error.terminal and not isinstance(channel, HasLink):
                return
            if error.terminal:
                await report.woken()
                falls = 0
                continue
            wait = error.retry_after_seconds
        except Exception as error:
            LOG.exception("%s: stopped by a fault", name)
            report.state("degraded", f"stopped by a fault ({type(error).__name__})", "It is started again by itself.")
            wait = None
        else:
            report.state("off", "ended")
            return
        if now() - started > timedelta(seconds=CHANNEL_PAUSES_SECONDS[-1]):
            falls = 0
        pause = CHANNEL_PAUSES_SECONDS[min(falls, len(CHANNEL_PAUSES_SECONDS) - 1)]
        pause = pause if wait is None else max(wait, pause)
        falls += 1
        report.retry_at(now() + timedelta(seconds=pause))
        await _first(sleep(pause), report.woken())


async def _watched(
    channel: Channel,
    accept: Accept,
    report: ChannelReport,
    now: Callable[[], datetime],
    sleep: Callable[[float], Any],
) -> None:
    """Runs the channel. Silence is no fault where nobody writes: only a channel that says how often it hears from its
    platform, and does not, is dead; it is ended with ChannelDown."""
    seconds_max = channel.info.silence_seconds_max
    if seconds_max is None:
        await channel.run(accept)
        return
    running = asyncio.create_task(channel.run(accept), name=f"channel {channel.info.name}")
    watch = asyncio.create_task(_until_dead(report, seconds_max, now, sleep))
    try:
        await asyncio.wait({running, watch}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
    finally:
        for task in (running, watch):
            task.cancel()
        await asyncio.gather(running, watch, return_exceptions=True)
    raise ChannelDown(
        "unreachable", f"no sign of life for {seconds_max:.0f} s", remedy="It is started again by itself."
    )


async def _until_dead(
    report: ChannelReport, seconds_max: float, now: Callable[[], datetime], sleep: Callable[[float], Any]
) -> None:
    """Returns when a connected channel has not heard from its platform for so long."""
    since = now()
    while True:
        await sleep(min(WATCH_SECONDS, seconds_max))
        if not report.is_connected:
            since = now()  # It says itself that something is wrong.
            continue
        since = max(since, report.last_receive_at or since)
        if now() - since > timedelta(seconds=seconds_max):
            return


async def _first(*waits: Awaitable[Any]) -> None:
    """Until one of them is over."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()

"""Keeps the channels running: one that falls is started again after growing pauses, alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from channels.channel import Accept, Channel, ChannelDown
from gateway.health import ChannelReport
from gateway.limits import CHANNEL_PAUSES_SECONDS

LOG = logging.getLogger(__name__)


async def supervise(
    channel: Channel,
    accept: Accept,
    report: ChannelReport,
    *,
    now: Callable[[], datetime],
    sleep: Callable[[float], Any] = asyncio.sleep,
) -> None:
    """Runs one channel until it is cancelled, or until it says that trying again is useless.

    The pauses start again from the shortest once the channel has been up for as long as the longest of them.
    """
    falls = 0
    name = channel.info.name
    while True:
        started = now()
        report.retry_at(None)
        try:
            await channel.run(accept)
        except ChannelDown as error:
            report.state(error.state, error.detail, error.remedy)
            LOG.warning("%s: %s", name, error.detail)
            if error.terminal:
                return
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
        await sleep(pause)

"""Alarms by APScheduler: one date trigger for each job's next due time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any


class SchedulerTimer:
    """A Timer on `AsyncIOScheduler`. The library is imported in a thread, when the first alarm is needed.

    The scheduler sleeps on the monotonic clock; whoever uses this looks at the wall clock in between.
    """

    def __init__(self) -> None:
        self._scheduler: Any = None
        self._wake: Callable[[], None] | None = None

    async def start(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        module = await asyncio.to_thread(import_module, "apscheduler.schedulers.asyncio")
        logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it has two lines for every alarm
        self._scheduler = module.AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()

    def set(self, name: str, at: datetime) -> None:
        self._scheduler.add_job(
            self._fire,
            "date",
            run_date=at,
            timezone=UTC,
            id=name,
            replace_existing=True,
            misfire_grace_time=None,
        )

    def remove(self, name: str) -> None:
        if self._scheduler.get_job(name) is not None:
            self._scheduler.remove_job(name)

    async def stop(self) -> None:
        if self._scheduler is None:
            return
        self._scheduler.shutdown(wait=False)
        self._scheduler = None
        await asyncio.sleep(0)  # the scheduler ends in the next round of the loop

    async def _fire(self) -> None:
        if self._wake is not None:
            self._wake()

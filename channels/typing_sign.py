"""The typing sign: shown from the moment a message is taken until its answer goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from channels.message import Address

Sleep = Callable[[float], Awaitable[None]]


TYPING_DELAY_SECONDS = 0.3
"""An answer that comes at once needs no typing sign."""
TYPING_SECONDS_MAX = 600.0


class TypingSigns:
    """One repeating sign per address, each with a hard stop after TYPING_SECONDS_MAX.

    `show` sends the sign once and raises nothing. `every_seconds`: before the platform takes the sign away by itself.
    """

    def __init__(self, show: Callable[[Address], Awaitable[None]], sleep: Sleep, every_seconds: float) -> None:
        self._show = show
        self._sleep = sleep
        self._every_seconds = every_seconds
        self._tasks: dict[Address, asyncio.Task[None]] = {}

    def start(self, address: Address) -> None:
        """Begins the sign there; one that is on already goes on."""
        if address not in self._tasks:
            task = asyncio.create_task(self._repeat(address))
            self._tasks[address] = task
            task.add_done_callback(lambda done: self._forget(address, done))

    def end(self, address: Address) -> None:
        """Ends the sign there, if it is on."""
        task = self._tasks.pop(address, None)
        if task is not None:
            task.cancel()

    async def end_all(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, address: Address, task: asyncio.Task[None]) -> None:
        if self._tasks.get(address) is task:
            del self._tasks[address]

    async def _repeat(self, address: Address) -> None:
        await self._sleep(TYPING_DELAY_SECONDS)
        for _ in range(int(TYPING_SECONDS_MAX / self._every_seconds)):
            await self._show(address)
            await self._sleep(self._every_seconds)

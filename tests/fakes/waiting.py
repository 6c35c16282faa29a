"""Waiting for what the program does by itself: looked at again and again, with a time-out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

PAUSE_SECONDS = 0.002


async def until(condition: Callable[[], bool | Awaitable[bool]], timeout_seconds: float = 10.0) -> None:
    """Returns when the condition holds; it may be a coroutine function. Raises TimeoutError."""
    async with asyncio.timeout(timeout_seconds):
        while True:
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(PAUSE_SECONDS)

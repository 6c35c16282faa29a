"""Things that happen while a journey runs, so that something else can be timed by them."""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Moments:
    """Named moments. `happened` is told by whoever sees one, `next` waits for it."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Future[None]]] = defaultdict(list)

    def happened(self, name: str) -> None:
        for future in self._waiting.pop(name, ()):
            if not future.done():
                future.set_result(None)

    async def next(self, name: str, timeout_seconds: float) -> bool:
        """Waits until it happens the next time; False when it did not in that time."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[name].append(future)
        done, _ = await asyncio.wait([future], timeout=timeout_seconds)
        return bool(done)

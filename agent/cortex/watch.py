"""Watches the indexed folders, so that a file that changes is found within a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from agent.cortex.sources import is_private_name
from agent.types import ToolFailure

LOG = logging.getLogger(__name__)

STEP_MILLISECONDS = 100
"""Changes are taken once nothing more came for so long."""
TOGETHER_MILLISECONDS = 400
"""Where they never stop they are taken so often."""
ABSENT_SECONDS = 0.5
"""A folder that is not there is looked for so often."""
CHECK_SECONDS = 600.0
"""All files are compared so often, for what no watcher is told: folders of other machines, an overflow."""
UNWATCHED_SECONDS = 30.0
"""How often where they cannot be watched."""
REST_SECONDS_MIN = 0.5
REST_BYTES_A_SECOND = 4_000_000
"""A file that has been read rests, a large one longer: one that grows all the time costs a tenth of a core at most."""
LOOK_SHARE = 0.2
"""The share of the time that comparing all files may take while folders come and go."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What to watch, as real places: folders that are there, and folders that may appear."""

    folders: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()


class WatchedFiles(Protocol):
    """The index, as a watcher sees it."""

    async def update(self) -> int: ...

    async def change(self, places: Collection[str]) -> None: ...

    async def watched(self) -> Watched: ...

    def needs_look(self, place: str) -> bool: ...


class Watcher:
    """Runs as one task, `run`, until it is cancelled; then its thread has ended too.

    `faults`: what the files raise beside ToolFailure and OSError when the index cannot be written. `compared` is set
    when all files were compared once, `settled` while all folders are watched and were compared since.
    """

    def __init__(
        self,
        files: WatchedFiles,
        *,
        faults: tuple[type[Exception], ...] = (),
        unwatched_seconds: float = UNWATCHED_SECONDS,
    ) -> None:
        self._files = files
        self._faults = (ToolFailure, OSError, *faults)
        self._unwatched_seconds = unwatched_seconds
        self._news: set[str] = set()
        self._came = asyncio.Event()
        self._thread: _WatchThread | None = None
        self._absent: tuple[str, ...] = ()
        self._waiting: dict[str, float] = {}
        self._rests_until: dict[str, float] = {}
        self._look_at = self._looked_until = 0.0
        self._is_warned = False
        self.compared = asyncio.Event()
        self.settled = asyncio.Event()

    async def run(self) -> None:
        """Brings the index up to the files, and keeps it there."""
        looking: asyncio.Task[None] | None = None
        try:
            while True:
                if time.monotonic() >= self._look_at and (looking is None or looking.done()):
                    self._look_at = time.monotonic() + CHECK_SECONDS
                    looking = asyncio.create_task(self._guarded(self._look()))
                await self._wait()
                await self._guarded(self._take())
        finally:
            if looking is not None:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
            await self._unwatch()

    async def _guarded(self, work: Awaitable[None]) -> None:
        """What fails now is made up by a look."""
        try:
            await work
        except self._faults as error:
            LOG.warning("changed files are not searchable yet: %s", error)
            self._look_at = time.monotonic() + self._unwatched_seconds
            self._came.set()

    async def _look(self) -> None:
        """Compares everything. The folders known so far are watched before, new ones after; then it looks again."""
        if self._thread is None or not self._thread.is_stale:
            await self._watch((await self._files.watched()).folders)
        begun = time.monotonic()
        await self._files.update()
        watched = await self._files.watched()
        self._absent = watched.absent
        now = time.monotonic()
        self._looked_until = now + (now - begun) * (1 / LOOK_SHARE - 1)
        if self._thread is None:
            self._look_at = now + self._unwatched_seconds
        elif self._thread.is_stale or watched.folders != self._thread.folders:
            if self._thread.is_stale:
                await self._unwatch()
            self._look_at = self._looked_until
        else:
            self.settled.set()
        self.compared.set()
        self._came.set()

    async def _wait(self) -> None:
        """Until there is something to do."""
        now = time.monotonic()
        until = min(self._look_at, *self._waiting.values()) if self._waiting else self._look_at
        if self._absent:
            until = min(until, now + ABSENT_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - now)):
                await self._came.wait()

    async def _take(self) -> None:
        """Hands on what changed, but for files that rest."""
        self._came.clear()
        places, self._news = self._news, set()
        if self._thread is not None and self._thread.fault is not None:
            await self._unwatch()
            self._look_at = time.monotonic() + self._unwatched_seconds
        odd, has_appeared = await asyncio.to_thread(self._odd, places)
        is_stale = self._thread is not None and self._thread.is_stale
        if odd or has_appeared or is_stale:
            self.settled.clear()
            self._look_at = min(self._look_at, self._looked_until)
        now = time.monotonic()
        for place in places - odd:
            self._waiting.setdefault(place, self._rests_until.get(place, now))
        due = [place for place, at in self._waiting.items() if at <= now]
        if due:
            for place in due:
                del self._waiting[place]
            await self._files.change(due)
            self._let_rest(due)

    def _odd(self, places: set[str]) -> tuple[set[str], bool]:
        """The places that need a look at everything; whether a folder that was absent is there now."""
        odd = {place for place in places if self._files.needs_look(place)}
        return odd, any(os.path.isdir(place) for place in self._absent)

    def _let_rest(self, places: Collection[str]) -> None:
        now = time.monotonic()
        self._rests_until = {place: until for place, until in self._rests_until.items() if until > now}
        for place in places:
            with contextlib.suppress(OSError):
                size = os.stat(place).st_size
                self._rests_until[place] = now + max(REST_SECONDS_MIN, size / REST_BYTES_A_SECOND)

    async def _watch(self, folders: frozenset[str]) -> None:
        """Watches these folders; where that cannot be, says so once."""
        if self._thread is not None and self._thread.folders == folders:
            return
        await self._unwatch()
        if not folders:
            return
        thread = _WatchThread(folders, asyncio.get_running_loop(), self._tell)
        thread.start()
        self._thread = thread
        await thread.began.wait()
        if thread.fault is None:
            self._is_warned = False
            return
        await self._unwatch()
        if not self._is_warned and not isinstance(thread.fault, FileNotFoundError):
            self._is_warned = True
            LOG.warning(
                "folders cannot be watched (%s): files that change are found within %.0f s. More watches are allowed "
                "with `sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024`",
                thread.fault,
                self._unwatched_seconds,
            )

    def _tell(self, places: set[str]) -> None:
        self._news |= places
        self._came.set()

    async def _unwatch(self) -> None:
        self.settled.clear()
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await asyncio.to_thread(thread.end)


class _WatchThread(threading.Thread):
    """Watches some folders, none of those in them. `began` is set when it does, or cannot: then `fault` says why.

    `is_stale`: one of the folders went or came anew; what is watched may be a folder that is no longer at its place.
    """

    def __init__(
        self, folders: frozenset[str], loop: asyncio.AbstractEventLoop, tell: Callable[[set[str]], None]
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self.folders = folders
        self.began = asyncio.Event()
        self.fault: Exception | None = None
        self.is_stale = False
        self._loop = loop
        self._tell = tell
        self._is_ending = threading.Event()
        self._has_begun = False

    def run(self) -> None:
        try:
            self._run()
        except (OSError, RuntimeError) as error:
            self.fault = error
        with contextlib.suppress(RuntimeError):  # the program has ended
            self._loop.call_soon_threadsafe(self.began.set)
            self._loop.call_soon_threadsafe(self._tell, set[str]())

    def _run(self) -> None:
        # Here, since it costs 50 ms at the start of the program.
        from watchfiles import Change, watch

        logging.getLogger("watchfiles").setLevel(logging.WARNING)
        for changes in watch(
            *self.folders,
            watch_filter=lambda _, place: not is_private_name(os.path.basename(place)),
            debounce=TOGETHER_MILLISECONDS,
            step=STEP_MILLISECONDS,
            stop_event=self,
            recursive=False,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            self.is_stale |= any(place in self.folders for change, place in changes if change != Change.modified)
            self._loop.call_soon_threadsafe(self._tell, {place for _, place in changes})

    def is_set(self) -> bool:
        """Asked by the library in each step, the first time when it watches."""
        if not self._has_begun:
            self._has_begun = True
            self._loop.call_soon_threadsafe(self.began.set)
        return self._is_ending.is_set()

    def end(self) -> None:
        """Returns when the thread has ended."""
        self._is_ending.set()
        self.join()

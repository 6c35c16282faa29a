"""Keeps the memory index whole: catches it up, builds it anew when it must be, checks it, and tells how it stands."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from agent.cortex.search import Cortex
from agent.types import ToolFailure
from gateway.limits import (
    INDEX_RETRY_SECONDS,
    INDEX_SMALL_BYTES,
    INDEX_START_SECONDS,
    INDEX_WAIT_SECONDS,
    STATUS_SKIPPED_MAX,
)
from gateway.store import Rebuild, RebuildStopped, Store, StoreError

LOG = logging.getLogger(__name__)

T = TypeVar("T")


class Upkeep:
    """Of one open home's index. `close` before the store is closed."""

    def __init__(self, store: Store, cortex: Cortex, now: Callable[[], datetime]) -> None:
        self._store = store
        self._cortex = cortex
        self._now = now
        self._wake = asyncio.Event()
        self._settling = asyncio.Lock()
        self._settler: asyncio.Task[Any] | None = None
        self._work: set[asyncio.Future[None]] = set()
        self._is_checked = False
        self._task: asyncio.Task[None] | None = None
        self._rebuild: Rebuild | None = None
        self._last_check: dict[str, Any] | None = None
        self.fault: str | None = None
        """Why the last rebuild did not come to its end."""
        self._loop = asyncio.get_running_loop()
        store.when_index_lacks(self._lacks)
        cortex.heal = self.heal

    def _lacks(self) -> None:
        """In the writer's thread, before the write that found it out is answered."""
        self._cortex.indexing = True
        self._loop.call_soon_threadsafe(self._wake.set)

    async def begin(self) -> None:
        """Before the first answer: a few rows that a crash left out are added, a small index is checked, or built anew.

        What takes longer goes on while answers are given, and says so.
        """
        self._cortex.indexing = True
        if self._store.index_bytes() <= INDEX_SMALL_BYTES:
            await self._check_once()
        if self._store.index_trouble or self._store.has_unfinished_index:
            await asyncio.wait({self._started()}, timeout=INDEX_START_SECONDS)
        elif (not self._store.index_behind or not await self._store.catch_up_index()) and self._is_checked:
            self._cortex.indexing = False

    async def settle(self, *, files: bool = True) -> None:
        """Brings the index up to the database and, with `files`, the files.

        Raises StoreError, ToolFailure and OSError.
        """
        async with self._settling:
            self._settler = asyncio.current_task()
            try:
                await self._settle(files)
            finally:
                self._settler = None

    async def _settle(self, files: bool) -> None:
        await self._check_once()
        if self._task is not None or self._store.index_trouble or self._store.has_unfinished_index:
            await asyncio.shield(self._started())
        while self._store.index_behind and self._store.index_trouble is None:
            self._cortex.indexing = True
            await self._store.catch_up_index()
        if files and self._store.index_trouble is None:
            await self._cortex.update_files()
        self._cortex.indexing = self._store.index_trouble is not None

    async def watch(self) -> None:
        """Does whatever the index comes to lack, until it is cancelled."""
        while True:
            pause_seconds = INDEX_RETRY_SECONDS if self._store.index_trouble else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_seconds)
            self._wake.clear()
            try:
                await self.settle()
            except (StoreError, ToolFailure, OSError) as error:
                LOG.error("the index is not up to date: %s", error)

    async def _check_once(self) -> None:
        """A start finds what was damaged while the program was down."""
        if self._is_checked or self._store.index_trouble is not None:
            return
        self._is_checked = True
        try:
            await self.check(whole=False)
        except StoreError as error:
            LOG.warning("the index was not checked: %s", error)

    async def heal(self, reason: str | None, *, sure: bool = True) -> None:
        """`agent.cortex.search.Heal`."""
        try:
            await self._store.look_at_index()
            if reason is not None and self._task is None and self._store.index_trouble is None:
                # Only a sure sign, or the check, condemns it: a query of ours may be at fault as well.
                if sure:
                    await self._store.distrust_index(reason)
                else:
                    await self.check(whole=False)
            if asyncio.current_task() is not self._settler:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.settle(), INDEX_WAIT_SECONDS)
        except (StoreError, OSError) as error:
            LOG.warning("the index was not healed: %s", error)

    async def rebuild(self) -> None:
        """Builds the index anew, whatever state it is in. Raises StoreError, which says why it could not."""
        if self._task is None:
            self._start(anew=True)
        await asyncio.shield(self._started())
        if self.fault is not None:
            raise StoreError(self.fault)
        await self.settle()

    def begin_rebuild(self) -> None:
        """The same, without waiting for it."""
        if self._task is None:
            self._start(anew=True)
        self._wake.set()

    async def update(self) -> None:
        """Has what changed taken in, and waits a while for it. Raises StoreError, ToolFailure and OSError."""
        work = asyncio.ensure_future(self.settle())
        self._work.add(work)
        work.add_done_callback(self._ended)
        for finished in (await asyncio.wait({work}, timeout=INDEX_WAIT_SECONDS))[0]:
            finished.result()

    def _ended(self, work: asyncio.Future[None]) -> None:
        self._work.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            LOG.warning("the index is not up to date: %s", error)

    async def check(self, *, whole: bool = True) -> list[str]:
        """What is wrong with the index, a sentence each; then it is built anew. Raises StoreError."""
        faults = await _in_thread(lambda: self._store.faults(whole=whole))
        if faults and self._task is None:
            await self._store.distrust_index(faults[0])
        self._last_check = {"at": self._now().isoformat(timespec="seconds"), "faults": faults}
        return faults

    def state(self) -> dict[str, Any]:
        """What `status` tells of the index; costs nothing."""
        rebuild = self._rebuild
        return {
            "indexing": self._cortex.indexing,
            "progress": None if rebuild is None else rebuild.progress.as_json(),
            "fault": self.fault,
        }

    async def brief(self) -> dict[str, Any]:
        """The same, with what is left out of the index."""
        skipped = await self._skipped()
        return {**self.state(), "skipped": skipped[:STATUS_SKIPPED_MAX], "skipped_count": len(skipped)}

    async def _skipped(self) -> list[dict[str, str]]:
        if self._store.index_trouble is not None:
            return []  # to ask would have it healed, which may take long
        return [{"path": item.path, "reason": item.reason} for item in await self._cortex.skipped()]

    async def status(self) -> dict[str, Any]:
        """All of it. Raises StoreError."""
        facts = await _in_thread(self._store.facts)
        return {
            **self.state(),
            "trouble": self._store.index_trouble,
            **facts.as_json(),
            "skipped": await self._skipped(),
            "last_check": self._last_check,
        }

    async def close(self) -> None:
        """Ends a rebuild that runs; it goes on at the next start."""
        self._cortex.heal = None
        if self._rebuild is not None:
            self._rebuild.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _started(self) -> asyncio.Task[None]:
        return self._task or self._start(anew=False)

    def _start(self, *, anew: bool) -> asyncio.Task[None]:
        self._cortex.indexing = True
        self._rebuild = self._store.rebuild(self._cortex.files)
        self._task = asyncio.create_task(self._run(self._rebuild, anew), name="index-rebuild")
        return self._task

    async def _run(self, rebuild: Rebuild, anew: bool) -> None:
        self.fault = None
        try:
            await _in_thread(lambda: rebuild.run(anew=anew))
            await self._store.look_at_index()
            LOG.info("the index is built: %s messages, %s files", rebuild.progress.messages, rebuild.progress.files)
        except RebuildStopped:
            pass
        except (StoreError, OSError) as error:
            self.fault = str(error)
            LOG.warning("the index could not be built anew, and stays as it was: %s", error)
        finally:
            self._task = self._rebuild = None


async def _in_thread(work: Callable[[], T]) -> T:
    """In a thread that ends with it."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="index-upkeep")
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, work)
    finally:
        thread.shutdown(wait=False)

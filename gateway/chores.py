"""The program's own jobs by the clock: are the channels up, what is old goes, database and memory stay tidy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from channels.channel import ChannelDown
from channels.registry import CHANNELS
from gateway.alerts import Alerts
from gateway.config import MemorySettings
from gateway.health import ChannelHealth, Health
from gateway.limits import (
    ALERTS_KEPT_SECONDS,
    BUILT_IN_RUNS_KEPT_SECONDS,
    CHANNEL_DOWN_SECONDS,
    FILES_KEPT_SECONDS,
    MEMORY_GRACE_SECONDS,
)
from gateway.linking import Linking
from gateway.sentences import Language, language_of, sentence
from gateway.store import Store, StoreError
from heartbeat.built_in import BuiltIn

if TYPE_CHECKING:
    from agent.hippocampus.reflection import Reflection

LOG = logging.getLogger(__name__)
_UP = frozenset({"connected", "degraded"})
_FACTS = "channel_status"
_OLD = ("logs/*.log.*", "brain/prefrontal/.debug/*.md", "brain/corpus/*.log.md")
"""Files that the program writes for looking into, and nobody misses after a week."""
WORTH_TELLING_BYTES = 50_000_000


class ChannelWatch:
    """Tells the owner once, on another channel, that one is down (one that needs a person at once, another when it has
    been down for long), and once that it is back. What was told is on disk, so that a restart tells nothing again."""

    def __init__(
        self,
        store: Store,
        health: Health,
        linking: Linking,
        alerts: Alerts,
        language: str,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._health = health
        self._linking = linking
        self._alerts = alerts
        self._language: Language = language_of("", language)
        self._now = now
        self._ended: set[str] = set()
        self._news: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()

    async def look(self, now: datetime) -> str:
        """What changed since the look before, in a few words."""
        # Nothing listens on one that has ended, whatever its platform says.
        await self._linking.probe(without=self._ended)
        states: Sequence[Mapping[str, Any]] = self._health.channels()["channels"]
        for state in states:
            if state["enabled"] and state["channel"] in CHANNELS:
                await self._look_at(state, now)
        news, self._news = self._news, []
        return "; ".join(news)

    async def ended(self, name: str, error: ChannelDown) -> None:
        """The channel is down until a person acts."""
        self._ended.add(name)
        text = sentence("channel_ended", self._language)
        text = text.format(channel=name, detail=error.detail, remedy=error.remedy)
        try:
            async with self._one_at_a_time:
                since, _, told = (await self._store.fact(_FACTS, name) or "").partition(" ")
                if not since:
                    # On disk before it is told: after a crash in between the notice has the same key, and is the same.
                    since = self._now().isoformat()
                    await self._store.put_fact(_FACTS, name, since)
                if not told:
                    await self._tell(name, since, text)
        except StoreError as failure:
            LOG.error("that %s has ended is not told yet: %s", name, failure)

    def changed(self, channel: ChannelHealth) -> None:
        """Hears of each new state."""
        if channel.state == "connected" and channel.channel in CHANNELS:
            self._ended.discard(channel.channel)
            task = asyncio.create_task(self._is_back(channel.as_json()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _is_back(self, state: Mapping[str, Any]) -> None:
        try:
            await self._look_at(state, self._now())
        except StoreError as error:
            LOG.warning("%s", error)

    async def _look_at(self, state: Mapping[str, Any], now: datetime) -> None:
        async with self._one_at_a_time:
            name = str(state["channel"])
            since, _, told = (await self._store.fact(_FACTS, name) or "").partition(" ")
            if state["state"] in _UP:
                # One that was never up before, such as a phone linked for the first time, is not back.
                was_up = await self._store.fact(_FACTS, f"{name} was up")
                if not was_up:
                    await self._store.put_fact(_FACTS, f"{name} was up", "yes")
                if told and was_up:
                    text = sentence("channel_back", self._language).format(channel=name)
                    await self._alerts.tell(text, f"{name}:{since}:back")
                    self._news.append(f"{name} is back")
                if since:
                    await self._store.put_fact(_FACTS, name, "")
                return
            if not since:
                await self._store.put_fact(_FACTS, name, now.isoformat())
                return
            down = now - datetime.fromisoformat(since)
            if told or down < timedelta(seconds=CHANNEL_DOWN_SECONDS):
                return
            minutes = round(down.total_seconds() / 60)
            text = sentence("channel_down", self._language)
            text = text.format(channel=name, minutes=minutes, detail=state["detail"], remedy=state["remedy"])
            await self._tell(name, since, text)

    async def _tell(self, name: str, since: str, text: str) -> None:
        """Where no other channel leads to the owner, the next look tries again."""
        told = await self._alerts.tell(text.strip(), f"{name}:{since}:down", avoiding=name) is not None
        await self._store.put_fact(_FACTS, name, f"{since} told" if told else since)
        if told:
            self._news.append(f"{name} is down since {since}")


CHANNEL_STATUS = ("channel_status", "Every (5m)", "Looks whether every channel is up.")
PRUNE = ("prune", "Daily (04:20)", "Removes logs, snapshots and event logs older than a week.")
REFLECT = ("reflect", "Takes facts from the days and brings entity pages and opinions up to date.")
CONSOLIDATE = ("consolidate", "Sums up the weeks that have ended.")
DATABASE = ("database", "Daily (04:40)", "Checkpoints the database and merges the search index.")


def upkeep_jobs(home: Path, store: Store, watch: ChannelWatch) -> tuple[BuiltIn, ...]:
    """The jobs that need no model and no memory."""

    async def prune(now: datetime) -> str:
        await store.runs.prune(now - timedelta(seconds=BUILT_IN_RUNS_KEPT_SECONDS))
        await store.alerts.prune(now - timedelta(seconds=ALERTS_KEPT_SECONDS))
        count = await asyncio.to_thread(remove_old, home / "workspace", time.time() - FILES_KEPT_SECONDS)
        return f"{count} old files removed" if count else ""

    async def database(now: datetime) -> str:
        freed = await store.tidy()
        return f"{freed / 1_000_000:.1f} MB of the write-ahead log given back" if freed >= WORTH_TELLING_BYTES else ""

    return BuiltIn(*CHANNEL_STATUS, watch.look), BuiltIn(*PRUNE, prune), BuiltIn(*DATABASE, database)


def memory_jobs(settings: MemorySettings, reflection: Callable[[], Reflection]) -> tuple[BuiltIn, ...]:
    """The jobs of the memory that have a schedule; what was missed is made up for, however late."""

    async def reflect(now: datetime) -> str:
        return await reflection().daily(now)

    async def consolidate(now: datetime) -> str:
        return await reflection().weekly(now)

    jobs = ((REFLECT, settings.reflect, reflect), (CONSOLIDATE, settings.consolidate, consolidate))
    return tuple(
        BuiltIn(name, schedule, does, work, grace_seconds=MEMORY_GRACE_SECONDS, catchup="once")
        for (name, does), schedule, work in jobs
        if schedule
    )


def listed_jobs(settings: MemorySettings) -> tuple[BuiltIn, ...]:
    """All of them for a list: they run in the gateway only."""

    async def not_here(now: datetime) -> str:
        raise RuntimeError("built-in jobs run in the gateway")

    def no_memory() -> Reflection:
        raise RuntimeError("built-in jobs run in the gateway")

    upkeep = (BuiltIn(*job, not_here) for job in (CHANNEL_STATUS, PRUNE, DATABASE))
    return (*upkeep, *memory_jobs(settings, no_memory))


def remove_old(workspace: Path, before: float) -> int:
    """Removes what the program wrote for looking into and has not touched since `before` (seconds since 1970)."""
    old = [path for path in _files(workspace) if path.stat().st_mtime < before]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _files(workspace: Path) -> Iterable[Path]:
    return (path for pattern in _OLD for path in workspace.glob(pattern) if path.is_file() and not path.is_symlink())

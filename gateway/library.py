"""What works on a home without a gateway: the database, the index, the tools."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from agent.asking import ModelJudge
from agent.capabilities.files.tools import Files
from agent.capabilities.introspect.tools import Introspect
from agent.capabilities.memory.tools import MemoryTools
from agent.capabilities.shell.tools import Shell
from agent.capabilities.web_fetch.tools import WebFetch
from agent.cortex.search import Cortex
from agent.hippocampus.forget import Forget
from agent.hippocampus.knowledge import Knowledge
from agent.providers.base import BUILT_IN, ProviderSettings, create, writes
from agent.redaction import Redactor
from agent.types import JsonObject, Provider, ProviderError, ToolFunction
from agent.usage import Ledger
from channels import registry
from gateway import __version__
from gateway.config import Settings, known_secrets
from gateway.health import Health
from gateway.readlog import ReadLog, file_name
from gateway.removal import Remover
from gateway.spending import Spending
from gateway.store import Store
from gateway.upkeep import Upkeep

if TYPE_CHECKING:
    from agent.cortex.meaning import Meaning
    from agent.hippocampus.reflection import Reflection

LOG = logging.getLogger(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


def model_of(settings: Settings, workspace: Path) -> Provider:
    """The model that the settings name. Raises ProviderError, ImportError."""
    return _model(settings, workspace, settings.model.provider, settings.model.name)


def chosen_model(settings: Settings, workspace: Path, name: str) -> Provider:
    """Another model of the same service, or the built-in one. Raises ProviderError, ImportError."""
    provider, name = (BUILT_IN, "") if name == BUILT_IN else (settings.model.provider, name)
    return _model(settings, workspace, provider, name)


def _model(settings: Settings, workspace: Path, provider: str, name: str) -> Provider:
    model = settings.model
    return create(
        ProviderSettings(
            provider=provider,
            name=name,
            base_url=model.base_url,
            api_key=model.api_key.get_secret_value(),
            context_tokens=model.context_tokens,
            timeout_seconds=model.timeout_seconds,
            images=model.images,
            workspace=workspace,
        )
    )


@dataclass(frozen=True, slots=True)
class Library:
    """What works on a home without a gateway: the database, the index, the tools."""

    home: Path
    store: Store
    cortex: Cortex
    upkeep: Upkeep
    introspect: Introspect
    health: Health
    state: LibraryState
    zone: ZoneInfo
    redactor: Redactor
    readlog: ReadLog
    remover: Remover
    memories: Memories

    @property
    def reflection(self) -> Reflection:
        """The readable memory."""
        return self.memories.reflection

    @property
    def memory(self) -> MemoryTools:
        """The tools recall, retain and reflect."""
        return MemoryTools(lambda: self.reflection)

    def think_with(self, provider: Provider, ledger: Ledger, now: Callable[[], datetime] = utc_now) -> None:
        """Lets the memory's jobs ask this model; one that cannot write leaves them to their rules."""
        if writes(provider):
            self.memories.judge = ModelJudge(provider, ledger, now)

    @asynccontextmanager
    async def model(self, settings: Settings) -> AsyncGenerator[None]:
        """Lets the memory's jobs ask the model of the settings meanwhile; what that costs is written down.

        A model that cannot be made (its package is not there) leaves the jobs to their rules.
        """
        workspace = self.home / "workspace"
        try:
            provider = model_of(settings, workspace)
        except (ProviderError, ImportError) as error:
            LOG.warning("the memory's jobs go by rule: %s", error)
            yield
            return
        try:
            self.think_with(provider, Spending(self.store, settings, workspace, utc_now, lambda name: None))
            yield
        finally:
            self.memories.judge = None
            await provider.close()

    @classmethod
    async def open(cls, home: Path, settings: Settings, now: Callable[[], datetime] = utc_now) -> Library:
        """Raises StoreError. The home must have been prepared."""
        store = Store(home)
        await store.open()
        workspace = home / "workspace"
        folders = settings.memory.places(home)
        index = home / "index.db"
        cortex = Cortex(index, workspace, store.write, settings.zone, folders=folders, log_name=file_name)
        await cortex.open()
        health = Health(now)
        knowledge = Knowledge(workspace, cortex)
        redactor = Redactor(known_secrets(settings))
        upkeep = Upkeep(store, cortex, now)
        state = LibraryState(health, store, upkeep)
        readlog = ReadLog(workspace / "readlog", store)
        remover = Remover(store, readlog, now)
        forget = Forget(workspace, cortex, store.transcripts, remover, cortex.parse_ref, settings.zone, now)
        introspect = Introspect(
            cortex,
            knowledge,
            store.transcripts,
            state,
            settings.zone,
            list_files=Files(workspace, settings.zone).list_files,
            aliases=registry.ALIASES,
            forgetter=forget,
            redact=redactor,
        )
        zone = settings.zone
        memories = Memories(workspace, cortex, zone, now)
        return cls(home, store, cortex, upkeep, introspect, health, state, zone, redactor, readlog, remover, memories)

    def functions(self) -> dict[str, dict[str, ToolFunction]]:
        """The code of the tools, by capability and name."""
        workspace = self.home / "workspace"
        return {
            "introspect": self.introspect.functions(),
            "memory": self.memory.functions(),
            "files": Files(workspace, self.zone).functions(),
            "shell": Shell(workspace).functions(),
            "web_fetch": WebFetch().functions(),
        }

    async def open_meaning(self, embeddings: str) -> Meaning | None:
        """Lets searches find by meaning too, where the setting says so. What keeps it from that is logged: words are
        enough to go on."""
        if embeddings == "off":
            return None
        from agent.cortex.embedding import NOT_INSTALLED, BundledEmbedder, EmbeddingError

        try:
            from agent.cortex.meaning import Meaning
        except ImportError:
            LOG.error("search goes by words alone: %s", NOT_INSTALLED)
            return None
        meaning = Meaning(self.home / "vectors.db", self.home / "index.db", BundledEmbedder)
        try:
            await meaning.open()
        except (EmbeddingError, OSError) as error:
            LOG.error("search goes by words alone: %s", error)
            await meaning.close()
            return None
        self.cortex.meaning = meaning
        return meaning

    async def keep_meaning(self, embeddings: str) -> None:
        """The same, and makes vectors for what is new until it is cancelled."""
        meaning = await self.open_meaning(embeddings)
        if meaning is not None:
            await meaning.run(lambda: not self.cortex.indexing)

    async def close(self) -> None:
        await self.upkeep.close()
        await self.cortex.close()
        await self.store.close()


class Memories:
    """Makes the readable memory when it is first asked: its modules are many, and most starts need none of them.

    `judge`: a model for its jobs; None: they go by rule.
    """

    def __init__(self, workspace: Path, cortex: Cortex, zone: ZoneInfo, now: Callable[[], datetime]) -> None:
        self._workspace = workspace
        self._cortex = cortex
        self._zone = zone
        self._now = now
        self._made: Reflection | None = None
        self.judge: ModelJudge | None = None

    @property
    def reflection(self) -> Reflection:
        if self._made is None:
            from agent.hippocampus.reflection import Reflection

            self._made = Reflection(self._workspace, self._cortex, self._zone, self._now)
        self._made.judge = self.judge
        return self._made


class LibraryState:
    """`agent.types.StateSource`. `running` is the state of the gateway that runs on this home; None: none does."""

    def __init__(self, health: Health, store: Store, upkeep: Upkeep) -> None:
        self._health = health
        self._store = store
        self._upkeep = upkeep
        self.running: Callable[[], Awaitable[JsonObject]] | None = None

    async def channels(self) -> JsonObject:
        return self._health.channels()

    async def status(self) -> JsonObject:
        if self.running is not None:
            return await self.running()
        return {
            "version": __version__,
            "uptime_seconds": None,
            "queue": {"waiting": await self._store.waiting_count()},
            **self._health.channels(),
            "next_jobs": [],
            "index": await self._upkeep.brief(),
        }

    async def usage(self, after: datetime | None, before: datetime | None) -> JsonObject:
        return await self._store.usage(after, before)

    async def performance(self, since: datetime) -> JsonObject:
        return await self._store.performance(since)

"""What works on a home without a gateway: the database, the index, the tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.capabilities.files.tools import Files
from agent.capabilities.introspect.tools import Introspect
from agent.capabilities.shell.tools import Shell
from agent.capabilities.web_fetch.tools import WebFetch
from agent.cortex.search import Cortex
from agent.hippocampus.knowledge import Knowledge
from agent.types import JsonObject, ToolFunction
from channels import registry
from gateway.config import Settings
from gateway.health import Health
from gateway.store import Store


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Library:
    """What works on a home without a gateway: the database, the index, the tools."""

    home: Path
    store: Store
    cortex: Cortex
    introspect: Introspect
    health: Health
    zone: ZoneInfo

    @classmethod
    async def open(cls, home: Path, settings: Settings, now: Callable[[], datetime] = utc_now) -> Library:
        """Raises StoreError. The home must have been prepared."""
        store = Store(home)
        await store.open()
        workspace = home / "workspace"
        cortex = Cortex(home / "index.db", workspace, store.write, settings.zone)
        await cortex.open()
        health = Health(now)
        knowledge = Knowledge(workspace, cortex)
        introspect = Introspect(
            cortex, knowledge, store.transcripts, _State(health), settings.zone, aliases=registry.ALIASES
        )
        return cls(home, store, cortex, introspect, health, settings.zone)

    def functions(self) -> dict[str, dict[str, ToolFunction]]:
        """The code of the tools, by capability and name."""
        workspace = self.home / "workspace"
        return {
            "introspect": self.introspect.functions(),
            "files": Files(workspace, self.zone).functions(),
            "shell": Shell(workspace).functions(),
            "web_fetch": WebFetch().functions(),
        }

    async def close(self) -> None:
        await self.cortex.close()
        await self.store.close()


class _State:
    """`agent.types.StateSource`."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def channels(self) -> JsonObject:
        return self._health.channels()

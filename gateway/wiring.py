"""Small pieces that fit one part of the program to another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agent.mcp import McpServer
from channels.channel import NotAccepted
from gateway.config import Settings
from gateway.store import Store, StoreError


class FactMemory:
    """`channels.channel.ChannelMemory` of one channel; what cannot be saved is NotAccepted, as with a message."""

    def __init__(self, store: Store, channel: str, moved: Callable[[str, str], None] = lambda old, new: None) -> None:
        """`moved` hears the old and the new session key of a chat that moved."""
        self._store = store
        self._channel = channel
        self._moved = moved

    async def get(self, key: str) -> str | None:
        return await self._store.fact(self._channel, key)

    async def put(self, key: str, value: str) -> None:
        await self._saved(self._store.put_fact(self._channel, key, value))

    async def migrate_chat(self, old_chat_id: str, new_chat_id: str, *, renumbered: bool = False) -> None:
        await self._saved(self._store.move_chat(self._channel, old_chat_id, new_chat_id, renumbered=renumbered))
        self._moved(f"{self._channel}:{old_chat_id}", f"{self._channel}:{new_chat_id}")

    @staticmethod
    async def _saved(work: Awaitable[Any]) -> None:
        try:
            await work
        except StoreError as error:
            raise NotAccepted(str(error)) from error


def mcp_servers(settings: Settings) -> list[McpServer]:
    return [
        McpServer(name, server.command, server.args, server.env, server.url)
        for name, server in settings.mcp.servers.items()
    ]

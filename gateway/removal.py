"""Takes messages out for good: from the database and the index at once, then a line in the read logs that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from agent.types import ToolFailure
from gateway.readlog import ReadLog
from gateway.store import StillUsed, Store

RemovedFrom = Callable[[str, Sequence[int] | None], None]


class Remover:
    """`agent.hippocampus.forget.MessageRemover`. `on_removed` is told the conversation and the numbers (None: all)."""

    def __init__(self, store: Store, readlog: ReadLog, now: Callable[[], datetime]) -> None:
        self._store = store
        self._readlog = readlog
        self._now = now
        self.on_removed: RemovedFrom = lambda conversation_id, numbers: None

    async def saying(self, text: str) -> list[tuple[str, int]]:
        """Conversation and number of every message with just this text that is answered or observed."""
        return await self._store.messages_saying(text)

    async def remove(self, conversation_id: str, numbers: Sequence[int] | None) -> int:
        """How many messages went; None: all of them, and the conversation. Raises ToolFailure while one is in use,
        StoreError when the database cannot."""
        try:
            count, chats = await self._store.remove_messages(conversation_id, numbers, self._now())
        except StillUsed as error:
            raise ToolFailure(str(error)) from error
        for channel, chat in sorted(chats):
            await self._readlog.caught_up(channel, chat)
        await self._readlog.mark()
        self.on_removed(conversation_id, numbers)
        return count

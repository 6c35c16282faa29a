"""Takes a checked export file into the home: database, index and read logs, batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from channels.message import Export, ExportedMessage
from gateway.limits import IMPORT_BATCH_MESSAGES
from gateway.readlog import ReadLog
from gateway.store import Store


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to: messages in the file, those that were new, those that were there already."""

    messages: int
    added: int

    @property
    def known(self) -> int:
        return self.messages - self.added


async def import_export(export: Export, store: Store, readlog: ReadLog, now: Callable[[], datetime]) -> Imported:
    """Saves what is new and brings the read logs up to it. Broken off and run again, it goes on where it was.

    Raises StoreError, and what reading the file raises.
    """
    while await store.catch_up_index():
        pass
    messages = export.messages()
    gone: dict[tuple[str, str], set[str]] = {}
    seen = added = 0
    while batch := tuple(islice(messages, IMPORT_BATCH_MESSAGES)):
        seen += len(batch)
        saved = await store.add_imported(await _wanted(batch, store, readlog, gone), now())
        added += saved.added
        for channel, chat in sorted(saved.chats):
            await readlog.caught_up(channel, chat)
    await readlog.mark()
    return Imported(seen, added)


async def _wanted(
    batch: Sequence[ExportedMessage], store: Store, readlog: ReadLog, gone: dict[tuple[str, str], set[str]]
) -> list[ExportedMessage]:
    """Without what the owner had removed, which the read log knows even where the database was lost."""
    wanted: list[ExportedMessage] = []
    for item in batch:
        chat = (item.message.channel, item.message.chat_id)
        if chat not in gone:
            name = await store.moved_chat(*chat) or chat[1]
            gone[chat] = await asyncio.to_thread(readlog.removed, chat[0], name)
        if item.message.message_id not in gone[chat]:
            wanted.append(item)
    return wanted

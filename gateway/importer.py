"""Takes a checked export file into the home: database, index and read logs, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from channels.message import Export
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
    seen = added = 0
    while batch := tuple(islice(messages, IMPORT_BATCH_MESSAGES)):
        saved = await store.add_imported(batch, now())
        seen += len(batch)
        added += saved.added
        for channel, chat in sorted(saved.chats):
            await readlog.caught_up(channel, chat)
    await readlog.mark()
    return Imported(seen, added)

"""A memory index on a home of its own, with a writer as the gateway's is, and transcripts kept in a list."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex import index
from agent.cortex.search import Cortex
from agent.hippocampus.forget import Forget
from agent.types import CallContext, ConversationRecord, MessageRecord, Person, ToolCallRecord, ToolFailure, Viewer

OWNER = Viewer(Person("telegram:1", "Omar", "owner"))
START = datetime(2026, 7, 1, 9, 0, tzinfo=UTC)
ZONE = ZoneInfo("Asia/Riyadh")


def guest(*session_keys: str) -> Viewer:
    """An allowed person who may see these sessions."""
    return Viewer(Person("telegram:8", "Guest", "allowed"), frozenset(session_keys))


def context(viewer: Viewer = OWNER, conversation_id: str = "c1") -> CallContext:
    return CallContext(viewer, "telegram:1", conversation_id, "turn-1", START)


class Library:
    """`write` is the writer; `say` and `call` index a message or a tool call and give its reference back."""

    def __init__(self, home: Path, folders: Iterable[Path] = ()) -> None:
        self.workspace = home / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.path = home / "index.db"
        self.conn = sqlite3.connect(home / "hudhud.db", isolation_level=None, check_same_thread=False)
        self.conn.row_factory = sqlite3.Row
        self.conn.execute("PRAGMA journal_mode = WAL")
        self.cortex = Cortex(self.path, self.workspace, self.write, ZONE, folders=folders)
        self.transactions = 0

    async def write(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        self.transactions += 1
        self.conn.execute("BEGIN IMMEDIATE")
        try:
            result = work(self.conn)
        except BaseException:
            self.conn.execute("ROLLBACK")
            raise
        self.conn.execute("COMMIT")
        return result

    async def say(self, text: str, *, conversation: str = "c1", n: int | None = None, **fields: Any) -> str:
        if n is None:
            n = self._next(conversation)
        message = index.IndexedMessage(
            conversation_id=conversation,
            n=n,
            role="user",
            text=text,
            sender="Sana",
            sender_id="8",
            session_key="telegram:1",
            channel="telegram",
            chat="1",
            at=START + timedelta(minutes=n),
        )
        await self.write(lambda conn: index.index_message(conn, replace(message, **fields)))
        return f"conversation:{conversation}#{n}"

    async def call(self, name: str, args: str, output: str, *, conversation: str = "c1", n: int = 1) -> str:
        call = index.IndexedCall(
            conversation, n, 1, name, args, output, "success", "telegram:1", "telegram", "1", START
        )
        await self.write(lambda conn: index.index_call(conn, call))
        return f"conversation:{conversation}#{n}.1"

    def file(self, path: str, text: str) -> Path:
        """Writes a workspace file; the index is not told."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    async def find(self, query: str, **filters: Any) -> list[str]:
        """References of the hits, as the owner sees them."""
        answer = await self.cortex.search(filters.pop("viewer", OWNER), query, **filters)
        return [hit.ref for hit in answer.hits]

    def _next(self, conversation: str) -> int:
        row = self.conn.execute(
            "SELECT ifnull(max(n), 0) + 1 FROM idx.record WHERE owner = ?", (f"conversation:{conversation}",)
        ).fetchone()
        return row[0]


class FakeRemover:
    """`agent.hippocampus.forget.MessageRemover` over a library and its transcripts."""

    def __init__(self, library: Library, transcripts: FakeTranscripts) -> None:
        self._library = library
        self._transcripts = transcripts
        self.in_use = False

    async def saying(self, text: str) -> list[tuple[str, int]]:
        return self._transcripts.saying(text)

    async def remove(self, conversation_id: str, numbers: Sequence[int] | None) -> int:
        if self.in_use:
            raise ToolFailure(f"conversation:{conversation_id}#1 is being answered just now.")
        refs = [f"conversation:{conversation_id}#{n}" for n in numbers or [""]]
        await self._library.write(lambda conn: index.remove_refs(conn, refs))
        return self._transcripts.remove(conversation_id, numbers)


def forget(library: Library, transcripts: FakeTranscripts) -> Forget:
    """Forgetting on a library of a test."""
    remover = FakeRemover(library, transcripts)
    return Forget(
        library.workspace, library.cortex, transcripts, remover, library.cortex.parse_ref, ZONE, lambda: START
    )


@asynccontextmanager
async def open_library(home: Path, folders: Iterable[Path] = ()) -> AsyncIterator[Library]:
    library = Library(home, folders)
    index.attach(library.conn, library.path)
    await library.cortex.open()
    try:
        yield library
    finally:
        await library.cortex.close()
        library.conn.close()


class FakeTranscripts:
    """Conversations handed in, under the rules of `agent.types.Transcripts`."""

    def __init__(self, *conversations: tuple[ConversationRecord, Sequence[MessageRecord]]) -> None:
        self._held = {record.id: (record, list(messages)) for record, messages in conversations}

    async def conversations(
        self,
        viewer: Viewer,
        *,
        channel: str | None = None,
        ids: Sequence[str] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        limit: int = 20,
    ) -> list[ConversationRecord]:
        found = [
            record
            for record, _ in self._held.values()
            if _sees(viewer, record)
            and (channel is None or record.channel == channel)
            and (ids is None or record.id in ids)
            and (after is None or record.updated_at >= after)
            and (before is None or record.updated_at < before)
        ]
        return sorted(found, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def conversation(self, viewer: Viewer, part: str) -> list[ConversationRecord]:
        seen = [record for record, _ in self._held.values() if _sees(viewer, record)]
        return [record for record in seen if record.id == part] or [record for record in seen if part in record.id]

    async def session(self, viewer: Viewer, session_key: str) -> list[ConversationRecord]:
        return [
            record for record, _ in self._held.values() if _sees(viewer, record) and record.session_key == session_key
        ]

    async def messages(
        self, conversation_id: str, first: int | None = None, last: int | None = None
    ) -> list[MessageRecord]:
        _, messages = self._held[conversation_id]
        return [message for message in messages if (first or 1) <= message.n <= (last or 1 << 30)]

    def add(self, conversation: tuple[ConversationRecord, Sequence[MessageRecord]]) -> None:
        self._held[conversation[0].id] = (conversation[0], list(conversation[1]))

    def saying(self, text: str) -> list[tuple[str, int]]:
        """The messages with just this text."""
        held = self._held.items()
        return [(id, message.n) for id, (_, messages) in held for message in messages if message.text == text]

    def remove(self, conversation_id: str, numbers: Sequence[int] | None) -> int:
        """Takes messages out, or all and the conversation; how many they were."""
        record, messages = self._held.pop(conversation_id)
        if numbers is None:
            return len(messages)
        kept = [message for message in messages if message.n not in numbers]
        self._held[conversation_id] = record, kept
        return len(messages) - len(kept)


def _sees(viewer: Viewer, record: ConversationRecord) -> bool:
    return viewer.session_keys is None or record.session_key in viewer.session_keys


def a_conversation(
    id: str, *texts: str, chat: str = "1", channel: str = "telegram", calls: dict[int, ToolCallRecord] | None = None
) -> tuple[ConversationRecord, list[MessageRecord]]:
    """A conversation of these messages, a minute apart, turn and turn about; `calls` by the number of the message."""
    messages = [
        MessageRecord(
            n=n,
            id=f"m{n}",
            role="user" if n % 2 else "assistant",
            text=text,
            sender="Sana" if n % 2 else "Hudhud",
            sender_id="8",
            at=START + timedelta(minutes=n),
            state="answered",
            tool_calls=(calls[n],) if calls and n in calls else (),
        )
        for n, text in enumerate(texts, 1)
    ]
    record = ConversationRecord(
        id, f"{channel}:{chat}", channel, chat, f"Chat {chat}", START + timedelta(minutes=len(texts)), len(texts)
    )
    return record, messages

"""accept(): who is it? Save, de-duplicate and index in one transaction; then run a command or wake the queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

from channels.channel import Channel, NotAccepted
from channels.message import Accepted, InboundMessage
from gateway import commands
from gateway.config import Settings
from gateway.events import message_event
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.people import People
from gateway.readlog import ReadLog
from gateway.sentences import language_of
from gateway.store import Store, StoreError
from gateway.store.types import NewMessage, Rights, Saved

LOG = logging.getLogger(__name__)


class Wake(Protocol):
    """The queue's side: a message waits in a session."""

    def wake(self, session_key: str, *, scheduled: bool) -> None: ...


class Inbox:
    """The one door. When `accept` has returned, the message is on disk; it never waits for a turn."""

    def __init__(
        self,
        settings: Settings,
        people: People,
        store: Store,
        readlog: ReadLog,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        observers: Observers,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._people = people
        self._store = store
        self._readlog = readlog
        self._outbox = outbox
        self._channels = channels
        self._observe = observers
        self._now = now
        self._queue: Wake | None = None
        self._desk: commands.Desk | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_ms = int(settings.agent.idle_hours * 3_600_000)

    def connect(self, queue: Wake, desk: commands.Desk) -> None:
        """Hands in what comes after the inbox; before that nothing may be accepted."""
        self._queue, self._desk = queue, desk

    async def accept(self, message: InboundMessage) -> Accepted:
        """Saves a message and starts what it asks for. Raises NotAccepted when it could not be saved."""
        rights = self._people.rights_of(message)
        if rights == "stranger" and self._settings.readlog.keep == "allowed":
            return Accepted(message.message_id, "", is_new=True, will_answer=False)
        new = self._decide(message, rights)
        try:
            saved = await self._store.accept(new)
        except StoreError as error:
            raise NotAccepted(str(error)) from error
        if saved.is_new:
            self._saved(new, saved)
        will_answer = new.state == "waiting" and saved.state in {"waiting", "running"}
        return Accepted(saved.message_id, saved.conversation_id, saved.is_new, will_answer)

    def _decide(self, message: InboundMessage, rights: Rights) -> NewMessage:
        info = self._channels[message.channel].info
        known = rights != "stranger"
        wanted = known and message.wants_answer and bool(message.text.strip() or message.attachments)
        found = commands.parse(message.text) if wanted and message.origin == "person" else None
        return NewMessage(
            message=message,
            rights=rights,
            state="waiting" if wanted else "observed",
            command=None if found is None else found[0].name,
            cut=info.conversations,
            idle_ms=self._idle_ms,
            ends_conversation=found is not None and found[0].name == "new",
            notice=message.notice if known else None,
            saved_is_sent=info.saved_is_sent,
            now=self._now(),
        )

    def _saved(self, new: NewMessage, saved: Saved) -> None:
        if self._observe.any and saved.n is not None:
            self._observe("message", message_event(new, saved))
        self._outbox.put(saved.notice)
        if new.command is not None:
            self._run(self._command(saved.seq))
        elif new.state == "waiting":
            assert self._queue is not None
            self._queue.wake(saved.session_key, scheduled=new.message.origin == "scheduled")
            return  # The turn appends the log line before it starts.
        self._run(self._readlog.caught_up(new.message.channel, saved.chat))

    @property
    def busy(self) -> bool:
        """Whether a command or a log line is still being worked on."""
        return bool(self._tasks)

    async def recover(self) -> None:
        """At start: commands that were saved and not carried out are carried out now."""
        for seq in await self._store.waiting_commands():
            self._run(self._command(seq))

    async def close(self) -> None:
        """Ends what is still running; it is taken up at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)  # type: ignore[arg-type]
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a command was not carried out: %s", error)

    async def _command(self, seq: int) -> None:
        message = await self._store.command_message(seq)
        found = commands.parse(message.text)
        assert found is not None
        assert self._desk is not None
        await self._readlog.caught_up(message.address.channel, message.address.chat_id)
        request = commands.Request(
            message.address.session_key,
            found[1],
            message.rights == "owner",
            language_of(message.text, self._settings.agent.language),
        )
        answer = await commands.run(found[0], self._desk, request)
        done = await self._store.command_done(
            seq,
            message.conversation_id,
            message.address,
            answer,
            self._channels[message.address.channel].info.saved_is_sent,
            self._now(),
        )
        self._outbox.put(done)
        if self._observe.any:
            self._observe("status", {"conversation": message.conversation_id, "turn": None, "state": "command"})

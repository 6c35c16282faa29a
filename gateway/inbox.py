"""accept(): who is it? Save, de-duplicate and index in one transaction; then answer an open question, run a command or
wake the queue."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

from channels.channel import Channel, NotAccepted
from channels.message import Accepted, Address, InboundMessage
from gateway import commands
from gateway.approvals import Approvals, is_button, literal
from gateway.arrivals import Arrivals
from gateway.config import Settings
from gateway.events import message_event, saved_event
from gateway.limits import READLOG_LAG_SECONDS, SEND_PAUSES_SECONDS
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.people import PAIR, People
from gateway.readlog import ReadLog
from gateway.sentences import language_of, sentence
from gateway.store import Store, StoreError
from gateway.store.types import Delivery, NewMessage, Rights, Saved, TakenMessage

LOG = logging.getLogger(__name__)


def _is_blank(text: str) -> bool:
    """Whether there is nothing to see: white space, control characters, direction marks."""
    return all(letter.isspace() or unicodedata.category(letter) in {"Cc", "Cf"} for letter in text)


class Wake(Protocol):
    """The queue's side: a message waits in a session."""

    def wake(self, session_key: str, *, scheduled: bool) -> bool: ...


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
        approvals: Approvals,
        arrivals: Arrivals,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._people = people
        self._store = store
        self._readlog = readlog
        self._outbox = outbox
        self._channels = channels
        self._observe = observers
        self._approvals = approvals
        self._arrivals = arrivals
        self._now = now
        self._queue: Wake | None = None
        self._desk: commands.Desk | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._logging: set[tuple[str, str]] = set()
        self._idle_ms = int(settings.agent.idle_hours * 3_600_000)

    def connect(self, queue: Wake, desk: commands.Desk) -> None:
        """Hands in what comes after the inbox; before that nothing may be accepted."""
        self._queue, self._desk = queue, desk

    async def accept(self, message: InboundMessage) -> Accepted:
        """Saves a message and starts what it asks for. Raises NotAccepted when it could not be saved."""
        await self._know(message)
        rights = self._people.rights_of(message)
        if rights == "stranger" and self._settings.readlog.keep == "allowed":
            self._run(self._pair(message))
            return Accepted(message.message_id, "", is_new=True, will_answer=False)
        answer = self._approvals.answered_by(message, rights)
        stale = self._approvals.is_stale(message, rights)
        new = self._decide(message, rights, is_answer=answer is not None)
        try:
            saved = await self._store.accept(new)
        except StoreError as error:
            raise NotAccepted(str(error)) from error
        if saved.is_new:
            self._saved(new, saved)
            if rights == "stranger":
                self._run(self._pair(message))
            if stale or (answer is not None and not self._approvals.answer(*answer)):
                language = language_of(message.text, self._settings.agent.language)
                self._run(self._approvals.say_closed(message, language))
        will_answer = new.state == "waiting" and saved.state in {"waiting", "running"}
        return Accepted(saved.message_id, saved.conversation_id, saved.is_new, will_answer)

    async def _know(self, message: InboundMessage) -> None:
        """Who is not in the settings may have been let in, or put out, since the last message."""
        if message.origin == "person" and not self._people.is_settled(message.channel, message.sender_id):
            try:
                await self._people.refresh()
            except StoreError as error:
                raise NotAccepted(str(error)) from error

    async def _pair(self, message: InboundMessage) -> None:
        """Where the settings say so, a stranger who writes in private gets a code, and the owner is told of it."""
        pairing = None if message.edits is not None else await self._people.new_code(message, self._now())
        home = self._people.home()
        if pairing is None:
            return
        language = language_of(message.text, self._settings.agent.language)
        code = sentence("pairing_code", language).format(code=pairing.code)
        await self._notify(message.address, code, f"{PAIR}{pairing.code}")
        if home is not None and home.channel in self._channels:
            told = sentence("pairing_asked", language_of("", self._settings.agent.language)).format(
                name=literal(message.sender_name), id=message.sender_id, channel=message.channel, code=pairing.code
            )
            await self._notify(home, told, f"asked-in:{pairing.code}")

    async def _notify(self, address: Address, text: str, key: str) -> None:
        info = self._channels[address.channel].info
        notice = await self._store.notice(address, info.conversations, text, key, info.saved_is_sent, self._now())
        self._outbox.put(notice)
        if self._observe.any:
            await self._tell(notice)

    def _decide(self, message: InboundMessage, rights: Rights, *, is_answer: bool) -> NewMessage:
        info = self._channels[message.channel].info
        known = rights != "stranger"
        wanted = known and message.wants_answer and bool(message.attachments or not _is_blank(message.text))
        # An answer to an open question goes to the turn that asked, which is running.
        wanted = wanted and not is_answer and not is_button(message)
        notice = message.notice if known else None
        if wanted and self._arrivals.is_unheard(message):
            wanted, notice = False, sentence("no_transcriber", language_of(message.text, self._settings.agent.language))
        # A forwarded command is somebody else's, and what stands under a file is about the file.
        is_typed = wanted and message.origin == "person" and message.forwarded_from is None and message.kind == "text"
        found = commands.parse(message.text) if is_typed else None
        return NewMessage(
            message=message,
            rights=rights,
            state="waiting" if wanted else "observed",
            command=None if found is None else found[0].name,
            cut=info.conversations,
            idle_ms=self._idle_ms,
            ends_conversation=found is not None and found[0].name == "new",
            notice=notice,
            saved_is_sent=info.saved_is_sent,
            now=self._now(),
        )

    def _saved(self, new: NewMessage, saved: Saved) -> None:
        if self._observe.any and saved.n is not None:
            self._observe("message", message_event(new, saved))
        self._outbox.put(saved.notice)
        if saved.notice is not None and self._observe.any:
            self._run(self._tell(saved.notice))
        if new.command is not None and saved.state == "waiting":
            self._run(self._command(saved.seq))
        elif saved.state == "waiting":
            assert self._queue is not None
            if self._arrivals.took(new.message, saved):
                return  # It is not whole yet: its log line is appended when it is.
            if self._queue.wake(saved.session_key, scheduled=new.message.origin == "scheduled"):
                return  # The turn that begins now appends the log line first.
        self._log_soon(new.message.channel, saved.chat)

    def _log_soon(self, channel: str, chat: str) -> None:
        """Lines that no turn waits for are appended together, a moment later."""
        if (channel, chat) not in self._logging:
            self._logging.add((channel, chat))
            self._run(self._log(channel, chat))

    async def _log(self, channel: str, chat: str) -> None:
        try:
            await asyncio.sleep(READLOG_LAG_SECONDS)
        finally:
            self._logging.discard((channel, chat))
        await self._readlog.caught_up(channel, chat)

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
        message = await self._store.message(seq)
        # It was a command when it came, whatever it was changed to since.
        found = commands.parse(message.text) or (commands.COMMANDS[message.command or "help"], "")
        assert self._desk is not None
        await self._readlog.caught_up(message.address.channel, message.address.chat_id)
        request = commands.Request(
            message.address.session_key,
            message.sender_id,
            found[1],
            message.rights == "owner",
            language_of(message.text, self._settings.agent.language),
        )
        answer = await commands.run(found[0], self._desk, request)
        done = await self._done(seq, message, answer)
        self._outbox.put(done)
        if self._observe.any:
            await self._tell(done)
            self._observe("status", {"conversation": message.conversation_id, "turn": None, "state": "command"})
        if done.state == "sent":
            await self._readlog.caught_up(message.address.channel, message.address.chat_id)

    async def _done(self, seq: int, message: TakenMessage, answer: str) -> Delivery:
        """A command that was carried out keeps its answer, also when the disk is full for a while."""
        is_sent = self._channels[message.address.channel].info.saved_is_sent
        pauses = iter(SEND_PAUSES_SECONDS)
        while True:
            try:
                return await self._store.command_done(
                    seq, message.conversation_id, message.address, answer, is_sent, self._now()
                )
            except StoreError as error:
                LOG.error("%s", error)
                await asyncio.sleep(next(pauses, SEND_PAUSES_SECONDS[-1]))

    async def _tell(self, notice: Delivery) -> None:
        """Whoever watches sees the notice too."""
        self._observe("message", saved_event(*await self._store.transcripts.saved(notice.message_seq)))

"""Between a message's commit and its turn: the other parts are waited for, files fetched, recordings put into words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from channels.channel import Channel, ChannelDown, FileGone, FileTooBig, HasFiles, NotAccepted
from channels.message import Attachment, InboundMessage
from gateway.config import Settings
from gateway.events import saved_event
from gateway.limits import FETCH_PAUSES_SECONDS, FETCHES_MAX, JOINED_PARTS_MAX, SEND_PAUSES_SECONDS
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.readlog import ReadLog
from gateway.sentences import Language, language_of, sentence
from gateway.store import Store, StoreError
from gateway.store.arriving import Arrived
from gateway.store.types import Saved, TakenMessage
from gateway.transcribe import Transcriber

LOG = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[None]]


class Wake(Protocol):
    def __call__(self, session_key: str, *, scheduled: bool) -> bool: ...


@dataclass(slots=True)
class _Hold:
    """Why a session's next turn waits: files on their way, and until when for more parts of one message."""

    session_key: str
    fetching: int = 0
    joining: asyncio.Task[None] | None = None
    sender_id: str = ""
    parts: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])


class Arrivals:
    """Holds a session's next turn while one of its messages is not whole yet. All others start at once."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        channels: Mapping[str, Channel],
        readlog: ReadLog,
        outbox: Outbox,
        observers: Observers,
        transcriber: Transcriber,
        now: Callable[[], datetime],
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._join_seconds = settings.agent.join_seconds
        self._language = settings.agent.language
        self._store = store
        self._channels = channels
        self._readlog = readlog
        self._outbox = outbox
        self._observe = observers
        self._transcriber = transcriber
        self._now = now
        self._sleep = sleep
        self._holds: dict[str, _Hold] = {}
        self._slots = asyncio.Semaphore(FETCHES_MAX)
        self._wake: Wake | None = None

    def connect(self, wake: Wake) -> None:
        """Hands in what starts a session's turn."""
        self._wake = wake

    @property
    def busy(self) -> bool:
        return bool(self._holds)

    def is_held(self, session_key: str) -> bool:
        """Whether the next turn of this session must wait."""
        return session_key in self._holds

    def is_unheard(self, message: InboundMessage) -> bool:
        """Whether it is a recording that nothing here can put into words."""
        return not self._transcriber.is_on and not message.text.strip() and _is_recording(message.attachments)

    def took(self, message: InboundMessage, saved: Saved) -> bool:
        """A message was saved that waits for a turn. True: its session is held, and woken later from here."""
        session_key = saved.session_key
        joins = message.more_may_come and self._join_seconds > 0
        fetches = self._is_incomplete(message.text, message.attachments)
        hold = self._holds.get(session_key)
        if hold is None:
            if not joins and not fetches:
                return False
            hold = self._holds[session_key] = _Hold(session_key, sender_id=message.sender_id)
        if fetches:
            self._fetch(hold, session_key, saved.seq)
        if joins and hold.parts < JOINED_PARTS_MAX:
            self._join(hold, message.sender_id)
        elif message.sender_id == hold.sender_id:
            # The last part has come.
            self._stop_joining(hold)
            self._release(hold)
        return True

    def moved(self, old_key: str, new_key: str) -> None:
        """A chat has a new id: what is not whole there yet is held under the new session."""
        if new_key not in self._holds and (hold := self._holds.pop(old_key, None)) is not None:
            hold.session_key = new_key
            self._holds[new_key] = hold

    async def recover(self) -> None:
        """At start: files that were not fetched when the program ended. To be called before anything is woken."""
        for message in await self._store.unfetched():
            if self._is_incomplete(message.text, message.attachments):
                key = message.address.session_key
                self._fetch(self._holds.setdefault(key, _Hold(key)), key, message.seq, message)

    async def close(self) -> None:
        """Ends the waiting; the next start takes it up."""
        tasks = [task for hold in self._holds.values() for task in (*hold.tasks, hold.joining) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_incomplete(self, text: str, attachments: Sequence[Attachment]) -> bool:
        if any(file.remote is not None and file.path is None for file in attachments):
            return True
        return self._transcriber.is_on and not text.strip() and _is_recording(attachments)

    # -- other parts

    def _join(self, hold: _Hold, sender_id: str) -> None:
        self._stop_joining(hold)
        hold.parts += 1
        hold.sender_id = sender_id
        hold.joining = asyncio.create_task(self._joined(hold))

    async def _joined(self, hold: _Hold) -> None:
        await self._sleep(self._join_seconds)
        hold.joining = None
        self._release(hold)

    @staticmethod
    def _stop_joining(hold: _Hold) -> None:
        if hold.joining is not None:
            hold.joining.cancel()
            hold.joining = None

    def _release(self, hold: _Hold) -> None:
        if not hold.fetching and hold.joining is None and self._holds.get(hold.session_key) is hold:
            del self._holds[hold.session_key]
            if self._wake is not None:
                self._wake(hold.session_key, scheduled=False)

    # -- files

    def _fetch(self, hold: _Hold, session_key: str, seq: int, message: TakenMessage | None = None) -> None:
        hold.fetching += 1
        task = asyncio.create_task(self._complete(session_key, seq, message), name=f"files of {session_key}")
        hold.tasks.add(task)
        task.add_done_callback(lambda done: self._fetched(hold, session_key, done))

    def _fetched(self, hold: _Hold, session_key: str, task: asyncio.Task[None]) -> None:
        hold.tasks.discard(task)
        if task.cancelled():
            return  # The program ends.
        if (error := task.exception()) is not None:
            LOG.error("the files of a message in %s are not known: %s", session_key, error)
        hold.fetching -= 1
        self._release(hold)

    async def _complete(self, session_key: str, seq: int, message: TakenMessage | None) -> None:
        """Brings one message's files; whatever happens, the message is whole afterwards."""
        message = message or await self._store.message(seq)
        language = language_of(message.text, self._language)
        files, faults = await self._fetch_all(message, language)
        has_text, has_file = bool(message.text.strip()), any(file.path for file in files)
        words = None
        if not has_text and has_file and _is_recording(files):
            words = await self._words(files)
            if words is None:
                has_file = False
                faults.append(sentence("not_understood", language))
        notice = "\n".join(faults) or None
        await self._save(message, Arrived(seq, files, words, notice, has_text or has_file, self._now()))

    async def _fetch_all(self, message: TakenMessage, language: Language) -> tuple[list[Attachment], list[str]]:
        """The message's files as they are now, and a sentence for each that did not come."""
        files: list[Attachment] = []
        faults: list[str] = []
        for file in message.attachments:
            fetched = file
            if file.remote is not None and file.path is None:
                try:
                    fetched = await self._fetch_one(message.address.channel, file)
                except FileTooBig as error:
                    limit = error.size_bytes_max // 1_000_000
                    faults.append(sentence("file_too_big", language).format(name=file.name, limit=limit))
                except (FileGone, ChannelDown) as error:
                    LOG.warning("a file of %s was not fetched: %s", message.address.session_key, error)
                    faults.append(sentence("file_gone", language).format(name=file.name))
            files.append(replace(fetched, remote=None))
        return files, faults

    async def _fetch_one(self, channel_name: str, file: Attachment) -> Attachment:
        """Raises FileTooBig, FileGone, ChannelDown when the line stayed away."""
        channel = self._channels.get(channel_name)
        if not isinstance(channel, HasFiles):
            raise FileGone(f"{channel_name} is off")
        failures = 0
        while True:
            try:
                async with self._slots:
                    return await channel.fetch(file)
            except ChannelDown as error:
                if error.terminal or failures >= len(FETCH_PAUSES_SECONDS):
                    raise
                pause = max(FETCH_PAUSES_SECONDS[failures], error.retry_after_seconds or 0.0)
            except NotAccepted as error:
                # A full disk is no fault of the file: it is waited for.
                LOG.error("a file waits because it cannot be saved: %s", error)
                pause = FETCH_PAUSES_SECONDS[min(failures, len(FETCH_PAUSES_SECONDS) - 1)]
            failures += 1
            await self._sleep(pause)

    async def _words(self, files: Sequence[Attachment]) -> str | None:
        found = [
            await self._transcriber.words(file.path)
            for file in files
            if file.path is not None and file.kind in {"voice", "audio"}
        ]
        return "\n\n".join(text for text in found if text) or None

    async def _save(self, message: TakenMessage, result: Arrived) -> None:
        pauses = iter(SEND_PAUSES_SECONDS)
        channel, chat = message.address.channel, message.address.chat_id
        is_sent = self._channels[channel].info.saved_is_sent if channel in self._channels else True
        while True:
            try:
                notice = await self._store.arrived(result, is_sent)
            except StoreError as error:
                LOG.error("%s", error)
                await self._sleep(next(pauses, SEND_PAUSES_SECONDS[-1]))
                continue
            break
        self._outbox.put(notice)
        await self._readlog.caught_up(channel, chat)
        if self._observe.any:
            self._observe("message", saved_event(*await self._store.transcripts.saved(message.seq)))
            if notice is not None:
                self._observe("message", saved_event(*await self._store.transcripts.saved(notice.message_seq)))


def _is_recording(attachments: Sequence[Attachment]) -> bool:
    return any(file.kind in {"voice", "audio"} for file in attachments)

"""The gateway's core on a folder: real store, read logs, queue, outbox and inbox; a turn that a test scripts."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from agent.types import Turn, TurnPort, TurnResult
from channels.message import InboundMessage
from channels.scheduled.quiet import is_quiet
from gateway.approvals import Approvals
from gateway.arrivals import Arrivals
from gateway.config import Settings
from gateway.drafts import Drafts
from gateway.health import Health
from gateway.inbox import Inbox
from gateway.limits import APPROVAL_SECONDS
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.people import People
from gateway.queue import Queue
from gateway.readlog import ReadLog, file_name, read_lines
from gateway.store import Store
from gateway.transcribe import Transcriber
from tests.fakes.channel import FakeChannel
from tests.fakes.waiting import until

OWNER = "7"
GUEST = "8"
GROUPS = ["-5", "-100", "-500", "g0", "g1", "g2", "g3", "g4"]

RunTurn = Callable[[Turn, TurnPort], Awaitable[TurnResult]]


_ids = count(1)


def utc_now() -> datetime:
    return datetime.now(UTC)


async def echo(turn: Turn, port: TurnPort) -> TurnResult:
    """Answers with what it was asked."""
    reply = f"re: {turn.text}"
    return TurnResult(turn.id, "done", reply, (reply,))


def telegram_settings(**agent: Any) -> Settings:
    return Settings.model_validate(
        {
            "agent": agent,
            "channels": {"telegram": {"enabled": True, "owner": OWNER, "allow": [GUEST], "groups": GROUPS}},
        }
    )


class Desk:
    """`gateway.commands.Desk` for the core alone."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def stop(self, session_key: str, guest: str | None = None) -> bool:
        return await self._queue.stop(session_key, guest)

    async def run_job(self, name: str, kind: str | None = None, arguments: Mapping[str, str] | None = None) -> None:
        raise LookupError(name)

    async def more_budget(self) -> bool:
        return False

    async def status(self) -> dict[str, Any]:
        queue = {"waiting": 0, "deliveries": 0}
        return {"uptime_seconds": 60, "model": "test", "queue": queue, "channels": []}


class Hub:
    """One running core. `crash()` leaves everything as a killed program would, except for the threads."""

    def __init__(
        self,
        home: Path,
        run_turn: RunTurn,
        settings: Settings,
        readlog: dict[str, Any],
        approval_seconds_max: float = APPROVAL_SECONDS,
        watched: bool = True,
        **queue: Any,
    ) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        self.settings = settings
        self.store = Store(home)
        self.channel = FakeChannel("telegram")
        self.page = FakeChannel("inapp", conversations="chat", saved_is_sent=True)
        self.clock = FakeChannel("heartbeat", conversations="message")
        self.channels = {"telegram": self.channel, "inapp": self.page, "heartbeat": self.clock}
        self.events: list[tuple[str, Any]] = []
        self.observers = Observers()
        if watched:
            self.observers.add(lambda kind, data: self.events.append((kind, data)))
        self.readlog = ReadLog(home / "workspace" / "readlog", self.store, **readlog)
        self.health = Health(utc_now)
        people = People(settings, self.store)
        self.outbox = Outbox(self.store, self.channels, self.readlog, self.health, self.observers, people, utc_now)
        self.approvals = Approvals(
            self.store, self.outbox, self.channels, people, self.observers, utc_now, seconds_max=approval_seconds_max
        )
        self.arrivals = Arrivals(
            settings,
            self.store,
            self.channels,
            self.readlog,
            self.outbox,
            self.observers,
            Transcriber(settings.transcribe, home / "workspace"),
            utc_now,
        )
        self.queue = Queue(
            settings,
            self.store,
            self.outbox,
            self.readlog,
            self.channels,
            self.observers,
            self.approvals,
            run_turn,
            utc_now,
            is_quiet=is_quiet,
            is_held=self.arrivals.is_held,
            drafts=Drafts(self.outbox, self.channels),
            **queue,
        )
        self.inbox = Inbox(
            settings,
            people,
            self.store,
            self.readlog,
            self.outbox,
            self.channels,
            self.observers,
            self.approvals,
            self.arrivals,
            utc_now,
        )
        self.arrivals.connect(self.queue.wake)
        self.inbox.connect(self.queue, Desk(self.queue))

    async def start(self) -> None:
        await self.store.open()
        await self.readlog.start()
        while await self.store.catch_up_index():
            pass
        await self.outbox.recover()
        await self.arrivals.recover()
        await self.queue.recover()
        await self.inbox.recover()

    async def stop(self) -> None:
        await self.arrivals.close()
        await self.queue.close()
        await self.outbox.close()
        await self.inbox.close()
        await self.store.close()

    async def say(self, text: str, *, chat: str = OWNER, sender: str = OWNER, **fields: Any) -> Any:
        """One message from a person; ids count up by themselves."""
        values: dict[str, Any] = {
            "channel": "telegram",
            "chat_id": chat,
            "message_id": f"m{next(_ids)}",
            "sender_id": sender,
            "sender_name": f"person {sender}",
            "text": text,
            "sent_at": utc_now(),
        }
        return await self.inbox.accept(InboundMessage(**(values | fields)))

    async def quiet(self) -> None:
        """Returns when nothing runs, waits or is on its way."""
        await until(self._idle)

    async def _idle(self) -> bool:
        busy = self.queue.running or self.outbox.depth or self.inbox.busy or self.arrivals.busy
        return not busy and await self.nothing_waits()

    async def nothing_waits(self) -> bool:
        return not await self.store.waiting_count()

    def log(self, chat: str = OWNER, channel: str = "telegram") -> list[dict[str, Any]]:
        return list(read_lines(self.home / "workspace" / "readlog" / channel / file_name(chat)))

    async def messages(self, conversation: str) -> list[Any]:
        return await self.store.transcripts.messages(conversation)


@asynccontextmanager
async def hub(
    home: Path,
    run_turn: RunTurn = echo,
    settings: Settings | None = None,
    *,
    readlog: dict[str, Any] | None = None,
    **queue: Any,
) -> AsyncIterator[Hub]:
    """A started core on `home`; stopped at the end. `readlog` and `queue` are options of these two."""
    core = Hub(home, run_turn, settings or telegram_settings(), readlog or {}, **queue)
    await core.start()
    try:
        yield core
    finally:
        await core.stop()


def crashed_copy(home: Path, to: Path) -> Path:
    """What a killed program leaves: a copy of the home as it is on disk at this moment."""
    shutil.copytree(home, to, ignore=shutil.ignore_patterns("*-shm"))
    return to

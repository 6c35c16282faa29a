"""The owner's view of the running gateway: what the page, the API and the commands show and steer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from agent.capabilities.introspect.shapes import conversation_json, conversation_list_json
from agent.capabilities.introspect.tools import Introspect
from agent.removed import is_log, without_removed
from agent.types import CallContext, MessageRecord, Person, ToolFailure, Viewer
from channels.channel import NotAccepted
from channels.inapp.ports import BadQuery, NotDone, UnknownConversation
from channels.message import Address
from gateway import __version__
from gateway.approvals import Approvals
from gateway.events import saved_event
from gateway.health import Health
from gateway.linking import Linking
from gateway.metrics import exposition
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.people import People
from gateway.queue import Queue
from gateway.spending import Spending
from gateway.store import Store, StoreError
from gateway.upkeep import Upkeep
from heartbeat.runner import Runner
from heartbeat.types import KINDS, CannotRun, JobState, Kind, Run, UnknownJob

Json = Mapping[str, Any]

OWNER = Viewer(Person("owner", "owner", "owner"))
"""The page, the API and the command line are the owner's."""

STATUS_JOBS = 5
KNOWN_PAGES_MAX = 10_000
NUMBER_DIGITS_MAX = 15
_NUMBERS = frozenset({"limit", "from", "to"})


class JobNotDone(NotDone, CannotRun):
    """A job cannot be started now: for the page, and for a command."""


@dataclass(slots=True)
class OwnerBackend:
    """`channels.inapp.ports.Backend`, `gateway.commands.Desk` and `channels.scheduled.types.Targets` in one.

    `page` is the name of the channel whose conversations are begun here.
    """

    store: Store
    introspect: Introspect
    upkeep: Upkeep
    queue: Queue
    outbox: Outbox
    approvals: Approvals
    people: People
    health: Health
    workspace: Path
    model: str
    now: Callable[[], datetime]
    spending: Spending
    linking: Linking
    runner: Runner | None = None
    page: str = ""
    known_pages: set[str | None] = field(default_factory=set[str | None])
    """Conversations of the page that are known to be there: they need not be looked up again."""
    observe: Observers = field(default_factory=Observers)
    forget_prompts: Callable[[str], None] = lambda conversation_id: None

    # Conversations

    async def conversation_for_message(self, wanted: str | None, key: str) -> str:
        transcripts = self.store.transcripts
        if wanted in self.known_pages:
            return str(wanted)
        if wanted not in {None, "new"}:
            found = await transcripts.conversation(OWNER, str(wanted))
            if len(found) != 1 or found[0].id != wanted or found[0].channel != self.page:
                raise UnknownConversation(wanted)
            if len(self.known_pages) >= KNOWN_PAGES_MAX:
                self.known_pages.clear()
            self.known_pages.add(found[0].id)
            return found[0].id
        posted = await transcripts.conversation_of_key(self.page, key)
        latest = posted or (await transcripts.latest_open(self.page) if wanted is None else None)
        return latest or f"{self.now():%y%m%d}-{secrets.token_hex(4)}"

    async def conversations(self, query: Mapping[str, str]) -> Json:
        records = await self._asked(self.introspect.conversations(OWNER, _args(query)))
        listed = conversation_list_json(records)
        for shown, record in zip(listed["conversations"], records, strict=True):
            shown["last_text"] = record.last_text
        return listed

    async def conversation(self, conversation_id: str, first: int | None, last: int | None) -> Json:
        found = await self.store.transcripts.conversation(OWNER, conversation_id)
        if len(found) != 1 or found[0].id != conversation_id:
            raise UnknownConversation(conversation_id)
        return conversation_json(found[0], await self.store.transcripts.messages(conversation_id, first, last))

    async def remove_conversation(self, conversation_id: str) -> Json:
        found = await self.store.transcripts.conversation(OWNER, conversation_id)
        if len(found) != 1 or found[0].id != conversation_id:
            raise UnknownConversation(conversation_id)
        await self.queue.stop(found[0].session_key)
        forgetting = self.introspect.forgetting
        try:
            plan = await forgetting.plan(self._context(), {"what": f"conversation:{conversation_id}#"})
            done = await forgetting.carry_out(plan)
        except ToolFailure as error:
            raise NotDone(str(error)) from error
        return {"messages": done["messages"], "kept": done["kept"]}

    def removed(self, conversation_id: str, numbers: Sequence[int] | None) -> None:
        """Tells the open pages what is gone: messages of these numbers, or the whole conversation (None)."""
        self.known_pages.discard(conversation_id)
        self.forget_prompts(conversation_id)
        gone = "all" if numbers is None else list(numbers)
        self.observe("status", {"conversation": conversation_id, "turn": None, "removed": gone})

    async def search(self, query: Mapping[str, str]) -> Json:
        return await self._asked(self.introspect.memory_search_json(self._context(), _args(query)))

    async def usage(self, query: Mapping[str, str]) -> Json:
        return await self._asked(self.introspect.state.usage_report_json(self._context(), _args(query)))

    @staticmethod
    async def _asked(answer: Any) -> Any:
        try:
            return await answer
        except ToolFailure as error:
            raise BadQuery(str(error)) from error

    def _context(self) -> CallContext:
        return CallContext(OWNER, self.page, "", "", self.now())

    async def stop(self, conversation_id: str, guest: str | None = None) -> bool:
        """Takes a conversation's id, or the key of a session."""
        if ":" in conversation_id:
            return await self.queue.stop(conversation_id, guest)
        found = await self.store.transcripts.conversation(OWNER, conversation_id)
        if len(found) != 1 or found[0].id != conversation_id:
            raise UnknownConversation(conversation_id)
        return await self.queue.stop(found[0].session_key)

    async def approve(self, question_id: str, allow: bool) -> bool:
        return self.approvals.answer(question_id, allow)

    # What runs

    async def status(self) -> dict[str, Any]:
        jobs = () if self.runner is None else self.runner.next(None, STATUS_JOBS)
        return {
            "version": __version__,
            "uptime_seconds": round((self.now() - self.health.started_at).total_seconds(), 1),
            "model": self.model,
            "queue": {
                "waiting": await self.store.waiting_count(),
                "running": self.queue.running,
                "deliveries": self.outbox.depth,
            },
            **self.health.channels(),
            "next_jobs": [{"name": name, "at": at.isoformat()} for name, at in jobs],
            "index": await self.upkeep.brief(),
        }

    async def metrics(self) -> bytes:
        """What `/metrics` says."""
        names = (f"{name}{ending}" for name in ("hudhud.db", "index.db") for ending in ("", "-wal"))
        files = ((name, self.workspace.parent / name) for name in names)
        sizes = {name: path.stat().st_size for name, path in files if path.exists()}
        return exposition(await self.status(), await self.store.usage(None, None), sizes)

    async def index_status(self) -> Json:
        return await self._of_index(self.upkeep.status())

    async def index_work(self, what: Literal["update", "rebuild", "check"]) -> Json:
        if what == "check":
            return {"faults": await self._of_index(self.upkeep.check())}
        if what == "rebuild":
            self.upkeep.begin_rebuild()
        else:
            await self._of_index(self.upkeep.update())
        return await self.index_status()

    @staticmethod
    async def _of_index(answer: Any) -> Any:
        try:
            return await answer
        except (StoreError, ToolFailure, OSError) as error:
            raise NotDone(str(error)) from error

    # Channels

    async def channels(self, *, probe: bool) -> Json:
        if probe:
            await self.linking.probe()
        return self.health.channels()

    def link_state(self, name: str) -> Json:
        return self.linking.state(name)

    def begin_link(self, name: str, phone: str | None) -> Json:
        return self.linking.begin(name, phone)

    async def logout(self, name: str) -> bool:
        try:
            return await self.linking.logout(name)
        except (NotAccepted, OSError) as error:
            raise NotDone(f"The session was not forgotten: {error}.") from error

    async def more_budget(self) -> bool:
        return await self.spending.give_more()

    async def runs(self) -> Json:
        return {"runs": [run_json(run) for run in await self.store.runs.history(200)]}

    async def jobs(self) -> Json:
        if self.runner is None:
            return {"jobs": []}
        return {"jobs": [job_json(job) for job in await self.runner.list()]}

    async def run_job(self, name: str, kind: str | None = None, arguments: Mapping[str, str] | None = None) -> None:
        try:
            await self._clock(name).run_now(name, _kind(kind), arguments)
        except CannotRun as error:
            raise JobNotDone(str(error)) from error

    async def switch_job(self, name: str, on: bool, kind: str | None = None) -> None:
        await self._clock(name).switch(name, on, _kind(kind))

    def _clock(self, name: str) -> Runner:
        if self.runner is None:
            raise UnknownJob(name)
        return self.runner

    async def retry_delivery(self, key: str) -> bool:
        return await self.outbox.retry(key)

    async def resolve_target(self, target: str) -> Address | None:
        return self.people.address(target)

    # Events

    async def version(self) -> int:
        return await self.store.transcripts.newest_version()

    async def events_since(self, version: int) -> list[tuple[int, Json]]:
        changed = await self._changed_since(version)
        ids = list({conversation for _, conversation, _ in changed})
        records = await self.store.transcripts.conversations(OWNER, ids=ids, limit=len(ids)) if ids else []
        known = {record.id: record for record in records}
        # What changed in a conversation that is gone by now is nothing to show.
        return [
            (at, saved_event(at, known[conversation], message))
            for at, conversation, message in changed
            if conversation in known
        ]

    async def _changed_since(self, version: int) -> list[tuple[int, str, MessageRecord]]:
        """All of it: a client that was away for long misses nothing."""
        changed: list[tuple[int, str, MessageRecord]] = []
        while more := await self.store.transcripts.since(changed[-1][0] if changed else version):
            changed += more
        return changed

    # Files

    def workspace_file(self, path: str) -> Path:
        root = self.workspace.resolve()
        try:
            found = (root / path).resolve()
            is_file = found.is_relative_to(root) and found.is_file()
        except (OSError, RuntimeError, ValueError) as error:  # too long, links in a circle, NUL
            raise FileNotFoundError(path) from error
        if not is_file or any(part.startswith(".") for part in found.relative_to(root).parts):
            raise FileNotFoundError(path)
        return found

    def log_text(self, path: Path) -> str | None:
        """The text of a workspace file that is a read log, without what was removed; None: it is none."""
        if not is_log(path.relative_to(self.workspace.resolve()).as_posix()):
            return None
        return without_removed(path.read_bytes().decode("utf-8", "replace"))


def _args(query: Mapping[str, str]) -> dict[str, Any]:
    """Query values as a tool's arguments: numbers as numbers, empty ones left out."""
    args: dict[str, Any] = {}
    for name, value in query.items():
        if name in _NUMBERS:
            if not value.isdecimal() or len(value) > NUMBER_DIGITS_MAX:
                raise BadQuery(f"`{name}` must be a whole number, not `{value}`.")
            args[name] = int(value)
        elif value:
            args[name] = value
    return args


def _kind(kind: str | None) -> Kind | None:
    """Raises BadQuery."""
    known: Kind | None = next((one for one in KINDS if one == kind), None)
    if kind is not None and known is None:
        raise BadQuery(f"`kind` must be {', '.join(KINDS)}, not `{kind[:40]}`.")
    return known


def job_json(job: JobState, *, clock_on: bool = True) -> dict[str, Any]:
    """One job in the shape of docs/formats.md."""
    on = job.enabled and clock_on
    return {
        "name": job.name,
        "kind": job.kind,
        "schedule": job.schedule,
        "zone": job.zone,
        "enabled": on,
        "next_at": job.next_at.isoformat() if on and job.next_at is not None else None,
        "last": None if job.last is None else run_json(job.last),
        "fault": job.fault,
    }


def run_json(run: Run) -> dict[str, Any]:
    """One run in the shape of docs/formats.md."""

    def iso(at: datetime | None) -> str | None:
        return None if at is None else at.isoformat()

    return {
        "name": run.job,
        "kind": run.kind,
        "due_at": iso(run.due_at),
        "started_at": iso(run.started_at),
        "ended_at": iso(run.ended_at),
        "outcome": run.outcome,
        "late_seconds": run.late_seconds,
        "reason": run.reason,
        "cost_usd": run.cost_usd,
        "conversation": run.conversation,
    }

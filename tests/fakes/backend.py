"""A gateway in memory behind the in-app channel: takes messages, streams answers, and a server to show it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from channels.channel import ChannelContext, ChannelState
from channels.inapp.channel import InAppChannel
from channels.inapp.ports import BadQuery, NotDone, UnknownConversation
from channels.inapp.settings import InAppSettings
from channels.message import Accepted, InboundMessage
from gateway.uploads import UploadFolder

Json = Mapping[str, Any]
Publish = Callable[[str, Json], None]


def now() -> datetime:
    return datetime.now(UTC)


class FakeBackend:
    """Implements `channels.inapp.ports.Backend` and `accept`; lives on when the server in front of it restarts.

    `steps` is what the next answers stream: a str is a piece of text, a Mapping the data of a `tool` event, and an
    asyncio.Event is waited for. `publish` is the observer of the events; a test sets it to a hub's.
    """

    def __init__(self, workspace: Path | None = None) -> None:
        self.workspace = workspace or Path("/nonexistent")
        self.saved: dict[str, dict[str, Any]] = {}
        self.journal: list[tuple[int, Json]] = []
        self.keys: dict[str, tuple[str, str]] = {}
        self.inbound: list[InboundMessage] = []
        self.steps: Sequence[Any] = ("Hello ", "from ", "**Hudhud**.")
        self.tool_calls: Sequence[Json] = ()
        self.publish: Publish = lambda kind, data: None
        self.refusal: Exception | None = None
        self.stopped: list[str] = []
        self.questions: dict[str, dict[str, Any]] = {}
        self.answers: list[tuple[str, bool]] = []
        self.started_jobs: list[str] = []
        self.known_jobs: list[dict[str, Any]] = []
        self.hits: Sequence[Json] = ()
        self.state: dict[str, Any] = {
            "version": "0.1.0",
            "uptime_seconds": 93_784,
            "queue": {"waiting": 0, "running": 0},
            "channels": [],
            "next_jobs": [],
            "index": {},
        }
        self.past_runs: list[Json] = []
        self.links: dict[str, Json] = {}
        self.probes = 0
        self.held: dict[str, asyncio.Event] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def hold(self, conversation: str) -> None:
        """What comes into this conversation from now on waits for `release`."""
        self.held[conversation] = asyncio.Event()

    def release(self, conversation: str) -> None:
        self.held[conversation].set()

    def add_conversation(self, conversation: str, *, channel: str = "inapp", title: str = "") -> None:
        self.saved[conversation] = {
            "id": conversation,
            "sessionKey": f"{channel}:{conversation}",
            "channel": channel,
            "chat": conversation,
            "title": title,
            "updated_at": now().isoformat(),
            "messages": [],
        }

    def save(self, conversation: str, role: str, text: str, **more: Any) -> Json:
        """Saves a message and publishes it; `more` are fields of the message."""
        return self._save(conversation, role, text, None, more)

    async def accept(self, message: InboundMessage) -> Accepted:
        if self.refusal is not None:
            raise self.refusal
        key = message.dedupe_key
        if key in self.keys:
            return Accepted(*self.keys[key], is_new=False, will_answer=True)
        self.inbound.append(message)
        if message.chat_id not in self.saved:
            self.add_conversation(message.chat_id, title=message.text[:60])
        more = {
            "sender": "Owner",
            "state": "running",
            "attachments": [asdict(attachment) for attachment in message.attachments],
        }
        saved = self._save(message.chat_id, "user", message.text, None, more)
        self.keys[key] = (saved["id"], message.chat_id)
        task = asyncio.create_task(self._answer(message.chat_id, saved, self.held.get(message.chat_id)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return Accepted(saved["id"], message.chat_id, is_new=True, will_answer=True)

    async def conversation_for_message(self, wanted: str | None, key: str) -> str:
        if wanted not in {None, "new"}:
            if wanted not in self.saved:
                raise UnknownConversation(wanted)
            return str(wanted)
        if key in self.keys:
            return self.keys[key][1]
        here = [item for item in self.saved.values() if item["channel"] == "inapp"]
        if wanted is None and here:
            return str(max(here, key=lambda item: item["updated_at"])["id"])
        return f"c{len(self.saved) + 1}"

    async def conversations(self, query: Mapping[str, str]) -> Json:
        if not query.get("limit", "20").isdigit():
            raise BadQuery("`limit` must be a number from 1 to 100.")
        newest = sorted(self.saved.values(), key=lambda item: item["updated_at"], reverse=True)
        return {"conversations": [self._summary(item["id"]) for item in newest]}

    async def conversation(self, conversation_id: str, first: int | None, last: int | None) -> Json:
        if conversation_id not in self.saved:
            raise UnknownConversation(conversation_id)
        found = self.saved[conversation_id]["messages"]
        chosen = [item for item in found if (first or 1) <= item["n"] <= (last or len(found))]
        return {**self._summary(conversation_id), "messages": chosen}

    async def remove_conversation(self, conversation_id: str) -> Json:
        if conversation_id not in self.saved:
            raise UnknownConversation(conversation_id)
        if any(item["state"] == "running" for item in self.saved[conversation_id]["messages"]):
            raise NotDone(f"conversation:{conversation_id}#1 is being answered just now.")
        gone = self.saved.pop(conversation_id)
        self.publish("status", {"conversation": conversation_id, "turn": None, "removed": "all"})
        return {"messages": len(gone["messages"]), "kept": []}

    async def search(self, query: Mapping[str, str]) -> Json:
        words = query["query"].lower()
        hits = [hit for hit in self.hits if words in hit["snippet"].lower()]
        return {"hits": hits, "indexing": False, "hint": None}

    async def usage(self, query: Mapping[str, str]) -> Json:
        if query.get("period") == "yesteryear":
            raise BadQuery("period is 'yesteryear'.")
        return {"period": query.get("period", "today"), "requests": 0, "models": []}

    async def status(self) -> Json:
        return self.state

    async def index_status(self) -> Json:
        return self.state["index"]

    async def index_work(self, what: str) -> Json:
        return {"faults": []} if what == "check" else self.state["index"]

    async def runs(self) -> Json:
        return {"runs": self.past_runs}

    async def channels(self, *, probe: bool) -> Json:
        self.probes += probe
        return {"channels": self.state["channels"]}

    def link_state(self, name: str) -> Json:
        if name not in self.links:
            raise LookupError(f"{name} is not on, or cannot be linked.")
        return self.links[name]

    def begin_link(self, name: str, phone: str | None) -> Json:
        state = self.link_state(name)
        if phone is not None and not phone.lstrip("+").isdigit():
            raise ValueError("a phone number with its country code")
        self.links[name] = {**state, "state": "starting", "phone": phone}
        return self.links[name]

    async def logout(self, name: str) -> bool:
        self.link_state(name)
        self.links[name] = {**self.links[name], "state": "off"}
        return True

    async def stop(self, conversation_id: str) -> bool:
        if conversation_id not in self.saved:
            raise UnknownConversation(conversation_id)
        self.stopped.append(conversation_id)
        return True

    def ask(self, conversation: str, what: str, **more: Any) -> dict[str, Any]:
        """A turn of the conversation asks the owner; `more` are fields of the event."""
        question: dict[str, Any] = {
            "conversation": conversation,
            "turn": f"t-{conversation}",
            "id": f"q{len(self.questions) + 1}",
            "what": what,
            "reason": "It deletes files.",
            "from": "Owner",
            "state": "open",
            **more,
        }
        self.questions[question["id"]] = question
        self.publish("approval", question)
        return question

    def close_question(self, question_id: str, state: str) -> None:
        self.publish("approval", {**self.questions.pop(question_id), "state": state})

    async def approve(self, question_id: str, allow: bool) -> bool:
        if question_id not in self.questions:
            return False
        self.answers.append((question_id, allow))
        self.close_question(question_id, "allowed" if allow else "denied")
        return True

    async def jobs(self) -> Json:
        return {"jobs": self.known_jobs}

    async def run_job(self, name: str, kind: str | None = None, arguments: Mapping[str, str] | None = None) -> None:
        self.started_jobs.append(name)

    async def switch_job(self, name: str, on: bool, kind: str | None = None) -> None:
        for job in self.known_jobs:
            if (job["name"], job["kind"]) == (name, kind or job["kind"]):
                job["enabled"] = on

    async def retry_delivery(self, key: str) -> bool:
        return key in self.keys

    async def events_since(self, version: int) -> list[tuple[int, Json]]:
        return [(at, data) for at, data in self.journal if at > version]

    async def version(self) -> int:
        return self.journal[-1][0] if self.journal else 0

    def workspace_file(self, path: str) -> Path:
        found = (self.workspace / path).resolve()
        if not found.is_relative_to(self.workspace.resolve()) or not found.is_file():
            raise FileNotFoundError(path)
        return found

    def log_text(self, path: Path) -> str | None:
        return None

    def _summary(self, conversation: str) -> dict[str, Any]:
        item = self.saved[conversation]
        last = item["messages"][-1]["text"] if item["messages"] else ""
        count = len(item["messages"])
        return {**{k: v for k, v in item.items() if k != "messages"}, "message_count": count, "last_text": last}

    def _save(self, conversation: str, role: str, text: str, turn: str | None, more: Json) -> dict[str, Any]:
        item = self.saved[conversation]
        n = len(item["messages"]) + 1
        message: dict[str, Any] = {
            "n": n,
            "id": f"m-{conversation}-{n}",
            "role": role,
            "text": text,
            "sender": "Hudhud" if role == "assistant" else "Owner",
            "at": now().isoformat(),
            "state": "answered",
            "flags": [],
            "attachments": [],
            "tool_calls": [],
            **more,
        }
        item["messages"].append(message)
        item["updated_at"] = message["at"]
        data = {"conversation": conversation, "turn": turn, "message": message, "summary": self._summary(conversation)}
        version = len(self.journal) + 1
        self.journal.append((version, data))
        self.publish("message", {**data, "version": version})
        return message

    async def _answer(self, conversation: str, asked: dict[str, Any], held: asyncio.Event | None) -> None:
        if held is not None:
            await held.wait()
        turn = f"t-{conversation}-{len(self.journal)}"
        about = {"conversation": conversation, "turn": turn}
        text = ""
        for step in self.steps:
            if isinstance(step, str):
                text += step
                self.publish("delta", {**about, "text": step})
            elif isinstance(step, asyncio.Event):
                await step.wait()
            else:
                self.publish("tool", {**about, **step})
            await asyncio.sleep(0)
        asked["state"] = "answered"
        message = self._save(conversation, "assistant", text, turn, {"tool_calls": list(self.tool_calls)})
        self.publish("done", {**about, "message": message, "version": len(self.journal)})


class FakeHealth:
    """Remembers the last state a channel reported."""

    def __init__(self) -> None:
        self.last: tuple[str, str] = ("starting", "")
        self.receipts = 0

    def state(self, state: ChannelState, detail: str = "", remedy: str = "") -> None:
        self.last = (state, detail)

    def received(self) -> None:
        self.receipts += 1


class FakeMemory:
    """The small durable facts of a channel, in a dict."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}

    async def get(self, key: str) -> str | None:
        return self.facts.get(key)

    async def put(self, key: str, value: str) -> None:
        self.facts[key] = value

    async def migrate_chat(self, old_chat_id: str, new_chat_id: str, *, renumbered: bool = False) -> None:
        pass


class PageServer:
    """The in-app channel on a real socket of this machine. `start` and `stop` may alternate on one port."""

    def __init__(
        self, backend: FakeBackend, home: Path, *, token: str = "", clock: Callable[[], datetime] = now
    ) -> None:
        self.backend = backend
        self.home = home
        self.settings = InAppSettings.model_validate({"token": token, "port": 0})
        self.clock = clock
        self.health = FakeHealth()
        self.port = 0
        self.accepting = True

    async def start(self) -> None:
        context = ChannelContext(
            settings=self.settings,
            home=self.home,
            health=self.health,
            memory=FakeMemory(),
            uploads=UploadFolder(self.home / "workspace", self.clock),
            backend=self.backend,
            now=self.clock,
        )
        self.channel = InAppChannel(context)
        self.backend.publish = self.channel.hub.publish
        app = web.Application(client_max_size=20 * 1024 * 1024)
        app.add_routes(self.channel.routes())
        self._runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self._listening: asyncio.Task[None] | None = None
        if self.accepting:
            self.listen()

    def listen(self) -> None:
        """What the supervisor does: lets the channel take messages."""
        self._listening = asyncio.create_task(self.channel.run(self.backend.accept))

    async def stop(self) -> None:
        self.backend.publish = lambda kind, data: None
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        self.channel.hub.close()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        return self.url + self.channel.new_link()

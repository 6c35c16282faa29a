"""Server-sent events: what happens now to every client, and what a client missed to one that comes back.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html. An event id is `<version>.<n>`: the version of
the newest saved change when it was published, and a count that goes on from the start time in microseconds, so that
no id of an earlier process is taken for one of this.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from channels.inapp.limits import EVENTS_KEPT, HEARTBEAT_SECONDS
from channels.inapp.ports import Backend, Json


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `version` and `n` make its id; `saved` is the version of the change it tells of, 0 for none."""

    kind: str
    data: Json
    version: int
    n: int
    saved: int = 0

    @property
    def id(self) -> str:
        return f"{self.version}.{self.n}"

    def frame(self) -> bytes:
        """The event as it goes over the wire."""
        body = {key: value for key, value in self.data.items() if key != "version"}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self.id}\nevent: {self.kind}\ndata: {text}\n\n".encode("utf-8", "replace")


class _LiveTurn:
    """What a running turn has shown so far."""

    __slots__ = ("pieces", "tools", "turn")

    def __init__(self, turn: Any) -> None:
        self.turn = turn
        self.pieces: list[str] = []
        self.tools: dict[Any, Json] = {}


class EventHub:
    """Takes the gateway's events and hands them to all subscribers.

    A subscriber is a place in one ring of events, not a queue of its own: one that is too slow falls out of the ring
    and goes on from the saved messages, as one that was away does.
    """

    def __init__(
        self, backend: Backend, *, kept: int = EVENTS_KEPT, heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self._backend = backend
        self._heartbeat_seconds = heartbeat_seconds
        self._ring: deque[Event] = deque(maxlen=kept)
        self._start = time.time_ns() // 1000
        self._n = self._start
        self._version = 0
        self._live: dict[Any, _LiveTurn] = {}
        self._asked: dict[Any, Json] = {}
        self._wakers: set[asyncio.Event] = set()
        self._open = True

    def publish(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tells all clients. Cheap; call it in the event loop, in the order of the commits.

        `data` holds `conversation` and `turn`, and what the kind has (docs/formats.md); with `message` and `done`
        also `version`, the version of the saved change. The mapping must not be changed afterwards. A turn that
        published anything ends with `done` or `error`.
        """
        saved = int(data.get("version") or 0)
        self._version = max(self._version, saved)
        self._n += 1
        self._ring.append(Event(kind, data, self._version, self._n, saved))
        self._follow(kind, data)
        for waker in self._wakers:
            waker.set()

    def open(self) -> None:
        """From now on clients are served (again)."""
        self._open = True

    def close(self) -> None:
        """Ends every subscription; clients come back by themselves."""
        self._open = False
        for waker in self._wakers:
            waker.set()

    async def subscribe(self, last_event_id: str | None = None) -> AsyncGenerator[Sequence[Event]]:
        """Everything after `last_event_id`, then what happens, in batches; an empty batch is a heartbeat.

        The first batch comes at once, also when it is empty: from then on nothing is missed.

        Without an id: a `status` whose `running` lists the conversations with a turn, what those turns have shown so
        far, the questions that are open, then what happens. An id the ring does not hold: the messages saved after its
        version, then the same.
        Deltas of one turn in one batch come joined.
        """
        waker = asyncio.Event()
        self._wakers.add(waker)
        try:
            version, cursor = _parse_id(last_event_id) or (await self._backend.version(), 0)
            seen, told = 0, False
            while self._open:
                waker.clear()
                if not self._holds(cursor):
                    # The place in the ring and the running turns are taken in one step, before the wait.
                    cursor, running = self._n, self._running()
                    missed = [
                        Event("message", data, at, 0, at) for at, data in await self._backend.events_since(version)
                    ]
                    seen = version = max([version, *(event.version for event in missed)])
                    told = True
                    yield [*missed, *(replace(event, version=version) for event in running)]
                    continue
                news = [event for event in self._after(cursor) if event.kind != "message" or event.saved > seen]
                cursor, version = self._n, max(version, self._version)
                if news or not told:
                    told = True
                    yield _joined(news)
                    continue
                try:
                    async with asyncio.timeout(self._heartbeat_seconds):
                        await waker.wait()
                except TimeoutError:
                    yield ()
        finally:
            self._wakers.discard(waker)

    def _holds(self, n: int) -> bool:
        """Whether all events after number `n` of this process are still in the ring."""
        return max(self._start, self._n - len(self._ring)) <= n <= self._n

    def _after(self, n: int) -> list[Event]:
        # From the right: a deque is walked from its end, so the cost is that of what is new, not of the ring.
        newest_first = list(islice(reversed(self._ring), self._n - n))
        return newest_first[::-1]

    def _running(self) -> list[Event]:
        """Which turns run, what they have shown and ask: as events that bring a client there from anything."""
        running = {"conversation": None, "turn": None, "running": list(self._live)}
        events = [Event("status", running, 0, 0)]
        for conversation, live in self._live.items():
            about = {"conversation": conversation, "turn": live.turn}
            events.append(Event("reset", about, 0, 0))
            events.extend(Event("tool", tool, 0, 0) for tool in live.tools.values())
            if live.pieces:
                live.pieces = ["".join(live.pieces)]
                events.append(Event("delta", {**about, "text": live.pieces[0]}, 0, 0))
        events.extend(Event("approval", question, 0, 0) for question in self._asked.values())
        return events

    def _follow(self, kind: str, data: Json) -> None:
        conversation = data.get("conversation")
        if kind in {"done", "error"}:
            self._live.pop(conversation, None)
        elif kind in {"delta", "reset", "tool", "approval"}:
            live = self._live.get(conversation)
            if live is None or live.turn != data.get("turn"):
                live = self._live[conversation] = _LiveTurn(data.get("turn"))
            if kind == "delta":
                live.pieces.append(data["text"])
            elif kind == "reset":
                live.pieces.clear()
            elif kind == "approval":
                self._ask(data)
            else:
                live.tools[data.get("n")] = data

    def _ask(self, question: Json) -> None:
        if question.get("state") == "open":
            self._asked[question.get("id")] = question
        else:
            self._asked.pop(question.get("id"), None)


def _parse_id(text: str | None) -> tuple[int, int] | None:
    """`<version>.<n>`; None for anything else."""
    version, dot, n = (text or "").partition(".")
    if not dot or not (version.isascii() and version.isdigit() and n.isascii() and n.isdigit()) or len(version) > 18:
        return None
    return int(version), int(n[:18])


def _joined(events: Sequence[Event]) -> list[Event]:
    """Deltas of one turn that follow each other become one, with the id of the last."""
    joined: list[Event] = []
    pieces: list[str] = []
    for event in events:
        before = joined[-1] if joined else None
        if (
            before is not None
            and event.kind == before.kind == "delta"
            and event.data.get("turn") == before.data.get("turn")
            and event.data.get("conversation") == before.data.get("conversation")
        ):
            pieces.append(event.data["text"])
            joined[-1] = replace(event, data={**event.data, "text": "".join(pieces)})
        else:
            pieces = [event.data["text"]] if event.kind == "delta" else []
            joined.append(event)
    return joined

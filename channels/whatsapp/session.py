"""One connection of the library, from its dial to its end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ctypes
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from channels.channel import ChannelDown
from channels.whatsapp.journal import Entry
from channels.whatsapp.library import Library
from channels.whatsapp.limits import (
    CALL_SECONDS_MAX,
    DRAIN_SECONDS,
    DRAIN_SECONDS_MAX,
    HOLD_SECONDS_MAX,
    STOP_SECONDS_MAX,
)
from channels.whatsapp.states import EXPIRED, down_of_error, down_of_event, logged_out

LOG = logging.getLogger(__name__)

Kind = Literal["qr", "paired", "connected", "disconnected", "silent", "alive", "down"]
Keep = Callable[[int, bytes], "Entry | None"]
Take = Callable[[Any, "Entry | None"], Coroutine[Any, Any, None]]

KEPT_EVENTS = ("Message", "HistorySync", "GroupInfoEvent")
"""Events of the library that say something to the log; they are held until it is saved."""
_STATE_EVENTS: dict[str, Kind] = {
    "Connected": "connected",
    "Disconnected": "disconnected",
    "KeepAliveTimeout": "silent",
    "KeepAliveRestored": "alive",
    "PairStatus": "paired",
    "OfflineSyncCompleted": "alive",
    "LoggedOut": "down",
    "StreamReplaced": "down",
    "TemporaryBan": "down",
    "ConnectFailure": "down",
    "ClientOutdated": "down",
}


@dataclass(frozen=True, slots=True)
class Signal:
    """What became of the connection. `text`: the QR. `down`: what it means that the connection is gone."""

    kind: Kind
    text: str = ""
    down: ChannelDown | None = None


class NotConnected(Exception):
    """There is no connection to do this with."""


class Session:
    """`keep` writes an event down on the library's own thread; `take` brings it to the gateway on the loop.

    The library's thread is held until `take` has returned, for HOLD_SECONDS_MAX at most: order and back-pressure.
    """

    def __init__(self, library: Library, client: Any, keep: Keep, take: Take, now: Callable[[], datetime]) -> None:
        self._library = library
        self._client = client
        self._keep = keep
        self._take = take
        self._now = now
        self.signals: asyncio.Queue[Signal] = asyncio.Queue()
        self.connected = asyncio.Event()
        self.heard_at = now()
        self._events = 0
        self._closing = False
        self._held: set[concurrent.futures.Future[None]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._dial: asyncio.Future[Any] | None = None

    async def start(self) -> None:
        """Dials; how that goes comes as signals. Raises what the library raises before it dials."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        # The library keeps the first loop it sees for good; in a process with a second one that would be a dead one.
        self._library.loop_events.event_global_loop = self._loop
        for name in KEPT_EVENTS:
            kind = getattr(self._library.proto, name)
            self._client.event(kind)(self._holder(self._library.events.EVENT_TO_INT[kind]))
        for name, signal in _STATE_EVENTS.items():
            self._client.event(getattr(self._library.proto, name))(self._teller(signal))
        self._client.event.qr(self._on_qr)
        # The library has no event for codes that nobody used, only this hook, and does nothing in it.
        self._client._NewAClient__onLoginStatus = self._on_login_status
        dial = await self._client.connect()
        if isinstance(dial, asyncio.Future):
            self._dial = dial
            dial.add_done_callback(self._ended)  # pyright: ignore[reportUnknownMemberType]

    def tell(self, signal: Signal) -> None:
        self.signals.put_nowait(signal)

    # -- what comes

    def _teller(self, kind: Kind) -> Callable[[Any, Any], Awaitable[None]]:
        async def tell(_client: Any, event: Any) -> None:
            self._alive()
            down = None
            if kind == "connected":
                self.connected.set()
            elif kind == "disconnected":
                self.connected.clear()
            elif kind == "down":
                down = down_of_event(event)
                self.connected.clear()
            elif kind == "paired" and event.Error:
                self.tell(Signal("down", down=down_of_error(f"pairing failed: {event.Error}")))
                return
            self.tell(Signal(kind, down=down))

        return tell

    async def _on_qr(self, _client: Any, data: bytes) -> None:
        self._alive()
        self.tell(Signal("qr", data.decode("utf-8", "replace")))

    def _on_login_status(self, _session_id: int, status: int) -> None:
        """Runs on the library's thread. `status` points to a C string: `success`, `timeout`, or an error."""
        if ctypes.string_at(status) == b"timeout":
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.tell, Signal("down", down=logged_out(EXPIRED)))

    def _ended(self, dial: asyncio.Future[Any]) -> None:
        self.connected.clear()
        if dial.cancelled():
            return
        error = dial.exception()
        why = str(error) if error is not None else "the library ended the connection"
        self.tell(Signal("down", down=down_of_error(why)))

    def _alive(self) -> None:
        self._events += 1
        self.heard_at = self._now()

    def _holder(self, kind: int) -> Callable[[Any, Any], Coroutine[Any, Any, None]]:
        def hold(_client: Any, event: Any) -> Coroutine[Any, Any, None]:
            """Runs on the library's thread, which goes on with the next event when this returns."""
            self._alive()
            entry = self._keep(kind, event.SerializeToString())
            if threading.get_ident() == self._thread:
                return self._take(event, entry)
            if not self._closing:
                self._wait_for(self._take(event, entry))
            return _nothing()

        return hold

    def _wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            return
        self._held.add(future)
        try:
            future.result(HOLD_SECONDS_MAX)
        except TimeoutError:
            LOG.warning("A message from WhatsApp is not saved after %.0f s; the next one is heard.", HOLD_SECONDS_MAX)
        except concurrent.futures.CancelledError:
            pass
        finally:
            self._held.discard(future)

    # -- what is asked for

    async def until_connected(self, seconds_max: float) -> None:
        """Raises NotConnected when the line is not there in time."""
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(self.connected.wait())]
        if self._dial is not None:
            waiting.append(asyncio.ensure_future(_ended(self._dial)))
        try:
            await asyncio.wait(waiting, timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        if not self.connected.is_set():
            raise NotConnected(self._why())

    def _why(self) -> str:
        if self._dial is not None and self._dial.done() and not self._dial.cancelled() and self._dial.exception():
            return str(self._dial.exception())
        return "WhatsApp does not answer"

    async def call(self, name: str, *args: Any, seconds_max: float = CALL_SECONDS_MAX, early: bool = False) -> Any:
        """Calls a method of the client. `early`: before it is connected. Raises NotConnected, TimeoutError, and the
        library's NeonizeError.

        The native side takes the whole program down when it is asked for a client that is gone, so no call begins
        after the stop, and the stop waits for those under way.
        """
        if self._closing or not (self.connected.is_set() or (early and self._events)):
            raise NotConnected("there is no connection to WhatsApp")
        task = asyncio.ensure_future(getattr(self._client, name)(*args))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        done, _ = await asyncio.wait({task}, timeout=seconds_max)
        if not done:
            # It cannot be called off; its result is not looked at any more.
            task.add_done_callback(_forgotten)
            self._calls.discard(task)
            raise TimeoutError(f"{name} took more than {seconds_max:.0f} s")
        return task.result()

    # -- the end

    async def stop(self) -> None:
        """Ends the connection within some 5 s. What the library has taken already is written down first."""
        self._closing = True
        self.connected.clear()
        for future in tuple(self._held):
            future.cancel()
        is_up = self._events > 0 and (self._dial is None or not self._dial.done())
        if is_up:
            await self._within(STOP_SECONDS_MAX, self._client.disconnect())
            await self._drained()
        if self._calls:
            await asyncio.wait(self._calls, timeout=STOP_SECONDS_MAX)
        await self._within(STOP_SECONDS_MAX, self._client.stop())
        if self._dial is not None and not self._dial.done():
            await asyncio.wait({self._dial}, timeout=DRAIN_SECONDS)
            self._dial.cancel()

    async def _within(self, seconds_max: float, work: Awaitable[Any]) -> None:
        with contextlib.suppress(TimeoutError, self._library.errors.NeonizeError):
            await asyncio.wait_for(work, seconds_max)

    async def _drained(self) -> None:
        seen = -1
        for _ in range(int(DRAIN_SECONDS_MAX / DRAIN_SECONDS)):
            if seen == self._events:
                return
            seen = self._events
            await asyncio.sleep(DRAIN_SECONDS)


async def _nothing() -> None:
    """What the library runs on the loop after the held event: everything is done by then."""


async def _ended(dial: asyncio.Future[Any]) -> None:
    await asyncio.wait({dial})


def _forgotten(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and task.exception() is not None:
        LOG.debug("A call that was given up ended with %s", task.exception())

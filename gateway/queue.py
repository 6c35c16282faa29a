"""The one agent queue: a lane for each session, lanes side by side, people before the clock, recovery at start."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Literal

from agent.types import Turn, TurnPort, TurnResult
from channels.channel import Channel
from channels.message import Address
from gateway.approvals import Approvals
from gateway.config import Settings
from gateway.drafts import Drafts
from gateway.events import reply_event, saved_event
from gateway.history import turn_of
from gateway.lanes import ClockDesk, Lane
from gateway.limits import (
    RUN_NOTE_CHARS,
    RUN_SECONDS_MAX,
    RUNS_MAX,
    SEND_PAUSES_SECONDS,
    STOP_SECONDS_MAX,
    TEXT_CHARS_MAX,
    TURN_ATTEMPTS_MAX,
    TURN_SECONDS_MAX,
)
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.port import Port
from gateway.readlog import ReadLog
from gateway.sentences import Language, language_of, sentence
from gateway.store import Store, StoreError
from gateway.store.results import Finished, Result
from gateway.store.types import NOWHERE, Claim, address_of, reply_to_of, run_of
from gateway.words import said

LOG = logging.getLogger(__name__)

RunTurn = Callable[[Turn, TurnPort], Awaitable[TurnResult]]
Quiet = Callable[[str], bool]


class Queue:
    """Runs turns. The database holds what waits; this holds only who is next."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        outbox: Outbox,
        readlog: ReadLog,
        channels: Mapping[str, Channel],
        observers: Observers,
        approvals: Approvals,
        run_turn: RunTurn,
        now: Callable[[], datetime],
        *,
        is_quiet: Quiet,
        is_held: Callable[[str], bool] = lambda session_key: False,
        drafts: Drafts | None = None,
        turn_seconds_max: float = TURN_SECONDS_MAX,
        stop_seconds_max: float = STOP_SECONDS_MAX,
        retry_seconds: float = SEND_PAUSES_SECONDS[1],
    ) -> None:
        self._settings = settings
        self._store = store
        self._outbox = outbox
        self._readlog = readlog
        self._channels = channels
        self._observe = observers
        self._approvals = approvals
        self._run_turn = run_turn
        self._now = now
        self._is_quiet = is_quiet
        self._is_held = is_held
        self._drafts = drafts
        self._turn_seconds_max = turn_seconds_max
        self._stop_seconds_max = stop_seconds_max
        self._retry_seconds = retry_seconds
        self._offline: set[str] = set()
        self._lanes: dict[str, Lane] = {}
        self._people: deque[Lane] = deque()
        self._scheduled: deque[Lane] = deque()
        self._runs = 0
        self._active: set[asyncio.Task[None]] = set()
        self._open = True
        self.clock: ClockDesk | None = None

    async def recover(self) -> int:
        """At start: everything that waited or ran when the program ended waits again. How many sessions."""
        await self._store.recover(self._now())
        sessions = await self._store.waiting_sessions()
        for session_key, origin in sessions:
            self.wake(session_key, scheduled=origin == "scheduled")
        return len(sessions)

    def wake(self, session_key: str, *, scheduled: bool) -> bool:
        """A message waits in this session: its lane starts at once when it is idle and a worker is free.

        False when it must wait.
        """
        lane = self._lanes.setdefault(session_key, Lane(session_key, scheduled))
        if lane.running is not None:
            lane.again = True
        elif not lane.queued:
            lane.queued = True
            (self._scheduled if scheduled else self._people).append(lane)
        self._start_more()
        return lane.running is not None and not lane.again

    def moved(self, old_key: str, new_key: str) -> None:
        """A chat has a new id, and what waits there waits under the new session from now on."""
        lane = self._lanes.get(old_key)
        if lane is not None and new_key not in self._lanes:
            del self._lanes[old_key]
            lane.session_key = new_key
            self._lanes[new_key] = lane
        self.wake(new_key, scheduled=False)

    async def stop(self, session_key: str, guest: str | None = None) -> bool:
        """Ends the running turn of a session, of a `guest` only their own; returns when it has ended. False: none."""
        lane = self._lanes.get(session_key)
        if lane is None or lane.running is None or lane.finishing:
            return False
        if guest is not None and (lane.claim is None or lane.claim.messages[0].sender_id != guest):
            return False
        self._cancel(lane, "stopped")
        await asyncio.wait({lane.running})
        return True

    @staticmethod
    def _cancel(lane: Lane, reason: Literal["stopped", "shutdown"]) -> None:
        lane.stop_reason = reason
        if lane.turn is not None:
            lane.turn.cancel()

    async def close(self) -> None:
        """Begins nothing more, gives running turns a moment, takes the rest back for the next start."""
        self._open = False
        if not self._active:
            return
        _, late = await asyncio.wait(self._active, timeout=self._stop_seconds_max)
        for lane in self._lanes.values():
            if lane.running in late and not lane.finishing:
                self._cancel(lane, "shutdown")
        if late:
            _, stuck = await asyncio.wait(late, timeout=self._stop_seconds_max)
            # What hangs here waits for a disk that is full; its messages are `running` in the database and recovered.
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)

    @property
    def running(self) -> int:
        return len(self._active)

    def _start_more(self) -> None:
        """People first; runs of the clock have few places, so that whoever writes finds one."""
        workers = self._settings.agent.workers
        runs_max = max(1, min(RUNS_MAX, workers - 1))
        while self._open and len(self._active) < workers:
            if not self._people and (not self._scheduled or self._runs >= runs_max):
                return
            lane = (self._people or self._scheduled).popleft()
            self._runs += lane.scheduled
            lane.queued = False
            lane.again = False
            lane.running = asyncio.create_task(self._work(lane), name=f"lane {lane.session_key}")
            self._active.add(lane.running)

    async def _work(self, lane: Lane) -> None:
        """One turn of a lane, if something waits in it."""
        more = False
        try:
            more = await self._next_turn(lane)
        except StoreError as error:
            # A full disk or a busy database is no fault of the messages.
            LOG.error("%s", error)
            more = await self._put_back(lane, counts=False)
        except Exception as error:
            LOG.exception("a turn of %s failed", lane.session_key)
            more = await self._failed(lane, error)
        finally:
            task = lane.running
            lane.running, lane.stop_reason, lane.finishing, lane.claim = None, None, False, None
            self._active.discard(task)  # type: ignore[arg-type]
            self._runs -= lane.scheduled
            if (more or lane.again) and self._open:
                self.wake(lane.session_key, scheduled=lane.scheduled)
            else:
                self._lanes.pop(lane.session_key, None)
                self._start_more()

    async def _failed(self, lane: Lane, error: Exception) -> bool:
        """A fault in a turn is told to its person; one in finishing it lets it wait for another try. True."""
        claim, lane.claim = lane.claim, None
        if claim is None:
            return await self._put_back(lane, counts=True)
        text = said(claim.messages)
        reply = sentence("fault", language_of(text, self._settings.agent.language))
        await self._finish(claim, TurnResult(claim.turn_id, "failed", reply, error=f"{type(error).__name__}: {error}"))
        return True

    async def _put_back(self, lane: Lane, *, counts: bool) -> bool:
        """What a broken-off turn had taken waits again, as soon as the database can be written; True."""
        while True:
            await asyncio.sleep(self._retry_seconds)
            try:
                await self._store.put_back(lane.session_key, counts=counts)
            except StoreError as error:
                LOG.error("%s", error)
                continue
            return True

    async def _next_turn(self, lane: Lane) -> bool:
        """Runs one turn; True when there may be another one."""
        # What is held is woken when it is whole.
        claim = None if self._is_held(lane.session_key) else await self._store.take(lane.session_key, self._now())
        if claim is None:
            return False
        lane.claim = claim
        first = claim.messages[0]
        await self._readlog.caught_up(first.address.channel, first.address.chat_id)
        result = await self._run_stoppable(lane, claim)
        lane.claim = None
        if result is not None and result.waits:
            await self._wait_for_network(claim)
            return False
        self._offline.discard(lane.session_key)
        if result is None:
            await self._store.release(claim.turn_id)
            return False
        lane.finishing = True
        await self._finish(claim, result)
        return True

    async def _wait_for_network(self, claim: Claim) -> None:
        """The model's line is down: the messages wait, their person is told once, and the turn is tried again."""
        await self._store.release(claim.turn_id)
        first = claim.messages[0]
        scheduled = first.origin == "scheduled"
        if not scheduled and claim.session_key not in self._offline:
            self._offline.add(claim.session_key)
            info = self._channels[first.address.channel].info
            text = sentence("no_line", language_of(first.text, self._settings.agent.language))
            key, now = f"no-line:{claim.turn_id}:{claim.attempts}", self._now()
            told = await self._store.notice(first.address, info.conversations, text, key, info.saved_is_sent, now)
            self._outbox.put(told)
            about = {"conversation": claim.conversation_id, "turn": claim.turn_id, "message": text, "kept": True}
            self._observe("error", about)
        asyncio.get_running_loop().call_later(
            self._retry_seconds, lambda: self.wake(claim.session_key, scheduled=scheduled)
        )

    async def _run_stoppable(self, lane: Lane, claim: Claim) -> TurnResult | None:
        """The turn's result; None when the program is stopping and the turn is left to the next start."""
        if lane.stop_reason is None:
            lane.turn = task = asyncio.create_task(self._run(lane, claim), name=f"turn {claim.turn_id}")
            await asyncio.wait({task})
            lane.turn = None
            if not task.cancelled():
                return task.result()
        if lane.stop_reason == "shutdown":
            return None
        return TurnResult(claim.turn_id, "stopped", "".join(lane.said).strip())

    async def _run(self, lane: Lane, claim: Claim) -> TurnResult:
        """The turn's result; raises what the turn raised."""
        text = said(claim.messages)
        language = language_of(text, self._settings.agent.language)
        if claim.attempts > TURN_ATTEMPTS_MAX:
            LOG.error("turn %s broke off %d times and is given up", claim.turn_id, claim.attempts - 1)
            return TurnResult(claim.turn_id, "failed", sentence("given_up", language), error="given up")
        turn = self._turn(claim, text[:TEXT_CHARS_MAX])
        lane.said = []
        port = self._port(lane, claim, turn, language)
        draft = None if self._drafts is None else self._drafts.open(claim, lane.said)
        seconds = min(self._turn_seconds_max, RUN_SECONDS_MAX) if lane.scheduled else self._turn_seconds_max
        try:
            async with asyncio.timeout(seconds):
                return await self._run_turn(turn, port)
        except TimeoutError:
            minutes = max(1, round(seconds / 60))
            reply = sentence("timed_out", language).format(minutes=minutes)
            return TurnResult(claim.turn_id, "failed", reply, error="timed out")
        finally:
            if draft is not None:
                await draft.close()

    def _port(self, lane: Lane, claim: Claim, turn: Turn, language: Language) -> Port:
        return Port(
            turn,
            claim,
            lane.said,
            lambda: lane.again and not self._is_held(lane.session_key),
            lambda: lane.stop_reason == "stopped",
            store=self._store,
            readlog=self._readlog,
            approvals=self._approvals,
            observers=self._observe,
            now=self._now,
            language=language,
        )

    def _turn(self, claim: Claim, text: str) -> Turn:
        first = claim.messages[0]
        channel = self._channels.get(first.address.channel)
        job = self.clock.job(*run_of(first)) if self.clock is not None and first.origin == "scheduled" else None
        style = "" if channel is None else channel.info.style
        return turn_of(claim, text, style=style, job=job, started_at=self._now())

    async def _finish(self, claim: Claim, result: TurnResult) -> None:
        first = claim.messages[0]
        target, cut = self._target(claim)
        if result.status == "stopped" and target is not None and not self._channels[target.channel].info.saved_is_sent:
            # Whoever stopped it has had the answer to that; the part that was said is kept, not sent.
            target = None
        info = None if target is None else self._channels[target.channel].info
        quiet = first.origin == "scheduled" and result.status == "done" and self._is_quiet(result.reply)
        now, alert = self._now(), None
        if first.origin == "scheduled" and self.clock is not None and result.status != "stopped" and not quiet:
            alert = self.clock.alert(*run_of(first), result.reply, now)
        saved = Result(
            turn_id=result.turn_id,
            status=result.status,
            reply=result.reply,
            rounds=result.rounds,
            error=result.error,
            input_tokens=result.usage.input_tokens,
            output_tokens=result.usage.output_tokens,
            target=target,
            target_cut=cut,
            delivery="suppressed" if quiet else "sent" if info is not None and info.saved_is_sent else "planned",
            reply_to=reply_to_of(claim),
            now=now,
            alert=alert,
        )
        finished = await self._store_finish(saved)
        self._outbox.put(finished.delivery)
        if self._observe.any:
            self._tell(claim, result, finished)
            if finished.delivery is not None and finished.delivery.conversation_id != claim.conversation_id:
                # The chat that the answer goes to holds it as well.
                copy = await self._store.transcripts.saved(finished.delivery.message_seq)
                self._observe("message", saved_event(*copy))
        if finished.delivery is not None and finished.delivery.state == "sent":
            address = finished.delivery.address
            await self._readlog.caught_up(address.channel, address.chat_id)
        if first.origin == "scheduled" and self.clock is not None:
            status = "ok" if result.status == "done" else "interrupted" if result.status == "stopped" else "error"
            note = result.error or ("quiet" if quiet else finished.held or result.reply.partition("\n")[0])
            about = (first.message_id, status, claim.conversation_id, note[:RUN_NOTE_CHARS])
            await self.clock.run_ended(*run_of(first), *about)

    async def _store_finish(self, result: Result) -> Finished:
        """A finished turn is not thrown away because the disk is full for a while."""
        pauses = iter(SEND_PAUSES_SECONDS)
        while True:
            try:
                return await self._store.finish(result)
            except StoreError as error:
                LOG.error("%s", error)
                await asyncio.sleep(next(pauses, SEND_PAUSES_SECONDS[-1]))

    def _target(self, claim: Claim) -> tuple[Address | None, Literal["idle", "chat", "message"]]:
        """Where the answer goes: where the message came from, or the target a run was given when it came due."""
        first = claim.messages[0]
        if first.answer_to == NOWHERE:
            return None, "idle"
        target = first.address if first.answer_to is None else address_of(first.answer_to)
        if target is None or target.channel not in self._channels:
            return None, "idle"
        return target, self._channels[target.channel].info.conversations

    def _tell(self, claim: Claim, result: TurnResult, finished: Finished) -> None:
        address = claim.messages[0].address
        if finished.n is None:
            # Stopped before anything was said: there is no message to show.
            self._observe("done", {"conversation": claim.conversation_id, "turn": claim.turn_id, "message": None})
            return
        event = reply_event(
            conversation=claim.conversation_id,
            session_key=claim.session_key,
            channel=address.channel,
            chat=address.chat_id,
            turn=claim.turn_id,
            version=finished.version,
            n=finished.n,
            text=result.reply,
            role="assistant",
            flags=[] if result.status == "done" else [result.status],
            at=self._now(),
        )
        self._observe("done", event)

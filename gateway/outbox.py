"""The only caller of Channel.send: each delivery once, in order for each chat, retried without holding others up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from channels.channel import Channel, ChannelDown, SendError, SendRefused, SendRetry, SendUnknown
from channels.message import Address, Choice, OutboundMessage, Receipt
from gateway.health import Health
from gateway.limits import (
    CHANGE_PAUSES_SECONDS,
    ONE_MESSAGE_CHARS,
    SEND_ATTEMPTS_MAX,
    SEND_PAUSES_SECONDS,
    SENDS_IN_FLIGHT_MAX,
    STOP_SECONDS_MAX,
)
from gateway.observe import Observers
from gateway.people import PAIR, People
from gateway.readlog import ReadLog
from gateway.store import Store, StoreError
from gateway.store.types import Delivery, DeliveryState

LOG = logging.getLogger(__name__)

Told = Callable[[DeliveryState], None]
Refused = Callable[[Delivery, str], Awaitable[None]]
"""Hears of a delivery that its chat definitely does not take, and why."""
QUESTION = "approval:"
"""Begins the key of a question to the owner, which is worth nothing once it is closed."""
ANSWERS = (QUESTION, "reply:", "command:", "notice:", "files:", "no-line:", "closed:")
"""Begin the keys of what answers a message, in the chat where it was written."""
CLOSED = "the question is no longer open"


class Outbox:
    """Takes deliveries as they are planned and brings each to an end that is written down.

    A chat is a line of its own: its deliveries go in order, and one that must wait holds up its own chat only.
    """

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        readlog: ReadLog,
        health: Health,
        observers: Observers,
        people: People,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._channels = channels
        self._readlog = readlog
        self._health = health
        self._observe = observers
        self._people = people
        self._now = now
        self._lines: dict[Address, deque[Delivery]] = {}
        self._tasks: dict[Address, asyncio.Task[None]] = {}
        self._sending: set[Address] = set()
        self._waiters: dict[str, asyncio.Event] = {}
        self._slots = asyncio.Semaphore(SENDS_IN_FLIGHT_MAX)
        self._told: dict[str, Told] = {}
        self._choices: dict[str, tuple[Choice, ...]] = {}
        self._changes: set[asyncio.Task[None]] = set()
        self._withdrawn: set[str] = set()
        self._open = True
        self.refused: Refused | None = None

    async def recover(self) -> int:
        """At start: what was `sending` when the program died is `unknown` now; the rest goes on. How many go on."""
        going_on = 0
        for delivery in await self._store.open_deliveries():
            is_same_twice = delivery.replaces is not None and len(delivery.text) <= ONE_MESSAGE_CHARS
            if delivery.state == "sending" and is_same_twice:
                # It took the place of its own draft: to do that once more changes nothing.
                await self._move(delivery, "retry", reason="the program ended while it was sent", next_at=self._now())
                self.put(await self._store.delivery(delivery.key))
                going_on += 1
            elif delivery.state == "sending":
                await self._move(delivery, "unknown", reason="the program ended while it was being sent")
            elif delivery.key.startswith(QUESTION):
                await self._move(delivery, "expired", reason=CLOSED)
            else:
                self.put(delivery)
                going_on += 1
        return going_on

    def put(self, delivery: Delivery | None, told: Told | None = None, choices: tuple[Choice, ...] = ()) -> None:
        """A delivery row was committed: `planned` and `retry` are sent, others are left alone. `told` hears each state
        that follows. `choices` go under it as buttons, where the channel has some."""
        if delivery is None or delivery.state not in {"planned", "retry"} or not self._open:
            return
        self._lines.setdefault(delivery.address, deque()).append(delivery)
        if told is not None:
            self._told[delivery.key] = told
        if choices:
            self._choices[delivery.key] = choices
        if delivery.address not in self._tasks:
            task = asyncio.create_task(self._send_line(delivery.address), name=f"outbox {delivery.address.session_key}")
            self._tasks[delivery.address] = task

    def withdraw(self, key: str) -> None:
        """What was not sent yet is not sent any more."""
        if any(delivery.key == key for line in self._lines.values() for delivery in line):
            self._withdrawn.add(key)

    async def settled(self, delivery: Delivery, seconds_max: float) -> Delivery:
        """The delivery when it has come to an end, or as it stands after `seconds_max`."""
        if delivery.state in {"planned", "retry", "sending"}:
            waiter = self._waiters.setdefault(delivery.key, asyncio.Event())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds_max):
                    await waiter.wait()
            self._waiters.pop(delivery.key, None)
        return await self._store.delivery(delivery.key) or delivery

    async def retry(self, key: str) -> bool:
        """A person wants a failed, unknown or waiting delivery sent (again). False when there is no such one."""
        delivery = await self._store.delivery(key)
        if delivery is None or delivery.state in {"sent", "sending", "suppressed"}:
            return False
        for waiting in self._lines.get(delivery.address, ()):
            if waiting.key == key:
                return True
        await self._move(delivery, "retry", reason="asked for again", next_at=self._now())
        self.put(await self._store.delivery(key))
        return True

    async def close(self) -> None:
        """Ends after the sends under way; what was not begun stays planned for the next start."""
        self._open = False
        for change in self._changes:
            change.cancel()
        await asyncio.gather(*self._changes, return_exceptions=True)
        for address, task in list(self._tasks.items()):
            if address not in self._sending:
                task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks.values(), timeout=STOP_SECONDS_MAX)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    @property
    def depth(self) -> int:
        return sum(len(line) for line in self._lines.values())

    async def _send_line(self, address: Address) -> None:
        line = self._lines[address]
        try:
            while line and self._open:
                delivery = line[0]
                await self._deliver(delivery)
                line.popleft()
                self._told.pop(delivery.key, None)
                self._choices.pop(delivery.key, None)
                self._withdrawn.discard(delivery.key)
        finally:
            self._tasks.pop(address, None)
            self._sending.discard(address)
            if not line:
                self._lines.pop(address, None)

    async def _deliver(self, delivery: Delivery) -> None:
        """Brings one delivery to `sent`, `unknown` or `failed`, however long that takes."""
        attempts, sent_ids = delivery.attempts, delivery.sent_ids
        pause_until = delivery.next_at if delivery.state == "retry" else None
        while True:
            self._sending.discard(delivery.address)
            if pause_until is not None:
                await asyncio.sleep(max(0.0, (pause_until - self._now()).total_seconds()))
            if delivery.key in self._withdrawn:
                await self._move(delivery, "expired", attempts=attempts, sent_ids=sent_ids, reason=CLOSED)
                return
            attempts += 1
            try:
                async with self._slots:
                    self._sending.add(delivery.address)
                    await self._move(delivery, "sending", attempts=attempts, sent_ids=sent_ids)
                    receipt = await self._send(delivery, sent_ids)
            except SendUnknown as error:
                await self._move(
                    delivery, "unknown", attempts=attempts, sent_ids=error.sent_ids or sent_ids, reason=error.reason
                )
                return
            except SendRefused as error:
                sent_ids = error.sent_ids or sent_ids
                await self._move(delivery, "failed", attempts=attempts, sent_ids=sent_ids, reason=error.reason)
                if self.refused is not None:
                    await self.refused(replace(delivery, sent_ids=sent_ids), error.reason)
                return
            except (SendRetry, ChannelDown) as error:
                reason = str(error)
                sent_ids = (error.sent_ids or sent_ids) if isinstance(error, SendRetry) else sent_ids
                if attempts >= SEND_ATTEMPTS_MAX:
                    await self._move(delivery, "failed", attempts=attempts, sent_ids=sent_ids, reason=reason)
                    return
                pause_until = self._now() + timedelta(seconds=_pause_seconds(error, attempts))
                await self._move(
                    delivery, "retry", attempts=attempts, sent_ids=sent_ids, reason=reason, next_at=pause_until
                )
                if not self._open:
                    return  # The next start sends it.
                continue
            await self._move(delivery, "sent", attempts=attempts, sent_ids=receipt.message_ids)
            self._health.sent(delivery.address.channel, receipt.at)
            await self._readlog.caught_up(delivery.address.channel, delivery.address.chat_id)
            return

    async def _send(self, delivery: Delivery, sent_ids: tuple[str, ...]) -> Receipt:
        channel = self._channels.get(delivery.address.channel)
        if channel is None:
            raise ChannelDown("off", f"the channel {delivery.address.channel} is switched off")
        is_answer = delivery.key.startswith(ANSWERS)
        if not delivery.key.startswith(PAIR) and not await self._reaches(delivery.address, is_answer=is_answer):
            reason = f"{delivery.address.session_key} is not the chat of a known person and not a listed group"
            raise SendRefused(reason)
        return await channel.send(
            OutboundMessage(
                key=delivery.key,
                address=delivery.address,
                text=delivery.text,
                attachments=delivery.attachments,
                choices=self._choices.get(delivery.key, ()),
                reply_to=delivery.reply_to,
                replaces=delivery.replaces,
                sent_ids=sent_ids,
            )
        )

    async def _reaches(self, address: Address, *, is_answer: bool) -> bool:
        """Whoever was put out gets nothing any more, whoever was let in does, from that moment on. An answer goes where
        a known person spoke, wherever that is."""
        if self._people.is_settled(address.channel, address.chat_id):
            return True
        try:
            await self._people.refresh()
            speakers = await self._store.speakers(address.session_key) if is_answer else []
        except StoreError as error:
            raise SendRetry(str(error)) from error
        known = any(self._people.rights(address.channel, speaker) != "stranger" for speaker in speakers)
        return known or self._people.reaches(address)

    async def draft(
        self, turn_id: str, address: Address, text: str, reply_to: str | None, replaces: str | None
    ) -> str | None:
        """Shows the answer so far, in one message that grows; its platform id, which is on disk then. None: not now,
        since something else is on its way to the chat.

        Raises SendError, ChannelDown, StoreError.
        """
        channel = self._channels.get(address.channel)
        if (
            channel is None
            or address in self._lines
            or not self._open
            or not await self._reaches(address, is_answer=True)
        ):
            return None
        async with self._slots:
            if replaces is None:
                await self._store.set_draft(turn_id, address, None)
            message = OutboundMessage(
                f"draft:{turn_id}", address, text, reply_to=reply_to, replaces=replaces, is_draft=True
            )
            receipt = await channel.send(message)
        (message_id,) = receipt.message_ids
        if message_id != replaces:
            await self._store.set_draft(turn_id, address, message_id)
        self._health.sent(address.channel, receipt.at)
        return message_id

    def change(self, key: str, text: str, instead: str) -> None:
        """Puts `text` in the place of a message that was sent, its buttons taken away; `instead` when it was several.

        Only where the channel can, and as well as it can: it only tells what is known already.
        """
        task = asyncio.create_task(self._change(key, text, instead))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _change(self, key: str, text: str, instead: str) -> None:
        delivery = await self._store.delivery(key)
        if delivery is not None and delivery.state == "sending":
            delivery = await self.settled(delivery, SEND_PAUSES_SECONDS[-1])
        channel = None if delivery is None else self._channels.get(delivery.address.channel)
        if delivery is None or channel is None or not delivery.sent_ids:
            return
        if channel.info.draft_interval_seconds is None:
            return
        whole = text if len(delivery.sent_ids) == 1 else instead
        message = OutboundMessage(f"{key}:closed", delivery.address, whole, replaces=delivery.sent_ids[-1])
        for pause in CHANGE_PAUSES_SECONDS:
            try:
                await channel.send(message)
            except (SendRetry, ChannelDown) as error:
                named = error.after_seconds if isinstance(error, SendRetry) else error.retry_after_seconds
                await asyncio.sleep(max(pause, named or 0.0))
            except SendError as error:
                LOG.info("a closed question still shows its buttons: %s", error)
                return
            else:
                return

    async def _move(
        self,
        delivery: Delivery,
        state: DeliveryState,
        *,
        attempts: int | None = None,
        sent_ids: tuple[str, ...] | None = None,
        reason: str | None = None,
        next_at: datetime | None = None,
    ) -> None:
        """Writes the state; a database that cannot write now (disk full) is waited for, since the truth must follow."""
        pauses = iter(SEND_PAUSES_SECONDS)
        while True:
            try:
                await self._store.move_delivery(
                    delivery,
                    state,
                    self._now(),
                    attempts=delivery.attempts if attempts is None else attempts,
                    sent_ids=delivery.sent_ids if sent_ids is None else sent_ids,
                    reason=reason,
                    next_at=next_at,
                )
            except StoreError as error:
                LOG.error("%s", error)
                await asyncio.sleep(next(pauses, SEND_PAUSES_SECONDS[-1]))
                continue
            break
        if (told := self._told.get(delivery.key)) is not None:
            told(state)
        if state not in {"sending", "retry"} and delivery.key in self._waiters:
            self._waiters[delivery.key].set()
        if state in {"unknown", "failed"}:
            LOG.warning("the reply %s to %s is %s: %s", delivery.key, delivery.address.session_key, state, reason)
        self._observe(
            "status",
            {"conversation": delivery.conversation_id, "turn": None, "delivery": delivery.key, "state": state},
        )


def _pause_seconds(error: SendRetry | ChannelDown, attempts: int) -> float:
    """The platform's own wait where it named one, else growing pauses."""
    named = error.after_seconds if isinstance(error, SendRetry) else error.retry_after_seconds
    if named is not None:
        return named
    return SEND_PAUSES_SECONDS[min(attempts, len(SEND_PAUSES_SECONDS)) - 1]

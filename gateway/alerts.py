"""What the clock has to say to the owner: held back in quiet hours, told once, and by another way when one refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from typing import Literal
from zoneinfo import ZoneInfo

from channels.channel import Channel
from channels.message import Address
from gateway.config import Settings
from gateway.events import saved_event
from gateway.limits import MISSED_NAMES_MAX
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.people import People
from gateway.readlog import ReadLog
from gateway.sentences import Language, language_of, sentence
from gateway.store import Store, StoreError
from gateway.store.alerts import Alert, Cut, Held, copy_flags
from gateway.store.types import Delivery
from heartbeat.types import Job, Kind, Missed

LOG = logging.getLogger(__name__)
NOTICE = "notice:clock:"
"""Begins the key of the clock's own notices to the owner."""
_OWN = ("reply:", "held:", NOTICE)


class Alerts:
    """`heartbeat.types.Herald`, and the queue's word on what a run says."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        people: People,
        readlog: ReadLog,
        observers: Observers,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        # While the clock is off, nothing would give back what is held.
        self._quiet = settings.heartbeat.defaults.quiet if settings.heartbeat.enabled else None
        self._store = store
        self._outbox = outbox
        self._channels = channels
        self._people = people
        self._readlog = readlog
        self._observe = observers
        self._now = now
        self._release_at: datetime | None = None
        self._known = False

    # What a run says

    def alert(self, job: Job | None, kind: Kind, name: str, text: str, now: datetime) -> Alert:
        """What becomes of a run's word to its target. A job without hours of its own has the owner's."""
        language = self._language(text)
        hold_until = None if job is not None and job.urgent else self._quiet_until(job, now)
        if hold_until is not None:
            self._release_at = min(hold_until, self._release_at or hold_until)
        return Alert(kind, name, hold_until, lambda count: sentence("repeated", language).format(count=count))

    def _quiet_until(self, job: Job | None, now: datetime) -> datetime | None:
        if job is not None and job.quiet is not None:
            zone = self._settings.zone if job.zone is None else ZoneInfo(job.zone)
            return quiet_until(job.quiet, now, zone)
        return None if self._quiet is None else quiet_until(self._quiet, now, self._settings.zone)

    def _language(self, text: str) -> Language:
        return language_of(text, self._settings.agent.language)

    # After each look of the clock

    async def looked(self, now: datetime, missed: Sequence[Missed]) -> None:
        if not self._known:
            self._release_at, self._known = await self._store.alerts.next_release(), True
        if missed:
            await self.tell(*self._summary(missed))
        if self._release_at is not None and now >= self._release_at:
            for delivery in await self._store.alerts.release(now, self._together, self._info):
                await self._on_its_way(delivery)
            self._release_at = await self._store.alerts.next_release()

    def _summary(self, missed: Sequence[Missed]) -> tuple[str, str]:
        """One message on all that nobody made up for, and its key."""
        language = self._language(" ".join(one.job.name + one.job.instruction for one in missed))
        zone = self._settings.zone
        lines = [
            sentence("missed_job", language).format(
                job=one.job.name, count=one.count, at=f"{one.last_due_at.astimezone(zone):%Y-%m-%d %H:%M}"
            )
            for one in missed[:MISSED_NAMES_MAX]
        ]
        if len(missed) > MISSED_NAMES_MAX:
            lines.append(f"- ... {len(missed) - MISSED_NAMES_MAX}")
        latest = max(missed, key=lambda one: one.last_due_at)
        key = f"missed:{latest.job.kind}:{latest.job.name}:{latest.last_due_at.isoformat()}"
        return "\n".join([sentence("missed", language), *lines]), key

    async def tell(self, text: str, key: str, *, urgent: bool = False, avoiding: str = "") -> Address | None:
        """A notice of the program to the owner, held back in quiet hours unless it is urgent. The same key is the same
        notice. `avoiding`: not by this channel. Where it goes; None: there is no way."""
        address = next((one for one in self._ways() if one.channel != avoiding), None)
        now = self._now()
        if address is None:
            return None
        hold_until = None if urgent else self._quiet_until(None, now)
        if hold_until is not None:
            alert = Alert("built-in", "clock", hold_until, str)
            await self._store.alerts.hold(alert, NOTICE + key, address, text, now)
            self._release_at = min(hold_until, self._release_at or hold_until)
        elif await self._store.delivery(NOTICE + key) is None:
            await self._send(address, text, NOTICE + key, "system")
        return address

    async def _send(
        self, address: Address, text: str, key: str, role: Literal["system", "assistant"], flags: Sequence[str] = ()
    ) -> None:
        cut, saved_is_sent = self._info(address.channel)
        delivery = await self._store.notice(address, cut, text, key, saved_is_sent, self._now(), role=role, flags=flags)
        await self._on_its_way(delivery)

    async def _on_its_way(self, delivery: Delivery) -> None:
        """Sends it, or shows it where what is saved is sent."""
        self._outbox.put(delivery)
        if self._observe.any:
            self._observe("message", saved_event(*await self._store.transcripts.saved(delivery.message_seq)))
        if delivery.state == "sent":
            await self._readlog.caught_up(delivery.address.channel, delivery.address.chat_id)

    def _ways(self) -> list[Address]:
        """The owner's chats, the usual one first."""
        home = self._people.home()
        others = [address for address, is_owner in reversed(self._people.chats()) if is_owner]
        ways = [*([] if home is None else [home]), *(one for one in others if one != home)]
        return [one for one in ways if one.channel in self._channels]

    def _info(self, channel: str) -> tuple[Cut, bool]:
        info = self._channels[channel].info
        return info.conversations, info.saved_is_sent

    def _together(self, held: Sequence[Held]) -> str:
        """What was held back, as one message."""
        if len(held) == 1:
            return held[0].text
        zone = self._settings.zone
        head = sentence("held", self._language(held[0].text)).format(count=len(held))
        return "\n\n".join([head, *(f"**{one.job}** ({one.at.astimezone(zone):%H:%M})\n{one.text}" for one in held)])

    # Another way

    async def refused(self, delivery: Delivery, reason: str) -> None:
        """A chat definitely does not take a word of the clock: it goes to the owner's next channel, and the run's row
        says so. What partly arrived is not sent again."""
        try:
            await self._another_way(delivery, reason)
        except StoreError as error:
            LOG.error("%s was refused, and no other way was taken: %s", delivery.key, error)

    async def _another_way(self, delivery: Delivery, reason: str) -> None:
        key, *tried = delivery.key.split(" via ")
        if not key.startswith(_OWN) or delivery.sent_ids:
            return
        run = await self._store.alerts.run_of_turn(key.partition(":")[2])
        if key.startswith("reply:") and run is None:
            return  # a person's turn: it goes to where the person is, or nowhere
        refusing = {delivery.address.channel, *tried}
        way = next((one for one in self._ways() if one.channel not in refusing), None)
        if way is None:
            return
        LOG.info("%s does not take %s (%s); it goes to %s", delivery.address.channel, key, reason, way.session_key)
        # The names of the channels that refused stand in the key, so that none is tried twice.
        again = " via ".join([key, *tried, delivery.address.channel])
        flags = () if run is None else copy_flags(f"{run[0]}#{run[1]}")
        await self._send(way, delivery.text, again, "assistant", flags)
        if run is not None:
            note = f"sent to {way.session_key}, since {delivery.address.session_key} refused: {reason}"
            await self._store.runs.note(run[0], note)


def quiet_until(hours: tuple[clock_time, clock_time], now: datetime, zone: ZoneInfo) -> datetime | None:
    """When the quiet hours that `now` lies in end, in UTC; None outside of them. Equal times: never quiet."""
    start, end = hours
    local = now.astimezone(zone)
    wall = local.time().replace(second=0, microsecond=0, tzinfo=None)
    inside = start <= wall < end if start <= end else wall >= start or wall < end
    if not inside:
        return None
    day = local.date() + timedelta(days=1 if start > end and wall >= start else 0)
    until = datetime.combine(day, end, zone).astimezone(UTC)
    # An end in the hour that is shown twice may lie behind: then it is its second showing.
    return until if until > now else datetime.combine(day, end, zone).replace(fold=1).astimezone(UTC)

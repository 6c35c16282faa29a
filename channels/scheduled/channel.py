"""The clock as a channel: a due run becomes an inbound message. Nothing can be delivered to a clock."""

from __future__ import annotations

import asyncio
import logging

from channels.channel import Accept, ChannelContext, ChannelInfo, NotAccepted
from channels.message import Accepted, InboundMessage, OutboundMessage, Receipt
from channels.scheduled.types import NOWHERE, ScheduledRun, Targets

_log = logging.getLogger(__name__)

ACCEPT_WAIT_SECONDS = 10.0
"""How long a run that is due at the start waits for the channel to be run."""


class ScheduledChannel:
    """Serves the channel ids `heartbeat` and `procedure`. The context's `backend` is a `Targets`."""

    def __init__(self, context: ChannelContext) -> None:
        self._targets: Targets = context.backend
        self._health = context.health
        self._now = context.now
        self._accept: Accept | None = None
        self._ready = asyncio.Event()

    @property
    def info(self) -> ChannelInfo:
        return ChannelInfo(name="heartbeat", conversations="message")

    async def run(self, accept: Accept) -> None:
        """Lets `submit` through until it is cancelled."""
        self._accept = accept
        self._ready.set()
        self._health.state("connected")
        try:
            await asyncio.Event().wait()
        finally:
            self._ready.clear()

    async def submit(self, run: ScheduledRun) -> Accepted:
        """Hands in one due run; its answer goes to what its target means now.

        The same key twice is the same message. Raises NotAccepted when it could not be saved.
        """
        accept = await self._opened()
        nowhere = run.target == NOWHERE
        answer_to = None if nowhere else await self._targets.resolve_target(run.target)
        accepted = await accept(
            InboundMessage(
                channel=run.kind,
                chat_id=run.name,
                message_id=run.key,
                key=run.key,
                sender_id="clock",
                sender_name="clock",
                text=f"[scheduled run: {run.name}]\n{run.instruction}",
                sent_at=self._now(),
                origin="scheduled",
                chat_title=run.name,
                answer_to=answer_to,
                answers_nowhere=answer_to is None,
            )
        )
        self._health.received()
        if answer_to is None and not nowhere:
            detail = f"the target `{run.target}` of `{run.name}` is no known chat; its answer is kept, not sent"
            _log.warning("Scheduled run: %s.", detail)
            self._health.state("degraded", detail, "Write to the agent once, or change the target.")
        else:
            self._health.state("connected")
        return accepted

    async def send(self, message: OutboundMessage) -> Receipt:
        """An answer addressed to the clock itself is kept in its conversation; there is nobody to show it to."""
        return Receipt((), self._now())

    async def _opened(self) -> Accept:
        try:
            async with asyncio.timeout(ACCEPT_WAIT_SECONDS):
                await self._ready.wait()
        except TimeoutError as error:
            raise NotAccepted("The scheduled channel is not running.") from error
        if self._accept is None:
            raise NotAccepted("The scheduled channel is not running.")
        return self._accept

"""The answer while it is written: one message that grows, on channels whose messages can be changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from channels.channel import Channel, ChannelDown, SendError, SendRetry
from channels.message import Address
from gateway.limits import DRAFT_CHARS_MIN
from gateway.outbox import Outbox
from gateway.store import StoreError
from gateway.store.types import Claim, reply_to_of

LOG = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[None]]
_GROUP_FACTOR = 3.0


class Draft:
    """The draft of one turn. `close` gives the last word to the reply: after it nothing is shown any more."""

    def __init__(
        self, outbox: Outbox, claim: Claim, said: Sequence[str], interval_seconds: float, sleep: Sleep
    ) -> None:
        self._outbox = outbox
        self._turn_id = claim.turn_id
        self._address: Address = claim.messages[0].address
        self._reply_to = reply_to_of(claim)
        self._said = said
        self._interval_seconds = interval_seconds
        self._sleep = sleep
        self._message_id = claim.draft_id
        self._showing = asyncio.Lock()
        self._task = asyncio.create_task(self._run(), name=f"draft of {claim.turn_id}")

    async def _run(self) -> None:
        shown = ""
        pause_seconds = self._interval_seconds
        while True:
            await self._sleep(pause_seconds)
            pause_seconds = self._interval_seconds
            text = "".join(self._said).strip()
            if text == shown or len(text) < DRAFT_CHARS_MIN:
                continue
            try:
                async with self._showing:
                    shown = await self._show(text) or shown
            except (SendRetry, ChannelDown) as error:
                named = error.after_seconds if isinstance(error, SendRetry) else error.retry_after_seconds
                pause_seconds = max(self._interval_seconds, named or 0.0)
            except (SendError, StoreError) as error:
                # The whole reply is sent in any case.
                LOG.info("a live draft is not shown any more: %s", error)
                return

    async def _show(self, text: str) -> str | None:
        """The text that stands in the chat now; None when something else is on its way there."""
        # Once it is on its way its id is written down, also when the turn ends meanwhile.
        showing = asyncio.ensure_future(
            self._outbox.draft(self._turn_id, self._address, text, self._reply_to, self._message_id)
        )
        try:
            found = await asyncio.shield(showing)
        except asyncio.CancelledError:
            await asyncio.wait({showing})
            raise
        if found is None:
            return None
        self._message_id = found
        return text

    async def close(self) -> None:
        """Ends the showing; what is on its way is waited for."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Drafts:
    """Gives each turn of a person its draft, where the channel can show one."""

    def __init__(self, outbox: Outbox, channels: Mapping[str, Channel], *, sleep: Sleep = asyncio.sleep) -> None:
        self._outbox = outbox
        self._channels = channels
        self._sleep = sleep

    def open(self, claim: Claim, said: Sequence[str]) -> Draft | None:
        """`said` is the text so far, and grows. None: nothing is shown before the reply."""
        first = claim.messages[0]
        channel = self._channels.get(first.address.channel)
        if first.origin != "person" or channel is None or channel.info.draft_interval_seconds is None:
            return None
        seconds = channel.info.draft_interval_seconds
        return Draft(self._outbox, claim, said, seconds if first.is_private else seconds * _GROUP_FACTOR, self._sleep)

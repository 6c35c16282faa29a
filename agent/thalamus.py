"""Model stream: calls the one model the owner chose, and tries that same model again when a failure may pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from agent.limits import MODEL_RETRY_AFTER_SECONDS_MAX, MODEL_RETRY_PAUSES_SECONDS
from agent.providers import errors, network
from agent.providers.base import host_of
from agent.types import NoNetwork, Prompt, Provider, ProviderError, StreamChunk

_NO_NETWORK = "This machine has no network, so the model cannot be reached; check the connection."
_NO_NETWORK_ARABIC = "لا تتوفر شبكة على هذا الجهاز، فلا يمكن الوصول إلى النموذج؛ تحقق من الاتصال."


class Thalamus:
    """The region. `pauses_seconds`: the waits before each further try of the same model. `online(host)` says whether
    the network is there; it is not asked for a local provider."""

    def __init__(
        self,
        provider: Provider,
        pauses_seconds: Sequence[float] = MODEL_RETRY_PAUSES_SECONDS,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        online: Callable[[str], Awaitable[bool]] = network.online,
    ) -> None:
        self._provider = provider
        self._pauses_seconds = tuple(pauses_seconds)
        self._sleep = sleep
        self._online = online
        self._reached = False  # the last call got through, so the network need not be looked at

    @property
    def provider(self) -> Provider:
        """The provider that is called."""
        return self._provider

    async def stream_reply(
        self, prompt: Prompt, retried: Callable[[ProviderError, float], None] | None = None
    ) -> AsyncGenerator[StreamChunk, None]:
        """The chunks of one complete reply; the last is `stop`.

        When a try fails after chunks were passed on, `reset` follows them: what came before is void. Raises
        ProviderError: at once for a failure that stays or a named wait that is too long, after the last try for one
        that may pass; NoNetwork before any try when the machine is offline. Close it (`contextlib.aclosing`) when
        leaving it early: that ends the request. `retried` is told of each failure that is tried again, and the pause
        before it in seconds.
        """
        tries = 0
        while True:
            await self._check_network()
            passed_on = False
            try:
                async with aclosing(self._whole_stream(prompt)) as chunks:
                    async for chunk in chunks:
                        passed_on = True
                        yield chunk
                self._reached = True
                return
            except ProviderError as error:
                self._reached = False
                failure = error
            if passed_on:
                yield StreamChunk("reset")
            pause_seconds = self._pause_seconds(failure, tries)
            if pause_seconds is None:
                raise failure
            tries += 1
            if retried is not None:
                retried(failure, pause_seconds)
            await self._sleep(pause_seconds)

    async def _whole_stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        """The provider's stream up to `stop`, closed at its end. Raises a ProviderError when it ends without."""
        stream = self._provider.stream(prompt)
        try:
            async for chunk in stream:
                yield chunk
                if chunk.kind == "stop":
                    return
        finally:
            await _close(stream)
        raise errors.failure(errors.BROKE_OFF)

    async def _check_network(self) -> None:
        if self._provider.local or self._reached:
            return
        if not await self._online(host_of(self._provider)):
            raise NoNetwork(_NO_NETWORK, transient=True, arabic=_NO_NETWORK_ARABIC)

    def _pause_seconds(self, error: ProviderError, tries: int) -> float | None:
        """How long to wait before the next try; None: there is none."""
        named_seconds = error.retry_after_seconds or 0.0
        if not error.transient or tries >= len(self._pauses_seconds) or named_seconds > MODEL_RETRY_AFTER_SECONDS_MAX:
            return None
        return max(self._pauses_seconds[tries], named_seconds)


async def _close(stream: AsyncIterator[StreamChunk]) -> None:
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()

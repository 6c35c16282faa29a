"""A provider that plays what a test wrote down: chunks, and errors in their place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from agent.types import Prompt, ProviderError, StreamChunk, Usage

Item = StreamChunk | ProviderError | asyncio.Event
END = (StreamChunk("usage", usage=Usage(requests=1)), StreamChunk("stop", text="end"))


def said(*pieces: str) -> tuple[StreamChunk, ...]:
    """A whole answer of these pieces of text."""
    return (*(StreamChunk("text", text=piece) for piece in pieces), *END)


class ScriptedProvider:
    """`script`: for each call in turn the items of its stream; an Event is waited for. `closed` counts the streams
    that were ended, by the consumer or by themselves."""

    name = "scripted"
    model = "scripted"

    def __init__(self, *script: Sequence[Item], local: bool = True, host: str = "") -> None:
        self._script = list(script)
        self.local = local
        self.host = host
        self.prompts: list[Prompt] = []
        self.closed = 0

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        self.prompts.append(prompt)
        try:
            for item in self._script.pop(0):
                if isinstance(item, ProviderError):
                    raise item
                if isinstance(item, asyncio.Event):
                    await item.wait()
                else:
                    yield item
        finally:
            self.closed += 1

    async def close(self) -> None:
        """There is nothing to close."""

"""A model that says what it is told to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from agent.types import Prompt, StreamChunk, ToolCall, Usage


class Say:
    """One answer of the model: text in pieces, then calls."""

    def __init__(self, *pieces: str, calls: Sequence[ToolCall] = (), stop: str = "") -> None:
        self.pieces = pieces
        self.calls = calls
        self.stop = stop or ("calls" if calls else "end")

    def chunks(self) -> list[StreamChunk]:
        said = [StreamChunk("text", piece) for piece in self.pieces]
        for index, call in enumerate(self.calls):
            said.append(
                StreamChunk("call", index=index, call_id=call.id, name=call.name, arguments_object=dict(call.args))
            )
        usage = StreamChunk("usage", usage=Usage(input_tokens=10, output_tokens=2, requests=1))
        return [*said, usage, StreamChunk("stop", self.stop)]


class ScriptedModel:
    """Gives its answers in turn and keeps each prompt. An exception in the script is raised; an event is waited for."""

    name = "scripted"
    model = "scripted-1"
    local = True

    def __init__(self, *script: Say | Exception | asyncio.Event) -> None:
        self.script = list(script)
        self.prompts: list[Prompt] = []

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamChunk]:
        self.prompts.append(prompt)
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, asyncio.Event):
            yield StreamChunk("text", "half an ")
            await step.wait()
            return
        for chunk in step.chunks():
            yield chunk

    async def close(self) -> None:
        return

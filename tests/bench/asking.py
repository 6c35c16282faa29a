"""What a fresh chat sends to the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.providers.openai_wire import request_body
from agent.tokens import estimate_tokens, tool_tokens
from agent.types import Prompt, StreamChunk
from channels.inapp.settings import OWNER_ID
from channels.message import InboundMessage
from gateway.app import App
from tests.bench.figures import figure
from tests.bench.server import InstantModel, settings


class _Listening(InstantModel):
    """Keeps the first prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: asyncio.Future[Prompt] = asyncio.get_running_loop().create_future()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        if not self.asked.done():
            self.asked.set_result(prompt)
        async for chunk in super().stream(prompt):
            yield chunk


async def run() -> list[dict[str, Any]]:
    """The first request of the first conversation, as the openai provider sends it."""
    with TemporaryDirectory() as folder:
        model = _Listening()
        app = App(Path(folder), settings(), provider=model)
        await app.start()
        try:
            words = InboundMessage("inapp", "first", "1", OWNER_ID, "Owner", "Hello, who are you?", datetime.now(UTC))
            await app.inbox.accept(words)
            async with asyncio.timeout(30):
                prompt = await model.asked
        finally:
            await app.stop()
    body = json.dumps(request_body("some-model", prompt), ensure_ascii=False, separators=(",", ":"))
    return [
        figure("request_tokens", estimate_tokens(prompt.system) + tool_tokens(prompt.tools)),
        figure("request_bytes", len(body.encode())),
        figure("request_tools", len(prompt.tools)),
    ]

"""DeepSeek: the chat-completions format with a rule of its own about reasoning.

The thinking models refuse a request (400) in which an assistant message lacks the `reasoning_content` it came with
when calls followed it, also when that was empty; on other messages they ignore it
(https://api-docs.deepseek.com/guides/thinking_mode). Their first generation refused it the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent.providers.openai import OpenAIProvider
from agent.providers.openai_wire import StreamReader, request_body
from agent.providers.pictures import Picture
from agent.providers.remote import Json, Reader
from agent.types import Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI

REASONING_BACK = ((re.compile(r"deepseek-(chat|coder|r1)\b", re.IGNORECASE), False), (re.compile(""), True))
"""Whether a model gets its reasoning back: the first pattern found in its name decides."""


class DeepSeekProvider(OpenAIProvider):
    """One model of DeepSeek, or of a server that behaves like it. Pictures are not sent: the models read text."""

    name = "deepseek"
    own_address = "https://api.deepseek.com"

    async def takes_pictures(self, client: AsyncOpenAI) -> bool:
        """Never."""
        return False

    def request(self, prompt: Prompt, found: Mapping[str, Picture]) -> tuple[Json, Reader]:
        """The body, with what the model thought where it wants that back."""
        model = self.settings.name
        if not gets_reasoning_back(model):
            return super().request(prompt, found)
        body = request_body(model, prompt, found, reasoning_of=self.name)
        return body, StreamReader(self.key, (self.name, model))


def gets_reasoning_back(model: str) -> bool:
    """The switch of a model."""
    return next(switch for pattern, switch in REASONING_BACK if pattern.search(model))

"""OpenAI, and every server that speaks its chat-completions format (`base_url`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent.providers.openai_wire import StreamReader, request_body
from agent.providers.pictures import Picture
from agent.providers.remote import Json, Reader, RemoteProvider, Response, sdk_failure
from agent.types import Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIProvider(RemoteProvider):
    """One model of one server."""

    name = "openai"
    own_address = "https://api.openai.com/v1"
    library = "openai"
    install = "hudhud"

    def request(self, prompt: Prompt, found: Mapping[str, Picture]) -> tuple[Json, Reader]:
        """The body in the chat-completions format, and its reader."""
        return request_body(self.settings.name, prompt, found), StreamReader(self.key)

    def build_client(self) -> AsyncOpenAI:
        """The SDK's client with this key and this address."""
        import openai

        seconds, connect_seconds = self.seconds()
        return openai.AsyncOpenAI(
            # The SDK insists on a key; a server of one's own ignores it.
            api_key=self.key or "none",
            base_url=self.address,
            max_retries=0,
            timeout=openai.Timeout(seconds, connect=connect_seconds),
            # A proxy named in the environment is not for servers on this machine.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if self.local else None,
        )

    async def open(self, client: AsyncOpenAI, body: Json) -> Response:
        """Begins the stream. Raises ProviderError."""
        import openai

        try:
            stream = await client.post(
                "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object]
            )
        except openai.OpenAIError as error:
            raise sdk_failure(self, openai, error) from error
        return stream.response

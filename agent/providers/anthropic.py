"""Anthropic, and every server that speaks its Messages format (`base_url`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent.limits import OUTPUT_TOKENS_MAX
from agent.providers.anthropic_stream import StreamReader
from agent.providers.anthropic_wire import PROVIDER, request_body
from agent.providers.pictures import Picture
from agent.providers.remote import Json, Reader, RemoteProvider, Response, sdk_failure
from agent.types import Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class AnthropicProvider(RemoteProvider):
    """One model of one server."""

    name = PROVIDER
    own_address = "https://api.anthropic.com"
    library = "anthropic"
    install = "hudhud[anthropic]"

    def request(self, prompt: Prompt, found: Mapping[str, Picture]) -> tuple[Json, Reader]:
        """The body in the Messages format, and its reader."""
        # The answer's room is part of the model's context.
        context_tokens = self.settings.context_tokens or 2 * OUTPUT_TOKENS_MAX
        model = self.settings.name
        body, after = request_body(model, prompt, found, min(OUTPUT_TOKENS_MAX, context_tokens // 2))
        return body, StreamReader(self.key, model, after)

    def build_client(self) -> AsyncAnthropic:
        """The SDK's client with this key and this address."""
        import anthropic

        seconds, connect_seconds = self.seconds()
        return anthropic.AsyncAnthropic(
            # Without a key the SDK looks for one itself; a server of one's own ignores it.
            api_key=self.key or "none",
            base_url=self.address.rstrip("/").removesuffix("/v1"),  # the SDK adds it
            max_retries=0,
            timeout=anthropic.Timeout(seconds, connect=connect_seconds),
            # A proxy named in the environment is not for servers on this machine.
            http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False) if self.local else None,
        )

    async def open(self, client: AsyncAnthropic, body: Json) -> Response:
        """Begins the stream. Raises ProviderError."""
        import anthropic

        try:
            stream = await client.post(
                "/v1/messages", body=body, cast_to=object, stream=True, stream_cls=anthropic.AsyncStream[object]
            )
        except anthropic.AnthropicError as error:
            raise sdk_failure(self, anthropic, error) from error
        return stream.response

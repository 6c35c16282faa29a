"""Ollama over its own API: models on this machine or another (`base_url`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent.limits import CONTEXT_TOKENS_DEFAULT
from agent.providers import errors
from agent.providers.base import ProviderSettings
from agent.providers.events import Decoder, JsonLines, members
from agent.providers.ollama_wire import PROVIDER, StreamReader, request_body
from agent.providers.pictures import Picture
from agent.providers.remote import Json, Reader, RemoteProvider, Response
from agent.types import Prompt

if TYPE_CHECKING:
    import httpx


class OllamaProvider(RemoteProvider):
    """One model of one server."""

    name = PROVIDER
    own_address = "http://127.0.0.1:11434"
    library = "ollama"
    install = "hudhud[ollama]"
    needs_key = False

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._sees: bool | None = None

    def request(self, prompt: Prompt, found: Mapping[str, Picture]) -> tuple[Json, Reader]:
        """The body in Ollama's format, and its reader."""
        model = self.settings.name
        body = request_body(model, prompt, found, self.settings.context_tokens or CONTEXT_TOKENS_DEFAULT)
        return body, StreamReader(self.key, model)

    async def takes_pictures(self, client: Any) -> bool:
        """Asks the server about the model, once."""
        import httpx

        if self._sees is None:
            try:
                response = await _transport(client).post("/api/show", json={"model": self.settings.name})
                known = members(_parsed(response.text)).get("capabilities")
            except (httpx.HTTPError, httpx.InvalidURL):
                return True  # the chat request will tell what is wrong
            self._sees = not isinstance(known, list) or "vision" in known
        return self._sees

    def decoder(self) -> Decoder:
        """Ollama streams a JSON object a line."""
        return JsonLines()

    def build_client(self) -> Any:
        """The SDK's client with this key and this address."""
        import httpx
        import ollama

        seconds, connect_seconds = self.seconds()
        key = self.key
        client: Any = ollama.AsyncClient(
            self.address.rstrip("/").removesuffix("/v1").removesuffix("/api"),
            headers={"Authorization": f"Bearer {key}"} if key else None,
            timeout=httpx.Timeout(seconds, connect=connect_seconds),
            # A proxy named in the environment is not for servers on this machine.
            trust_env=not self.local,
        )
        if not key:
            _transport(client).headers.pop("authorization", None)  # a key of the environment is not for this server
        return client

    async def open(self, client: Any, body: Json) -> Response:
        """Begins the stream. Raises ProviderError."""
        import httpx

        transport = _transport(client)
        try:
            response = await transport.send(transport.build_request("POST", "/api/chat", json=body), stream=True)
            if response.is_success:
                return response
            try:
                text = (await response.aread()).decode("utf-8", "replace")
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            raise errors.failure(errors.SLOW) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.unreachable(error) from error
        raise self.refusal(response.status_code, _parsed(text), dict(response.headers))


def _transport(client: Any) -> httpx.AsyncClient:
    """The HTTP client of the SDK. The SDK's own reading of a stream is passed by: it cuts lines at characters that may
    stand inside JSON, and takes no arguments that are a string."""
    return client._client


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

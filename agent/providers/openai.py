"""OpenAI, and every server that speaks its chat-completions format (`base_url`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.limits import MODEL_CONNECT_SECONDS
from agent.providers import errors
from agent.providers.base import ProviderSettings
from agent.providers.network import is_loopback
from agent.providers.openai_wire import StreamReader, request_body
from agent.types import Prompt, ProviderError, StreamChunk

if TYPE_CHECKING:
    from openai import APIConnectionError, AsyncOpenAI, AsyncStream

_OWN_ADDRESS = "https://api.openai.com/v1"
_HOST = re.compile(r"[\w.\-]+|[0-9a-fA-F:.]+")


class OpenAIProvider:
    """One model of one server. The SDK (about 0.8 s to import) is loaded in a thread by `warm()` or the first call."""

    name = "openai"

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._client: AsyncOpenAI | None = None
        self._building = asyncio.Lock()
        self._address = settings.base_url.strip() or _OWN_ADDRESS
        self._host = _host(self._address)

    @property
    def model(self) -> str:
        """The model's name at the service."""
        return self._settings.name

    @property
    def host(self) -> str:
        """The host name of the server, without port."""
        return self._host

    @property
    def local(self) -> bool:
        """True when the server runs on this machine."""
        return is_loopback(self._host)

    async def warm(self) -> None:
        """Loads the SDK and its certificates off the event loop, so that the first call need not."""
        async with self._building:
            if self._client is None:
                self._client = await asyncio.to_thread(self._build)

    async def close(self) -> None:
        """Closes all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        """The chunks of one reply: usage and `stop` last, both missing when the stream broke off unnoticed by the
        connection. Raises ProviderError. Closing the generator closes the response."""
        self._check_settings()
        await self.warm()
        import openai

        reader = StreamReader()
        begun = False
        try:
            stream = await self._request(prompt)
            async with stream:
                if "text/html" in stream.response.headers.get("content-type", ""):
                    raise errors.failure(errors.NO_API)
                async for event in stream:
                    begun = True
                    for chunk in reader.read(event):
                        yield chunk
        except openai.APITimeoutError as error:
            if not reader.finished:
                raise errors.failure(errors.SLOW) from error
        except openai.APIConnectionError as error:
            if not reader.finished:
                raise self._connection_failure(error, begun) from error
        except openai.APIStatusError as error:
            raise self._status_failure(error.status_code, error.body, dict(error.response.headers)) from error
        except openai.APIError as error:
            raise self._status_failure(None, error.body, {}) from error
        except (openai.OpenAIError, ValueError) as error:  # ValueError: an event that is no JSON, or no UTF-8
            raise errors.failure(errors.GARBLED) from error
        for chunk in reader.end():
            yield chunk

    async def _request(self, prompt: Prompt) -> AsyncStream[object]:
        """Begins the request. The events come as plain JSON: building the SDK's typed objects would cost 0.1 ms a
        chunk, and compatible servers do not keep to those types."""
        from openai import AsyncStream

        assert self._client is not None
        return await self._client.post(
            "/chat/completions",
            body=request_body(self._settings.name, prompt),
            cast_to=object,
            stream=True,
            stream_cls=AsyncStream[object],
        )

    def _check_settings(self) -> None:
        if not self._host:
            raise errors.failure(errors.BAD_ADDRESS)
        if not self._settings.name:
            raise errors.failure(errors.NO_NAME)
        if not self._settings.api_key and not self._settings.base_url.strip():
            raise errors.failure(errors.NO_KEY)

    def _build(self) -> AsyncOpenAI:
        import openai

        seconds = self._settings.timeout_seconds
        return openai.AsyncOpenAI(
            # The SDK insists on a key; a server of one's own ignores it.
            api_key=self._settings.api_key or "none",
            base_url=self._address,
            max_retries=0,
            timeout=openai.Timeout(seconds, connect=min(seconds, MODEL_CONNECT_SECONDS)),
            # A proxy named in the environment is not for servers on this machine.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if self.local else None,
        )

    def _connection_failure(self, error: APIConnectionError, begun: bool) -> ProviderError:
        if begun:
            return errors.failure(errors.BROKE_OFF)
        cause: BaseException | None = error
        while cause is not None:
            if "CERTIFICATE_VERIFY_FAILED" in str(cause):
                return errors.failure(errors.CERTIFICATE, self._host)
            cause = cause.__cause__ or cause.__context__
        return errors.failure(errors.UNREACHABLE, self._host)

    def _status_failure(self, status: int | None, body: object, headers: dict[str, str]) -> ProviderError:
        kind = errors.kind_of(status, body)
        # What a service says about a key may hold the key.
        detail = "" if kind is errors.KEY else errors.detail_of(body, self._settings.api_key)
        seconds = errors.retry_after(headers) if kind.transient else None
        return errors.failure(kind, detail, status=status, retry_after_seconds=seconds)


def _host(address: str) -> str:
    """The host name of an http or https address; empty when it is none."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return host if parts.scheme in ("http", "https") and _HOST.fullmatch(host) else ""

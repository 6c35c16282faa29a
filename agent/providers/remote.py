"""What all providers that talk HTTP have in common: from the settings to the chunks of a reply, and every failure on
the way in our own words.

The SDK of a service brings transport and authentication; the answer is read here, from its raw bytes: SDKs differ in
how they cut streams into events, and compatible servers do not keep to the types they build.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import urlsplit

from agent.limits import AFTER_DONE_SECONDS, AFTER_FINISH_SECONDS, MODEL_CONNECT_SECONDS
from agent.providers import errors, pictures
from agent.providers.base import ProviderSettings
from agent.providers.events import Decoder, ServerSentEvents
from agent.providers.network import is_loopback
from agent.providers.pictures import Picture
from agent.types import Prompt, ProviderError, StreamChunk

Json = dict[str, Any]
_HOST = re.compile(r"[\w.\-]+|[0-9a-fA-F:.]+")


class Response(Protocol):
    """An HTTP answer whose body was not read yet, of whatever client an SDK uses."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Reader(Protocol):
    """Turns the events of one reply into chunks."""

    @property
    def finished(self) -> bool:
        """The reply is whole; only figures may still follow."""
        ...

    @property
    def complete(self) -> bool:
        """Nothing follows that would be read."""
        ...

    def read(self, event: object) -> list[StreamChunk]:
        """The chunks of one event. Raises ProviderError for an error inside the stream."""
        ...

    def end(self) -> list[StreamChunk]:
        """The last chunks of a whole reply: usage and `stop`; none when it is not whole."""
        ...


class RemoteProvider(ABC):
    """The frame; a provider fills in `name`, `own_address`, `library` and the abstract methods.

    `own_address`: where the service lives when the settings name no base_url. `library`: the module of its SDK;
    `install`: what pip is given when that is missing. The SDK is imported in a thread by `warm()` or the first call.
    """

    name = ""
    own_address = ""
    library = ""
    install = ""
    needs_key = True

    def __init__(self, settings: ProviderSettings) -> None:
        """Raises ProviderError when the SDK is not installed."""
        if importlib.util.find_spec(self.library) is None:
            raise errors.failure(errors.NO_LIBRARY, self.install)
        self.settings = settings
        self.address = settings.base_url.strip() or self.own_address
        self.key = settings.api_key.strip()
        self._host = _host(self.address)
        self._client: Any = None
        self._building = asyncio.Lock()

    @property
    def model(self) -> str:
        """The model's name at the service."""
        return self.settings.name

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
                self._client = await asyncio.to_thread(self.build_client)

    async def close(self) -> None:
        """Closes all connections."""
        client, self._client = self._client, None
        if client is not None:
            await (client.aclose() if hasattr(client, "aclose") else client.close())

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        """The chunks of one reply: usage and `stop` last, both missing when the stream broke off unnoticed by the
        connection. Raises ProviderError. Closing the generator closes the response."""
        self._check_settings()
        try:
            await self.warm()
        except ImportError as error:  # half installed
            raise errors.failure(errors.NO_LIBRARY, self.install) from error
        except (OSError, ValueError) as error:  # certificates or a proxy of the environment
            raise self.unreachable(error) from error
        body, reader = self.request(prompt, await self._pictures(prompt))
        response = await self.open(self._client, body)
        try:
            if "text/html" in response.headers.get("content-type", ""):
                raise errors.failure(errors.NO_API)
            async with aclosing(self._events(response, reader)) as events:
                async for event in events:
                    for chunk in reader.read(event):
                        yield chunk
        finally:
            await response.aclose()
        for chunk in reader.end():
            yield chunk

    @abstractmethod
    def build_client(self) -> Any:
        """A new client of the SDK, its own retries off. Runs in a thread."""

    @abstractmethod
    def request(self, prompt: Prompt, found: Mapping[str, Picture]) -> tuple[Json, Reader]:
        """The body of the request, and what reads the answer to it. `found`: the prompt's pictures by their path."""

    @abstractmethod
    async def open(self, client: Any, body: Json) -> Response:
        """Sends the request and returns when the head of a good answer is there. Raises ProviderError."""

    async def takes_pictures(self, client: Any) -> bool:
        """Whether the model is given pictures, where the settings do not rule it out."""
        return True

    def decoder(self) -> Decoder:
        """What takes the bytes of an answer apart."""
        return ServerSentEvents()

    def seconds(self) -> tuple[float, float]:
        """How long to wait for a sign of life, and for a connection."""
        return self.settings.timeout_seconds, min(self.settings.timeout_seconds, MODEL_CONNECT_SECONDS)

    def refusal(self, status: int, body: object, headers: Mapping[str, str]) -> ProviderError:
        """A status of 400 and above in our words."""
        return errors.refusal(status, body, self.key, headers)

    def unreachable(self, error: BaseException) -> ProviderError:
        """No connection came about, in our words."""
        cause: BaseException | None = error
        while cause is not None:
            if "CERTIFICATE_VERIFY_FAILED" in str(cause):
                return errors.failure(errors.CERTIFICATE, self._host)
            cause = cause.__cause__ or cause.__context__
        return errors.failure(errors.UNREACHABLE, self._host)

    async def _events(self, response: Response, reader: Reader) -> AsyncGenerator[object, None]:
        """The events of an answer. A fault after the reply is whole changes nothing any more."""
        transport = _transport(response)
        decoder = self.decoder()
        try:
            async with aclosing(_pieces(response, reader, decoder)) as pieces:
                async for data in pieces:
                    for event in decoder.feed(data):
                        yield event
            for event in decoder.end():
                yield event
        except transport.TimeoutException as error:
            if not reader.finished:
                raise errors.failure(errors.SLOW) from error
        except (transport.HTTPError, transport.StreamError) as error:
            if not reader.finished:
                raise errors.failure(errors.BROKE_OFF) from error
        except ValueError as error:  # an event that is no JSON, or no UTF-8
            if not reader.finished:
                raise errors.failure(errors.GARBLED) from error

    async def _pictures(self, prompt: Prompt) -> Mapping[str, Picture]:
        has_some = any(message.images for message in prompt.messages)
        if not has_some or not self.settings.images or not await self.takes_pictures(self._client):
            return {}
        return await asyncio.to_thread(pictures.read_all, self.settings.workspace, prompt)

    def _check_settings(self) -> None:
        if not self._host:
            raise errors.failure(errors.BAD_ADDRESS)
        if not self.settings.name:
            raise errors.failure(errors.NO_NAME)
        if self.needs_key and not self.key and not self.settings.base_url.strip():
            raise errors.failure(errors.NO_KEY)
        if not (self.key.isascii() and self.key.isprintable()):  # no header could carry it
            raise errors.failure(errors.KEY)


async def _pieces(response: Response, reader: Reader, decoder: Decoder) -> AsyncGenerator[bytes, None]:
    """The bytes as they come. Once the reply is whole the end of the answer is waited for only a moment: figures may
    follow, and a connection whose answer was read to its end can be used again."""
    pieces = response.aiter_bytes()
    while True:
        over = decoder.done or reader.complete
        seconds = AFTER_DONE_SECONDS if over else AFTER_FINISH_SECONDS if reader.finished else None
        try:
            async with asyncio.timeout(seconds):
                data = await anext(pieces)
        except (StopAsyncIteration, TimeoutError):
            return
        yield data


def _transport(response: Response) -> Any:
    """The module whose errors reading the response may raise: the HTTP client of the SDK, whichever that is."""
    return sys.modules[type(response).__module__.partition(".")[0]]


def sdk_failure(provider: RemoteProvider, sdk: Any, error: Any) -> ProviderError:
    """The error of an SDK (openai's and anthropic's have the same names) that opening an answer raised."""
    if isinstance(error, sdk.APITimeoutError):
        return errors.failure(errors.SLOW)
    if isinstance(error, sdk.APIConnectionError):
        return provider.unreachable(error)
    if isinstance(error, sdk.APIStatusError):
        return provider.refusal(error.status_code, error.body, dict(error.response.headers))
    return errors.failure(errors.GARBLED)


def _host(address: str) -> str:
    """The host name of an http or https address; empty when it is none."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return host if parts.scheme in ("http", "https") and _HOST.fullmatch(host) else ""

"""The line to the Bot API: python-telegram-bot over aiohttp, one request per call, every failure with one meaning."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from typing import Any, cast

import aiohttp
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
)
from telegram.request import BaseRequest, RequestData

from channels.telegram.limits import (
    ANSWER_SECONDS,
    CHUNK_BYTES,
    CONNECT_SECONDS,
    FILE_SECONDS,
    IDLE_CONNECTION_SECONDS,
    POLL_MARGIN_SECONDS,
    UPDATES_MAX,
)

UPDATE_KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
    "message_reaction",
)

_BEFORE_SENDING = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)


class NotSent(NetworkError):
    """The request did not leave, or the server said that it did not do it: it may be sent again."""


class LineBroke(NetworkError):
    """The request left and no clear answer came: nobody knows whether it was done."""


class Flooded(TelegramError):
    """Too many requests; `after_seconds` is how long the Bot API wants to be left alone."""

    def __init__(self, after_seconds: float) -> None:
        super().__init__(f"too many requests, to be repeated after {after_seconds:g} s")
        self.after_seconds = after_seconds


class RawBot(Bot):
    """The library's bot, and its `getUpdates` without the parsing that loses a whole batch for one bad update."""

    async def updates(self, offset: int | None, timeout_seconds: int) -> Any:
        """What getUpdates answers, as JSON: a list of updates, if the server is one. Raises TelegramError."""
        return await self._post(
            "getUpdates",
            {"offset": offset, "limit": UPDATES_MAX, "timeout": timeout_seconds, "allowed_updates": UPDATE_KINDS},
            read_timeout=timeout_seconds + POLL_MARGIN_SECONDS,
        )

    async def file_path(self, file_id: str) -> Any:
        """Where a file can be downloaded, as getFile says it. Raises TelegramError."""
        answer = await self._post("getFile", {"file_id": file_id})
        return cast("dict[str, Any]", answer).get("file_path") if isinstance(answer, dict) else None

    async def webhook_state(self) -> dict[str, Any]:
        """What getWebhookInfo answers. Raises TelegramError."""
        answer = await self._post("getWebhookInfo", {})
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}


class AiohttpRequest(BaseRequest):
    """JSON requests over one aiohttp session that lives as long as somebody uses it.

    `async with request:` marks a use; the last one to leave closes the session. Nothing is ever tried twice.
    Raises only TelegramError and its kinds: NotSent, LineBroke, Flooded, and what the Bot API's own error says.
    No error holds the token, neither in its text nor in its cause.
    """

    def __init__(self, base_url: str, token: str) -> None:
        self._token = token
        # A proxy of the environment is for the way out, not for a server on this machine.
        self._use_proxy = re.match(r"https?://(?:127\.|localhost\b|\[::1\])", base_url, re.IGNORECASE) is None
        self._session: aiohttp.ClientSession | None = None
        self._users = 0

    @property
    def read_timeout(self) -> float | None:
        return ANSWER_SECONDS

    async def initialize(self) -> None:
        self._users += 1
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=self._use_proxy,
            )

    async def shutdown(self) -> None:
        self._users -= 1
        if self._users == 0 and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """One request; returns only answers of success. `read_timeout` in seconds; the others are ours."""
        if self._session is None:
            raise NotSent("the connection is closed")
        seconds = ANSWER_SECONDS if read_timeout is BaseRequest.DEFAULT_NONE else float(read_timeout)
        has_files = request_data is not None and request_data.contains_files
        seconds = FILE_SECONDS if has_files else seconds
        try:
            async with self._session.request(
                method,
                url,
                data=_body(request_data),
                headers={} if has_files else {"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(
                    total=CONNECT_SECONDS + seconds, connect=CONNECT_SECONDS, sock_read=seconds
                ),
                allow_redirects=False,
            ) as response:
                status, payload = response.status, await response.read()
                wait = response.headers.get("Retry-After", "")
        except _BEFORE_SENDING as error:
            raise NotSent(self._sentence(error)) from self._harmless(error)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise LineBroke(self._sentence(error)) from self._harmless(error)
        if not 200 <= status <= 299:
            raise _refusal(status, payload.replace(self._token.encode(), b"<token>"), wait)
        return status, payload

    async def download(self, url: str) -> AsyncGenerator[bytes]:
        """The bytes of a file, as they come. Raises TelegramError."""
        if self._session is None:
            raise NotSent("the connection is closed")
        timeout = aiohttp.ClientTimeout(total=FILE_SECONDS, connect=CONNECT_SECONDS, sock_read=ANSWER_SECONDS)
        try:
            async with self._session.get(url, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    wait = response.headers.get("Retry-After", "")
                    payload = await response.content.read(CHUNK_BYTES)
                    raise _refusal(response.status, payload.replace(self._token.encode(), b"<token>"), wait)
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotSent(self._sentence(error)) from self._harmless(error)

    def _sentence(self, error: Exception) -> str:
        text = str(error).replace(self._token, "<token>")
        return f"{type(error).__name__}: {text}" if text else type(error).__name__

    def _harmless(self, error: Exception) -> Exception | None:
        """The error as a cause, unless the address in its text holds the token."""
        return None if self._token in repr(error) else error

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """The answer of a request that succeeded; raises LineBroke when it is not the Bot API's."""
        try:
            data: Any = json.loads(payload.decode("utf-8", "replace"))
        except ValueError as error:
            raise LineBroke("the answer is not JSON") from error
        answer = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if "result" not in answer:
            raise LineBroke("the answer is not one of the Bot API")
        return answer


def _body(request_data: RequestData | None) -> bytes | aiohttp.FormData:
    """The parameters as JSON; with files as a form, which is sent while it is read."""
    if request_data is None or not request_data.contains_files:
        return json.dumps(request_data.parameters if request_data else {}, ensure_ascii=False).encode()
    # Telegram takes a file's name as it stands, whatever the script.
    form = aiohttp.FormData(request_data.json_parameters, quote_fields=False)
    for name, (file_name, content, mime) in request_data.multipart_data.items():
        form.add_field(name, content, filename=file_name, content_type=mime)
    return form


def _refusal(status: int, payload: bytes, wait: str) -> TelegramError:
    """The error behind an answer that is no success (Bot API, "Making requests" and ResponseParameters)."""
    answer = _bot_api_error(payload)
    seconds: Any = int(wait) if wait.isdigit() else 1
    if answer is None:
        # Not the Bot API but something in front of it. Below 500 it has not passed the request on.
        if status == 429:
            return Flooded(seconds)
        return (LineBroke if status >= 500 else NotSent)(f"HTTP {status}, not from the Bot API")
    description = str(answer.get("description") or f"HTTP {status}")
    found = answer.get("parameters")
    parameters = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if isinstance(parameters.get("migrate_to_chat_id"), int):
        return ChatMigrated(parameters["migrate_to_chat_id"])
    if status == 429:
        named = parameters.get("retry_after")
        return Flooded(named if isinstance(named, int) else seconds)
    if status >= 500:
        # 502 and 504 come from in between: the request may have been done. Others are the Bot API's own refusal.
        return (LineBroke if status in {502, 504} else NotSent)(description)
    kinds: dict[int, type[TelegramError]] = {401: InvalidToken, 403: Forbidden, 404: InvalidToken, 409: Conflict}
    return kinds.get(status, BadRequest)(description)


def _bot_api_error(payload: bytes) -> dict[str, Any] | None:
    """The Bot API's error object, None when the answer is something else."""
    try:
        data: Any = json.loads(payload)
    except ValueError:
        return None
    answer = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return answer if answer.get("ok") is False else None

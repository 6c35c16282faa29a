"""Talks to the running gateway of a home over its own HTTP API, on this machine."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from gateway.limits import CLIENT_SECONDS, EVENTS_SILENCE_SECONDS

Json = dict[str, Any]


class GatewayGone(Exception):
    """Nobody answers at the gateway's address. `str()` is one sentence."""


class GatewayRefused(Exception):
    """The gateway answered that it will not: `status` as in HTTP, the rest as in the error shape of docs/formats.md."""

    def __init__(self, status: int, code: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.remedy = remedy


class Client:
    """Requests to one gateway. `address` is its URL root, `token` what `Authorization: Bearer` carries.

    Every method raises GatewayGone and GatewayRefused.
    """

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """The JSON object at `path`."""
        return self._request("GET", f"{path}?{urlencode(query)}" if query else path, None)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Json:
        """The JSON object that a post of `body` is answered with."""
        return self._request("POST", path, json.dumps(body or {}).encode())

    def events(self) -> Events:
        """What happens from now on; close it when it is no longer read."""
        connection = self._connect(EVENTS_SILENCE_SECONDS)
        try:
            response = self._send(connection, "GET", "/api/events", None)
            if response.status != 200:
                raise _refusal(response)
        except BaseException:
            connection.close()
            raise
        return Events(connection, response)

    def _connect(self, timeout_seconds: float) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_seconds)

    def _request(self, method: str, path: str, body: bytes | None) -> Json:
        connection = self._connect(CLIENT_SECONDS)
        try:
            response = self._send(connection, method, path, body)
            if response.status >= 300:
                raise _refusal(response)
            return _object(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise GatewayGone(_broke_off(error)) from error
        finally:
            connection.close()

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise GatewayGone(_broke_off(error)) from error


class Events:
    """The gateway's live events as (kind, data), in order; a sign of life between them has an empty kind.

    Format: https://html.spec.whatwg.org/multipage/server-sent-events.html. Raises GatewayGone when the line ends.
    """

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[tuple[str, Json]]:
        kind, data = "", ""
        try:
            while line := self._response.readline().decode("utf-8", "replace"):
                name, _, value = line.rstrip("\r\n").partition(": ")
                if line.startswith(":"):
                    yield "", {}
                elif name == "event":
                    kind = value
                elif name == "data":
                    data += value
                elif not name and data:
                    yield kind, _object(data.encode())
                    kind, data = "", ""
        except (OSError, http.client.HTTPException) as error:
            raise GatewayGone(_broke_off(error)) from error
        raise GatewayGone("The gateway stopped.")

    def close(self) -> None:
        self._connection.close()


def quoted(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _object(body: bytes) -> Json:
    try:
        value: Any = json.loads(body)
    except ValueError as error:
        raise GatewayGone("What answers at the gateway's address is not the gateway.") from error
    return cast("Json", value) if isinstance(value, dict) else {}


def _refusal(response: http.client.HTTPResponse) -> GatewayRefused:
    try:
        found: Any = json.loads(response.read())["error"]
        return GatewayRefused(response.status, found["code"], found["message"], found["remedy"])
    except (ValueError, KeyError, TypeError):
        return GatewayRefused(response.status, "refused", f"The gateway answered {response.status}.", "")


def _broke_off(error: Exception) -> str:
    if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
        return "The gateway does not answer at its address."
    if isinstance(error, TimeoutError):
        return "The gateway does not answer in time."
    return "The line to the gateway broke off."

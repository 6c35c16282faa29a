"""Webhook mode: Telegram posts each update to an address of ours, and is answered when it is on disk."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from aiohttp import web

from channels.channel import NotAccepted
from channels.telegram.limits import WEBHOOK_BYTES_MAX

log = logging.getLogger(__name__)
PATH = "/telegram/"
HEADER = "X-Telegram-Bot-Api-Secret-Token"

Take = Callable[[Mapping[str, Any]], Awaitable[None]]


class Webhook:
    """Where Telegram finds us, and who may post there. Path and header are secrets made from the token, so they are the
    same after each start and known to nobody who does not hold it.

    `url`: the setting, this server's address as the internet sees it. A path of its own under `/telegram/` is kept.
    """

    def __init__(self, url: str, token: str) -> None:
        given = urlsplit(url).path
        own = given.startswith(PATH) and len(given) > len(PATH)
        self.secret = _secret(token, "header")
        self._path = given[len(PATH) :] if own else _secret(token, "path")
        self.url = url if own else f"{url.rstrip('/')}{PATH}{self._path}"
        self._take: Take | None = None

    def routes(self) -> list[web.RouteDef]:
        return [web.post(PATH + "{secret:.+}", self._post)]

    def open(self, take: Take) -> None:
        """From now on updates are taken; `take` returns when one is saved and raises NotAccepted when it is not."""
        self._take = take

    def close(self) -> None:
        self._take = None

    async def _post(self, request: web.Request) -> web.Response:
        path, header = request.match_info["secret"], request.headers.get(HEADER, "")
        if not hmac.compare_digest(path.encode(), self._path.encode()):
            return web.Response(status=404)
        if not hmac.compare_digest(header.encode("utf-8", "replace"), self.secret.encode()):
            return web.Response(status=403)
        update = await _update(request)
        if update is None:
            # Asking for it again would bring the same.
            log.warning("Telegram posted something that is no update; it is left out.")
            return web.Response()
        if self._take is None:
            return web.Response(status=503, headers={"Retry-After": "2"})
        try:
            # Once begun, a commit is not given up because the line breaks.
            await asyncio.shield(self._take(update))
        except NotAccepted as error:
            log.error("a Telegram update waits because it cannot be saved: %s", error)
            return web.Response(status=503, headers={"Retry-After": "5"})
        return web.Response()


async def _update(request: web.Request) -> Mapping[str, Any] | None:
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > WEBHOOK_BYTES_MAX:
            return None
    try:
        found: Any = json.loads(bytes(body))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _secret(token: str, what: str) -> str:
    return hmac.new(token.encode(), f"hudhud webhook {what}".encode(), hashlib.sha256).hexdigest()[:48]

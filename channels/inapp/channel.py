"""The in-app channel: the page, its API and its live events, on the gateway's own server."""

from __future__ import annotations

import asyncio

from aiohttp import web

from channels.channel import Accept, ChannelContext, ChannelInfo
from channels.inapp.api import Api
from channels.inapp.events import EventHub
from channels.inapp.ports import Backend
from channels.inapp.security import Guard
from channels.inapp.settings import InAppSettings
from channels.message import Accepted, InboundMessage, OutboundMessage, Receipt

_INFO = ChannelInfo(
    name="inapp",
    style="Shown on a web page: Markdown with tables and code blocks is fine.",
    conversations="chat",
    saved_is_sent=True,
)


class InAppChannel:
    """People write with `POST /api/messages`; they see answers because the gateway publishes what it saves.

    `hub` takes the gateway's events. `token` is what `Authorization: Bearer` must carry: the setting, else a random
    one of this run.
    """

    def __init__(self, context: ChannelContext) -> None:
        settings: InAppSettings = context.settings
        backend: Backend = context.backend
        self._context = context
        self._accept: Accept | None = None
        self._guard = Guard(settings, context.home / "inapp", context.now)
        self.hub = EventHub(backend)
        self._api = Api(
            backend, self.hub, self._guard, lambda: self._accept, context.uploads, context.memory, context.now
        )

    @property
    def info(self) -> ChannelInfo:
        return _INFO

    @property
    def token(self) -> str:
        return self._guard.token

    def new_link(self) -> str:
        """`/?code=...`: opens the page once within ten minutes, and the browser that opened it from then on."""
        return f"/?code={self._guard.new_code()}"

    def routes(self) -> list[web.RouteDef]:
        return self._api.routes()

    async def run(self, accept: Accept) -> None:
        """Takes posted messages until it is cancelled; before and after, a post is answered with 503."""

        async def taken(message: InboundMessage) -> Accepted:
            accepted = await accept(message)
            self._context.health.received()
            return accepted

        self._accept = taken
        self.hub.open()
        self._context.health.state("connected")
        try:
            await asyncio.Event().wait()
        finally:
            self._accept = None
            self.hub.close()

    async def send(self, message: OutboundMessage) -> Receipt:
        """The saved message is the delivery: the page shows it from the events, or when it is opened again."""
        return Receipt((message.key,), self._context.now())

"""The paths that link a channel with an account: what the page's small panel and `hudhud channels` use."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable

from aiohttp import web

from channels.inapp.answers import ApiError, bad, json_answer
from channels.inapp.bodies import body_object
from channels.inapp.ports import Backend, Json, NotDone
from channels.inapp.security import HEADERS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
QR_SCALE = 5


class LinkRoutes:
    """The handlers."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self, checked: Callable[[Handler], Handler]) -> list[web.RouteDef]:
        return [
            web.get("/api/channels", checked(self._channels)),
            web.get("/api/channels/{name}/link", checked(self._state)),
            web.get("/api/channels/{name}/link.svg", checked(self._picture)),
            web.post("/api/channels/{name}/link", checked(self._begin)),
            web.post("/api/channels/{name}/logout", checked(self._logout)),
        ]

    async def _channels(self, request: web.Request) -> web.StreamResponse:
        """How the channels are; with `probe=1` they are asked for a sign of life first."""
        return json_answer(await self._backend.channels(probe=request.query.get("probe") == "1"))

    async def _state(self, request: web.Request) -> web.StreamResponse:
        return json_answer(self._link_state(request))

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        phone = (await body_object(request)).get("phone") if request.can_read_body else None
        if phone is not None and not isinstance(phone, str):
            bad("`phone` must be a phone number with its country code.")
        try:
            return json_answer(self._backend.begin_link(request.match_info["name"], phone))
        except LookupError as error:
            raise ApiError(404, "no_link", str(error)) from error
        except ValueError as error:
            raise ApiError(400, "bad_request", f"`phone` must be {error}.") from error

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        try:
            told = await self._backend.logout(request.match_info["name"])
        except LookupError as error:
            raise ApiError(404, "no_link", str(error)) from error
        except NotDone as error:
            raise ApiError(409, "not_done", str(error)) from error
        return json_answer({"channel": request.match_info["name"], "told": told})

    async def _picture(self, request: web.Request) -> web.StreamResponse:
        """The QR that is shown now, as a picture. Whoever scans it is in, so it is kept nowhere."""
        qr = self._link_state(request).get("qr")
        if not qr:
            raise ApiError(404, "no_code", "There is no code to scan now.")
        import segno

        picture = io.BytesIO()
        segno.make_qr(qr).save(picture, kind="svg", scale=QR_SCALE, border=4, light="white", dark="black")
        headers = {**HEADERS, "Content-Type": "image/svg+xml", "Cache-Control": "no-store"}
        return web.Response(body=picture.getvalue(), headers=headers)

    def _link_state(self, request: web.Request) -> Json:
        try:
            return self._backend.link_state(request.match_info["name"])
        except LookupError as error:
            raise ApiError(404, "no_link", str(error)) from error

"""The one HTTP server: health probes here, everything else is handed in by the channels."""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from gateway.health import Health
from gateway.limits import REQUEST_BYTES_MAX
from gateway.metrics import CONTENT_TYPE

LOG = logging.getLogger(__name__)

UNREAD = logging.getLogger(f"{__name__}.unread")
"""Where the server speaks of requests that it could not read."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpError(Exception):
    """The server cannot listen; `str()` is one sentence that says what to do."""


class HttpServer:
    """Listens on one address from `start` to `stop`; `address` is the URL root, known after `start`.

    `metrics` gives what `/metrics` says; without it there is no such path.
    """

    def __init__(
        self,
        host: str,
        port: int,
        routes: Iterable[Any],
        health: Health,
        metrics: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._health = health
        self._metrics = metrics
        self._app = web.Application(client_max_size=REQUEST_BYTES_MAX, middlewares=[_errors])
        self._app.add_routes([web.get("/healthz", self._healthz), web.get("/readyz", self._readyz), *routes])
        if metrics is not None:
            self._app.add_routes([web.get("/metrics", self._metrics_now)])
        UNREAD.addFilter(_without_request)
        self._runner = web.AppRunner(
            self._app,
            access_log=None,
            logger=UNREAD,
            handle_signals=False,
            shutdown_timeout=1.0,
            handler_cancellation=True,
        )
        self.address = ""

    async def start(self) -> None:
        """Raises HttpError when the port is taken or may not be used."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise HttpError(_sentence(error, self._host, self._port)) from error
        port = self._runner.addresses[0][1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.address = f"http://{host}:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _readyz(self, request: web.Request) -> web.Response:
        """503 while starting or stopping. A channel that is down does not fail it: it is in the body."""
        body = {"ready": self._health.ready, **self._health.channels()}
        return web.json_response(body, status=200 if self._health.ready else 503)

    async def _metrics_now(self, request: web.Request) -> web.Response:
        """For a collector on this machine: others learn nothing of who talks when."""
        if not is_loopback(request.remote):
            raise web.HTTPForbidden(text="Metrics are for programs on this machine.")
        assert self._metrics is not None
        return web.Response(body=await self._metrics(), headers={"Content-Type": CONTENT_TYPE})


def is_loopback(address: str | None) -> bool:
    """Whether an IP address is this machine's own; False for what is none."""
    try:
        return ip_address(address or "").is_loopback
    except ValueError:
        return False


def _without_request(record: logging.LogRecord) -> bool:
    """The error quotes the line that could not be read: it may hold a token, a cookie or a code."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.exc_info, record.exc_text = None, None
    return True


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns a fault of a handler into one sentence; what it was is in the log."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception:
        # The path itself may be a secret.
        resource = request.match_info.route.resource
        LOG.exception("%s %s failed", request.method, "?" if resource is None else resource.canonical)
        error = {
            "code": "internal",
            "message": "Something went wrong while answering this request.",
            "remedy": "Try again; the log of the gateway says more.",
        }
        return web.json_response({"error": error}, status=500)


def _sentence(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"{host}:{port} is in use by another program. Stop that program, or set another `port` under "
            "[channels.inapp] in config.toml (0 takes any free one)."
        )
    if error.errno == errno.EACCES:
        return f"{host}:{port} may not be used by this user. Set a `port` above 1023 under [channels.inapp]."
    return f"{host}:{port} cannot be listened on ({error.strerror}). Check `host` and `port` under [channels.inapp]."

"""Who may use the page and its API: a token, or a cookie that a one-time code became; and from where."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web

from channels.inapp.limits import CODE_SECONDS, CODES_KEPT, COOKIE_SECONDS
from channels.inapp.settings import LOOPBACK, InAppSettings

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Go with every answer. Scripts, styles and pictures come from this server only; nothing inline runs."""


class Guard:
    """Credentials and origins of one gateway.

    `token` is the setting, else a random one of this run. Cookies are signed with a key kept in `folder`, so that an
    open page survives a restart; a changed token ends them.
    """

    def __init__(self, settings: InAppSettings, folder: Path, now: Callable[[], datetime]) -> None:
        given = settings.token.get_secret_value()
        self.token = given or secrets.token_urlsafe(32)
        self._token_bytes = self.token.encode("utf-8", "surrogatepass")
        self._now = now
        self._codes: dict[str, datetime] = {}
        self._key = hmac.digest(_stored_key(folder / "cookie.key"), given.encode("utf-8", "surrogatepass"), "sha256")
        # Browsers share cookies between the ports of one host: each gateway has a name of its own.
        self.cookie_name = "hudhud_" + hashlib.sha256(self._key).hexdigest()[:8]
        self._outside = settings.host not in LOOPBACK
        self._names = set(LOOPBACK)
        if self._outside:
            self._names |= {settings.host.lower(), socket.gethostname().lower()}

    def new_code(self) -> str:
        """A code for one visit within ten minutes."""
        now = self._now()
        alive = [(code, ends) for code, ends in self._codes.items() if ends > now][1 - CODES_KEPT :]
        self._codes = dict(alive)
        code = secrets.token_urlsafe(24)
        self._codes[code] = now + timedelta(seconds=CODE_SECONDS)
        return code

    def redeem(self, code: str) -> bool:
        """Whether the code was good; it is no more."""
        offered = code.encode("utf-8", "surrogatepass")
        for known, ends in self._codes.items():
            if hmac.compare_digest(known.encode(), offered):
                del self._codes[known]
                return ends > self._now()
        return False

    def set_cookie(self, request: web.Request, response: web.StreamResponse) -> None:
        issued = str(int(self._now().timestamp()))
        response.set_cookie(
            self.cookie_name,
            f"{issued}.{self._signature(issued)}",
            max_age=COOKIE_SECONDS,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=request.secure,
        )

    def knows(self, request: web.Request) -> bool:
        """Whether the request carries the token or a good cookie."""
        if "Authorization" in request.headers:
            return self._has_token(request)
        issued, _, signature = request.cookies.get(self.cookie_name, "").partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), self._signature(issued).encode()):
            return False
        return self._now().timestamp() - int(issued) <= COOKIE_SECONDS

    def trusts_host(self, request: web.Request) -> bool:
        """Whether the address is one of this machine's: a name that was bent to it (DNS rebinding) is not.

        A server that is open to other machines may have any name for a program that knows the token.
        """
        name = _host_name(request.headers.get("Host", ""))
        if name in self._names or name.endswith(".localhost"):
            return True
        try:
            return ip_address(name).is_loopback or self._outside
        except ValueError:
            return self._outside and self._has_token(request)

    def same_origin(self, request: web.Request, *, navigation: bool = False) -> bool:
        """Whether the request comes from this page, or from no page. A visit by a link may come from anywhere."""
        origin = request.headers.get("Origin")
        if origin is not None:
            return origin.partition("://")[2].lower() == request.headers.get("Host", "").lower() != ""
        return navigation or request.headers.get("Sec-Fetch-Site", "none") in {"none", "same-origin"}

    def _has_token(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        offered = token.strip().encode("utf-8", "surrogatepass")
        return hmac.compare_digest(offered, self._token_bytes) and scheme.lower() == "bearer"

    def _signature(self, issued: str) -> str:
        return hmac.new(self._key, b"cookie:" + issued.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _host_name(host: str) -> str:
    """The name or address in a Host header, without port and brackets, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _stored_key(path: Path) -> bytes:
    """The 32 bytes in the file; a file that is missing or has another length is made anew, readable to the owner."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) == 32:
        return key
    key = secrets.token_bytes(32)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return key

"""Whether a call over the network can work at all, known in about a second and without sending anything outside."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from contextlib import suppress
from urllib.request import getproxies

from agent.limits import NAME_LOOKUP_SECONDS

# Addresses kept for documentation (RFC 5737, RFC 3849): they stand for "anywhere outside".
_OUTSIDE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def is_loopback(host: str) -> bool:
    """True for `localhost` (and names below it) and loopback addresses."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def has_route() -> bool:
    """True when the machine has a way out. Connecting a datagram socket picks a route and sends nothing."""
    for family, address in _OUTSIDE:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return True
    return False


async def resolves(host: str, within_seconds: float = NAME_LOOKUP_SECONDS) -> bool:
    """True when `host` has an address and the answer comes in time.

    The look-up runs in a thread of its own that nobody waits for: a resolver without network can hang for half a
    minute, and must hold up neither this call nor the end of the program.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def settle(found: bool) -> None:
        if not answer.done():
            answer.set_result(found)

    def look_up() -> None:
        try:
            found = bool(socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError):
            found = False
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=look_up, name="name-lookup", daemon=True).start()
    try:
        return await asyncio.wait_for(answer, within_seconds)
    except TimeoutError:
        return False


async def online(host: str) -> bool:
    """False when the machine surely cannot reach `host`; an empty host: when it has no way out at all.

    Behind a proxy only the proxy knows, so the answer is True.
    """
    if is_loopback(host) or any(name in getproxies() for name in ("all", "http", "https")):
        return True
    return has_route() and (not host or await resolves(host))

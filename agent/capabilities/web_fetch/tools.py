"""The text of a public web page, bounded in time and size. This machine and its network are not the web."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agent.capabilities.web_fetch.addresses import Address, is_public, literal
from agent.capabilities.web_fetch.markdown import to_markdown
from agent.limits import PAGE_ADDRESS_CHARS_MAX, PAGE_BYTES_MAX, PAGE_CHARS, PAGE_REDIRECTS_MAX, PAGE_SECONDS_MAX
from agent.lines import flat
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses. Raises OSError."""
NO_ADDRESS = "That is not the address of a web page."
NOT_PUBLIC = "That address is not on the public web, so it is not opened."
_TEXT_TYPES = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml)\b|application/(?:javascript|yaml|toml)\b")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Hudhud)",
    "Accept": "text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.5",
}


@dataclass(frozen=True, slots=True)
class _Page:
    """What came: `cut` when there was more of it."""

    url: str
    kind: str
    charset: str | None
    data: bytes
    cut: bool


class WebFetch:
    """The tool's code. `look_up` finds a name's addresses, `allowed` says which of them may be connected to."""

    def __init__(
        self,
        *,
        look_up: LookUp | None = None,
        allowed: Callable[[Address], bool] = is_public,
        bytes_max: int = PAGE_BYTES_MAX,
        seconds_max: float = PAGE_SECONDS_MAX,
    ) -> None:
        self._look_up = look_up or _system_look_up
        self._allowed = allowed
        self._bytes_max = bytes_max
        self._seconds_max = seconds_max

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {"web_fetch": self.web_fetch}

    async def web_fetch(self, ctx: CallContext, args: JsonObject) -> str:
        url = str(args.get("url", "")).strip()
        if not url or len(url) > PAGE_ADDRESS_CHARS_MAX:
            raise ToolFailure(NO_ADDRESS)
        if "://" not in url:
            url = f"https://{url}"
        try:
            async with asyncio.timeout(self._seconds_max):
                page = await self._open(url)
        except TimeoutError:
            raise ToolFailure(f"The page did not come within {self._seconds_max:g} seconds.", transient=True) from None
        text = await asyncio.to_thread(_readable, page)
        return _window(text, max(0, int(args.get("offset") or 0)), cut=page.cut)

    async def _open(self, url: str) -> _Page:
        """Follows redirects; each address is checked as the first was."""
        import aiohttp

        connector = aiohttp.TCPConnector(resolver=_resolver(self._look_up, self._allowed), use_dns_cache=False)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, headers=_HEADERS, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            try:
                for _ in range(PAGE_REDIRECTS_MAX + 1):
                    self._check(url)
                    async with session.get(url, allow_redirects=False) as response:
                        if response.status not in _REDIRECTS or "Location" not in response.headers:
                            return await self._read(url, response)
                        url = urljoin(url, response.headers["Location"])
            except _NotPublic:
                raise ToolFailure(NOT_PUBLIC) from None
            except (aiohttp.InvalidURL, ValueError) as error:
                raise ToolFailure(NO_ADDRESS) from error
            except (aiohttp.ClientError, OSError) as error:
                if _refused(error):
                    raise ToolFailure(NOT_PUBLIC) from None
                raise ToolFailure(f"The page could not be reached: {flat(str(error), 200)}.", transient=True) from error
        raise ToolFailure(f"The page redirects more than {PAGE_REDIRECTS_MAX} times.")

    def _check(self, url: str) -> None:
        """What can be said before the name is looked up. Raises ToolFailure."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise ToolFailure(NO_ADDRESS) from None
        if parts.scheme not in {"http", "https"}:
            raise ToolFailure("Only http and https addresses are opened.")
        if not host:
            raise ToolFailure(NO_ADDRESS)
        if parts.username is not None or parts.password is not None:
            raise ToolFailure("An address with a user name or password in it is not opened.")
        # The client connects to a literal address without looking it up.
        address = literal(host)
        if address is not None and not self._allowed(address):
            raise ToolFailure(NOT_PUBLIC)

    async def _read(self, url: str, response: aiohttp.ClientResponse) -> _Page:
        if response.status >= 400:
            may_pass = response.status in _MAY_PASS
            raise ToolFailure(
                f"The server answers {response.status} {response.reason or ''}".rstrip() + ".", transient=may_pass
            )
        kind = response.content_type.lower()
        if not _TEXT_TYPES.match(kind) and "html" not in kind:
            raise ToolFailure(f"That is {kind}, not a page of text.")
        data = bytearray()
        async for chunk in response.content.iter_any():
            data += chunk
            if len(data) > self._bytes_max:
                return _Page(url, kind, response.charset, bytes(data[: self._bytes_max]), cut=True)
        return _Page(url, kind, response.charset, bytes(data), cut=False)


class _NotPublic(OSError):
    """A name leads to an address that is not allowed."""


def _refused(error: BaseException | None) -> bool:
    """Whether the refusal of our resolver is behind an error of the client."""
    while error is not None:
        if isinstance(error, _NotPublic):
            return True
        error = error.__cause__ or error.__context__
    return False


def _resolver(look_up: LookUp, allowed: Callable[[Address], bool]) -> AbstractResolver:
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Checked(AbstractResolver):
        """Gives the client only addresses that were checked, so that it connects to nothing else."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            found = await look_up(host, port)
            addresses = [address for text in found if (address := literal(text)) is not None]
            # One address that is not allowed spoils the name: whoever mixes them has something in mind.
            if not addresses or not all(allowed(address) for address in addresses):
                raise _NotPublic(NOT_PUBLIC)
            return [
                ResolveResult(
                    hostname=host,
                    host=str(address),
                    port=port,
                    family=socket.AF_INET6 if address.version == 6 else socket.AF_INET,
                    proto=socket.IPPROTO_TCP,
                    flags=socket.AI_NUMERICHOST,
                )
                for address in addresses
            ]

        async def close(self) -> None:
            """Nothing is held."""

    return Checked()


async def _system_look_up(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    found: Any = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(entry[4][0] for entry in found))


def _readable(page: _Page) -> str:
    text = _decoded(page)
    head = f"{page.url}\n"
    if "html" in page.kind:
        title, text = to_markdown(text, page.url)
        head += f"{title}\n" if title else ""
    return f"{head}\n{text.strip()}"


def _decoded(page: _Page) -> str:
    """In the letters that the header names, else the page itself, else UTF-8."""
    found = _META_CHARSET.search(page.data[:4_096]) if "html" in page.kind else None
    for name in (page.charset, found[1].decode("ascii") if found else None):
        try:
            if name:
                return page.data.decode(name, "replace")
        except (LookupError, ValueError):
            continue
    return page.data.decode("utf-8", "replace")


def _window(text: str, offset: int, *, cut: bool) -> str:
    """As much as one answer holds, and how to go on."""
    if offset and offset >= len(text):
        raise ToolFailure(f"The page has {len(text):,} characters.")
    part = text[offset : offset + PAGE_CHARS]
    end = offset + len(part)
    if end < len(text):
        return f"{part}\n\n[characters {offset:,}-{end:,} of {len(text):,}; go on with offset: {end}]"
    return f"{part}\n\n[the page is longer; the rest was not loaded]" if cut else part

"""Pages of the public web as text: nothing of this machine or its network, within bounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, ip_address

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent.capabilities.web_fetch.addresses import Address, is_public
from agent.capabilities.web_fetch.markdown import to_markdown
from agent.capabilities.web_fetch.tools import NOT_PUBLIC, WebFetch
from agent.motor import call_context
from agent.types import ToolFailure
from tests.fakes.turns import MONDAY, a_turn

CONTEXT = call_context(a_turn(), MONDAY)
HERE = IPv4Address("127.0.0.1")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Web:
    """A web whose sites all stand on this machine. `names` are other sites with their addresses."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.names: dict[str, Sequence[str]] = {}
        self.asked: list[str] = []
        self.fetch = WebFetch(look_up=self.look_up, allowed=self.allowed, bytes_max=100_000, seconds_max=5)

    @staticmethod
    def allowed(address: Address) -> bool:
        return address == HERE or is_public(address)

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.names.get(host, ["127.0.0.1"])

    async def open(self, url: str, **args: object) -> str:
        return await self.fetch.web_fetch(CONTEXT, {"url": url.replace("{port}", str(self.port)), **args})


@asynccontextmanager
async def a_web(**pages: Handler) -> AsyncIterator[Web]:
    app = web.Application()
    for path, handler in pages.items():
        app.router.add_get(f"/{path}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield Web(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def page(text: str, kind: str = "text/html", **options: object) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=text, content_type=kind, **options)

    return handler


def moved(to: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        port = request.url.port
        return web.Response(status=302, headers={"Location": to.replace("{port}", str(port))})

    return handler


async def test_a_page_is_read_as_markdown() -> None:
    html = "<title>The plan &amp; more</title><h1>Plan</h1><p>See <a href='/map'>the map</a>.<script>x()</script>"
    async with a_web(plan=page(html)) as on:
        text = await on.open("http://news.example:{port}/plan")
        assert text == (
            f"http://news.example:{on.port}/plan\nThe plan & more\n\n# Plan\n\n"
            f"See [the map](http://news.example:{on.port}/map)."
        )


async def test_other_text_comes_as_it_is_and_other_things_not_at_all() -> None:
    async def picture(request: web.Request) -> web.Response:
        return web.Response(body=b"\x89PNG", content_type="image/png")

    async with a_web(data=page('{"a": 1}', "application/json"), picture=picture) as on:
        assert (await on.open("http://news.example:{port}/data")).endswith('\n\n{"a": 1}')
        with pytest.raises(ToolFailure, match="That is image/png"):
            await on.open("http://news.example:{port}/picture")


async def test_a_page_says_in_which_letters_it_is_written() -> None:
    async def old(request: web.Request) -> web.Response:
        html = '<meta charset="windows-1256"><p>سلام'
        return web.Response(body=html.encode("windows-1256"), headers={"Content-Type": "text/html"})

    async def odd(request: web.Request) -> web.Response:
        return web.Response(body="سلام".encode(), headers={"Content-Type": "text/plain; charset=hex"})

    async with a_web(old=old, odd=odd) as on:
        assert (await on.open("http://news.example:{port}/old")).endswith("سلام")
        assert (await on.open("http://news.example:{port}/odd")).endswith("سلام")


LOCAL = [
    "http://127.0.0.2/",
    "http://[::1]:{port}/plan",
    "http://0.0.0.0:{port}/plan",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fe80::1%25eth0]/",
    "http://10.0.0.1/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
]


@pytest.mark.parametrize("url", LOCAL)
async def test_this_machine_and_its_network_are_not_the_web(url: str) -> None:
    async with a_web(plan=page("secret"), go=moved(url)) as on:
        for given_url in (url, "http://news.example:{port}/go"):
            with pytest.raises(ToolFailure, match=NOT_PUBLIC):
                await on.open(given_url)


@pytest.mark.parametrize("addresses", [["10.1.2.3"], ["8.8.8.8", "127.0.0.2"], ["fe80::1%eth0"], []])
async def test_a_name_that_leads_there_is_not_followed(addresses: list[str]) -> None:
    async with a_web(go=moved("http://inner.example:{port}/plan")) as on:
        on.names = {"inner.example": addresses}
        for url in ("http://inner.example/", "http://news.example:{port}/go"):
            with pytest.raises(ToolFailure, match=NOT_PUBLIC):
                await on.open(url)


async def test_the_address_that_was_checked_is_the_one_that_is_opened() -> None:
    async with a_web(plan=page("<p>here")) as on:
        await on.open("http://news.example:{port}/plan")
        assert on.asked == ["news.example"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///etc/passwd", "Only http and https"),
        ("ftp://news.example/", "Only http and https"),
        ("http://user:key@news.example/", "user name or password"),
        ("http://2130706433/", "not the address of a web page"),
        ("http://", "not the address of a web page"),
        ("http://[::1", "not the address of a web page"),
        ("http://news.example:99999/", "not the address of a web page"),
    ],
)
async def test_what_is_no_web_address_is_refused(url: str, said: str) -> None:
    async with a_web(go=moved(url)) as on:
        with pytest.raises(ToolFailure, match=said):
            await on.open(url)


async def test_redirects_are_followed_so_far() -> None:
    async with a_web(go=moved("plan"), plan=page("<p>here"), round=moved("/round"), out=moved("file:///etc/x")) as on:
        assert "here" in await on.open("http://news.example:{port}/go")
        with pytest.raises(ToolFailure, match="redirects more than 5 times"):
            await on.open("http://news.example:{port}/round")
        with pytest.raises(ToolFailure, match="Only http and https"):
            await on.open("http://news.example:{port}/out")


async def test_a_long_page_comes_in_parts_and_an_endless_one_ends() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while True:
            await response.write(b"word " * 1_000)

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"wait")
        await asyncio.sleep(60)
        return response

    async with a_web(long=page("x" * 50_000, "text/plain"), endless=endless, slow=slow) as on:
        text = await on.open("http://news.example:{port}/long")
        assert len(text) < 20_200
        offset = int(text.rpartition("offset: ")[2].rstrip("]"))
        rest = await on.open("http://news.example:{port}/long", offset=2 * offset)
        assert rest.strip("x") == ""
        with pytest.raises(ToolFailure, match="The page has 50,0"):
            await on.open("http://news.example:{port}/long", offset=60_000)
        assert "not loaded" in await on.open("http://news.example:{port}/endless", offset=90_000)
        on.fetch = WebFetch(look_up=on.look_up, allowed=on.allowed, seconds_max=0.2)
        with pytest.raises(ToolFailure, match="did not come within") as late:
            await on.open("http://news.example:{port}/slow")
        assert late.value.transient


async def test_failures_are_told_apart() -> None:
    async def status(request: web.Request) -> web.Response:
        return web.Response(status=int(request.query["is"]))

    async with a_web(status=status) as on:
        for number, transient in ((404, False), (403, False), (429, True), (503, True)):
            with pytest.raises(ToolFailure, match=f"The server answers {number}") as failure:
                await on.open(f"http://news.example:{{port}}/status?is={number}")
            assert failure.value.transient is transient
        port = on.port
    with pytest.raises(ToolFailure, match="could not be reached") as failure:
        await on.open(f"http://news.example:{port}/")
    assert failure.value.transient


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("192.168.1.1", False),
        ("172.16.0.1", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("0.0.0.0", False),
        ("::", False),
        ("::7f00:1", False),
        ("fd00:ec2::254", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("2002:7f00:1::", False),
        ("2002:808:808::", True),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("64:ff9b:1::808:808", False),
        ("::ffff:10.0.0.1", False),
    ],
)
def test_what_counts_as_the_public_web(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


def test_markdown_keeps_what_one_reads() -> None:
    html = """<html><head><title>T</title><style>a{}</style></head><body><nav>menu</nav>
    <h2>Head</h2><p>Hello <b>bold</b>   text.<br>two</p><ul><li>one<ul><li>in</li></ul><li><p>two</p></ul>
    <ol><li>a<li>b</ol><table><tr><th>A<th>B<tr><td>1<td>2</table><pre>x
  y &lt;</pre><img alt="a vase" src=x><script>if (a<b) "</div>"</script><p>العربية <code>z</code>"""
    assert to_markdown(html, "https://e.example/") == (
        "T",
        "## Head\n\nHello bold text.\ntwo\n\n- one\n  - in\n- two\n\n1. a\n2. b\n\nA | B\n1 | 2\n\n"
        "```\nx\n  y <\n```\n\n[picture: a vase]\n\nالعربية `z`",
    )


@given(
    st.lists(
        st.sampled_from(
            [
                '<a href="',
                "<p>",
                "</p>",
                "<li>",
                "<ul>",
                "</ul>",
                "<pre>",
                "'",
                '"',
                ">",
                "<",
                "<!--",
                "-->",
                "<script>",
                "</script>",
                "<title>",
                "</title>",
                "x",
                "&amp;",
                "&#x110000;",
                "\0",
                "<code>",
                "<td>",
            ]
        )
    )
)
def test_no_page_breaks_the_reader(parts: list[str]) -> None:
    title, text = to_markdown("".join(parts), "https://e.example/")
    assert "<script" not in text
    assert "\n" not in title


@pytest.mark.parametrize(
    "part", ["<div>", "<a href=x>", '<a "', "<!--", "<", "<ul><li>", "<svg>", "&#1", "<pre>", "<title>"]
)
def test_a_page_cannot_keep_us_busy(part: str) -> None:
    begun = time.process_time()
    to_markdown(part * (200_000 // len(part)), "https://e.example/")
    assert time.process_time() - begun < 5

"""Who gets in, from where, and with which headers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from tests.fakes.backend import FakeBackend, PageServer, now

Client = aiohttp.ClientSession


async def status_of(client: Client, path: str = "/api/status", **headers: str) -> int:
    async with client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}) as response:
        return response.status


async def enter(client: Client, link: str) -> int:
    async with client.get(link, allow_redirects=False) as response:
        return response.status


async def test_nothing_is_served_without_credentials(stranger: Client) -> None:
    for path in ("/api/status", "/api/events", "/api/conversations", "/assets/modules/app.js"):
        assert await status_of(stranger, path) == 401
    assert await status_of(stranger, Authorization="Bearer wrong") == 401
    assert await status_of(stranger, Authorization="Bearer ") == 401
    async with stranger.post("/api/messages", json={"text": "x"}) as response:
        assert response.status == 401
        assert "--link" in (await response.json())["error"]["remedy"]


async def test_the_page_without_credentials_says_how_to_get_a_link(stranger: Client) -> None:
    async with stranger.get("/", headers={"Accept-Language": "ar-SA,en"}) as response:
        assert response.status == 401
        page = await response.text()
    assert "hudhud status --link" in page
    assert '<html lang="ar" dir="rtl">' in page


async def test_a_link_opens_the_page_once_and_is_remembered(stranger: Client, server: PageServer) -> None:
    link = server.channel.new_link()
    async with stranger.get(link, allow_redirects=False) as response:
        assert response.status == 303
        assert response.headers["Location"] == "/"
        cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert await status_of(stranger, "/") == 200
    assert await status_of(stranger) == 200
    async with aiohttp.ClientSession(server.url) as other:
        assert await enter(other, link) == 401


async def test_a_link_ends_after_ten_minutes(backend: FakeBackend, tmp_path: Path) -> None:
    at = now()
    server = PageServer(backend, tmp_path, clock=lambda: at)
    await server.start()
    early, late = server.channel.new_link(), server.channel.new_link()
    async with aiohttp.ClientSession(server.url) as client:
        at += timedelta(minutes=9, seconds=59)
        assert await enter(client, early) == 303
        at += timedelta(seconds=2)
        assert await enter(client, late) == 401
    await server.stop()


async def test_a_cookie_outlives_a_restart_but_not_a_new_token(stranger: Client, server: PageServer) -> None:
    await enter(stranger, server.channel.new_link())
    await server.stop()
    await server.start()
    assert await status_of(stranger) == 200
    await server.stop()
    server.settings = server.settings.model_validate({"token": "another", "port": 0})
    await server.start()
    assert await status_of(stranger) == 401


async def test_a_cookie_ends_after_ninety_days(backend: FakeBackend, tmp_path: Path) -> None:
    at = now()
    server = PageServer(backend, tmp_path, clock=lambda: at)
    await server.start()
    async with aiohttp.ClientSession(server.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        await enter(client, server.channel.new_link())
        assert await status_of(client) == 200
        at += timedelta(days=91)
        assert await status_of(client) == 401
    await server.stop()


async def test_a_forged_cookie_is_none(stranger: Client, server: PageServer) -> None:
    await enter(stranger, server.channel.new_link())
    (cookie,) = stranger.cookie_jar
    for value in ("", "1", f"9{cookie.value}", cookie.value[:-1] + "x", "1.\ud800"):
        forged = f"{cookie.key}={value}".encode("utf-8", "replace").decode()
        async with aiohttp.ClientSession(server.url, headers={"Cookie": forged}) as other:
            assert await status_of(other) == 401


async def test_without_a_setting_the_token_is_a_fresh_one_of_each_run(backend: FakeBackend, tmp_path: Path) -> None:
    tokens: list[str] = []
    for _ in range(2):
        server = PageServer(backend, tmp_path)
        await server.start()
        tokens.append(server.channel.token)
        async with aiohttp.ClientSession(server.url) as client:
            assert await status_of(client, Authorization=f"Bearer {tokens[-1]}") == 200
        await server.stop()
    assert tokens[0] != tokens[1]
    assert (tmp_path / "inapp" / "cookie.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8710", "localhost.evil.example", "192.168.1.5", ""])
async def test_a_name_that_was_bent_to_this_machine_is_refused(client: Client, host: str) -> None:
    assert await status_of(client, Host=host) == 403
    assert await status_of(client, "/", Host=host) == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1", "[::1]:8710", "LOCALHOST"])
async def test_the_names_of_this_machine_are_fine(client: Client, host: str) -> None:
    assert await status_of(client, Host=host) == 200


async def test_open_to_other_machines_its_addresses_are_fine_and_other_names_need_the_token(
    backend: FakeBackend, tmp_path: Path
) -> None:
    server = PageServer(backend, tmp_path, token="the-token")
    server.settings = server.settings.model_validate({"host": "0.0.0.0", "token": "the-token"})
    await server.start()
    async with aiohttp.ClientSession(server.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        await enter(client, server.channel.new_link())
        assert await status_of(client, Host="192.168.1.5:8710") == 200
        assert await status_of(client, Host="evil.example") == 403
        assert await status_of(client, Host="hudhud", Authorization="Bearer the-token") == 200
        assert await status_of(client, Host="hudhud", Authorization="Bearer wrong") == 403
    await server.stop()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://"])
async def test_other_sites_are_refused(client: Client, origin: str) -> None:
    async with client.post("/api/messages", json={"text": "x"}, headers={"Origin": origin}) as response:
        assert response.status == 403
    assert await status_of(client, Origin=origin) == 403


async def test_requests_of_the_page_itself_are_fine(client: Client, server: PageServer) -> None:
    assert await status_of(client, Origin=server.url, Sec_Fetch_Site="same-origin") == 200
    assert await status_of(client, Sec_Fetch_Site="none") == 200
    assert await status_of(client, Sec_Fetch_Site="cross-site") == 403
    assert await status_of(client, "/", Sec_Fetch_Site="cross-site") == 200


async def test_a_link_on_another_site_still_leads_to_the_page(stranger: Client, server: PageServer) -> None:
    link = server.channel.new_link()
    async with stranger.get(link, headers={"Sec-Fetch-Site": "cross-site"}) as response:
        assert response.status == 200
        assert 'content="0; url=/"' in await response.text()
    assert await status_of(stranger) == 200


async def test_every_answer_carries_the_protecting_headers(client: Client, stranger: Client) -> None:
    for who, path in ((client, "/"), (client, "/api/status"), (client, "/assets/modules/app.js"), (stranger, "/")):
        async with who.get(path) as response:
            policy = response.headers["Content-Security-Policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert response.headers["X-Frame-Options"] == "DENY"
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_only_the_files_of_the_page_are_assets(client: Client) -> None:
    for path in ("words/en.json", "templates/page.html", "front.py", "modules/../front.py", "modules/none.js"):
        assert await status_of(client, f"/assets/{path}") == 404

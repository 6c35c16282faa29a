"""Webhook mode: who may post, what is answered when, and changing from one mode to the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from pydantic import ValidationError

from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings
from tests.channels.telegram.conftest import Rig
from tests.fakes.bot_api import TOKEN


class Posting:
    """A channel in webhook mode behind a server, and Telegram's side of it."""

    def __init__(self, rig: Rig, session: aiohttp.ClientSession) -> None:
        self.rig = rig
        self.session = session
        self.url = ""
        self.channel = rig.channel()

    async def start(self) -> web.AppRunner:
        holder: list[TelegramChannel] = []

        async def handle(request: web.Request) -> web.StreamResponse:
            (route,) = holder[0].routes()
            return await route.handler(request)

        app = web.Application()
        app.router.add_post("/telegram/{secret:.+}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self.channel = self.rig.channel(mode="webhook", webhook_url=self.url)
        holder.append(self.channel)
        return runner

    async def post(self, update_id: int, **more: Any) -> int:
        return await self.rig.api.post_webhook(self.session, update_id, **more)


@pytest.fixture
async def posting(rig: Rig) -> AsyncIterator[Posting]:
    async with aiohttp.ClientSession() as session:
        made = Posting(rig, session)
        runner = await made.start()
        yield made
        await runner.cleanup()


async def test_an_update_is_answered_after_it_is_saved(rig: Rig, posting: Posting) -> None:
    async with rig.listening(posting.channel):
        await rig.api.until(lambda: rig.api.count("getWebhookInfo") == 1)
        number = rig.api.push_text(7, "hello")
        assert await posting.post(number) == 200
        assert rig.inbox.texts == ["hello"]
        rig.inbox.refusals = 1
        number = rig.api.push_text(7, "disk full")
        assert await posting.post(number) == 503
        assert rig.inbox.texts == ["hello"]
        assert await posting.post(number) == 200
        assert rig.inbox.texts == ["hello", "disk full"]
    assert [state for state, _, _ in rig.health.states] == ["connected"]
    assert rig.health.receives >= 2


async def test_the_same_update_twice_is_saved_once(rig: Rig, posting: Posting) -> None:
    async with rig.listening(posting.channel):
        await rig.api.until(lambda: rig.api.count("getWebhookInfo") == 1)
        number = rig.api.push_text(7, "hello")
        update = rig.api.pending[number]
        assert await posting.post(number) == 200
        rig.api.pending[number] = update
        assert await posting.post(number) == 200
    assert rig.inbox.texts == ["hello"]


async def test_only_telegram_may_post(rig: Rig, posting: Posting) -> None:
    async with rig.listening(posting.channel):
        await rig.api.until(lambda: rig.api.count("getWebhookInfo") == 1)
        number = rig.api.push_text(7, "hello")
        assert await posting.post(number, secret="wrong") == 403
        assert await posting.post(number, url=f"{posting.url}/telegram/guess") == 404
        url, secret = rig.api.webhook["url"], rig.api.webhook["secret_token"]
        assert TOKEN not in url + secret
        headers = {"X-Telegram-Bot-Api-Secret-Token": secret}
        for body in (b"{", b"[]", b"\xff", b"x" * 1_100_000):
            async with posting.session.post(url, data=BytesIO(body), headers=headers) as response:
                assert response.status == 200
    assert rig.inbox.texts == []


async def test_before_the_channel_listens_telegram_is_asked_to_come_again(rig: Rig, posting: Posting) -> None:
    async with rig.listening(posting.channel):
        await rig.api.until(lambda: rig.api.count("getWebhookInfo") == 1)
    number = rig.api.push_text(7, "hello")
    assert await posting.post(number) == 503


async def test_the_secrets_are_the_same_after_each_start(rig: Rig, posting: Posting) -> None:
    asked: list[Any] = []
    for _ in range(2):
        channel = rig.channel(mode="webhook", webhook_url="https://example.org/base/")
        async with rig.listening(channel):
            await rig.api.until(lambda: bool(rig.api.webhook.get("url")))
        asked.append((rig.api.webhook["url"], rig.api.webhook["secret_token"]))
        rig.api.webhook = {}
    assert asked[0] == asked[1]
    assert asked[0][0].startswith("https://example.org/base/telegram/")
    assert not rig.api.webhook.get("drop_pending_updates")


async def test_changing_modes_loses_nothing(rig: Rig, posting: Posting) -> None:
    rig.api.push_text(7, "polled")
    async with rig.listening():
        await rig.inbox.until_saved(1)
        await rig.api.until(lambda: not rig.api.pending)
    waited = rig.api.push_text(7, "waited for the webhook")
    async with rig.listening(posting.channel):
        await rig.api.until(lambda: rig.api.count("getWebhookInfo") == 1)
        assert await posting.post(waited) == 200
    rig.api.push_text(7, "waited for the poll")
    async with rig.listening():
        await rig.inbox.until_saved(3)
    assert rig.inbox.texts == ["polled", "waited for the webhook", "waited for the poll"]


async def test_another_webhook_is_a_conflict(rig: Rig) -> None:
    def taken_over(method: str, parameters: Any) -> None:
        """Another program sets its webhook between our setting one and looking at it."""
        if method == "getWebhookInfo":
            rig.api.webhook = {"url": "https://elsewhere.example"}

    rig.api.rule = taken_over
    channel = rig.channel(mode="webhook", webhook_url="https://example.org")
    assert (await rig.down(channel)).state == "conflict"


def test_webhook_mode_needs_an_address() -> None:
    with pytest.raises(ValidationError, match="webhook_url"):
        TelegramSettings(enabled=True, mode="webhook")

"""What is written on one channel is seen on the page at once: events, list, conversation, search."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.bot_api import BotApi
from tests.fakes.program import OWNER, EchoProvider, program


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    """Id, kind and data of each event of a stream."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            yield fields["id"], fields["event"], json.loads(fields["data"])
        fields = {}


async def until_done(response: aiohttp.ClientResponse) -> list[tuple[str, str, dict[str, Any]]]:
    """The events up to the end of the next turn."""
    seen: list[tuple[str, str, dict[str, Any]]] = []
    async with asyncio.timeout(10):
        async for event in events(response):
            seen.append(event)
            if event[1] == "done":
                return seen
    raise AssertionError("the stream ended")


async def test_a_message_on_telegram_appears_on_the_page_while_it_is_answered(tmp_path: Path) -> None:
    async with BotApi() as api, program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        async with gateway.http.get("/api/events") as response:
            api.push_text(OWNER, "سلام from Telegram", name="Sara")
            seen = await until_done(response)
        kinds = [kind for _, kind, _ in seen if kind != "status"]
        assert (kinds[0], kinds[-1]) == ("message", "done")
        heard = next(data for _, kind, data in seen if kind == "message")
        assert heard["message"]["text"] == "سلام from Telegram"
        assert heard["message"]["sender"] == "Sara"
        assert heard["summary"]["channel"] == "telegram"
        assert heard["summary"]["last_text"] == "سلام from Telegram"
        done = seen[-1][2]
        assert done["conversation"] == heard["conversation"]
        assert done["message"]["text"] == "re: سلام from Telegram"
        await gateway.quiet()
        [listed] = (await gateway.get("/api/conversations"))["conversations"]
        assert (listed["id"], listed["channel"]) == (heard["conversation"], "telegram")
        found = await gateway.get(f"/api/conversations/{listed['id']}")
        assert [message["role"] for message in found["messages"]] == ["user", "assistant"]
        hits = (await gateway.get("/api/search?query=telegram"))["hits"]
        assert {hit["chat"] for hit in hits} == {str(OWNER)}


async def test_a_page_that_was_closed_over_a_restart_gets_what_it_missed_once(tmp_path: Path) -> None:
    async with BotApi() as api:
        async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
            async with gateway.http.get("/api/events") as response:
                api.push_text(OWNER, "one")
                last = (await until_done(response))[-1][0]
            await gateway.quiet()
            api.push_text(OWNER, "two")
            await gateway.quiet()
        async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
            api.push_text(OWNER, "three")
            await gateway.quiet()
            async with gateway.http.get("/api/events", headers={"Last-Event-ID": last}) as response:
                api.push_text(OWNER, "four")
                seen = await until_done(response)
            texts = [data["message"]["text"] for _, kind, data in seen if kind in {"message", "done"}]
            missed = ["two", "re: two", "three", "re: three"]
            assert [text for text in texts if text in missed] == missed
            assert texts[-1] == "re: four"
            assert texts.count("four") == 1

"""Texts that people and programs really send, over both doors: each is kept, none damages anything."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from tests.fakes.bot_api import BotApi
from tests.fakes.program import GUEST, OWNER, EchoProvider, Program, program

MEGABYTE = 1024 * 1024


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as server:
        yield server


@pytest.fixture
async def gateway(tmp_path: Path, api: BotApi) -> AsyncIterator[Program]:
    async with program(tmp_path / "h", api, provider=EchoProvider()) as running:
        yield running


async def test_a_megabyte_over_telegram_is_kept_whole_and_answered_once(gateway: Program, api: BotApi) -> None:
    text = ("كلمة word " * MEGABYTE)[: MEGABYTE // 2] + "end"
    assert len(text.encode()) > 600_000
    api.push_text(OWNER, text)
    await gateway.quiet()
    assert gateway.log()[0]["text"] == text
    assert len(gateway.sent()) == 1
    [conversation] = (await gateway.get("/api/conversations"))["conversations"]
    found = await gateway.get(f"/api/conversations/{conversation['id']}")
    assert found["messages"][0]["text"] == text


async def test_a_megabyte_over_http_is_taken_and_one_byte_more_is_refused(gateway: Program) -> None:
    text = "m" * MEGABYTE
    posted = await gateway.post("/api/messages", {"text": text})
    refused = await gateway.post("/api/messages", {"text": text + "m"}, 413)
    await gateway.quiet()
    assert refused["error"]["code"] == "too_large"
    assert refused["error"]["remedy"]
    found = await gateway.get(f"/api/conversations/{posted['conversation']}")
    assert [len(message["text"]) for message in found["messages"]] == [MEGABYTE, 204]
    assert gateway.log(posted["conversation"], "inapp")[0]["text"] == text


@pytest.mark.parametrize("text", ["", "   \n\t ", "\u200f\u200b", "\u0000"])
async def test_a_message_without_anything_to_read_is_refused_over_http(gateway: Program, text: str) -> None:
    refused = await gateway.post("/api/messages", {"text": text}, 400)
    assert refused["error"]["code"] == "empty"
    assert gateway.rows("SELECT count(*) FROM message") == [(0,)]


@pytest.mark.parametrize("text", ["   \n\t ", "\u200f\u200b"])
async def test_a_blank_message_over_telegram_is_logged_and_starts_no_turn(
    gateway: Program, api: BotApi, text: str
) -> None:
    api.push_text(OWNER, text)
    await gateway.quiet()
    assert [line["dir"] for line in gateway.log()] == ["in"]
    assert gateway.sent() == []


ODD = [
    pytest.param("ok \udcb2 \ud83c end", "ok \ufffd \ufffd end", id="lone surrogates"),
    pytest.param("pair \ud83d\ude00 end", "pair \U0001f600 end", id="a pair as two escapes"),
]


@pytest.mark.parametrize(("text", "kept"), ODD)
async def test_half_characters_over_http_become_whole_ones(gateway: Program, text: str, kept: str) -> None:
    assert await gateway.ask(text) == f"re: {kept}"


@pytest.mark.parametrize(("text", "kept"), [*ODD, pytest.param("nul \x00 end", "nul \ufffd end", id="NUL")])
async def test_half_characters_and_nul_over_telegram_damage_no_neighbour(
    tmp_path: Path, gateway: Program, api: BotApi, text: str, kept: str
) -> None:
    for words in ("before", text, "after"):
        api.push_text(OWNER, words)
        await gateway.quiet()
    assert [line["text"] for line in gateway.log() if line["dir"] == "in"] == ["before", kept, "after"]
    assert gateway.sent() == ["re: before", f"re: {kept}", "re: after"]
    [path] = (tmp_path / "h" / "workspace" / "readlog" / "telegram").iterdir()
    for line in path.read_bytes().splitlines():
        json.loads(line.decode("utf-8"))


async def test_nul_over_http_is_left_out(gateway: Program) -> None:
    assert await gateway.ask("nul \x00 end") == "re: nul  end"


@pytest.mark.parametrize("wanted", ["\ud800", "a\x00b", "x" * 5_000, "../../etc", "%", "_", "'; DROP TABLE message"])
async def test_a_conversation_that_nobody_has_is_not_found_whatever_its_name(gateway: Program, wanted: str) -> None:
    refused = await gateway.post("/api/messages", {"text": "hi", "conversation": wanted}, 404)
    assert refused["error"]["code"] == "no_conversation"
    await gateway.post("/api/stop", {"conversation": wanted}, 404)


@pytest.mark.parametrize(
    "path",
    [
        "/api/search?query=%00",
        "/api/search?query=%ED%A0%80&chat=%ED%A0%80&sender=%00",
        "/api/search?query=a&limit=" + "9" * 5_000,
        "/api/search?query=a&limit=-1",
        "/api/search?query=a&limit=%D9%A3",
        "/api/search?query=a&after=yesterday",
        "/api/search?query=a&sources=nowhere",
        "/api/search?query=%22%22%22%20AND%20OR%20NEAR(%20*",
        "/api/conversations?channel=%00&query=%ED%A0%80",
        "/api/conversations?limit=x",
        "/api/conversations?after=9999-99-99",
        "/api/conversations/%00",
        "/api/conversations/%ED%A0%80?from=1",
        "/api/conversations/x?from=" + "1" * 40,
        "/api/files/%00",
        "/api/files/%ED%A0%80",
        "/api/files/" + "a" * 5_000,
        "/api/files/../hudhud.db",
        "/api/files/%2E%2E%2Fhudhud.db",
        "/api/runs?limit=x",
    ],
)
async def test_no_query_is_a_fault_of_the_program(gateway: Program, path: str) -> None:
    assert gateway.app.server is not None
    async with gateway.http.get(URL(gateway.app.server.address + path, encoded=True)) as response:
        body: Any = await response.text()
        assert response.status in {200, 400, 404}, body
        if response.status != 200:
            assert "code" in json.loads(body)["error"] if body.startswith("{") else "Not Found" in body


async def test_a_message_of_each_person_stays_theirs(gateway: Program, api: BotApi) -> None:
    api.push_text(OWNER, "mine")
    api.push_text(GUEST, "yours", name="\ud83d evil\x00name")
    api.push_text(99, "stranger here")
    await gateway.quiet()
    assert gateway.sent(OWNER) == ["re: mine"]
    assert gateway.sent(GUEST) == ["re: yours"]
    assert gateway.sent(99) == []
    assert gateway.logged(99) == [("in", "stranger here")]
    assert "\x00" not in gateway.log(GUEST)[0]["sender"]["name"]

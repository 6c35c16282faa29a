"""The whole program beside a Bot API: files to the model, answers as they are written, a webhook at its own door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.types import Prompt, StreamChunk
from gateway.app import App
from tests.fakes.bot_api import BotApi
from tests.fakes.program import GUEST, OWNER, EchoProvider, program, said_last, settings_for
from tests.fakes.scripted_provider import END
from tests.fakes.waiting import until


def a_photo(api: BotApi, chat: int = OWNER, **fields: Any) -> dict[str, Any]:
    message = api.message(chat, "") | {"photo": [{"file_id": "P1", "file_size": 7}]}
    del message["text"]
    return message | fields


async def test_a_picture_is_shown_to_the_model_with_its_caption(tmp_path: Path) -> None:
    provider = EchoProvider()
    async with BotApi() as api:
        api.files["P1"] = b"jpegjpg"
        async with program(tmp_path / "home", api, provider=provider) as gateway:
            api.push({"message": a_photo(api, caption="what is this?")})
            await until(lambda: bool(api.sent))
            await gateway.quiet()
        last = provider.prompts[-1].messages[-1]
        (image,) = last.images
        assert (tmp_path / "home" / "workspace" / image).read_bytes() == b"jpegjpg"
        assert f"files: {image}" in last.text
        assert api.shown(OWNER) == ["re: what is this?"]


async def test_a_slow_picture_delays_neither_the_poll_nor_another_chat(tmp_path: Path) -> None:
    async with BotApi() as api:
        api.files["P1"] = b"jpegjpg"
        api.slow_files = asyncio.Event()
        async with program(tmp_path / "home", api, provider=EchoProvider()) as gateway:
            api.push({"message": a_photo(api, caption="look")})
            await api.until(lambda: api.count("download") == 1 and not api.pending)
            api.push_text(GUEST, "hello")
            await api.until(lambda: api.shown(GUEST) == ["re: hello"])
            assert api.shown(OWNER) == []
            api.slow_files.set()
            await api.until(lambda: api.shown(OWNER) == ["re: look"])
            await gateway.quiet()


class Slow(EchoProvider):
    """Writes a long answer in two pieces; the second when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamChunk]:
        yield StreamChunk("text", text="The **beginning** of an answer that is long enough")
        await self.go.wait()
        yield StreamChunk("text", text=", and its end.")
        for chunk in END:
            yield chunk


async def test_the_answer_grows_in_the_chat(tmp_path: Path) -> None:
    provider = Slow()
    async with BotApi() as api, program(tmp_path / "home", api, provider=provider) as gateway:
        api.push_text(OWNER, "tell me")
        await api.until(lambda: len(api.sent) == 1, 10)
        assert api.shown(OWNER)[0].startswith("The beginning of an answer")
        provider.go.set()
        await gateway.quiet()
        assert api.shown(OWNER) == ["The beginning of an answer that is long enough, and its end."]
        assert api.count("sendMessage") == 1
        assert gateway.logged()[-1] == ("out", "The **beginning** of an answer that is long enough, and its end.")


class Obeying(EchoProvider):
    """Calls the tool it is told to (`CALL name {...}`), then says what came of it."""

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamChunk]:
        self.prompts.append(prompt)
        order = said_last(prompt.messages) if prompt.messages[-1].role == "user" else ""
        if order.startswith("CALL "):
            _, name, arguments = order.split(" ", 2)
            yield StreamChunk("call", index=0, call_id=f"c{len(self.prompts)}", name=name, arguments=arguments)
        else:
            yield StreamChunk("text", text=f"so: {prompt.messages[-1].text[:60]}")
        for chunk in END:
            yield chunk


async def test_a_file_is_sent_and_to_others_only_with_consent(tmp_path: Path) -> None:
    async with BotApi() as api, program(tmp_path / "home", api, provider=Obeying()) as gateway:
        api.chats[GUEST] = "private"
        (gateway.home / "workspace" / "files" / "plan.pdf").write_bytes(b"the plan")
        api.push_text(OWNER, "CALL send_file " + json.dumps({"path": "files/plan.pdf", "caption": "here"}))
        await gateway.quiet()
        (sent,) = [one for one in api.sent if one.file]
        assert (sent.chat_id, sent.file, sent.text, api.uploaded[sent.message_id]) == (
            OWNER,
            "plan.pdf",
            "here",
            b"the plan",
        )
        to_guest = {"path": "files/plan.pdf", "to": f"telegram:{GUEST}"}
        api.push_text(OWNER, "CALL send_file " + json.dumps(to_guest))
        await api.until(lambda: any(one.buttons for one in api.sent))
        (question,) = [one for one in api.sent if one.buttons]
        assert not any(one.chat_id == GUEST for one in api.sent)
        asked = api.message(OWNER, question.text) | {"message_id": question.message_id}
        person = {"id": OWNER, "is_bot": False, "first_name": "Owner"}
        query = {"id": "q1", "from": person, "message": asked, "data": question.buttons[0][1]}
        api.push({"callback_query": query})
        await api.until(lambda: any(one.chat_id == GUEST and one.file == "plan.pdf" for one in api.sent))
        await gateway.quiet()
        await api.until(lambda: api.count("answerCallbackQuery") == 1)
        await api.until(lambda: _closed(api, question.message_id))


def _closed(api: BotApi, message_id: int) -> bool:
    now = api.now_shown(OWNER, message_id)
    return now is not None and not now.buttons and now.text.endswith("Allowed.")


async def test_no_tool_reaches_a_stranger(tmp_path: Path) -> None:
    async with BotApi() as api, program(tmp_path / "home", api, provider=Obeying()) as gateway:
        api.push_text(99, "hello", name="Stranger")
        await gateway.quiet()
        for name, args in (("send_message", {"text": "hi"}), ("send_file", {"path": "memory.md"})):
            api.push_text(OWNER, f"CALL {name} " + json.dumps({**args, "to": "telegram:99"}))
            await api.until(lambda: any(one.buttons for one in api.sent))
            api.push_text(OWNER, "1")
            await gateway.quiet()
        assert all(one.chat_id != 99 for one in api.sent)


@pytest.mark.parametrize("page", [True, False])
async def test_a_webhook_at_the_gateways_own_door(tmp_path: Path, page: bool) -> None:
    async with BotApi() as api, aiohttp.ClientSession() as session:
        webhook = {"mode": "webhook", "webhook_url": "https://hudhud.example.org"}
        settings = settings_for(api, channels={"telegram": webhook, "inapp": {"enabled": page}})
        app = App(tmp_path / "home", settings, provider=EchoProvider())
        await app.start()
        try:
            await api.until(lambda: api.count("getWebhookInfo") == 1)
            assert app.server is not None
            path = api.webhook["url"].removeprefix("https://hudhud.example.org")
            number = api.push_text(OWNER, "hello")
            update = api.pending[number]
            for _ in range(2):
                api.pending[number] = update
                assert await api.post_webhook(session, number, url=app.server.address + path) == 200
            await api.until(lambda: api.shown(OWNER) == ["re: hello"])
            assert await app.store.waiting_count() == 0
        finally:
            await app.stop()
    assert [message.text for message in api.sent] == ["re: hello"]

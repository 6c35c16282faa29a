"""The API that other programs speak, as the official client of that API uses it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import openai
import pytest

from tests.fakes.backend import FakeBackend, PageServer
from tests.fakes.waiting import until

HELLO: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def sdk(server: PageServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="the-token", max_retries=0)


async def test_a_call_is_one_message_and_its_answer(sdk: openai.AsyncOpenAI, backend: FakeBackend) -> None:
    done = await sdk.chat.completions.create(model="hudhud", messages=HELLO)
    assert done.choices[0].message.content == "Hello from **Hudhud**."
    assert (done.choices[0].finish_reason, done.object, done.model) == ("stop", "chat.completion", "hudhud")
    (message,) = backend.inbound
    assert (message.channel, message.text) == ("inapp", "Hello")
    assert [model.id async for model in sdk.models.list()] == ["hudhud"]
    await sdk.close()


async def test_an_answer_is_streamed_as_it_comes(sdk: openai.AsyncOpenAI, backend: FakeBackend) -> None:
    gate = asyncio.Event()
    backend.steps = ("Hello ", gate, "again.")
    pieces: list[str] = []
    async for chunk in await sdk.chat.completions.create(model="hudhud", messages=HELLO, stream=True):
        pieces.append(chunk.choices[0].delta.content or "")
        if "".join(pieces) == "Hello ":
            gate.set()  # The first words are there while the turn still runs.
    assert "".join(pieces) == "Hello again."
    await sdk.close()


async def test_a_user_or_a_header_keeps_a_conversation(sdk: openai.AsyncOpenAI, backend: FakeBackend) -> None:
    for _ in range(2):
        await sdk.chat.completions.create(model="x", messages=HELLO, user="notes")
        await sdk.chat.completions.create(model="x", messages=HELLO, extra_headers={"X-Session-Key": "mail"})
        await sdk.chat.completions.create(model="x", messages=HELLO)
    chats = [message.chat_id for message in backend.inbound]
    assert chats[0] == chats[3]
    assert chats[1] == chats[4]
    assert len({chats[0], chats[1], chats[2], chats[5]}) == 4
    await sdk.close()


async def test_what_came_before_goes_along_where_nothing_keeps_it(
    sdk: openai.AsyncOpenAI, backend: FakeBackend
) -> None:
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I like tea."},
        {"role": "assistant", "content": "Good."},
        {"role": "user", "content": [{"type": "text", "text": "What do "}, {"type": "text", "text": "I like?"}]},
    ]
    await sdk.chat.completions.create(model="x", messages=messages)
    await sdk.chat.completions.create(model="x", messages=messages, user="kept")
    whole, last = (message.text for message in backend.inbound)
    assert "[user] I like tea." in whole
    assert whole.endswith("What do I like?")
    assert last == "What do I like?"
    await sdk.close()


async def test_the_turn_of_another_message_is_not_this_answer(sdk: openai.AsyncOpenAI, backend: FakeBackend) -> None:
    gate = asyncio.Event()
    backend.steps = ("first", gate)
    first = asyncio.create_task(sdk.chat.completions.create(model="x", messages=HELLO, user="one"))
    await until(lambda: len(backend.inbound) == 1)
    backend.hold(backend.inbound[0].chat_id)
    second = asyncio.create_task(sdk.chat.completions.create(model="x", messages=HELLO, user="one"))
    await until(lambda: len(backend.inbound) == 2)
    gate.set()
    assert (await first).choices[0].message.content == "first"
    backend.steps = ("second",)
    backend.release(backend.inbound[0].chat_id)
    assert (await second).choices[0].message.content == "second"
    await sdk.close()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": "Hello"},
        {"messages": [{"role": "assistant", "content": "Hello"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": HELLO, "user": ""},
        {"messages": HELLO, "user": 7},
        {"messages": ["Hello"]},
    ],
)
async def test_a_request_that_cannot_be_taken_is_refused(client: aiohttp.ClientSession, body: Any) -> None:
    async with client.post("/v1/chat/completions", data=json.dumps(body)) as response:
        assert response.status == 400
        assert (await response.json())["error"]["message"]


async def test_it_needs_the_token(stranger: aiohttp.ClientSession) -> None:
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
        async with stranger.request(method, path, data="{}" if method == "POST" else None) as response:
            assert response.status == 401

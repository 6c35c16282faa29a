"""What every Provider keeps to. A new provider derives a class from ProviderContract and makes its own `provider`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from agent.broca import Broca
from agent.providers.base import ProviderSettings, create
from agent.types import Message, Prompt, Provider, ProviderError, StreamChunk, ToolCall, ToolSpec, Usage
from agent.wernicke import Wernicke
from tests.fakes.openai_server import HANG, OpenAiServer, Reply, call_reply, delta, error_reply, sse, text_reply

SEARCH = ToolSpec(
    "memory_search",
    "Searches the memory.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "sources": {"type": "string"},
            "limit": {"type": "integer", "maximum": 50},
        },
        "required": ["query"],
    },
    read_only=True,
)
SMALL_TALK = Prompt("", (Message("user", "hello"),), (SEARCH,))
QUESTION = Prompt("Be brief.", (Message("user", "When is my dentist appointment?"),), (SEARCH,))


async def chunks_of(provider: Provider, prompt: Prompt) -> list[StreamChunk]:
    return [chunk async for chunk in provider.stream(prompt)]


def text_of(chunks: list[StreamChunk]) -> str:
    speech = Broca().begin()
    for chunk in chunks:
        speech.speak(chunk)
    speech.finish()
    return speech.text


def calls_of(chunks: list[StreamChunk]) -> tuple[ToolCall, ...]:
    wernicke = Wernicke()
    collector = wernicke.begin()
    for chunk in chunks:
        collector.add(chunk)
    return wernicke.parse_calls(collector, (SEARCH,))


class ProviderContract:
    """The fixture `provider` answers SMALL_TALK with text, QUESTION with one call of `memory_search`, and a question
    with the result of its call with text."""

    @pytest.fixture
    def provider(self) -> Any:
        raise NotImplementedError

    async def test_it_has_a_name_and_a_model(self, provider: Provider) -> None:
        assert provider.name
        assert provider.model
        assert isinstance(provider.local, bool)

    async def test_text_comes_in_pieces_then_usage_then_stop(self, provider: Provider) -> None:
        chunks = await chunks_of(provider, SMALL_TALK)
        kinds = [chunk.kind for chunk in chunks]
        assert kinds.count("text") > 1
        assert kinds[-2:] == ["usage", "stop"]
        assert kinds.count("usage") == kinds.count("stop") == 1
        assert chunks[-1].text == "end"
        assert text_of(chunks).strip()

    async def test_each_call_of_the_model_counts_as_one_request(self, provider: Provider) -> None:
        usage = next(chunk.usage for chunk in await chunks_of(provider, SMALL_TALK) if chunk.usage is not None)
        assert usage.requests == 1
        assert min(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) >= 0

    async def test_a_question_becomes_a_call_that_fits_the_tool(self, provider: Provider) -> None:
        chunks = await chunks_of(provider, QUESTION)
        (call,) = calls_of(chunks)
        assert call.name == "memory_search"
        assert call.fault is None
        assert call.args["query"]
        assert chunks[-1] == StreamChunk("stop", text="calls")

    async def test_the_result_of_its_call_goes_back_to_it(self, provider: Provider) -> None:
        (call,) = calls_of(await chunks_of(provider, QUESTION))
        result = Message("tool", "Denied: the owner does not allow this call.", call_id=call.id)
        answered = (*QUESTION.messages, Message("assistant", "", (call,)), result)
        chunks = await chunks_of(provider, Prompt("Be brief.", answered, (SEARCH,)))
        assert text_of(chunks)
        assert calls_of(chunks) == ()

    async def test_streams_do_not_mix(self, provider: Provider) -> None:
        both = await asyncio.gather(chunks_of(provider, SMALL_TALK), chunks_of(provider, SMALL_TALK))
        assert text_of(both[0]) == text_of(both[1])

    async def test_a_stream_may_be_left_early_and_the_provider_used_again(self, provider: Provider) -> None:
        stream: Any = provider.stream(SMALL_TALK)
        async with aclosing(stream):
            await anext(stream)
        assert text_of(await chunks_of(provider, SMALL_TALK))

    async def test_it_takes_what_no_encoding_can_hold(self, provider: Provider) -> None:
        prompt = Prompt("", (Message("user", "half \ud83d and \x00"),), (SEARCH,))
        assert (await chunks_of(provider, prompt))[-1].kind == "stop"

    async def test_it_closes_twice(self, provider: Provider) -> None:
        await provider.close()
        await provider.close()


class TestOffline(ProviderContract):
    @pytest.fixture
    async def provider(self) -> AsyncIterator[Provider]:
        provider = create(ProviderSettings())
        yield provider
        await provider.close()


def _model(body: dict[str, Any]) -> Reply:
    last = body["messages"][-1]
    if last["role"] == "user" and "dentist" in last["content"]:
        return call_reply(("c1", "memory_search", {"query": "dentist"}))
    return text_reply("Good day to you")


class TestOpenai(ProviderContract):
    @pytest.fixture
    async def provider(self) -> AsyncIterator[Provider]:
        async with OpenAiServer(_model) as server:
            provider = create(ProviderSettings("openai", "m", server.base_url))
            yield provider
            await provider.close()

    async def test_an_unreachable_server_is_a_failure_that_may_pass(self) -> None:
        provider = create(ProviderSettings("openai", "m", "http://127.0.0.1:9/v1", timeout_seconds=5))
        with pytest.raises(ProviderError) as caught:
            await chunks_of(provider, SMALL_TALK)
        assert caught.value.transient
        await provider.close()

    async def test_cancelling_closes_the_connection(self) -> None:
        async with OpenAiServer([Reply((sse(delta(content="Hel")), HANG))]) as server:
            provider = create(ProviderSettings("openai", "m", server.base_url))
            first = asyncio.Event()

            async def consume() -> None:
                async for _ in provider.stream(SMALL_TALK):
                    first.set()

            task = asyncio.create_task(consume())
            await asyncio.wait_for(first.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.client_left()
            await provider.close()

    async def test_usage_and_refusals_come_in_our_terms(self) -> None:
        async with OpenAiServer([text_reply("x"), error_reply(503)]) as server:
            provider = create(ProviderSettings("openai", "m", server.base_url))
            assert (await chunks_of(provider, SMALL_TALK))[-2].usage == Usage(10, 5, 0, 0, 1)
            with pytest.raises(ProviderError):
                await chunks_of(provider, SMALL_TALK)
            await provider.close()

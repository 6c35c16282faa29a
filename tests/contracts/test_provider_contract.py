"""The contract suite, run on every provider."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.providers.base import ProviderSettings, create
from agent.types import Message, Prompt, Provider, ToolCall, Usage
from tests.contracts.provider_suite import (
    PNG,
    QUESTION,
    SEARCH,
    SMALL_TALK,
    ProviderContract,
    RemoteContract,
    calls_of,
    chunks_of,
    outcome_of,
    text_of,
)
from tests.fakes import anthropic_server, deepseek_server, ollama_server, openai_server
from tests.fakes.openai_server import delta, sse
from tests.fakes.stream_server import Json, Reply, document
from tests.fakes.strict_api import signature


class TestOffline(ProviderContract):
    @pytest.fixture
    async def provider(self) -> AsyncIterator[Provider]:
        provider = create(ProviderSettings())
        yield provider
        await provider.close()


class TestOpenai(RemoteContract, ProviderContract):
    service = openai_server
    library = "openai"

    async def test_figures_of_the_cache_are_counted_apart(self) -> None:
        details = {"cached_tokens": 70, "cache_write_tokens": 20}
        figures = {"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": details}
        event = {**delta("stop", content="x"), "usage": figures}
        async with self.serving([Reply((sse(event, "[DONE]"),))]) as (_, provider):
            assert outcome_of(await chunks_of(provider, SMALL_TALK))[2] == [Usage(10, 9, 70, 20, 1)]

    async def test_what_a_compatible_server_thought_is_not_sent_back(self) -> None:
        call = ("c1", "memory_search", {"query": "x"})
        async with self.serving([openai_server.call_reply(call, thought="think"), openai_server.text_reply("x")]) as (
            server,
            provider,
        ):
            chunks = await chunks_of(provider, QUESTION)
            assert "reasoning" not in [chunk.kind for chunk in chunks]
            await chunks_of(provider, _answered(chunks))
            assert server.refused == []


class TestDeepseek(RemoteContract, ProviderContract):
    service = deepseek_server
    library = "openai"
    model = "deepseek-v4-pro"
    takes_pictures = False

    @pytest.mark.parametrize("thought", ["think", ""])
    async def test_the_reasoning_of_a_tool_turn_goes_back_also_when_it_was_empty(self, thought: str) -> None:
        call = ("c1", "memory_search", {"query": "x"})
        script = [openai_server.call_reply(call, text="So", thought=thought), openai_server.text_reply("Monday")]
        async with self.serving(script) as (server, provider):
            chunks = await chunks_of(provider, QUESTION)
            assert text_of(await chunks_of(provider, _answered(chunks))) == "Monday"
            sent = [m for m in server.requests[1].body["messages"] if m["role"] == "assistant"]
        assert [message["reasoning_content"] for message in sent] == [thought]
        assert text_of(chunks) == "So"

    async def test_calls_of_earlier_turns_and_of_others_go_with_empty_reasoning(self) -> None:
        foreign: Json = {"provider": "ollama", "model": "deepseek-v4-pro", "text": "of another"}
        history = (
            Message("user", "a"),
            Message("assistant", "", (ToolCall("c0", "memory_search", {"query": "a"}),), reasoning=foreign),
            Message("tool", "found", call_id="c0"),
            Message("assistant", "It is a."),
        )
        async with self.serving([openai_server.text_reply("x")]) as (server, provider):
            await chunks_of(provider, Prompt("", (*history, *SMALL_TALK.messages), (SEARCH,)))
            assert server.refused == []
            sent = [m for m in server.requests[0].body["messages"] if m["role"] == "assistant"]
        assert [message["reasoning_content"] for message in sent] == ["", ""]

    async def test_a_model_that_does_not_think_gets_none(self) -> None:
        call = ("c1", "memory_search", {"query": "x"})
        script = [openai_server.call_reply(call, thought="think"), openai_server.text_reply("Monday")]
        async with deepseek_server.Server(script, strict=True) as server:
            provider = create(ProviderSettings("deepseek", "deepseek-chat", server.base_url, "k"))
            chunks = await chunks_of(provider, QUESTION)
            assert text_of(await chunks_of(provider, _answered(chunks))) == "Monday"
            await provider.close()

    async def test_figures_of_the_cache_are_counted_apart(self) -> None:
        figures = {"prompt_tokens": 100, "completion_tokens": 9, "prompt_cache_hit_tokens": 64}
        event = {**delta("stop", content="x"), "usage": figures}
        async with self.serving([Reply((sse(event, "[DONE]"),))]) as (_, provider):
            assert outcome_of(await chunks_of(provider, SMALL_TALK))[2] == [Usage(36, 9, 64, 0, 1)]


class TestAnthropic(RemoteContract, ProviderContract):
    service = anthropic_server
    library = "anthropic"

    async def test_thinking_goes_back_signed_and_in_its_place(self) -> None:
        def answer(body: Json) -> Reply:
            if len(body["messages"]) > 4:
                return anthropic_server.text_reply("Monday")
            call = (f"c{len(body['messages'])}", "memory_search", {"query": "قهوة"})
            signed = signature(body, body["messages"])
            return anthropic_server.call_reply(call, text="So", thought="", signed=signed)

        async with self.serving(answer) as (server, provider):
            first = await chunks_of(provider, QUESTION)
            prompt = _answered(first)
            second = await chunks_of(provider, prompt)
            prompt = _answered(second, prompt)
            assert text_of(await chunks_of(provider, prompt)) == "Monday"
            said = [m["content"] for m in server.requests[2].body["messages"] if m["role"] == "assistant"]
            assert [[block["type"] for block in content] for content in said] == [["thinking", "text", "tool_use"]] * 2
            # With other tools or other words before it the service would refuse it.
            for changed in (Prompt("Be long.", prompt.messages, (SEARCH,)), Prompt("Be brief.", prompt.messages)):
                assert text_of(await chunks_of(provider, changed)) == "Monday"
            assert "thinking" not in json.dumps(server.requests[-1].body)

    async def test_what_another_model_thought_is_left_out(self) -> None:
        call = ("c1", "memory_search", {"query": "x"})
        reply = anthropic_server.call_reply(call, thought="hm", signed="s")
        async with self.serving([reply, anthropic_server.text_reply("Monday")]) as (server, provider):
            prompt = _answered(await chunks_of(provider, QUESTION))
            other = create(ProviderSettings("anthropic", "other", server.base_url, "k"))
            assert text_of(await chunks_of(other, prompt)) == "Monday"
            await other.close()

    async def test_the_last_answer_without_tools_keeps_the_calls_valid(self) -> None:
        call = ToolCall("c1", "memory_search", {"query": "x"})
        messages = (*QUESTION.messages, Message("assistant", "", (call,)), Message("tool", "x", call_id="c1"))
        async with self.serving([anthropic_server.text_reply("x")]) as (server, provider):
            await chunks_of(provider, Prompt("", messages))
            assert server.requests[0].body["tool_choice"] == {"type": "none"}

    async def test_an_address_that_ends_like_the_other_services_works_too(self) -> None:
        async with anthropic_server.Server([anthropic_server.text_reply("x")]) as server:
            provider = create(ProviderSettings("anthropic", "m", f"{server.base_url}/v1/", "k"))
            assert text_of(await chunks_of(provider, SMALL_TALK)) == "x"
            await provider.close()


class TestOllama(RemoteContract, ProviderContract):
    service = ollama_server
    library = "ollama"

    async def test_the_server_is_asked_whether_the_model_sees(self, tmp_path: Path) -> None:
        (tmp_path / "cat.png").write_bytes(PNG)
        prompt = Prompt("", (Message("user", "what is this?", images=("cat.png",)),))

        def answer(body: Json) -> Reply:
            return ollama_server.text_reply("x") if "messages" in body else document({"capabilities": ["tools"]})

        async with self.serving(answer, workspace=tmp_path) as (server, provider):
            await chunks_of(provider, prompt)
            await chunks_of(provider, prompt)
            assert [request.path for request in server.requests] == ["/api/show", "/api/chat", "/api/chat"]
            assert "images" not in server.requests[1].body["messages"][0]

    async def test_the_context_is_asked_for_in_full(self) -> None:
        async with self.serving([ollama_server.text_reply("x")], context_tokens=48_000) as (server, provider):
            await chunks_of(provider, SMALL_TALK)
            assert server.requests[0].body["options"] == {"num_ctx": 48_000}

    async def test_thinking_before_calls_goes_back(self) -> None:
        call = ("", "memory_search", {"query": "x"})
        script = [ollama_server.call_reply(call, thought="think"), ollama_server.text_reply("Monday")]
        async with self.serving(script) as (server, provider):
            chunks = await chunks_of(provider, QUESTION)
            assert text_of(await chunks_of(provider, _answered(chunks))) == "Monday"
            assert server.requests[1].body["messages"][2]["thinking"] == "think"

    async def test_line_ends_inside_a_text_are_no_line_ends(self) -> None:
        text = "a\u2028b\x85c\x0bd"
        async with self.serving([ollama_server.text_reply(text)]) as (_, provider):
            assert text_of(await chunks_of(provider, SMALL_TALK)) == text


def _answered(chunks: Any, prompt: Prompt = QUESTION) -> Prompt:
    """The prompt of the next round, as a turn makes it."""
    calls = calls_of(chunks)
    reasoning = next((chunk.reasoning for chunk in chunks if chunk.kind == "reasoning"), None)
    said = Message("assistant", text_of(chunks), calls, reasoning=reasoning)
    results = (Message("tool", "on Monday", call_id=call.id) for call in calls)
    return Prompt(prompt.system, (*prompt.messages, said, *results), prompt.tools)

"""The OpenAI provider against a real HTTP server on this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from agent.broca import Broca
from agent.providers.base import ProviderSettings, create, warm
from agent.thalamus import Thalamus
from agent.types import Message, Prompt, Provider, ProviderError, StreamChunk, ToolCall, ToolSpec, Usage
from tests.fakes.openai_server import (
    DROP,
    HANG,
    RELEASE,
    OpenAiServer,
    Reply,
    call_reply,
    delta,
    error_reply,
    sse,
    text_reply,
    usage,
)

PROMPT = Prompt("Be brief.", (Message("user", "hi"),))
KEY = "sk-verysecretkey123"


@asynccontextmanager
async def serving(
    script: Sequence[Reply], api_key: str = KEY, timeout_seconds: float = 20.0
) -> AsyncGenerator[tuple[OpenAiServer, Provider]]:
    async with OpenAiServer(script) as server:
        provider = create(ProviderSettings("openai", "m", server.base_url, api_key, timeout_seconds=timeout_seconds))
        try:
            yield server, provider
        finally:
            await provider.close()


async def reply(provider: Provider, prompt: Prompt = PROMPT) -> list[StreamChunk]:
    return [chunk async for chunk in provider.stream(prompt)]


async def failure(*script: Reply, timeout_seconds: float = 20.0) -> ProviderError:
    async with serving(script, timeout_seconds=timeout_seconds) as (_, provider):
        with pytest.raises(ProviderError) as caught:
            await reply(provider)
    assert KEY not in str(caught.value) + caught.value.arabic + repr(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def texts(chunks: Sequence[StreamChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if chunk.kind == "text")


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_reply_is_the_same_however_its_bytes_are_cut(size: int) -> None:
    whole = Reply((sse(delta(content="Grüße "), delta(content="يا 😀"), delta("stop"), usage(), "[DONE]"),))
    async with serving([whole.in_pieces(size)]) as (_, provider):
        chunks = await reply(provider)
    assert texts(chunks) == "Grüße يا 😀"
    assert chunks[-2:] == [StreamChunk("usage", usage=Usage(10, 5, 0, 0, 1)), StreamChunk("stop", text="end")]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
async def test_any_line_end_and_comments_between(end: str) -> None:
    events = sse(delta(content="a"), delta("stop", content="b"), end=end)
    data = f": ping{end}{end}".encode() + events + f": ping{end}{end}data: [DONE]{end}{end}".encode()
    for size in (1, 2, 1000):
        async with serving([Reply((data,)).in_pieces(size)]) as (_, provider):
            assert texts(await reply(provider)) == "ab"


async def test_a_piece_is_passed_on_before_the_next_one_comes() -> None:
    steps = (sse(delta(content="first ")), RELEASE, sse(delta(content="second"), delta("stop"), "[DONE]"))
    async with serving([Reply(steps)]) as (server, provider):
        stream = provider.stream(PROMPT)
        assert (await asyncio.wait_for(anext(stream), 20)).text == "first "
        await server.release()
        assert texts([chunk async for chunk in stream]) == "second"


async def test_nothing_after_done_is_used() -> None:
    data = sse(delta(content="a"), delta("stop"), "[DONE]", delta(content="b"))
    async with serving([Reply((data,))]) as (_, provider):
        assert texts(await reply(provider)) == "a"


async def test_the_request_carries_key_prompt_and_tools() -> None:
    tool = ToolSpec("f", "does it", {"type": "object", "properties": {"q": {"type": "string"}}})
    async with serving([text_reply("x")]) as (server, provider):
        await reply(provider, Prompt("Be brief.", (Message("user", "hi \ud83d"),), (tool,)))
        request = server.requests[0]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "m"
    assert request.body["stream_options"] == {"include_usage": True}
    assert request.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi �"},
    ]
    function = {"name": "f", "description": "does it", "parameters": dict(tool.parameters)}
    assert request.body["tools"] == [{"type": "function", "function": function}]


async def test_a_server_of_ones_own_needs_no_key_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    async with serving([text_reply("x")], api_key="") as (server, provider):
        assert provider.local
        assert texts(await reply(provider)) == "x"
        assert "somebody" not in json.dumps(dict(server.requests[0].headers))


async def test_calls_and_results_go_back_in_the_form_of_the_service() -> None:
    call = ToolCall("c1", "f", {"q": "مرحبا"})
    messages = (Message("user", "hi"), Message("assistant", "", (call,)), Message("tool", "done", call_id="c1"))
    async with serving([text_reply("x")]) as (server, provider):
        await reply(provider, Prompt("", messages))
        sent = server.requests[0].body["messages"]
    assert sent[1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"q": "مرحبا"}'}},
        ],
    }
    assert sent[2] == {"role": "tool", "tool_call_id": "c1", "content": "done"}


async def test_a_call_comes_in_fragments() -> None:
    async with serving([call_reply(("c1", "f", {"q": "x"}), text="Let me see")]) as (_, provider):
        chunks = await reply(provider)
    fragments = [chunk for chunk in chunks if chunk.kind == "call"]
    assert [(fragments[0].index, fragments[0].call_id, fragments[0].name)] == [(0, "c1", "f")]
    assert "".join(chunk.arguments or "" for chunk in fragments) == '{"q": "x"}'
    assert chunks[-1] == StreamChunk("stop", text="calls")


@pytest.mark.parametrize(
    ("status", "transient"),
    [
        (400, False), (401, False), (402, False), (403, False), (404, False), (413, False), (422, False),
        (408, True), (409, True), (429, True), (500, True), (502, True), (503, True), (529, True),
    ],
)  # fmt: skip
async def test_a_refusal_says_whether_it_may_pass(status: int, transient: bool) -> None:
    error = await failure(error_reply(status, f"no, not with {KEY}\nnor\nelse"))
    assert (error.status, error.transient) == (status, transient)
    assert error.__cause__ is not None
    assert error.arabic


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "1500"}, 1.5), ({"retry-after": "soon"}, None), ({}, None)],
)
async def test_the_pause_a_busy_service_names_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    assert (await failure(error_reply(429, "slow down", headers))).retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("status", "fields", "said"),
    [
        (429, {"code": "insufficient_quota"}, "credit"),
        (400, {"code": "context_length_exceeded", "type": "invalid_request_error"}, "too long"),
        (400, {"type": "invalid_request_error"}, "refuses"),
        (404, {"code": "model_not_found"}, "name"),
        (401, {"code": "invalid_api_key"}, "api_key"),
    ],
)
async def test_a_refusal_that_stays_says_what_to_do(status: int, fields: dict[str, str], said: str) -> None:
    error = await failure(error_reply(status, "no", None, **fields))
    assert not error.transient
    assert said in str(error)


@pytest.mark.parametrize(
    ("frame", "transient"),
    [
        ({"choices": [], "error": {"message": "limit", "code": 502}}, True),
        ({"error": {"message": "limit"}}, True),
        ({"error": {"message": "limit", "type": "overloaded_error"}}, True),
        ({"error": {"message": "limit", "code": "context_length_exceeded"}}, False),
        ({"error": {"message": "limit", "code": 401}}, False),
        ({"object": "error", "message": "limit", "code": 500}, True),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(frame: dict[str, object], transient: bool) -> None:
    error = await failure(Reply((sse(delta(content="Par"), frame, "[DONE]"),)))
    assert error.transient is transient
    if frame.get("error") != {"message": "limit", "code": 401}:
        assert "limit" in str(error)


@pytest.mark.parametrize(
    "reply_steps",
    [(sse(delta(content="Hel")), DROP), (b"data: {broken\n\n",), (b"data: \xff\xfe\n\n",)],
)
async def test_a_stream_that_cannot_be_read_may_be_tried_again(reply_steps: tuple[bytes, ...]) -> None:
    assert (await failure(Reply(reply_steps))).transient


async def test_a_stream_without_finish_reason_has_no_stop() -> None:
    async with serving([Reply((sse(delta(content="Hel")) + b"data: \n\n",))]) as (_, provider):
        assert [chunk.kind for chunk in await reply(provider)] == ["text"]


async def test_a_whole_answer_counts_though_the_line_breaks_after_it() -> None:
    async with serving([Reply((sse(delta(content="Hello"), delta("stop")), DROP))]) as (_, provider):
        assert (await reply(provider))[-1] == StreamChunk("stop", text="end")


async def test_a_line_that_drops_in_mid_answer_ends_in_one_whole_answer() -> None:
    async def at_once(_: float) -> None:
        return

    broken = Reply((sse(delta(content="Hel")), DROP))
    async with serving([broken, error_reply(503), text_reply("Hello to you")]) as (_, provider):
        speech = Broca().begin()
        async for chunk in Thalamus(provider, (1.0, 1.0), at_once).stream_reply(PROMPT):
            speech.speak(chunk)
        speech.finish()
    assert speech.text == "Hello to you"


async def test_a_silent_server_is_left_after_the_timeout() -> None:
    error = await failure(Reply((sse(delta(content="Hel")), HANG)), timeout_seconds=0.3)
    assert error.transient
    assert "in time" in str(error)


async def test_a_withheld_answer_is_no_answer() -> None:
    error = await failure(Reply((sse(delta(content="Par"), delta("content_filter"), "[DONE]"),)))
    assert not error.transient


async def test_a_web_page_instead_of_a_service_is_told() -> None:
    error = await failure(Reply((b"<html>hello</html>",), headers={"Content-Type": "text/html; charset=utf-8"}))
    assert not error.transient
    assert "/v1" in str(error)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (ProviderSettings("openai", "", "http://127.0.0.1:9/v1"), "name"),
        (ProviderSettings("openai", "m"), "api_key"),
        (ProviderSettings("openai", "m", "127.0.0.1:9/v1"), "base_url"),
        (ProviderSettings("openai", "m", "http://a b/v1"), "base_url"),
        (ProviderSettings("openai", "m", "http://host:port/v1"), "base_url"),
    ],
)
async def test_settings_that_cannot_work_are_told_without_a_call(settings: ProviderSettings, said: str) -> None:
    provider = create(settings)
    with pytest.raises(ProviderError) as caught:
        await reply(provider)
    assert not caught.value.transient
    assert said in str(caught.value)


def test_only_a_server_on_this_machine_is_local() -> None:
    def local(base_url: str) -> bool:
        return create(ProviderSettings("openai", "m", base_url, "k")).local

    assert all(map(local, ["http://localhost:1/v1", "http://127.0.0.2/v1", "http://[::1]:8080/v1"]))
    assert not any(map(local, ["", "https://api.example/v1", "http://10.0.0.1/v1", "http://localhost.example/"]))


async def test_warming_loads_the_sdk_once_for_all_calls() -> None:
    async with serving([text_reply("x")]) as (_, provider):
        await asyncio.gather(warm(provider), warm(provider))
        assert texts(await reply(provider)) == "x"


def test_the_sdk_is_not_loaded_before_it_is_used() -> None:
    code = (
        "import sys; from agent.providers.base import PROVIDERS, ProviderSettings, create; import agent.thalamus\n"
        "for name in PROVIDERS: create(ProviderSettings(name, 'm', 'http://127.0.0.1:9/v1'))\n"
        "heavy = ('openai', 'anthropic', 'ollama', 'httpx', 'httpx2', 'pydantic', 'jsonschema', 'regex')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"

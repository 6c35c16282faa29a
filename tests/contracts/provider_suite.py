"""What every Provider keeps to. A new provider derives a class from ProviderContract and makes its own `provider`;
one that talks HTTP derives from RemoteContract too and names its fake server.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.broca import Broca
from agent.providers.base import ProviderSettings, create, warm
from agent.thalamus import Thalamus
from agent.types import (
    ContextOverflow,
    Message,
    Prompt,
    Provider,
    ProviderError,
    StreamChunk,
    ToolCall,
    ToolSpec,
    Usage,
)
from agent.wernicke import Wernicke
from tests.fakes.stream_server import DROP, HANG, RELEASE, WAIT_FIRST, Reply, StreamServer, raw_http

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
KEY = "sk-verysecretkey123"
PNG = b"\x89PNG\r\n\x1a\n and so on"
STOP_SECONDS_MAX = 0.3


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


def outcome_of(chunks: list[StreamChunk]) -> tuple[Any, ...]:
    """All that matters of a reply: text, calls, usage, how it ended."""
    usage = [chunk.usage for chunk in chunks if chunk.usage]
    return text_of(chunks), calls_of(chunks), usage, [chunk.text for chunk in chunks if chunk.kind == "stop"]


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


class RemoteContract(ProviderContract):
    """For providers that talk HTTP. `service` is the module of the fake server; it is strict throughout."""

    service: Any = None
    model = "m"
    library = ""
    takes_pictures = True

    @pytest.fixture
    async def provider(self) -> AsyncIterator[Provider]:
        def answer(body: dict[str, Any]) -> Reply:
            last = body["messages"][-1]
            if last["role"] == "user" and "dentist" in json.dumps(last["content"]):
                return self.service.call_reply(("c1", "memory_search", {"query": "dentist"}))
            return self.service.text_reply("Good day to you")

        async with self.serving(answer) as (server, provider):
            yield provider
            assert server.refused == []

    def settings(self, base_url: str, **fields: Any) -> ProviderSettings:
        given: dict[str, Any] = {"api_key": KEY, "timeout_seconds": 20.0, **fields}
        return ProviderSettings(self.service.PROVIDER, self.model, base_url, **given)

    @asynccontextmanager
    async def serving(self, script: Any, **fields: Any) -> AsyncGenerator[tuple[StreamServer, Provider]]:
        async with self.service.Server(script, strict=True) as server:
            provider = create(self.settings(server.base_url, **fields))
            try:
                yield server, provider
            finally:
                await provider.close()

    async def failure(self, *script: Reply, **fields: Any) -> ProviderError:
        async with self.serving(script, **fields) as (_, provider):
            with pytest.raises(ProviderError) as caught:
                await chunks_of(provider, SMALL_TALK)
        assert KEY not in str(caught.value) + caught.value.arabic + repr(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.arabic
        return caught.value

    async def test_where_the_bytes_of_a_stream_are_cut_changes_nothing(self) -> None:
        whole: Reply = self.service.small()
        cuts = [whole.cut_at(place) for place in range(len(whole.data))]
        async with self.serving([*cuts, whole.in_pieces(1)]) as (_, provider):
            for _ in range(len(cuts) + 1):
                text, calls, usage, stop = outcome_of(await chunks_of(provider, SMALL_TALK))
                assert text == "é😀"
                assert [(call.name, call.args, call.fault) for call in calls] == [
                    ("memory_search", {"query": "ق"}, None)
                ]
                assert (usage, stop) == ([Usage(10, 5, 0, 0, 1)], ["calls"])

    async def test_where_the_network_cuts_an_answer_changes_nothing(self) -> None:
        reply: Reply = self.service.small()
        fields = (f"content-type: {reply.headers['Content-Type']}", "transfer-encoding: chunked", "connection: close")
        head = "\r\n".join(("HTTP/1.1 200 OK", *fields, "", ""))
        size = len(reply.data) // 2
        chunks = (reply.data[:size], reply.data[size:], b"")
        raw = head.encode() + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        answers = [(raw[:place], raw[place:]) for place in range(1, len(raw), 5)]
        async with raw_http(answers) as address:
            provider = create(self.settings(address + self.service.Server.base_path))
            for _ in answers:
                assert text_of(await chunks_of(provider, SMALL_TALK)) == "é😀"
            await provider.close()

    async def test_an_answer_without_chunks_or_length_is_read_to_its_end(self) -> None:
        data = b"HTTP/1.1 200 OK\r\n\r\n" + self.service.text_reply("Hello to you").data
        async with raw_http([[data]]) as address:
            provider = create(self.settings(address + self.service.Server.base_path))
            assert text_of(await chunks_of(provider, SMALL_TALK)) == "Hello to you"
            await provider.close()

    async def test_a_plain_document_instead_of_a_stream_is_an_answer(self) -> None:
        async with self.serving([self.service.plain_document("Hello to you")]) as (_, provider):
            chunks = await chunks_of(provider, SMALL_TALK)
        assert outcome_of(chunks) == ("Hello to you", (), [Usage(10, 5, 0, 0, 1)], ["end"])

    @pytest.mark.parametrize("before", ["begun", "half_call"])
    async def test_an_error_inside_the_stream_is_an_error_that_may_pass(self, before: str) -> None:
        begun = self.service.begun("Par") if before == "begun" else self.service.half_call()
        headers = self.service.text_reply("x").headers
        error = await self.failure(Reply((begun + self.service.broken("busy now"),), headers=headers))
        assert error.transient
        assert "busy now" in str(error)

    @pytest.mark.parametrize("before", ["begun", "half_call"])
    async def test_a_connection_that_drops_is_a_failure_that_may_pass(self, before: str) -> None:
        begun = self.service.begun("Par") if before == "begun" else self.service.half_call()
        assert (await self.failure(Reply((begun, DROP)))).transient

    async def test_a_stream_that_ends_early_has_no_stop(self) -> None:
        async with self.serving([Reply((self.service.begun("Hel"),))]) as (_, provider):
            assert [chunk.kind for chunk in await chunks_of(provider, SMALL_TALK)] == ["text"]

    async def test_broken_streams_end_in_one_whole_answer(self) -> None:
        async def at_once(_: float) -> None:
            return

        begun, headers = self.service.begun("Hel"), self.service.text_reply("x").headers
        script = [
            Reply((begun, DROP)),
            Reply((begun,), headers=headers),
            Reply((begun + self.service.broken("busy"),), headers=headers),
            self.service.error_reply(529),
            self.service.text_reply("Hello to you"),
        ]
        speech = Broca().begin()
        async with self.serving(script) as (server, provider):
            async for chunk in Thalamus(provider, (1.0,) * 5, at_once).stream_reply(SMALL_TALK):
                speech.speak(chunk)
            assert len(server.requests) == 5
        speech.finish()
        assert speech.text == "Hello to you"

    async def test_garbage_is_a_failure_that_may_pass(self) -> None:
        for data in (b"data: {broken\n\n{broken\n", b"\xff\xfe\n\n", b"data: \xff\xfe\n\n"):
            reply = Reply((data,))
            async with self.serving([reply, reply]) as (_, provider):
                with pytest.raises(ProviderError) as caught:
                    async for _ in Thalamus(provider, ()).stream_reply(SMALL_TALK):
                        pass
            assert caught.value.transient

    async def test_what_comes_after_a_whole_answer_changes_nothing(self) -> None:
        whole = self.service.text_reply("Hello")
        more = (b"garbage {\n\n", self.service.begun("more"), DROP)
        async with self.serving([Reply((whole.data, *more), headers=whole.headers)]) as (_, provider):
            assert outcome_of(await chunks_of(provider, SMALL_TALK))[0] == "Hello"

    async def test_a_server_that_keeps_the_line_open_after_its_answer_is_not_waited_for(self) -> None:
        whole = self.service.text_reply("Hello")
        async with self.serving([Reply((whole.data, HANG), headers=whole.headers)]) as (_, provider):
            begun = time.monotonic()
            assert (await chunks_of(provider, SMALL_TALK))[-1].kind == "stop"
            assert time.monotonic() - begun < 2

    async def test_a_silent_server_is_left_after_the_timeout(self) -> None:
        error = await self.failure(Reply((self.service.begun("Hel"), HANG)), timeout_seconds=0.3)
        assert error.transient
        assert "in time" in str(error)

    @pytest.mark.parametrize("steps", ["before the head", "in the middle", "in a call"])
    async def test_stopping_ends_the_request_at_once(self, steps: str) -> None:
        begun: bytes = self.service.begun("Hel")
        slow = Reply((WAIT_FIRST,)) if steps == "before the head" else Reply((begun, HANG))
        if steps == "in a call":
            slow = Reply((begun + self.service.half_call(), HANG))
        async with self.serving([slow], timeout_seconds=60.0) as (server, provider):
            await warm(provider)
            heard = asyncio.Event()

            async def consume() -> None:
                async with aclosing(Thalamus(provider).stream_reply(SMALL_TALK)) as chunks:
                    async for _ in chunks:
                        heard.set()

            task = asyncio.create_task(consume())
            await server.request_came()
            if steps != "before the head":
                await asyncio.wait_for(heard.wait(), 10)
            begun_at = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            took_seconds = time.monotonic() - begun_at
            await server.client_left()
            assert took_seconds < STOP_SECONDS_MAX

    @pytest.mark.parametrize(
        ("status", "transient"),
        [
            (400, False), (401, False), (402, False), (403, False), (404, False), (413, False), (422, False),
            (408, True), (409, True), (429, True), (500, True), (502, True), (503, True), (529, True),
        ],
    )  # fmt: skip
    async def test_a_refusal_says_whether_it_may_pass(self, status: int, transient: bool) -> None:
        error = await self.failure(self.service.error_reply(status, f"no, not with {KEY}\nnor\nelse"))
        assert (error.status, error.transient) == (status, transient)

    async def test_the_pause_a_busy_service_names_is_kept(self) -> None:
        error = await self.failure(self.service.error_reply(429, "slow down", {"retry-after": "7"}))
        assert error.retry_after_seconds == 7.0

    async def test_a_request_that_is_too_long_is_told_apart(self) -> None:
        said = "prompt is too long: 210000 tokens > 200000 maximum"
        error = await self.failure(self.service.error_reply(400, said, type="invalid_request_error"))
        assert isinstance(error, ContextOverflow)

    async def test_an_unreachable_server_is_a_failure_that_may_pass(self) -> None:
        provider = create(self.settings("http://127.0.0.1:9", timeout_seconds=5))
        with pytest.raises(ProviderError, match="cannot be reached") as caught:
            await chunks_of(provider, SMALL_TALK)
        assert caught.value.transient
        await provider.close()

    async def test_a_web_page_instead_of_a_service_is_told(self) -> None:
        page = Reply((b"<html>hello</html>",), headers={"Content-Type": "text/html; charset=utf-8"})
        assert not (await self.failure(page)).transient

    @pytest.mark.parametrize("base_url", ["127.0.0.1:9/v1", "http://a b/v1", "http://host:port/v1"])
    async def test_an_address_that_cannot_work_is_told_without_a_call(self, base_url: str) -> None:
        with pytest.raises(ProviderError, match="base_url"):
            await chunks_of(create(self.settings(base_url)), SMALL_TALK)

    async def test_a_key_with_stray_characters_is_told_or_put_right(self) -> None:
        async with self.serving([self.service.text_reply("x")], api_key=f" {KEY}\n") as (server, provider):
            assert text_of(await chunks_of(provider, SMALL_TALK)) == "x"
            assert f'{KEY}"' in json.dumps(dict(server.requests[0].headers))
        with pytest.raises(ProviderError, match="api_key"):
            await chunks_of(create(self.settings("http://127.0.0.1:9", api_key="“sk-مفتاح”")), SMALL_TALK)

    # An SDK's client that was never finished complains when it is thrown away.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    async def test_an_environment_that_cannot_work_is_one_of_our_errors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ALL_PROXY", "nonsense://proxy")
        with pytest.raises(ProviderError):
            await chunks_of(create(self.settings("http://not-here.example")), SMALL_TALK)

    async def test_the_key_goes_to_the_server_and_no_other_key_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for service in ("OPENAI", "ANTHROPIC", "OLLAMA", "DEEPSEEK"):
            monkeypatch.setenv(f"{service}_API_KEY", "sk-of-somebody-else")
            monkeypatch.setenv(f"{service}_AUTH_TOKEN", "sk-of-somebody-else")
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        for key in (KEY, ""):
            async with self.serving([self.service.text_reply("x")], api_key=key) as (server, provider):
                assert provider.local
                assert text_of(await chunks_of(provider, SMALL_TALK)) == "x"
                sent = json.dumps(dict(server.requests[0].headers))
            assert (KEY in sent) == bool(key)
            assert "somebody" not in sent

    async def test_a_missing_library_is_one_sentence_with_the_remedy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, self.library, None)
        with pytest.raises(ProviderError, match="pip install") as caught:
            create(self.settings("http://127.0.0.1:9"))
        assert not caught.value.transient
        assert "pip install" in caught.value.arabic

    async def test_pictures_of_the_workspace_reach_the_model(self, tmp_path: Path) -> None:
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "cat.png").write_bytes(PNG)
        (tmp_path.parent / "outside.png").write_bytes(PNG)
        paths = ("files/cat.png", "../outside.png", "files/gone.png")
        prompt = Prompt("", (Message("user", "what is this?", images=paths),))
        async with self.serving([self.service.text_reply("a cat")] * 2, workspace=tmp_path) as (server, provider):
            assert text_of(await chunks_of(provider, prompt)) == "a cat"
            sent = json.dumps(server.requests[-1].body)
        assert sent.count("iVBORw0KGgogYW5kIHNvIG9u"[:12]) == (1 if self.takes_pictures else 0)
        assert ("files/cat.png" in sent) == (not self.takes_pictures)
        assert "gone.png is not shown" in sent
        assert "outside.png is not shown" in sent

    async def test_a_model_without_eyes_gets_no_pictures(self, tmp_path: Path) -> None:
        (tmp_path / "cat.png").write_bytes(PNG)
        prompt = Prompt("", (Message("user", "what is this?", images=("cat.png",)),))
        async with self.serving([self.service.text_reply("a")], workspace=tmp_path, images=False) as (server, provider):
            await chunks_of(provider, prompt)
            assert "cat.png is not shown" in json.dumps(server.requests[0].body)

    async def test_what_was_thought_never_shows(self) -> None:
        reply = self.service.call_reply(("c1", "memory_search", {"query": "x"}), text="So", thought="secret plan")
        async with self.serving([reply]) as (_, provider):
            chunks = await chunks_of(provider, SMALL_TALK)
        assert "".join(chunk.text for chunk in chunks if chunk.kind == "thinking") == "secret plan"
        assert text_of(chunks) == "So"

    async def test_a_piece_is_passed_on_before_the_next_one_comes(self) -> None:
        whole = self.service.text_reply("first second")
        half = whole.data.rindex(b"\n", 0, whole.data.index(b"second")) + 1
        steps = (whole.data[:half], RELEASE, whole.data[half:])
        async with self.serving([Reply(steps, headers=whole.headers)]) as (server, provider):
            stream: Any = provider.stream(SMALL_TALK)
            assert (await asyncio.wait_for(anext(stream), 20)).text == "first"
            await server.release()
            assert "".join([chunk.text async for chunk in stream if chunk.kind == "text"]) == " second"

"""The one model is tried again when it may help, and half an answer is never a whole one."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from agent.broca import Broca
from agent.thalamus import Thalamus
from agent.types import Message, NoNetwork, Prompt, ProviderError, StreamChunk
from tests.fakes.scripted_provider import Item, ScriptedProvider, said

PROMPT = Prompt("", (Message("user", "hi"),))
HALF = StreamChunk("text", text="Hel")


def passing(retry_after_seconds: float | None = None) -> ProviderError:
    return ProviderError("busy", transient=True, retry_after_seconds=retry_after_seconds)


class Clock:
    """Keeps the pauses instead of waiting."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def reply(provider: ScriptedProvider, clock: Clock, pauses: tuple[float, ...] = (5.0, 15.0)) -> list[StreamChunk]:
    thalamus = Thalamus(provider, pauses, clock.sleep)
    async with aclosing(thalamus.stream_reply(PROMPT)) as chunks:
        return [chunk async for chunk in chunks]


def text_of(chunks: list[StreamChunk]) -> str:
    speech = Broca().begin()
    for chunk in chunks:
        speech.speak(chunk)
    speech.finish()
    return speech.text


async def test_a_whole_reply_passes_through_unchanged() -> None:
    clock = Clock()
    assert await reply(ScriptedProvider(said("Hel", "lo")), clock) == list(said("Hel", "lo"))
    assert clock.pauses == []


async def test_the_same_model_is_tried_again_after_the_pauses() -> None:
    clock = Clock()
    provider = ScriptedProvider([passing()], [passing()], said("Hello"))
    chunks = await reply(provider, clock)
    assert [chunk.kind for chunk in chunks] == ["text", "usage", "stop"]
    assert clock.pauses == [5.0, 15.0]
    assert provider.prompts == [PROMPT] * 3


@pytest.mark.parametrize("broken", [[HALF, passing()], [HALF], [HALF, StreamChunk("call", index=0, arguments="{")]])
async def test_a_stream_that_breaks_off_is_taken_back_and_begun_anew(broken: list[Item]) -> None:
    clock = Clock()
    chunks = await reply(ScriptedProvider(broken, said("Hello")), clock)
    assert "reset" in [chunk.kind for chunk in chunks]
    assert text_of(chunks) == "Hello"
    assert clock.pauses == [5.0]


async def test_a_failure_that_stays_is_told_at_once() -> None:
    clock = Clock()
    refused = ProviderError("wrong key", transient=False, status=401)
    with pytest.raises(ProviderError, match="wrong key") as caught:
        await reply(ScriptedProvider([refused]), clock)
    assert caught.value is refused
    assert clock.pauses == []


async def test_after_the_last_try_the_failure_is_told() -> None:
    clock = Clock()
    provider = ScriptedProvider([passing()], [passing()], [passing()])
    with pytest.raises(ProviderError, match="busy"):
        await reply(provider, clock)
    assert clock.pauses == [5.0, 15.0]


async def test_a_half_answer_is_taken_back_before_the_failure_is_told() -> None:
    chunks = Thalamus(ScriptedProvider([HALF]), ()).stream_reply(PROMPT)
    assert await anext(chunks) == HALF
    assert await anext(chunks) == StreamChunk("reset")
    with pytest.raises(ProviderError) as caught:
        await anext(chunks)
    assert caught.value.transient
    assert caught.value.arabic


@pytest.mark.parametrize(("named", "pause"), [(1.0, 5.0), (40.0, 40.0)])
async def test_the_pause_the_service_names_is_kept(named: float, pause: float) -> None:
    clock = Clock()
    await reply(ScriptedProvider([passing(named)], said("x")), clock)
    assert clock.pauses == [pause]


async def test_left_to_itself_it_tries_for_some_minutes() -> None:
    clock = Clock()
    with pytest.raises(ProviderError):
        async with aclosing(
            Thalamus(ScriptedProvider(*[[passing()]] * 6), sleep=clock.sleep).stream_reply(PROMPT)
        ) as chunks:
            await anext(chunks)
    assert clock.pauses == [5.0, 15.0, 30.0, 60.0, 90.0]


async def test_a_named_pause_of_an_hour_is_not_waited_for() -> None:
    clock = Clock()
    with pytest.raises(ProviderError) as caught:
        await reply(ScriptedProvider([passing(3600.0)], said("x")), clock)
    assert caught.value.retry_after_seconds == 3600.0
    assert clock.pauses == []


async def test_nothing_after_stop_is_used() -> None:
    chunks = await reply(ScriptedProvider([*said("x"), StreamChunk("text", text="more")]), Clock())
    assert chunks == list(said("x"))


async def test_without_network_a_remote_model_is_not_called() -> None:
    asked: list[str] = []

    async def offline(host: str) -> bool:
        asked.append(host)
        return False

    provider = ScriptedProvider(said("x"), local=False, host="api.example")
    with pytest.raises(NoNetwork) as caught:
        await anext(Thalamus(provider, (5.0,), Clock().sleep, offline).stream_reply(PROMPT))
    assert caught.value.transient
    assert asked == ["api.example"]
    assert provider.prompts == []


async def test_the_network_is_not_looked_at_for_a_local_model_nor_after_a_good_call() -> None:
    asked: list[str] = []

    async def online(host: str) -> bool:
        asked.append(host)
        return True

    local = Thalamus(ScriptedProvider(said("x")), (), Clock().sleep, online)
    remote = Thalamus(ScriptedProvider(said("x"), said("y"), local=False, host="a"), (), Clock().sleep, online)
    for thalamus in (local, remote, remote):
        assert [chunk async for chunk in thalamus.stream_reply(PROMPT)]
    assert asked == ["a"]


async def test_cancelling_the_consumer_ends_the_stream_at_once() -> None:
    never = asyncio.Event()
    first = asyncio.Event()
    provider = ScriptedProvider([HALF, never])

    async def consume() -> None:
        async for _ in Thalamus(provider).stream_reply(PROMPT):
            first.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(first.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.closed == 1


async def test_closing_the_reply_early_closes_the_providers_stream() -> None:
    provider = ScriptedProvider(said("a", "b"))
    async with aclosing(Thalamus(provider).stream_reply(PROMPT)) as chunks:
        await anext(chunks)
    assert provider.closed == 1

"""What a client hears from the hub, and what it hears when it comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from channels.inapp.events import Event, EventHub
from tests.fakes.backend import FakeBackend


def hub_on(backend: FakeBackend, **options: Any) -> EventHub:
    hub = EventHub(backend, **options)
    backend.publish = hub.publish
    return hub


async def following(stream: AsyncGenerator[Sequence[Event]]) -> list[Event]:
    """The next batch that is no heartbeat."""
    async with asyncio.timeout(5):
        while not (batch := await anext(stream)):
            pass
        return list(batch)


def texts(events: Sequence[Event]) -> list[str]:
    return [event.data["message"]["text"] for event in events if event.kind == "message"]


async def test_deltas_that_wait_together_come_joined_and_in_order() -> None:
    hub = hub_on(FakeBackend())
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        for piece in "abc":
            hub.publish("delta", {"conversation": "c", "turn": "t", "text": piece})
        hub.publish("delta", {"conversation": "other", "turn": "u", "text": "x"})
        hub.publish("reset", {"conversation": "c", "turn": "t"})
        events = await following(stream)
    assert [(event.kind, event.data.get("text")) for event in events] == [
        ("delta", "abc"),
        ("delta", "x"),
        ("reset", None),
    ]


async def test_a_client_that_was_away_goes_on_after_its_last_event() -> None:
    backend = FakeBackend()
    hub = hub_on(backend)
    backend.add_conversation("c")
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        backend.save("c", "user", "one")
        last = (await following(stream))[-1].id
    backend.save("c", "user", "two")
    hub.publish("delta", {"conversation": "c", "turn": "t", "text": "par"})
    async with aclosing(hub.subscribe(last)) as stream:
        events = await following(stream)
    assert [event.kind for event in events] == ["message", "delta"]
    assert texts(events) == ["two"]


async def test_after_a_restart_the_saved_messages_come_once() -> None:
    backend = FakeBackend()
    hub = hub_on(backend)
    backend.add_conversation("c")
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        backend.save("c", "user", "one")
        last = (await following(stream))[-1].id
    backend.save("c", "user", "two")
    hub = hub_on(backend)
    backend.save("c", "user", "three")
    async with aclosing(hub.subscribe(last)) as stream:
        first = await following(stream)
        backend.save("c", "user", "four")
        second = await following(stream)
    assert texts([*first, *second]) == ["two", "three", "four"]
    again = first[0].id
    async with aclosing(hub.subscribe(again)) as stream:
        assert texts(await following(stream)) == ["three", "four"]


async def test_a_message_saved_while_the_missed_ones_are_read_comes_once() -> None:
    class Slow(FakeBackend):
        async def events_since(self, version: int) -> list[tuple[int, Any]]:
            self.save("c", "user", "meanwhile")
            return await super().events_since(version)

    backend = Slow()
    hub = hub_on(backend)
    backend.add_conversation("c")
    async with aclosing(hub.subscribe("0.5")) as stream:
        first = await following(stream)
        backend.save("c", "user", "later")
        second = await following(stream)
    assert texts([*first, *second]) == ["meanwhile", "later"]


async def test_a_slow_client_loses_no_message_and_the_ring_does_not_grow() -> None:
    backend = FakeBackend()
    hub = hub_on(backend, kept=10)
    backend.add_conversation("c")
    heard: list[str] = []
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        for number in range(40):
            backend.save("c", "user", str(number))
        while len(heard) < 40:
            heard += texts(await following(stream))
    assert heard == [str(number) for number in range(40)]


async def test_a_page_opened_during_a_turn_sees_what_was_shown_so_far() -> None:
    hub = hub_on(FakeBackend())
    about = {"conversation": "c", "turn": "t"}
    hub.publish("delta", {**about, "text": "wrong"})
    hub.publish("reset", about)
    hub.publish("tool", {**about, "n": 1, "name": "memory_search", "state": "running"})
    hub.publish("tool", {**about, "n": 1, "name": "memory_search", "state": "success"})
    hub.publish("delta", {**about, "text": "right "})
    hub.publish("delta", {**about, "text": "so far"})
    hub.publish("delta", {"conversation": "ended", "turn": "e", "text": "gone"})
    hub.publish("error", {"conversation": "ended", "turn": "e", "message": "It failed."})
    async with aclosing(hub.subscribe()) as stream:
        events = await following(stream)
    assert [event.kind for event in events] == ["status", "reset", "tool", "delta"]
    assert events[0].data["running"] == ["c"]
    assert events[2].data["state"] == "success"
    assert events[3].data["text"] == "right so far"


async def test_a_client_that_missed_nothing_is_told_at_once() -> None:
    backend = FakeBackend()
    hub = hub_on(backend)
    backend.add_conversation("c")
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        backend.save("c", "user", "one")
        last = (await following(stream))[-1].id
    async with aclosing(hub.subscribe(last)) as stream, asyncio.timeout(5):
        assert list(await anext(stream)) == []
        backend.save("c", "user", "two")
        assert texts(await following(stream)) == ["two"]


async def test_an_id_that_is_none_is_as_no_id() -> None:
    backend = FakeBackend()
    hub = hub_on(backend)
    backend.add_conversation("c")
    backend.save("c", "user", "old")
    for nonsense in ("", "x", "1", "-1.2", "1.²", "9" * 40 + ".1"):
        async with aclosing(hub.subscribe(nonsense)) as stream:
            assert [event.kind for event in await following(stream)] == ["status"]


async def test_silence_is_a_heartbeat_and_a_close_ends_the_stream() -> None:
    hub = hub_on(FakeBackend(), heartbeat_seconds=0.01)
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        async with asyncio.timeout(5):
            assert list(await anext(stream)) == []
            hub.close()
            assert [batch async for batch in stream if batch] == []


def test_a_frame_is_one_line_of_data_whatever_the_text() -> None:
    event = Event("delta", {"conversation": "c", "text": "a\nb\r\n\u2028 \ud800 ب", "version": 3}, 3, 7)
    lines = event.frame().decode().split("\n")
    assert lines[0] == "id: 3.7"
    assert lines[1] == "event: delta"
    assert json.loads(lines[2].removeprefix("data: "))["text"] == "a\nb\r\n\u2028 ? ب"
    assert lines[3:] == ["", ""]


async def test_a_new_client_is_told_the_questions_that_are_open() -> None:
    backend = FakeBackend()
    hub = hub_on(backend)
    backend.add_conversation("c")
    backend.ask("c", "rm -r old")
    backend.ask("c", "ls")
    backend.close_question("q1", "denied")
    async with aclosing(hub.subscribe()) as stream:
        events = await following(stream)
    assert events[0].data["running"] == ["c"]
    asked = [event.data for event in events if event.kind == "approval"]
    assert [(data["id"], data["what"], data["state"]) for data in asked] == [("q2", "ls", "open")]


async def test_a_client_that_was_away_hears_how_a_question_ended() -> None:
    backend = FakeBackend()
    hub = hub_on(backend)
    backend.ask("c", "rm -r old")
    async with aclosing(hub.subscribe()) as stream:
        await following(stream)
        backend.ask("c", "ls")
        last = (await following(stream))[-1].id
    backend.close_question("q1", "expired")
    async with aclosing(hub.subscribe(last)) as stream:
        events = await following(stream)
    assert [(event.data["id"], event.data["state"]) for event in events] == [("q1", "expired")]

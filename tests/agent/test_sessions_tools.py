"""Past sessions: exact words in what was said, and the messages around them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.capabilities.introspect.sessions import Sessions
from agent.types import CallContext, StreamChunk, ToolCallRecord, ToolFailure, ToolSpec
from agent.wernicke import Wernicke
from tests.fakes.library import ZONE, FakeTranscripts, Library, a_conversation, context, guest, open_library

SESSION = "telegram:1"
CALL = ToolCallRecord(1, "web_fetch", {"url": "https://example.org"}, "the page", "success")


@dataclass(slots=True)
class World:
    library: Library

    def tools(self, *conversations: Any) -> Sessions:
        return Sessions(self.library.cortex, FakeTranscripts(*conversations), ZONE, {"electron": "inapp"})

    async def found(self, ctx: CallContext | None = None, **args: Any) -> dict[str, Any]:
        return await self.tools().sessions_search_json(ctx or context(), args)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_library(tmp_path) as library:
        yield World(library)


async def history(world: World, *conversations: Any, ctx: CallContext | None = None, **args: Any) -> dict[str, Any]:
    tools = world.tools(*conversations)
    shape = await tools.sessions_history_json(ctx or context(), {"session_key": SESSION, **args})
    text = await tools.sessions_history(ctx or context(), {"session_key": SESSION, **args})
    assert len(text.encode()) <= 80 * 1024
    assert len(json.dumps(shape, ensure_ascii=False).encode()) <= 80 * 1024
    return shape


def numbers(shape: dict[str, Any]) -> list[int]:
    return [message["n"] for message in shape["messages"]]


async def test_a_hit_names_its_session_conversation_time_role_and_reference(world: World) -> None:
    await world.library.say("the falcon flies at noon")
    found = await world.found(query="falcon")
    assert found["indexing"] is False
    assert found["truncated"] is False
    assert found["hits"] == [
        {
            "sessionKey": SESSION,
            "conversation": "c1",
            "at": "2026-07-01T09:01:00+00:00",
            "role": "user",
            "snippet": "the falcon flies at noon",
            "ref": "conversation:c1#1",
        }
    ]
    text = await world.tools().sessions_search(context(), {"query": "falcon"})
    assert text == "[conversation:c1#1] 2026-07-01 12:01 · user · sessionKey telegram:1\nthe falcon flies at noon"


async def test_only_what_people_and_the_agent_said_is_found(world: World) -> None:
    await world.library.say("falcon of the user")
    await world.library.say("falcon of the agent", role="assistant")
    await world.library.say("falcon of a notice", role="system")
    await world.library.say("falcon to others", role="owner")
    await world.library.call("web_fetch", "{}", "falcon in a result", n=2)
    world.library.file("memory.md", "falcon in a file\n")
    await world.library.cortex.update_files()
    assert {hit["role"] for hit in (await world.found(query="falcon"))["hits"]} == {"user", "assistant"}
    [hit] = (await world.found(query="falcon", role="assistant"))["hits"]
    assert hit["snippet"] == "falcon of the agent"
    with pytest.raises(ToolFailure, match="user or assistant"):
        await world.found(query="falcon", role="tool")


async def test_one_session_and_days_narrow_the_search(world: World) -> None:
    await world.library.say("a falcon here")
    await world.library.say("a falcon there", conversation="c2", session_key="inapp:c2", channel="inapp")
    for there in (
        await world.found(query="falcon", session_key="electron:c2"),
        await world.found(query="falcon", sessionKey="inapp:c2"),
    ):
        assert [hit["sessionKey"] for hit in there["hits"]] == ["inapp:c2"]
    assert (await world.found(query="falcon", session_key="telegram:99"))["hits"] == []
    assert (await world.found(query="falcon", before="2026-06-30"))["hits"] == []
    assert len((await world.found(query="falcon", after="2026-07-01", before="2026-07-01"))["hits"]) == 2


async def test_what_others_may_not_see_takes_no_place_from_what_they_may(world: World) -> None:
    for n in range(40):
        await world.library.say(f"falcon falcon {n}", conversation=f"c{n}")
    await world.library.say("one falcon of mine among words", conversation="mine", session_key="telegram:8", chat="8")
    visitor = context(guest("telegram:8"))
    found = await world.found(visitor, query="falcon", limit=1)
    assert [hit["conversation"] for hit in found["hits"]] == ["mine"]
    assert found["truncated"] is False
    assert (await world.found(visitor, query="falcon", session_key=SESSION))["hits"] == []


async def test_count_snippet_and_answer_have_their_limits(world: World) -> None:
    text = "\U0001f985" * 1_200
    for n in range(30):
        await world.library.say(f"pebble {n} {text}", conversation=f"c{n}")
    few = await world.found(query="pebble")
    assert (len(few["hits"]), few["truncated"]) == (10, True)
    many = await world.found(query="pebble", limit=25)
    assert many["truncated"] is True
    assert len(json.dumps(many, ensure_ascii=False).encode()) <= 32 * 1024
    assert 10 < len(many["hits"]) <= 25
    assert all(len(hit["snippet"]) <= 300 for hit in many["hits"])


async def test_a_query_has_words_and_is_not_endless(world: World) -> None:
    assert (await world.found(query="x" * 4_096))["hits"] == []
    with pytest.raises(ToolFailure, match="4,096"):
        await world.found(query="x" * 4_097)
    with pytest.raises(ToolFailure, match="query is missing"):
        await world.found(query=" ")


async def test_every_hit_holds_words_of_the_query(world: World) -> None:
    await world.library.say("when does the falcon leave for the north")
    await world.library.say("on Friday")
    found = await world.found(query="when does the falcon leave for the north")
    assert [hit["ref"] for hit in found["hits"]] == ["conversation:c1#1"]


async def test_while_the_index_is_built_the_answer_says_so(world: World) -> None:
    world.library.cortex.indexing = True
    assert (await world.found(query="falcon"))["indexing"] is True


async def test_a_session_is_read_over_all_its_conversations_the_latest_last(world: World) -> None:
    first, second = a_conversation("a", "one", "two", "three"), a_conversation("b", "four", "five")
    other = a_conversation("z", "not this", chat="2")
    shape = await history(world, first, second, other, limit=3)
    assert shape["sessionKey"] == SESSION
    assert [message["text"] for message in shape["messages"]] == ["three", "four", "five"]
    assert [message["ref"] for message in shape["messages"]] == [
        "conversation:a#3",
        "conversation:b#1",
        "conversation:b#2",
    ]
    assert (shape["truncated"], shape["next_offset"]) == (False, 3)
    rest = await history(world, first, second, other, limit=3, offset=3)
    assert [message["text"] for message in rest["messages"]] == ["one", "two"]
    assert rest["next_offset"] is None
    assert (await history(world, first, second, offset=99))["messages"] == []


async def test_around_a_reference_are_its_neighbours(world: World) -> None:
    talk = a_conversation("a", *(f"m{n}" for n in range(1, 31)))
    shape = await history(world, talk, around="conversation:a#10", limit=5)
    assert numbers(shape) == [8, 9, 10, 11, 12]
    assert shape["next_offset"] == 23
    assert numbers(await history(world, talk, around="a#1.1", limit=4)) == [1, 2, 3, 4]
    assert 30 in numbers(await history(world, talk, around="conversation:a#30", limit=4))
    for odd in ("conversation:b#1", "conversation:a#31", "a", "file:memory.md"):
        with pytest.raises(ToolFailure):
            await history(world, talk, around=odd)


async def test_calls_of_tools_come_only_when_asked_for_and_to_the_owner_only(world: World) -> None:
    talk = a_conversation("a", "one", "two", calls={2: CALL})
    assert [message["tool_calls"] for message in (await history(world, talk))["messages"]] == [[], []]
    shown = (await history(world, talk, include_tools=True))["messages"][1]["tool_calls"]
    assert [call["output"] for call in shown] == ["the page"]
    theirs = await history(world, talk, ctx=context(guest(SESSION)), include_tools=True)
    assert [message["tool_calls"] for message in theirs["messages"]] == [[], []]


async def test_long_texts_are_cut_and_too_many_left_for_the_next_page(world: World) -> None:
    long = ToolCallRecord(1, "f", {"text": "\U0001f985" * 9_000}, "y" * 9_000, "success")
    talk = a_conversation("a", *["\U0001f985" * 9_000] * 12, calls={12: long})
    shape = await history(world, talk, include_tools=True)
    assert shape["truncated"] is True
    assert 1 < len(shape["messages"]) < 12
    assert numbers(shape)[-1] == 12
    assert all(len(message["text"]) == 4_000 for message in shape["messages"])
    [call] = shape["messages"][-1]["tool_calls"]
    assert len(call["output"]) == 4_000
    assert len(call["args"]["cut"]) == 4_000
    rest = await history(world, talk, offset=shape["next_offset"])
    assert numbers(rest)[-1] == numbers(shape)[0] - 1


async def test_one_message_with_many_calls_fits_too(world: World) -> None:
    record, [message] = a_conversation("a", "one")
    calls = tuple(ToolCallRecord(n, "f", {}, "line\n" * 900, "success") for n in range(1, 60))
    shape = await history(world, (record, [replace(message, tool_calls=calls)]), include_tools=True)
    assert 0 < len(shape["messages"][0]["tool_calls"]) < 59
    assert shape["truncated"] is True


async def test_a_session_that_is_not_there_looks_like_one_that_may_not_be_seen(world: World) -> None:
    talk = a_conversation("a", "one")
    for ctx, key in ((context(guest("telegram:8")), SESSION), (context(), "telegram:9")):
        with pytest.raises(ToolFailure, match="There is no session"):
            await history(world, talk, ctx=ctx, session_key=key)
    with pytest.raises(ToolFailure, match="session_key is missing"):
        await world.tools(talk).sessions_history(context(), {})
    with pytest.raises(ToolFailure, match="offset"):
        await history(world, talk, offset=-1)


def test_the_key_of_a_session_has_two_names() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["session_key"],
        "properties": {"session_key": {"type": "string"}},
    }
    spec, wernicke = ToolSpec("f", "a tool", schema), Wernicke()
    for args, good in (
        ({"sessionKey": "telegram:1"}, True),
        ({"session_key": "telegram:1"}, True),
        ({"sessionKey": "telegram:1", "session_key": "telegram:1"}, False),
        ({"otherKey": "telegram:1"}, False),
    ):
        collector = wernicke.begin()
        collector.add(StreamChunk("call", index=0, call_id="1", name="f", arguments_object=args))
        [call] = wernicke.parse_calls(collector, (spec,), set[str]())
        assert (call.fault is None) is good, args
        if good:
            assert call.args == {"session_key": "telegram:1"}

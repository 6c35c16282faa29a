"""The retrieval tools as the model calls them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.capabilities.introspect.tools import Introspect
from agent.hippocampus.knowledge import Knowledge
from agent.limits import READ_TEXT_BRIEF_CHARS, READ_TEXT_FULL_CHARS
from agent.types import CallContext, JsonObject, ToolCallRecord, ToolFailure
from tests.fakes.library import ZONE, FakeTranscripts, Library, a_conversation, context, guest, open_library

LONG = "word " * 1_000
SHORT = tuple(f"message number {n}" for n in range(1, 41))
CALL = ToolCallRecord(1, "web_fetch", {"url": "https://example.org"}, "the page", "success")


class State:
    """One channel that works, one that does not."""

    async def channels(self) -> JsonObject:
        return {
            "channels": [
                {
                    "channel": "telegram",
                    "enabled": True,
                    "connected": True,
                    "state": "connected",
                    "detail": "polling",
                    "last_receive_at": "2026-07-01T09:00:00+00:00",
                    "last_send_at": None,
                    "next_retry_at": None,
                    "remedy": None,
                },
                {
                    "channel": "inapp",
                    "enabled": True,
                    "connected": False,
                    "state": "rejected",
                    "detail": None,
                    "last_receive_at": None,
                    "last_send_at": None,
                    "next_retry_at": None,
                    "remedy": "Give a new token.",
                },
            ]
        }


@dataclass(slots=True)
class World:
    library: Library
    tools: Introspect

    async def run(self, name: str, ctx: CallContext | None = None, **args: Any) -> str:
        return await self.tools.functions()[name](ctx or context(), args)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_library(tmp_path) as library:
        transcripts = FakeTranscripts(
            a_conversation("abc-long", LONG, "short answer", calls={2: CALL}),
            a_conversation("abd-many", *SHORT, chat="2"),
            a_conversation("xyz-other", "hello from the page", channel="inapp", chat="xyz-other"),
        )
        knowledge = Knowledge(library.workspace, library.cortex)
        tools = Introspect(library.cortex, knowledge, transcripts, State(), ZONE, aliases={"electron": "inapp"})
        yield World(library, tools)


async def test_a_hit_is_two_lines_with_reference_date_and_sender(world: World) -> None:
    await world.library.say("the flight\nplan is ready")
    world.library.file("memory.md", "# Travel\n\nthe flight plan goes by Riyadh\n")
    await world.library.cortex.update_files()
    text = await world.run("memory_search", query="flight plan")
    blocks = text.split("\n\n")
    assert "[conversation:c1#1] 2026-07-01 12:01 · conversation · Sana (user) · telegram:1" in text
    assert "the flight plan is ready" in text
    assert any(re.match(r"\[file:memory.md#L3\] .* · doc · Travel\n", block) for block in blocks)
    assert all(len(block.splitlines()) == 2 for block in blocks)


async def test_no_hit_says_what_is_covered_and_that_it_is_no_proof(world: World) -> None:
    await world.library.say("hello")
    text = await world.run("memory_search", query="zebra")
    assert text.startswith("No hits.")
    assert "conversation 1" in text


async def test_while_indexing_an_answer_says_so(world: World) -> None:
    await world.library.say("hello")
    world.library.cortex.indexing = True
    assert "still being built" in await world.run("memory_search", query="hello")
    assert (await world.tools.memory_search_json(context(), {"query": "hello"}))["indexing"] is True


async def test_limits_are_kept_whatever_is_asked(world: World) -> None:
    for n in range(60):
        await world.library.say(f"pebble {n}", conversation=f"c{n}")
    assert len((await world.tools.memory_search_json(context(), {"query": "pebble"}))["hits"]) == 15
    assert len((await world.tools.memory_search_json(context(), {"query": "pebble", "limit": 999}))["hits"]) == 50
    assert len((await world.tools.memory_search_json(context(), {"query": "pebble", "limit": "3"}))["hits"]) == 3
    with pytest.raises(ToolFailure, match="limit"):
        await world.run("memory_search", query="pebble", limit="many")


async def test_another_name_of_a_channel_counts(world: World) -> None:
    await world.library.say("hello", channel="inapp")
    assert "conversation:c1#1" in await world.run("memory_search", query="hello", channel="electron")
    assert "xyz-other" in await world.run("conversation_list", channel="electron")


async def test_what_memory_search_names_memory_get_opens(world: World) -> None:
    ref = await world.library.say("the whole text")
    assert "the whole text" in await world.run("memory_get", ref=ref)
    with pytest.raises(ToolFailure, match="ref is missing"):
        await world.run("memory_get", ref=" ")


async def test_save_says_what_came_of_it(world: World) -> None:
    first = await world.run("memory_save", fact="Sara likes tea.", type="people")
    assert first == "Saved: file:brain/hippocampus/knowledge/people.md#L3"
    assert (await world.run("memory_save", fact="sara likes TEA", type="people")).startswith("Known already: ")
    changed = await world.run("memory_save", fact="Sara likes coffee.", replaces="Sara likes tea.")
    assert changed.startswith("Replaced: ")
    assert (await world.tools.memory_save_json(context(), {"fact": "Sara likes coffee"}))["status"] == "known"


async def test_the_list_is_newest_first(world: World) -> None:
    text = await world.run("conversation_list")
    assert [line.partition("]")[0] for line in text.splitlines()] == ["[abd-many", "[abc-long", "[xyz-other"]
    assert "2026-07-01 12:40 · telegram:2 · Chat 2 · 40 messages" in text
    assert await world.run("conversation_list", after="2026-07-02") == "No conversations."
    assert len((await world.run("conversation_list", before="2026-07-01", limit=2)).splitlines()) == 2


async def test_with_a_query_the_list_is_ordered_by_match(world: World) -> None:
    await world.library.say("budget of the garden", conversation="abc-long", n=1)
    await world.library.say("the budget", conversation="abd-many", n=1)
    found = await world.tools.conversation_list_json(context(), {"query": "garden budget"})
    assert [item["id"] for item in found["conversations"]] == ["abc-long", "abd-many"]
    assert await world.run("conversation_list", query="zebra") == "No conversations."


async def test_the_last_fifteen_are_read_and_the_rest_is_named(world: World) -> None:
    text = await world.run("conversation_read", id="many")
    numbers = [int(number) for number in re.findall(r"^#(\d+) ", text, re.MULTILINE)]
    assert numbers == list(range(26, 41))
    assert "from 1 to 25" in text
    text = await world.run("conversation_read", id="abd", **{"from": 3, "to": 4})
    assert re.findall(r"^#(\d+) ", text, re.MULTILINE) == ["3", "4"]
    assert "from 1 to 2 and from 5 to 40" in text


async def test_a_cut_stands_beside_its_reference(world: World) -> None:
    brief = await world.run("conversation_read", id="abc")
    assert f"[{len(LONG) - READ_TEXT_BRIEF_CHARS:,} more characters: memory_get conversation:abc-long#1]" in brief
    full = await world.run("conversation_read", id="abc", detail="full")
    assert f"[{len(LONG) - READ_TEXT_FULL_CHARS:,} more characters" in full


async def test_messages_and_tools_can_be_read_alone(world: World) -> None:
    both = await world.run("conversation_read", id="abc")
    messages = await world.run("conversation_read", id="abc", what="messages")
    tools = await world.run("conversation_read", id="abc", what="tools")
    assert "short answer" in both
    assert "#2.1 web_fetch" in both
    assert ("short answer" in messages, "web_fetch" in messages) == (True, False)
    assert ("short answer" in tools, "web_fetch" in tools) == (False, True)


async def test_the_current_conversation_has_a_name_of_its_own(world: World) -> None:
    ctx = context(conversation_id="xyz-other")
    assert "hello from the page" in await world.run("conversation_read", ctx, id="current")


async def test_an_id_that_is_not_unique_lists_what_it_may_mean(world: World) -> None:
    with pytest.raises(ToolFailure, match=r"abc-long.*abd-many|abd-many.*abc-long"):
        await world.run("conversation_read", id="ab")
    with pytest.raises(ToolFailure, match="no conversation"):
        await world.run("conversation_read", id="zebra")


async def test_the_shapes_of_conversations(world: World) -> None:
    listed = (await world.tools.conversation_list_json(context(), {"limit": 1}))["conversations"]
    assert listed == [
        {
            "id": "abd-many",
            "sessionKey": "telegram:2",
            "channel": "telegram",
            "chat": "2",
            "title": "Chat 2",
            "updated_at": "2026-07-01T09:40:00+00:00",
            "message_count": 40,
        }
    ]
    read = await world.tools.conversation_read_json(context(), {"id": "abc", "from": 2})
    assert read["id"] == "abc-long"
    assert read["messages"] == [
        {
            "n": 2,
            "id": "m2",
            "role": "assistant",
            "text": "short answer",
            "sender": "Hudhud",
            "at": "2026-07-01T09:02:00+00:00",
            "state": "answered",
            "flags": [],
            "attachments": [],
            "tool_calls": [
                {
                    "n": 1,
                    "name": "web_fetch",
                    "args": {"url": "https://example.org"},
                    "output": "the page",
                    "outcome": "success",
                }
            ],
        }
    ]


async def test_channels_are_told_one_a_line(world: World) -> None:
    text = await world.run("channel_status")
    assert text.splitlines() == [
        "telegram: connected (connected); polling; last receive 2026-07-01 12:00; last send never",
        "inapp: not connected (rejected); last receive never; last send never; to do: Give a new token.",
    ]


async def test_others_get_what_is_theirs_and_nothing_of_the_owners(world: World) -> None:
    await world.library.say("garden of the owner", conversation="abc-long")
    await world.library.say("my garden", conversation="abd-many", session_key="telegram:2")
    world.library.file("memory.md", "garden")
    await world.library.cortex.update_files()
    ctx = context(guest("telegram:2"), conversation_id="abd-many")
    found = await world.tools.memory_search_json(ctx, {"query": "garden"})
    assert [hit["ref"] for hit in found["hits"]] == ["conversation:abd-many#1"]
    assert [line[:9] for line in (await world.run("conversation_list", ctx)).splitlines()] == ["[abd-many"]
    assert "message number 40" in await world.run("conversation_read", ctx, id="current")
    for name, args in (
        ("conversation_read", {"id": "abc-long"}),
        ("memory_get", {"ref": "conversation:abc-long#1"}),
        ("memory_get", {"ref": "memory.md"}),
        ("memory_save", {"fact": "I may do all"}),
        ("channel_status", {}),
    ):
        with pytest.raises(ToolFailure):
            await world.run(name, ctx, **args)

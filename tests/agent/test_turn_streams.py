"""Whole turns against strict services: what odd streams leave behind can always be sent again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.brain import Brain, build_brain
from agent.prompts import sentences
from agent.providers.base import ProviderSettings, create
from agent.thalamus import Thalamus
from agent.turn import run_turn
from agent.types import Message, ToolCall, ToolResult, TurnResult
from tests.fakes import anthropic_server, deepseek_server, ollama_server, openai_server
from tests.fakes.memory import FakeCortex
from tests.fakes.openai_server import delta, sse, usage
from tests.fakes.skills import Notes, skill_folder
from tests.fakes.stream_server import DROP, Reply, StreamServer
from tests.fakes.turns import FakeClock, FakePort, a_turn

SERVICES: dict[str, Any] = {
    "openai": openai_server,
    "deepseek": deepseek_server,
    "anthropic": anthropic_server,
    "ollama": ollama_server,
}
CUT = [('{"text":"abc', "length"), ('{"text":"abc', "tool_calls"), ('{"text":"abc"}', "length")]


class Stage:
    """A brain whose model is a real provider and a strict server with a script."""

    def __init__(self, brain: Brain, server: StreamServer, notes: Notes) -> None:
        self.brain = brain
        self.server = server
        self.notes = notes
        self.port = FakePort()
        self.history: tuple[Message, ...] = ()

    async def run(self, text: str = "go on") -> TurnResult:
        """A turn; what came of it is the next one's history, as the gateway keeps it."""
        port = self.port = _RecordingPort()
        result = await run_turn(self.brain, a_turn(text, history=self.history), port)
        rounds = [Message("user", text)]
        for said, calls in zip(result.rounds, [*port.begun, ()], strict=False):
            rounds.append(Message("assistant", said, tuple(calls)))
            rounds += [Message("tool", port.ended[call.id].text, call_id=call.id) for call in calls]
        self.history += tuple(rounds)
        return result


class _RecordingPort(FakePort):
    def __init__(self) -> None:
        super().__init__()
        self.begun: list[Sequence[ToolCall]] = []
        self.ended: dict[str, ToolResult] = {}

    async def calls_begin(self, round: int, text: str, calls: Sequence[ToolCall]) -> None:
        self.begun.append(calls)

    async def call_ended(self, call: ToolCall, result: ToolResult) -> None:
        self.ended[call.id] = result


@asynccontextmanager
async def staged(root: Path, name: str, *script: Reply) -> AsyncGenerator[Stage]:
    notes, clock = Notes(), FakeClock()
    async with SERVICES[name].Server(script, strict=True) as server:
        provider = create(ProviderSettings(name, "m", server.base_url, "k", workspace=root / "workspace"))
        brain = build_brain(
            workspace=root / "workspace",
            provider=provider,
            cortex=FakeCortex([]),  # pyright: ignore[reportArgumentType]
            functions=notes.functions(),
            folders=[skill_folder(root / "skills")],
            zone=ZoneInfo("Asia/Riyadh"),
            now=clock,
        )
        stage = Stage(replace(brain, thalamus=Thalamus(provider, (5.0, 15.0), clock.sleep)), server, notes)
        yield stage
        brain.close()
        await provider.close()
        assert server.refused == []


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(("arguments", "finish"), CUT)
async def test_arguments_that_were_cut_off_never_run_and_after_two_more_tries_the_person_is_told(
    tmp_path: Path, name: str, arguments: str, finish: str
) -> None:
    if name == "ollama" and finish == "tool_calls":
        finish = "stop"
    service = SERVICES[name]
    cut = service.cut_call("keep", arguments, finish)
    async with staged(tmp_path, name, cut, cut, cut, service.text_reply("Hello")) as on:
        result = await on.run("keep it all")
        assert len(on.server.requests) == 3
        assert on.notes.ran == []
        assert [item.outcome for item in result.tool_results] == ["failed", "failed"]
        assert all("cut off" in item.text for item in result.tool_results)
        assert result.status == "failed"
        assert result.reply == on.port.shown == sentences.cut_calls("")
        assert (await on.run("أين وصلنا؟")).reply == "Hello"


@pytest.mark.parametrize("name", SERVICES)
async def test_a_call_that_was_cut_off_is_made_again_in_full(tmp_path: Path, name: str) -> None:
    service = SERVICES[name]
    cut = service.cut_call("keep", '{"text":"abc')
    whole = service.call_reply(("c2", "keep", {"text": "abc"}))
    async with staged(tmp_path, name, cut, cut, whole, cut, service.text_reply("Kept.")) as on:
        result = await on.run()
        assert (result.status, result.reply) == ("done", "Kept.")
        assert on.notes.ran == [("keep", {"text": "abc"})]


@pytest.mark.parametrize("name", SERVICES)
async def test_what_several_turns_of_calls_leave_is_taken_again(tmp_path: Path, name: str) -> None:
    service = SERVICES[name]
    two = service.call_reply(("c1", "look", {"word": "قهوة"}), ("c2", "keep", {"text": "x"}), text="Let me see.")
    again = service.call_reply(("c1", "look", {"word": "tea"}), thought="hm")
    unknown = service.call_reply(("functions.look:0", "no such tool", {}))
    async with staged(tmp_path, name, two, again, service.text_reply("a"), unknown, service.text_reply("b")) as on:
        assert (await on.run()).reply == "Let me see.\n\na"
        assert (await on.run()).reply == "b"
        assert [name for name, _ in on.notes.ran] == ["look", "keep", "look"]


def streamed(*calls: Any, finish: str = "tool_calls") -> Reply:
    return Reply((sse(*(delta(tool_calls=[call]) for call in calls), delta(finish), usage(), "[DONE]"),))


def fragment(name: str, arguments: Any = None, **fields: Any) -> Any:
    return {**fields, "function": {"name": name, **({} if arguments is None else {"arguments": arguments})}}


ODD: dict[str, tuple[Reply, list[str]]] = {
    "neither id nor index of their own": (
        streamed(fragment("look", '{"word":"a"}', index=0), fragment("look", '{"word":"b"}', index=0)),
        ["look", "look"],
    ),
    "one index for all": (
        streamed(fragment("look", '{"word":"a"}', index=0, id="a"), fragment("look", '{"word":"b"}', index=0, id="b")),
        ["look", "look"],
    ),
    "no index": (
        streamed(fragment("look", '{"word":"a"}', id="a"), fragment("keep", '{"text":"b"}', id="b")),
        ["look", "keep"],
    ),
    "two objects in one call": (streamed(fragment("look", '{"word":"a"}{"word":"b"}', index=0, id="A")), []),
    "empty arguments": (streamed(fragment("peek", "", index=0, id="A")), ["peek"]),
    "blank arguments": (streamed(fragment("peek", "  ", index=0, id="A")), ["peek"]),
    "no arguments": (streamed(fragment("peek", index=0, id="A")), ["peek"]),
    "null": (streamed({"index": 0, "id": "A", "function": {"name": "peek", "arguments": None}}), ["peek"]),
    "no name": (streamed({"index": 0, "id": "A", "function": {"arguments": "{}"}}), []),
    "half a character": (streamed(fragment("look", '{"word":"\\ud83d"}', index=0, id="A")), ["look"]),
}


@pytest.mark.parametrize("case", ODD)
async def test_calls_of_odd_servers_run_as_meant_and_can_be_sent_again(tmp_path: Path, case: str) -> None:
    reply, ran = ODD[case]
    text = openai_server.text_reply
    async with staged(tmp_path, "openai", reply, text("One."), text("Two.")) as on:
        assert (await on.run()).reply == "One."
        assert [name for name, _ in on.notes.ran] == ran
        assert (await on.run()).reply == "Two."


async def test_a_picture_that_came_with_the_message_is_shown_to_the_model(tmp_path: Path) -> None:
    async with staged(tmp_path, "openai", openai_server.text_reply("A cat.")) as on:
        (tmp_path / "workspace" / "uploads").mkdir(parents=True)
        (tmp_path / "workspace" / "uploads" / "cat.PNG").write_bytes(b"\x89PNG\r\n\x1a\n and so on")
        files = ("uploads/cat.PNG", "uploads/letter.pdf")
        await run_turn(on.brain, a_turn("what is this?", files=files), FakePort())
        content = on.server.requests[0].body["messages"][-1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url"]
        assert "uploads/letter.pdf" in content[0]["text"]


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("ending", ["error", "drop", "end"])
async def test_a_call_before_a_stream_broke_off_does_not_run(tmp_path: Path, name: str, ending: str) -> None:
    service = SERVICES[name]
    begun, headers = service.half_call(), service.text_reply("x").headers
    steps: Any = {"error": (begun + service.broken("busy"),), "drop": (begun, DROP), "end": (begun,)}[ending]
    async with staged(tmp_path, name, Reply(steps, headers=headers), service.text_reply("All well.")) as on:
        result = await on.run()
        assert result.reply == on.port.shown == "All well."
        assert on.notes.ran == []


@pytest.mark.parametrize("name", SERVICES)
async def test_when_the_tries_end_the_person_gets_one_plain_sentence(tmp_path: Path, name: str) -> None:
    service = SERVICES[name]
    broken = Reply((service.begun("Hel"), DROP), headers=service.text_reply("x").headers)
    async with staged(tmp_path, name, broken, broken, broken) as on:
        result = await on.run("where are we?")
        assert (result.status, len(on.server.requests)) == ("failed", 3)
        assert result.reply == "The model's answer broke off before it was complete; send the message again in a while."
        assert "Hel" not in on.port.shown

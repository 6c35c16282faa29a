"""What every capability keeps to: sound schemas, plain descriptions, checked arguments, rights, one-sentence errors."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent.cerebellum import Capability, Cerebellum
from agent.types import CallContext, Person, StreamChunk, ToolCall, ToolFailure, ToolFunction, ToolSpec, Viewer
from agent.wernicke import Wernicke
from channels.message import InboundMessage
from gateway.config import Settings
from gateway.home import prepare
from gateway.library import Library
from gateway.store.types import NewMessage, Rights

AT = datetime(2027, 1, 1, 8, 0, tzinfo=UTC)
SENTENCE = re.compile(r"[^\n]{3,600}[.?!]")
ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "\ud800",
    "x" * 5_000,
    "../../../etc/passwd",
    "'\"*(NEAR",
    "conversation:#",
    "ü\u202e",
    "0",
)


@dataclass(frozen=True)
class World:
    """A loaded capability among saved things. `secret` is a word that only the owner may read, `own` one that the
    guest wrote; `calls` has for each tool arguments that would bring up both, if that were allowed."""

    name: str
    cerebellum: Cerebellum
    functions: Mapping[str, ToolFunction]
    owner: CallContext
    guest: CallContext
    secret: str
    own: str
    calls: Mapping[str, Mapping[str, Any]]

    @property
    def capability(self) -> Capability:
        return next(known for known in self.cerebellum.capabilities() if known.name == self.name)

    async def answer(self, context: CallContext, tool: str, args: Mapping[str, Any]) -> str:
        """The text or the refusal of a call."""
        try:
            return await self.cerebellum.execute_tool(context, ToolCall("1", tool, args))
        except ToolFailure as failure:
            said = str(failure)
        assert SENTENCE.fullmatch(said), f"{tool}: {said!r} is not one sentence"
        return said


def checked(tool: ToolSpec, args: Mapping[str, Any]) -> ToolCall:
    """The call as it comes out of the parser, after its arguments were held against the schema."""
    wernicke = Wernicke()
    collector = wernicke.begin()
    collector.add(StreamChunk("call", index=0, call_id="1", name=tool.name, arguments_object=args))
    [call] = wernicke.parse_calls(collector, (tool,), set())
    return call


class CapabilityContract:
    """Subclass it per capability and give it the fixture `world`."""

    seconds_max = 120
    """A tool that may take longer says so in its subclass."""

    def test_it_is_sound_and_said_in_plain_words(self, world: World) -> None:
        assert world.capability.fault is None
        assert SENTENCE.fullmatch(world.capability.description)
        assert world.capability.version

    def test_its_tools_and_its_code_are_the_same_set(self, world: World) -> None:
        assert {tool.name for tool in world.capability.tools} == set(world.functions)
        assert set(world.calls) == set(world.functions)

    def test_every_tool_and_parameter_is_described(self, world: World) -> None:
        for tool in world.capability.tools:
            assert SENTENCE.fullmatch(tool.description), tool.name
            jsonschema.Draft202012Validator.check_schema(dict(tool.parameters))
            assert tool.parameters["additionalProperties"] is False, tool.name
            properties = tool.parameters["properties"]
            assert set(tool.parameters.get("required", ())) <= set(properties)
            for name, schema in properties.items():
                assert re.fullmatch(r"[a-z][a-z_]*", name), (tool.name, name)
                assert schema["type"] in {"string", "integer", "boolean"}, (tool.name, name)
                if "default" in schema:
                    jsonschema.validate(schema["default"], schema)
            assert 0 < tool.timeout_seconds <= self.seconds_max

    def test_who_is_not_the_owner_can_change_nothing(self, world: World) -> None:
        for tool in world.cerebellum.tools("allowed"):
            assert tool.read_only, tool.name
        assert {tool.name for tool in world.capability.tools} <= {tool.name for tool in world.cerebellum.tools("owner")}

    def test_only_what_changes_nothing_is_repeated(self, world: World) -> None:
        assert all(tool.read_only for tool in world.capability.tools if tool.repeatable)

    def test_arguments_that_do_not_fit_are_never_run(self, world: World) -> None:
        for tool in world.capability.tools:
            good = world.calls[tool.name]
            assert checked(tool, good).fault is None, tool.name
            for name in tool.parameters.get("required", ()):
                assert checked(tool, {key: value for key, value in good.items() if key != name}).fault, tool.name
            assert checked(tool, {**good, "no_such_parameter": 1}).fault, tool.name
            for name in tool.parameters["properties"]:
                assert checked(tool, {**good, name: ["a", "list"]}).fault, (tool.name, name)

    async def test_odd_arguments_get_an_answer_or_one_sentence(self, world: World) -> None:
        for tool in world.capability.tools:
            for args in _odd(tool, world.calls[tool.name]):
                call = checked(tool, args)
                assert call.fault is None, (tool.name, args)
                text = await world.answer(world.owner, tool.name, call.args)
                text.encode("utf-8")

    async def test_the_owner_is_shown_what_there_is(self, world: World) -> None:
        answers = [await world.answer(world.owner, tool, args) for tool, args in world.calls.items()]
        assert any(world.secret in answer for answer in answers)
        assert any(world.own in answer for answer in answers)

    async def test_anyone_else_sees_their_own_session_only(self, world: World) -> None:
        allowed = {tool.name for tool in world.cerebellum.tools("allowed")}
        seen = ""
        for tool, args in world.calls.items():
            answer = await world.answer(world.guest, tool, args)
            assert world.secret not in answer, tool
            seen += answer if tool in allowed else ""
        assert not allowed & set(world.calls) or world.own in seen


def _odd(tool: ToolSpec, good: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments that fit the schema and are strange all the same, one at a time."""
    for name, schema in tool.parameters["properties"].items():
        if "enum" in schema:
            yield from ({**good, name: value} for value in schema["enum"])
        elif schema["type"] == "boolean":
            yield from ({**good, name: value} for value in (True, False))
        elif schema["type"] == "string":
            yield from ({**good, name: text} for text in ODD_TEXTS)
        else:
            numbers = {schema.get("minimum", -(10**12)), schema.get("maximum", 10**12)}
            yield from ({**good, name: number} for number in numbers)


class TestIntrospect(CapabilityContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[World]:
        prepare(tmp_path)
        library = await Library.open(tmp_path, Settings())
        library.health.add("quokka", enabled=True)
        owner = CallContext(Viewer(Person("telegram:7", "Omar", "owner")), "telegram:7", "", "t", AT)
        guest_viewer = Viewer(Person("telegram:8", "Guest", "allowed"), frozenset({"telegram:8"}))
        mine = await _said(library, "7", "owner", "The quokka pays the falcon on Friday")
        theirs = await _said(library, "8", "allowed", "Is the falcon a marmot?")
        functions = library.introspect.functions()
        calls: dict[str, dict[str, Any]] = {
            "memory_search": {"query": "falcon"},
            "memory_get": {"ref": f"conversation:{mine}#"},
            "conversation_list": {},
            "conversation_read": {"id": mine},
            "memory_save": {"fact": "A quokka is an animal."},
            "channel_status": {},
            "sessions_search": {"query": "falcon"},
            "sessions_history": {"session_key": "telegram:7"},
            "usage_report": {},
            "wolffish_recall": {"query": "falcon"},
            "wolffish_status": {},
            "wolffish_performance": {},
            "wolffish_memory": {},
            "wolffish_list_files": {},
            "memory_forget": {"what": "A quokka is an animal."},
        }
        guest = CallContext(guest_viewer, "telegram:8", theirs, "t", AT)
        yield World(
            "introspect", Cerebellum({"introspect": functions}), functions, owner, guest, "quokka", "marmot", calls
        )
        await library.close()


async def _said(library: Library, person: str, rights: Rights, text: str) -> str:
    message = InboundMessage("telegram", person, "1", person, f"person {person}", text, AT)
    saved = await library.store.accept(NewMessage(message, rights, "observed", None, "idle", 0, False, None, False, AT))
    return saved.conversation_id

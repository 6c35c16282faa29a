"""What every capability keeps to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import jsonschema
import pytest

from agent.capabilities.introspect.tools import Introspect
from agent.cerebellum import BUILT_IN, Capability, Cerebellum
from agent.hippocampus.knowledge import Knowledge
from agent.types import JsonObject, ToolFunction
from tests.fakes.library import FakeTranscripts, Library

DESCRIPTION_CHARS_MAX = 200
"""Every description is in every prompt."""


class NoChannels:
    """A program without channels."""

    async def channels(self) -> JsonObject:
        return {"channels": []}


class CapabilityContract(ABC):
    """A subclass names the capability and gives the code of its tools."""

    name: str

    @abstractmethod
    def functions(self, home: Path) -> Mapping[str, ToolFunction]: ...

    @pytest.fixture
    def capability(self, tmp_path: Path) -> Capability:
        registry = Cerebellum({self.name: self.functions(tmp_path)}, (BUILT_IN,))
        return next(found for found in registry.capabilities() if found.name == self.name)

    def test_it_loads(self, capability: Capability) -> None:
        assert capability.fault is None
        assert capability.description

    def test_each_tool_has_code_and_no_code_is_without_a_tool(self, capability: Capability, tmp_path: Path) -> None:
        assert {tool.name for tool in capability.tools} == set(self.functions(tmp_path))

    def test_parameters_are_schemas_that_refuse_what_they_do_not_know(self, capability: Capability) -> None:
        for tool in capability.tools:
            schema: Any = tool.parameters
            jsonschema.Draft202012Validator.check_schema(schema)
            json.dumps(schema)
            assert schema["type"] == "object"
            assert schema.get("additionalProperties") is False, tool.name
            assert set(schema.get("required", ())) <= set(schema.get("properties", {})), tool.name

    def test_descriptions_are_short(self, capability: Capability) -> None:
        assert [tool.name for tool in capability.tools if len(tool.description) > DESCRIPTION_CHARS_MAX] == []

    def test_what_changes_something_is_never_tried_again_by_itself(self, capability: Capability) -> None:
        assert [tool.name for tool in capability.tools if tool.repeatable and not tool.read_only] == []


class TestIntrospect(CapabilityContract):
    name = "introspect"

    def functions(self, home: Path) -> Mapping[str, ToolFunction]:
        library = Library(home)
        library.conn.close()
        knowledge = Knowledge(library.workspace, library.cortex)
        zone = ZoneInfo("UTC")
        return Introspect(library.cortex, knowledge, FakeTranscripts(), NoChannels(), zone).functions()

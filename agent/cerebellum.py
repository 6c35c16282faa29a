"""Knows every capability and routes a tool call to the code behind it: the capability registry."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agent.types import CallContext, GatePattern, JsonObject, Rights, ToolCall, ToolFailure, ToolFunction, ToolSpec

BUILT_IN = Path(__file__).parent / "capabilities"
_HEAD = re.compile(r"\A---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*\r?\n?(?P<body>.*)\Z", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Capability:
    """One SKILL.md. `fault` says in one sentence why it is not in use; then it has neither tools nor patterns."""

    name: str
    description: str
    version: str = ""
    always: bool = False
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    patterns: tuple[GatePattern, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What all sound capabilities come to together."""

    capabilities: tuple[Capability, ...] = ()
    functions: Mapping[str, tuple[ToolSpec, ToolFunction]] = field(default_factory=dict[str, Any])
    patterns: tuple[GatePattern, ...] = ()
    definitions: Mapping[Rights, tuple[ToolSpec, ...]] = field(default_factory=dict[Rights, Any])


class _Fault(Exception):
    """A SKILL.md that cannot be used; `str()` is one sentence."""


class Cerebellum:
    """Capability registry.

    `functions` holds the code of the tools, by capability and tool name. `folders` hold a folder with a SKILL.md
    for each capability; the first that takes a tool's name keeps it. `trace` is told of each call that is routed.
    """

    def __init__(
        self,
        functions: Mapping[str, Mapping[str, ToolFunction]],
        folders: Sequence[Path] = (BUILT_IN,),
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self._trace = trace
        self._loaded = _load(folders, functions)

    def capabilities(self) -> tuple[Capability, ...]:
        """All capabilities by name, the faulty ones too."""
        return self._loaded.capabilities

    def definitions(self, rights: Rights) -> tuple[ToolSpec, ...]:
        """The tools this person may call, by name: the same bytes each time."""
        return self._loaded.definitions.get(rights, ())

    def spec(self, name: str) -> ToolSpec | None:
        """The tool of this name, whoever may call it; None when there is none."""
        found = self._loaded.functions.get(name)
        return found[0] if found else None

    def patterns(self) -> tuple[GatePattern, ...]:
        """What the safety gate searches for."""
        return self._loaded.patterns

    async def execute_tool(self, context: CallContext, call: ToolCall) -> str:
        """Runs the tool's code once and returns its text. Raises ToolFailure, or what the code lets through."""
        if self._trace:
            self._trace("cerebellum.execute_tool")
        found = self._loaded.functions.get(call.name)
        if found is None:
            raise ToolFailure(f"There is no tool named {call.name}.")
        return await found[1](context, call.args)


def _load(folders: Sequence[Path], functions: Mapping[str, Mapping[str, ToolFunction]]) -> _Loaded:
    capabilities: list[Capability] = []
    routes: dict[str, tuple[ToolSpec, ToolFunction]] = {}
    patterns: list[GatePattern] = []
    for file in (file for folder in folders for file in sorted(folder.glob("*/SKILL.md"))):
        name = file.parent.name
        try:
            if any(name == other.name and other.fault is None for other in capabilities):
                raise _Fault("another capability has this name.")
            capability = _read(file, functions.get(name, {}), frozenset(routes))
        except Exception as error:  # noqa: BLE001
            # One of the broad handlers: whatever is wrong with one capability must not touch the others.
            sentence = str(error) if isinstance(error, _Fault) else f"it cannot be read: {error!r}"
            capabilities.append(Capability(name, "", fault=f"{file}: {sentence}"))
            continue
        capabilities.append(capability)
        patterns += capability.patterns
        routes |= {spec.name: (spec, functions[name][spec.name]) for spec in capability.tools}
    ordered = [routes[name][0] for name in sorted(routes)]
    return _Loaded(
        tuple(sorted(capabilities, key=lambda capability: capability.name)),
        routes,
        tuple(patterns),
        {"owner": tuple(ordered), "allowed": tuple(spec for spec in ordered if spec.rights == "allowed")},
    )


def _read(file: Path, functions: Mapping[str, ToolFunction], taken: frozenset[str]) -> Capability:
    """One SKILL.md after the grammar of the Agent Skills form. Raises _Fault, OSError or YAML errors."""
    import yaml

    found = _HEAD.match(file.read_text(encoding="utf-8"))
    if found is None:
        raise _Fault("it has no YAML head between two lines of ---.")
    head: Any = yaml.load(found["head"], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if not isinstance(head, dict):
        raise _Fault("its YAML head is no mapping.")
    fields = cast("dict[str, Any]", head)
    if _text(fields, "name") != file.parent.name:
        raise _Fault(f"its name must be the folder's, {file.parent.name}.")
    missing = [need for need in _texts(fields, "requires") if shutil.which(need) is None]
    if missing:
        raise _Fault(f"it needs {', '.join(missing)}, which this machine does not have.")
    tools = tuple(_tool(item, functions, taken) for item in _items(fields, "tools"))
    if len({tool.name for tool in tools}) < len(tools):
        raise _Fault("two of its tools have the same name.")
    own = frozenset(tool.name for tool in tools)
    patterns = [_pattern(item, own, _level(item)) for item in _items(fields, "danger_patterns")]
    patterns += [_pattern(item, own, "confirm") for item in _items(fields, "confirm_patterns")]
    return Capability(
        name=file.parent.name,
        description=_text(fields, "description"),
        version=str(fields.get("version", "")),
        always=fields.get("always") is True,
        instructions=found["body"].strip(),
        tools=tools,
        patterns=tuple(patterns),
    )


def _tool(item: Mapping[str, Any], functions: Mapping[str, ToolFunction], taken: frozenset[str]) -> ToolSpec:
    name = _text(item, "name")
    if not _NAME.fullmatch(name):
        raise _Fault(f"the tool name {name!r} is not 1 to 64 letters, digits, - or _.")
    if name in taken:
        raise _Fault(f"the tool {name} is already another capability's.")
    if name not in functions:
        raise _Fault(f"there is no code for its tool {name}.")
    parameters: Any = item.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(parameters, dict) or cast("dict[str, Any]", parameters).get("type") != "object":
        raise _Fault(f"parameters of {name} must be a JSON schema of type object.")
    rights = item.get("rights", "owner")
    if rights not in {"owner", "allowed"}:
        raise _Fault(f"rights of {name} is {rights!r}; allowed are owner and allowed.")
    timeout = item.get("timeout_seconds", 30)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        raise _Fault(f"timeout_seconds of {name} must be a number above 0.")
    return ToolSpec(
        name=name,
        description=_text(item, "description"),
        parameters=cast("JsonObject", parameters),
        read_only=item.get("read_only") is True,
        repeatable=item.get("repeatable") is True,
        rights=cast("Rights", rights),
        timeout_seconds=float(timeout),
    )


def _level(item: Mapping[str, Any]) -> str:
    level = item.get("level")
    if level not in {"confirm", "block"}:
        raise _Fault(f"the level of a danger pattern is {level!r}; allowed are confirm and block.")
    return str(level)


def _pattern(item: Mapping[str, Any], own: frozenset[str], level: str) -> GatePattern:
    import regex

    expression = _text(item, "pattern")
    try:
        compiled = regex.compile(expression, regex.IGNORECASE)
    except regex.error as error:
        raise _Fault(f"the pattern {expression!r} is no regular expression: {error}.") from error
    if compiled.search(""):
        raise _Fault(f"the pattern {expression!r} matches everything.")
    tools = None if item.get("global") is True else own
    return GatePattern(expression, "block" if level == "block" else "confirm", _text(item, "reason"), tools)


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _Fault(f"{key} must be a text that is not empty.")
    return " ".join(value.split()) if key != "pattern" else value


def _texts(fields: Mapping[str, Any], key: str) -> list[str]:
    value: Any = fields.get(key) or []
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in cast("list[Any]", value)):
        raise _Fault(f"{key} must be a list of texts.")
    return cast("list[str]", value)


def _items(fields: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value: Any = fields.get(key) or []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", value)):
        raise _Fault(f"{key} must be a list of mappings.")
    return cast("list[Mapping[str, Any]]", value)

"""SKILL.md files: what a capability is, and how one is read. The open Agent Skills form with a few fields of ours."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agent.limits import SKILL_BYTES_MAX
from agent.types import GatePattern, JsonObject, Rights, ToolSpec

_HEAD = re.compile(r"\A---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*\r?\n?(?P<body>.*)\Z", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Capability:
    """One SKILL.md, or one server of tools. `fault` says in one sentence why it is not in use; then it has neither
    tools nor patterns.

    `always`: its tools and instructions are in every prompt; others are loaded when they are needed. `triggers`: words
    of a person that show the need. `programs` and `environment`: what must be there on this machine; the latter are
    the only variables beside the harmless ones that its commands get.
    """

    name: str
    description: str
    version: str = ""
    always: bool = False
    triggers: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    patterns: tuple[GatePattern, ...] = ()
    fault: str | None = None


class SkillFault(Exception):
    """A capability that cannot be used; `str()` is one sentence."""


def read_skill(file: Path) -> Capability:
    """One SKILL.md. Raises SkillFault, OSError, UnicodeDecodeError or YAML errors."""
    import yaml

    size = file.stat().st_size
    if size > SKILL_BYTES_MAX:
        raise SkillFault(f"it has {size:,} bytes; at most {SKILL_BYTES_MAX:,} are read.")
    found = _HEAD.match(file.read_text(encoding="utf-8-sig"))
    if found is None:
        raise SkillFault("it has no YAML head between two lines of ---.")
    head: Any = yaml.load(found["head"], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if not isinstance(head, dict):
        raise SkillFault("its YAML head is no mapping.")
    fields = cast("dict[str, Any]", head)
    name = file.parent.name
    if _text(fields, "name") != name:
        raise SkillFault(f"its name must be the folder's, {name}.")
    tools = tuple(_tool(item, name) for item in _items(fields, "tools"))
    if len({tool.name for tool in tools}) < len(tools):
        raise SkillFault("two of its tools have the same name.")
    own = frozenset(tool.name for tool in tools)
    patterns = [_pattern(item, own, _level(item)) for item in _items(fields, "danger_patterns")]
    patterns += [_pattern(item, own, "confirm") for item in _items(fields, "confirm_patterns")]
    programs, environment = _requires(fields)
    return Capability(
        name=name,
        description=_text(fields, "description"),
        version=str(fields.get("version", "")),
        always=fields.get("always") is True,
        triggers=_texts(fields, "triggers"),
        programs=programs,
        environment=environment,
        instructions=found["body"].strip(),
        tools=tools,
        patterns=tuple(patterns),
    )


def missing(capability: Capability, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What the capability requires and this machine does not have."""
    programs = [name for name in capability.programs if shutil.which(name, path=environ.get("PATH")) is None]
    return (*programs, *(f"the variable {name}" for name in capability.environment if not environ.get(name)))


def _requires(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Programs and variables; a plain list names programs."""
    value: Any = fields.get("requires")
    if not isinstance(value, dict):
        return _texts(fields, "requires"), ()
    both = cast("dict[str, Any]", value)
    unknown = ", ".join(str(key) for key in both if key not in {"programs", "env"})
    if unknown:
        raise SkillFault(f"requires has {unknown}; it may have programs and env.")
    return _texts(both, "programs"), _texts(both, "env")


def _tool(item: Mapping[str, Any], capability: str) -> ToolSpec:
    name = _text(item, "name")
    if not _NAME.fullmatch(name):
        raise SkillFault(f"the tool name {name!r} is not 1 to 64 letters, digits, - or _.")
    parameters: Any = item.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(parameters, dict) or cast("dict[str, Any]", parameters).get("type") != "object":
        raise SkillFault(f"parameters of {name} must be a JSON schema of type object.")
    rights = item.get("rights", "owner")
    if rights not in {"owner", "allowed"}:
        raise SkillFault(f"rights of {name} is {rights!r}; allowed are owner and allowed.")
    timeout = item.get("timeout_seconds", 30)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < float("inf"):
        raise SkillFault(f"timeout_seconds of {name} must be a number above 0.")
    command = _texts(item, "command")
    return ToolSpec(
        name=name,
        description=_text(item, "description"),
        parameters=cast("JsonObject", parameters),
        read_only=item.get("read_only") is True,
        repeatable=item.get("repeatable") is True,
        rights=cast("Rights", rights),
        timeout_seconds=float(timeout),
        capability=capability,
        paths=_texts(item, "paths"),
        shell=_texts(item, "shell"),
        command=command,
        # What a program prints may come from anywhere, unless its author says otherwise.
        outside=item.get("outside", bool(command)) is True,
        asks=_text(item, "asks") if "asks" in item else "",
        previews=item.get("previews") is True,
    )


def _level(item: Mapping[str, Any]) -> str:
    level = item.get("level")
    if level not in {"confirm", "block"}:
        raise SkillFault(f"the level of a danger pattern is {level!r}; allowed are confirm and block.")
    return str(level)


def _pattern(item: Mapping[str, Any], own: frozenset[str], level: str) -> GatePattern:
    import regex

    expression = _text(item, "pattern")
    try:
        compiled = regex.compile(expression, regex.IGNORECASE)
    except regex.error as error:
        raise SkillFault(f"the pattern {expression!r} is no regular expression: {error}.") from error
    if compiled.search(""):
        raise SkillFault(f"the pattern {expression!r} matches everything.")
    tools = None if item.get("global") is True else own
    return GatePattern(expression, "block" if level == "block" else "confirm", _text(item, "reason"), tools)


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SkillFault(f"{key} must be a text that is not empty.")
    return " ".join(value.split()) if key != "pattern" else value


def _texts(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value: Any = fields.get(key) or []
    texts = cast("Sequence[Any]", value)
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry.strip() for entry in texts):
        raise SkillFault(f"{key} must be a list of texts.")
    return tuple(texts)


def _items(fields: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value: Any = fields.get(key) or []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", value)):
        raise SkillFault(f"{key} must be a list of mappings.")
    return cast("list[Mapping[str, Any]]", value)

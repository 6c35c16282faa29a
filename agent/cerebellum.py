"""Knows every capability and routes a tool call to the code behind it: the capability registry."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from agent.limits import (
    CAPABILITY_LINE_CHARS,
    CONVERSATIONS_LOADED_MAX,
    LIGHT_TOOLS,
    OUTPUT_TAIL_CHARS,
    TOOL_NAME_CHARS_MAX,
    TOOL_NAMES_SHOWN,
    TOOL_OUTPUT_CHARS,
)
from agent.lines import flat
from agent.loading import Loading
from agent.programs import child_environment, run_program
from agent.skills import Capability, SkillFault, missing, read_skill
from agent.types import (
    CallContext,
    GatePattern,
    JsonObject,
    Rights,
    ToolCall,
    ToolFailure,
    ToolFunction,
    ToolSpec,
    Turn,
)

BUILT_IN = Path(__file__).parent / "capabilities"
STEP_TOOL = "procedure_step"
LOADER = "loader"
"""The built-in capability whose code is here: it loads the others."""
_Stamp = tuple[int, int, int]
_Route = tuple[ToolSpec, ToolFunction]


class CapabilitySource(Protocol):
    """Capabilities that come from elsewhere than a SKILL.md, such as a server of tools."""

    @property
    def version(self) -> int:
        """Another number whenever `offers` gives something else."""
        ...

    def offers(self) -> Sequence[tuple[Capability, Mapping[str, ToolFunction]]]:
        """Each capability with the code of its tools, by the tool's name. One with a fault has no tools."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """What all capabilities come to together; `sound` are those without a fault, by name, in the order they came.
    `lists` keeps the tool lists that were asked for."""

    listed: tuple[Capability, ...] = ()
    sound: Mapping[str, Capability] = field(default_factory=dict[str, Capability])
    routes: Mapping[str, _Route] = field(default_factory=dict[str, Any])
    patterns: tuple[GatePattern, ...] = ()
    triggers: tuple[tuple[str, re.Pattern[str]], ...] = ()
    lists: dict[Any, tuple[ToolSpec, ...]] = field(default_factory=dict[Any, Any])


class Cerebellum:
    """Capability registry.

    `functions` holds the code of built-in tools, by capability and tool name; a built-in capability without code is
    not offered. `folders` hold a folder with a SKILL.md for each capability; the first that takes a name keeps it, of
    a capability or of a tool. `sources` come after them. `workspace` is where the commands of skills run. `trace` is
    told of each call that is routed.

    Capabilities with `always` are in every prompt. Of the others a conversation has loaded those that were called,
    asked for or triggered, at most ten; the longest unused gives way.
    """

    def __init__(
        self,
        functions: Mapping[str, Mapping[str, ToolFunction]],
        folders: Sequence[Path] = (BUILT_IN,),
        trace: Callable[[str], None] | None = None,
        *,
        workspace: Path | None = None,
        sources: Sequence[CapabilitySource] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._functions = {LOADER: {"load_capability": self._load_capability}, **functions}
        self._folders = tuple(folders)
        self._trace = trace
        self._workspace = workspace
        self._sources = tuple(sources)
        self._environ = environ
        self._read: dict[Path, tuple[_Stamp, Capability]] = {}
        self._seen: object = None
        self._loading = Loading()
        self._known = _Known()
        self.refresh()

    # What there is

    def refresh(self) -> None:
        """Takes up SKILL.md files that are new, changed or gone, and what the sources have now; cheap when nothing
        did."""
        files = [file for folder in self._folders for file in sorted(folder.glob("*/SKILL.md"))]
        read = {file: self._parsed(file) for file in files}
        seen = (
            {file: (stamp, missing(capability, self._environ)) for file, (stamp, capability) in read.items()},
            tuple(source.version for source in self._sources),
        )
        if seen != self._seen:
            self._read, self._seen = read, seen
            self._known = self._put_together()

    def capabilities(self) -> tuple[Capability, ...]:
        """All capabilities by name, the faulty ones too."""
        return self._known.listed

    def patterns(self) -> tuple[GatePattern, ...]:
        """What the safety gate searches for."""
        return self._known.patterns

    def spec(self, name: str) -> ToolSpec | None:
        """The tool of this name, whoever may call it, loaded or not; None when there is none."""
        found = self._known.routes.get(name)
        return found[0] if found else None

    def tools(self, rights: Rights) -> tuple[ToolSpec, ...]:
        """Every tool this person may call, by name, loaded or not. The same object while nothing changed."""
        return self._list(("all", rights), lambda: _allowed(self._specs(sorted(self._known.routes)), rights))

    # What a prompt shows of it

    def lines(self, rights: Rights) -> str:
        """One line for each capability this person may use, with the instructions of those that are always there."""
        lines, others = list[str](), False
        for capability in self.capabilities():
            if not _visible(capability, rights) or capability.name == LOADER:
                continue
            line = f"- {capability.name}: {flat(capability.description, CAPABILITY_LINE_CHARS)}"
            if capability.fault is not None:
                line += f" Not available: {flat(capability.fault, CAPABILITY_LINE_CHARS)}"
            elif capability.always:
                line += f"\n{capability.instructions}" if capability.instructions else ""
            else:
                others = True
                line += _tool_names(_allowed(capability.tools, rights))
            lines.append(line)
        loader = self._known.sound.get(LOADER)
        if others and loader is not None:
            lines.append(loader.instructions)
        return "\n".join(lines)

    def definitions(self, rights: Rights, conversation_id: str = "") -> tuple[ToolSpec, ...]:
        """The tools this person is shown in this conversation: those always there by name, then those of each loaded
        capability in the order of loading. The same object while nothing was loaded."""
        loaded = tuple(self._loaded(conversation_id))
        return self._list((rights, loaded), lambda: self._shown(rights, loaded))

    def light(self, turn: Turn) -> tuple[ToolSpec, ...]:
        """The tools of a scheduled run: a few for the memory, those its job names, and what it has loaded."""
        loaded = tuple(self._loaded(turn.conversation_id))
        named = LIGHT_TOOLS.union(turn.allows, {STEP_TOOL} if turn.channel == "procedure" else ())
        return tuple(spec for spec in self.tools(turn.person.rights) if spec.name in named or spec.capability in loaded)

    def loaded_bodies(self, rights: Rights, conversation_id: str) -> tuple[tuple[str, str], ...]:
        """Name and instructions of each capability loaded in this conversation, in the order of loading."""
        loaded = (self._known.sound[name] for name in self._loaded(conversation_id))
        return tuple((one.name, one.instructions) for one in loaded if one.instructions and _visible(one, rights))

    # Loading

    def use(self, rights: Rights, conversation_id: str, tool: str) -> None:
        """A tool is called: its capability counts as used now, and is loaded where it was not."""
        spec = self.spec(tool)
        if spec is not None and (rights == "owner" or spec.rights == "allowed"):
            self._load(conversation_id, spec.capability)

    def trigger(self, rights: Rights, conversation_id: str, text: str) -> None:
        """Loads what the person's words call for, by the `triggers` of the capabilities."""
        for name, pattern in self._known.triggers:
            if pattern.search(text) and _visible(self._known.sound[name], rights):
                self._load(conversation_id, name)

    def _load(self, conversation_id: str, name: str) -> None:
        capability = self._known.sound.get(name)
        if capability is None or capability.always or not conversation_id:
            return
        self._loading.use(conversation_id, name)

    def _loaded(self, conversation_id: str) -> Iterable[str]:
        """Names of the loaded capabilities that are still sound, in the order of loading."""
        for name in self._loading.names(conversation_id):
            capability = self._known.sound.get(name)
            if capability is not None and not capability.always:
                yield name

    async def _load_capability(self, context: CallContext, args: JsonObject) -> str:
        """The tool `load_capability`. The instructions themselves come as the program's word, not as its result."""
        self.refresh()
        rights = context.viewer.person.rights
        name = str(args.get("name", "")).strip()
        offered = [one for one in self.capabilities() if _visible(one, rights) and not one.always]
        named = [one for one in offered if one.name == name]
        capability = next((one for one in named if one.fault is None), named[0] if named else None)
        if capability is None:
            names = ", ".join(one.name for one in offered if one.fault is None)
            raise ToolFailure(f"There is no capability {name[:64]!r} to load. There are: {names or 'none'}.")
        if capability.fault is not None:
            raise ToolFailure(f"{capability.name} is not available: {capability.fault}")
        self._load(context.conversation_id, capability.name)
        return f"{capability.name} is loaded.{_tool_names(_allowed(capability.tools, rights))}"

    # Calling

    async def execute_tool(self, context: CallContext, call: ToolCall) -> str:
        """Runs the tool's code once and returns its text. Raises ToolFailure, or what the code lets through.

        The gate has the word on a call; that a tool of the owner serves nobody else is seen to here once more.
        """
        if self._trace:
            self._trace("cerebellum.execute_tool")
        found = self._known.routes.get(call.name)
        if found is None:
            raise ToolFailure(f"There is no tool named {call.name}.")
        if found[0].rights == "owner" and context.viewer.person.rights != "owner":
            raise ToolFailure(f"{call.name} is a tool of the owner.")
        return await found[1](context, call.args)

    def _command(self, spec: ToolSpec, capability: Capability) -> ToolFunction:
        """The code of a tool that is a command: its arguments as JSON on stdin, its output as the result."""

        async def run(context: CallContext, args: JsonObject) -> str:
            if self._workspace is None:
                raise ToolFailure("There is no workspace to run commands in.")
            environment = child_environment(self._environ, also=capability.environment)
            data = json.dumps(dict(args), ensure_ascii=False, default=str).encode("utf-8", "replace")
            try:
                ended = await run_program(
                    spec.command,
                    folder=self._workspace,
                    environment=environment,
                    data=data,
                    chars_max=TOOL_OUTPUT_CHARS,
                )
            except (OSError, ValueError) as error:
                raise ToolFailure(f"{spec.command[0]} could not be started: {error}.") from error
            if ended.exit_code != 0:
                said = flat(ended.output[-OUTPUT_TAIL_CHARS:], OUTPUT_TAIL_CHARS).rstrip(".") or "it said nothing"
                raise ToolFailure(f"{spec.name} failed ({ended.how}): {said}.")
            return ended.output

        return run

    # Putting together

    def _parsed(self, file: Path) -> tuple[_Stamp, Capability]:
        """What stands in the file, read again only when it changed; a broken one is a capability with a fault."""
        stamp = (0, 0, 0)
        try:
            stat = file.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            known = self._read.get(file)
            return known if known is not None and known[0] == stamp else (stamp, read_skill(file))
        except Exception as error:  # noqa: BLE001
            # One of the broad handlers: whatever is wrong with one capability must not touch the others.
            sentence = str(error) if isinstance(error, SkillFault) else f"it cannot be read: {error!r}"
            return stamp, Capability(file.parent.name, "", fault=f"{_place(file)}: {sentence}")

    def _put_together(self) -> _Known:
        listed: list[Capability] = []
        sound: dict[str, Capability] = {}
        routes: dict[str, _Route] = {}
        for file, (_, read) in self._read.items():
            capability = read
            functions = self._functions.get(capability.name, {})
            if file.is_relative_to(BUILT_IN) and not functions:
                continue
            if capability.fault is None:
                try:
                    routes |= self._routes(capability, functions, sound, routes)
                    sound[capability.name] = capability
                except SkillFault as fault:
                    capability = Capability(capability.name, capability.description, fault=f"{_place(file)}: {fault}")
            listed.append(capability)
        for source in self._sources:
            listed += [self._offer(capability, functions, sound, routes) for capability, functions in source.offers()]
        return _Known(
            tuple(sorted(listed, key=lambda capability: capability.name)),
            sound,
            routes,
            tuple(pattern for capability in sound.values() for pattern in capability.patterns),
            tuple((name, _words(capability.triggers)) for name, capability in sound.items() if capability.triggers),
        )

    def _routes(
        self,
        capability: Capability,
        functions: Mapping[str, ToolFunction],
        sound: Mapping[str, Capability],
        taken: Mapping[str, _Route],
    ) -> dict[str, _Route]:
        """The code of each tool. Raises SkillFault when the capability does not go with the others or this machine."""
        if capability.name in sound:
            raise SkillFault("another capability has this name.")
        if lacking := missing(capability, self._environ):
            raise SkillFault(f"it needs {', '.join(lacking)}, which this machine does not have.")
        routes: dict[str, _Route] = {}
        for tool in capability.tools:
            if tool.name in taken:
                raise SkillFault(f"the tool {tool.name} is already another capability's.")
            if tool.command:
                routes[tool.name] = (tool, self._command(tool, capability))
            elif tool.name in functions:
                routes[tool.name] = (tool, functions[tool.name])
            else:
                raise SkillFault(f"there is no code for its tool {tool.name}.")
        return routes

    @staticmethod
    def _offer(
        capability: Capability,
        functions: Mapping[str, ToolFunction],
        sound: dict[str, Capability],
        routes: dict[str, _Route],
    ) -> Capability:
        """Adds what a source offers; a tool whose name is taken gets the capability's name before its own."""
        name = capability.name
        if capability.fault is None and name in sound:
            return Capability(name, capability.description, fault="another capability has this name.")
        tools: list[ToolSpec] = []
        for spec in capability.tools:
            called = spec.name if spec.name not in routes else f"{name}_{spec.name}"[:TOOL_NAME_CHARS_MAX]
            if called not in routes:
                tools.append(replace(spec, name=called))
                routes[called] = (tools[-1], functions[spec.name])
        capability = replace(capability, tools=tuple(tools))
        if capability.fault is None:
            sound[name] = capability
        return capability

    def _shown(self, rights: Rights, loaded: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        capabilities = self._known.sound.values()
        core = self._specs(sorted(tool.name for one in capabilities if one.always for tool in one.tools))
        if not any(_visible(one, rights) and not one.always for one in capabilities):
            core = tuple(spec for spec in core if spec.capability != LOADER)
        more = [tool for name in loaded for tool in self._known.sound[name].tools]
        return _allowed((*core, *more), rights)

    def _specs(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        return tuple(self._known.routes[name][0] for name in names)

    def _list(self, key: object, make: Callable[[], tuple[ToolSpec, ...]]) -> tuple[ToolSpec, ...]:
        """The same object for the same question: who compares or counts it does so once."""
        lists = self._known.lists
        if key not in lists:
            if len(lists) > CONVERSATIONS_LOADED_MAX:
                lists.clear()
            lists[key] = make()
        return lists[key]


def _visible(capability: Capability, rights: Rights) -> bool:
    """The owner sees everything; others what has a tool for them."""
    return rights == "owner" or any(tool.rights == "allowed" for tool in capability.tools)


def _allowed(tools: Sequence[ToolSpec], rights: Rights) -> tuple[ToolSpec, ...]:
    return tuple(tool for tool in tools if rights == "owner" or tool.rights == "allowed")


def _tool_names(tools: Sequence[ToolSpec]) -> str:
    names = ", ".join(tool.name for tool in tools[:TOOL_NAMES_SHOWN])
    more = f" and {len(tools) - TOOL_NAMES_SHOWN} more" if len(tools) > TOOL_NAMES_SHOWN else ""
    return f" Tools: {names}{more}." if names else ""


def _words(triggers: Sequence[str]) -> re.Pattern[str]:
    """Any of the triggers, whatever the case; as a whole word where it begins or ends with a Latin letter or digit.

    Other scripts join words: an article or a preposition may stand before a trigger without a space.
    """
    return re.compile("|".join(map(_bordered, triggers)), re.IGNORECASE)


def _bordered(word: str) -> str:
    before = r"(?<!\w)" if word[0].isascii() and word[0].isalnum() else ""
    after = r"(?!\w)" if word[-1].isascii() and word[-1].isalnum() else ""
    return before + re.escape(word) + after


def _place(file: Path) -> str:
    """`skills/notes/SKILL.md`: enough to find it, and nothing of where the home is."""
    return "/".join(file.parts[-3:])

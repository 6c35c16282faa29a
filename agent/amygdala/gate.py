"""The safety gate: rights first, then everything that can be known of a call. Code decides, never the prompt.

Nothing in the arguments of a call can lower its class: the gate reads what they would do, not what they say of
themselves, and unknown arguments were refused by the tool's schema before.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from agent import places as workspace_paths
from agent.amygdala.findings import Findings
from agent.amygdala.lookalikes import visible
from agent.amygdala.places import Places
from agent.amygdala.shell import classify_arguments, classify_command
from agent.lines import one_line
from agent.types import GatePattern, ToolCall, ToolFailure, ToolSpec, Turn, Verdict

PatternSource = Callable[[], Sequence[GatePattern]]
Confirm = Literal["risky", "always"]
_SEARCH_SECONDS_MAX = 0.05
_SOURCES_SHOWN = 3
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]{2}([^/\\?#]*)")


class Amygdala:
    """Safety gate.

    `patterns` gives the patterns of the capabilities that are loaded now, in any order. `workspace` is where tools
    work; the folder above it is this program's home. `confirm` is the owner's setting: `risky` asks about what is
    found risky, `always` about every call of a tool that is not read-only. `user_home` is for tests.
    """

    def __init__(
        self,
        patterns: PatternSource,
        workspace: Path,
        *,
        confirm: Confirm = "risky",
        user_home: Path | None = None,
    ) -> None:
        self._patterns = patterns
        self._workspace = workspace
        self._user_home = user_home
        self._always = confirm == "always"
        self._made: Places | None = None

    def classify(self, call: ToolCall, spec: ToolSpec, turn: Turn, read: Sequence[ToolCall] = ()) -> Verdict:
        """The word on one call: `block` beats `confirm` beats `safe` over all that is found, whatever the order.

        `read`: the calls whose results, texts from outside, the model has read in this turn. After one of them, and
        when words of others came with the turn, every call that changes something must be confirmed, for an order in
        such a text is nobody's order; commands that are safe may follow commands. A tool above the person's rights is
        blocked.
        """
        found = Findings()
        if spec.rights == "owner" and turn.person.rights != "owner":
            found.add("block", "owners_tool", call.name)
            return found.verdict()
        self._search(call, found)
        self._addresses(call, found)
        self._paths(call, spec, found)
        commands = self._commands(call, spec, found)
        if spec.asks:
            found.say("confirm", spec.asks)
        if not spec.read_only:
            harmless = bool(commands) and found.decision == "safe"
            if turn.person.rights != "owner":
                found.add("confirm", "other_person")
            if self._always:
                found.add("confirm", "always")
            foreign = [words.source for words in turn.foreign if not words.is_own]
            if foreign or (read and not (harmless and all(earlier.name == call.name for earlier in read))):
                found.add("confirm", "tainted", _sources(read, foreign))
        return found.verdict()

    def _search(self, call: ToolCall, found: Findings) -> None:
        """The patterns of the capabilities."""
        sentences: dict[Literal["block", "confirm"], set[str]] = {"block": set(), "confirm": set()}
        texts: list[str] | None = None
        for pattern in self._patterns():
            if pattern.tools is not None and call.name not in pattern.tools:
                continue
            if texts is None:
                texts = list(_strings(call.args))
            match = _found(pattern, texts)
            if match is None:
                found.add("confirm", "slow")
            elif match:
                sentences[pattern.level].add(pattern.reason)
        for level, reasons in sentences.items():
            for reason in sorted(reasons):
                found.say(level, reason)

    def _addresses(self, call: ToolCall, found: Findings) -> None:
        """Addresses whose host is written with other letters than it seems."""
        for text in _strings(call.args):
            host = _ADDRESS.match(text)
            if host and not (host[1].isascii() and "xn--" not in host[1].lower()):
                found.add("confirm", "foreign", text)

    def _paths(self, call: ToolCall, spec: ToolSpec, found: Findings) -> None:
        """Arguments that are paths: inside the workspace; what decides how the agent acts is not changed unasked."""
        for name in spec.paths:
            value = call.args.get(name)
            for text in _strings(value):
                try:
                    real = os.path.realpath(workspace_paths.inside(self._workspace, text))
                except ToolFailure:
                    found.add("block", "not_a_path", text)
                    continue
                if self._places.credential(real):
                    found.add("block", "credentials", text)
                protected = None if spec.read_only else self._places.protected(real)
                if protected:
                    found.add("confirm", "protected", protected)

    def _commands(self, call: ToolCall, spec: ToolSpec, found: Findings) -> int:
        """Arguments that a shell runs, and the program of a tool that is one. Gives back how many there were."""
        count = 0
        for name in spec.shell:
            for text in _strings(call.args.get(name)):
                count += 1
                found.take(classify_command(text, self._places))
        if spec.command:
            count += 1
            found.take(classify_arguments(spec.command, self._places))
        return count

    @property
    def _places(self) -> Places:
        # Made with the first call that needs it: the table behind it is not read at every start.
        if self._made is None:
            self._made = Places(self._workspace, self._user_home or Path.home())
        return self._made


def shown(call: ToolCall, spec: ToolSpec | None = None, preview: str = "") -> str:
    """The call as the owner is shown it before it runs: all of it, each text as it is, byte for byte.

    Only what would deceive the eye is written as `\\u{...}`: characters that show nothing or turn the direction of the
    text, and those that pass for others; in what a shell runs, in paths and in addresses, everywhere. The lines of a
    text of several lines are set in, so that none can pass for another argument. `preview` is what the tool says that
    the call would do; it follows.
    """
    code = frozenset((*spec.shell, *spec.paths)) if spec is not None else frozenset[str]()
    lines = [f"{call.name}:"] if call.args else [call.name]
    for name, value in call.args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        text = visible(text, code=name in code or _ADDRESS.match(text) is not None)
        label = visible(one_line(name), code=True)
        if "\n" in text:
            lines.append(f"{label}:")
            lines += (f"    {line}" for line in text.split("\n"))
        else:
            lines.append(f"{label}: {text}")
    if preview:
        lines += ["", *(f"    {line}" for line in visible(preview, code=False).split("\n"))]
    return "\n".join(lines)


def _sources(read: Sequence[ToolCall], foreign: Sequence[str]) -> str:
    """Where the texts came from: what came with the turn, the tools and what they were asked for."""
    names: dict[str, None] = dict.fromkeys(one_line(source, 40) for source in foreign)
    for call in read:
        about = next((text for text in call.args.values() if isinstance(text, str) and text.strip()), "")
        names[f"{call.name} {one_line(about, 40)}".strip()] = None
    listed = list(names)
    more = f" and {len(listed) - _SOURCES_SHOWN} more" if len(listed) > _SOURCES_SHOWN else ""
    return ", ".join(listed[:_SOURCES_SHOWN]) + more


def _found(pattern: GatePattern, texts: Sequence[str]) -> bool | None:
    """Whether the pattern is in any of the texts; None when that could not be said in time."""
    # `regex` keeps compiled expressions itself and, unlike `re`, gives up after a time.
    import regex

    compiled = regex.compile(pattern.expression, regex.IGNORECASE)
    unknown = False
    for text in texts:
        try:
            if compiled.search(text, timeout=_SEARCH_SECONDS_MAX):
                return True
        except TimeoutError:
            unknown = True
    return None if unknown else False


def _strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, names of members too, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Sequence[Any]", value):
            yield from _strings(inner)

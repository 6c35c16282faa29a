"""The safety gate: rights first, then patterns over every string argument. Code decides, never the prompt."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from agent.types import GatePattern, ToolCall, ToolSpec, Turn, Verdict

PatternSource = Callable[[], Sequence[GatePattern]]
_SEARCH_SECONDS_MAX = 0.05


class Amygdala:
    """Safety gate. `patterns` gives the patterns of the capabilities that are loaded now, in any order."""

    def __init__(self, patterns: PatternSource) -> None:
        self._patterns = patterns

    def classify(self, call: ToolCall, spec: ToolSpec, turn: Turn) -> Verdict:
        """The word on one call: `block` beats `confirm` beats `safe` over all patterns, whatever their order.

        A tool above the person's rights is blocked. An argument that a pattern cannot be searched in within its
        time must be confirmed. The reason of a verdict is one plain sentence.
        """
        if spec.rights == "owner" and turn.person.rights != "owner":
            return Verdict("block", f"{call.name} is a tool of the owner; the person asking may not use it.")
        reasons: dict[str, set[str]] = {"block": set(), "confirm": set()}
        texts: list[str] | None = None
        for pattern in self._patterns():
            if pattern.tools is not None and call.name not in pattern.tools:
                continue
            if texts is None:
                texts = list(_strings(call.args))
            found = _found(pattern, texts)
            if found is None:
                reasons["confirm"].add("Its arguments could not be checked in time.")
            elif found:
                reasons[pattern.level].add(pattern.reason)
        if reasons["block"]:
            return Verdict("block", " ".join(sorted(reasons["block"])))
        if reasons["confirm"]:
            return Verdict("confirm", " ".join(sorted(reasons["confirm"])))
        return Verdict("safe")


def shown(call: ToolCall) -> str:
    """The call as the owner is shown it before it runs: all of it, with invisible characters as `\\u{...}`."""
    text = json.dumps(dict(call.args), ensure_ascii=False, indent=1, default=str)
    visible = "".join(
        f"\\u{{{ord(c):x}}}" if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"} else c
        for c in text
    )
    return f"{call.name} {visible}"


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

"""Tool-call parser: turns the call fragments of any provider into whole ToolCalls, or says what is wrong with them.

A call whose arguments are cut off, unreadable or against the tool's schema gets a `fault`: it is never executed and
never repaired by guessing; the fault goes back to the model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol, cast

from agent.characters import whole_characters
from agent.types import JsonObject, StreamChunk, ToolCall, ToolSpec

FAULT_DETAIL_CHARS = 300
CUT_OFF = (
    "The arguments of `{name}` were cut off before they were complete, so it was not run. "
    "Call it again with shorter arguments."
)
_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_HUMP = re.compile("[A-Z]")
_STRUCTURE = re.compile(r'[{}\[\]"\\]')


class _Scan:
    """Says whether JSON text that arrives in pieces is a complete object or array by now; each piece is read once."""

    def __init__(self) -> None:
        self._pieces_read = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._begun = False

    def complete(self, pieces: Sequence[str]) -> bool:
        for piece in pieces[self._pieces_read :]:
            self._read(piece)
        self._pieces_read = len(pieces)
        return self._begun and self._depth == 0 and not self._in_string

    def _read(self, piece: str) -> None:
        skip_at = 0 if self._escaped else -1
        self._escaped = False
        for found in _STRUCTURE.finditer(piece):
            at, mark = found.start(), found.group()
            if at == skip_at:
                continue
            if self._in_string:
                if mark == "\\":
                    skip_at = at + 1
                elif mark == '"':
                    self._in_string = False
            elif mark == '"':
                self._in_string = True
            elif mark in "{[":
                self._depth += 1
                self._begun = True
            elif mark in "}]":
                self._depth -= 1
        if self._in_string and skip_at == len(piece):
            self._escaped = True


@dataclass(slots=True)
class _Draft:
    """A call that is still arriving."""

    id: str | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    value: JsonObject | None = None
    scan: _Scan = field(default_factory=_Scan)

    @property
    def empty(self) -> bool:
        return self.value is None and not self.pieces

    def complete(self) -> bool:
        return self.value is not None or self.scan.complete(self.pieces)


class CallCollector:
    """Gathers the call fragments of one model round, in any of the ways services send them.

    Fragments belong together by their index; without one, by their id; without either, to the call before. A new id,
    or a name after arguments that are already complete, begins a new call whatever the index says (some servers give
    every parallel call the index 0). Chunks of other kinds may be added too: `stop` with `length` marks the last call
    as cut off, `reset` forgets everything.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._drafts: list[_Draft] = []
        self._by_index: dict[int, _Draft] = {}
        self._by_id: dict[tuple[int | None, str], _Draft] = {}
        self._last: _Draft | None = None
        self._cut = False

    def add(self, chunk: StreamChunk) -> None:
        """Takes one chunk. Never raises."""
        if chunk.kind == "call":
            self._add_fragment(chunk)
        elif chunk.kind == "stop":
            self._cut = chunk.text == "length"
        elif chunk.kind == "reset":
            self._forget()

    def calls(self, taken_ids: Container[str] = ()) -> tuple[ToolCall, ...]:
        """The calls in the order they began. Ids that are missing, repeated or in `taken_ids` become `call_<n>`."""
        calls: list[ToolCall] = []
        # Made-up ids must not meet an id that a later call of this round brings itself.
        own_ids = {draft.id for draft in self._drafts if draft.id}
        used: set[str] = set()
        names = _made_up_ids(taken_ids, own_ids)
        for draft in self._drafts:
            call_id = draft.id
            if not call_id or call_id in used or call_id in taken_ids:
                call_id = next(names)
            used.add(call_id)
            calls.append(_finished(draft, call_id, cut=self._cut and draft is self._last))
        return tuple(calls)

    def _add_fragment(self, chunk: StreamChunk) -> None:
        call_id = chunk.call_id or None
        draft = self._known(chunk, call_id)
        if draft is None or _begins_another(draft, chunk, call_id):
            draft = _Draft()
            self._drafts.append(draft)
        if chunk.index is not None:
            self._by_index[chunk.index] = draft
        if call_id is not None and draft.id is None:
            draft.id = call_id
            self._by_id.setdefault((None, call_id), draft)
            self._by_id.setdefault((chunk.index, call_id), draft)
        self._last = draft
        _take(draft, chunk)

    def _known(self, chunk: StreamChunk, call_id: str | None) -> _Draft | None:
        """The call this fragment seems to go on with."""
        if call_id is not None and (same := self._by_id.get((chunk.index, call_id))) is not None:
            return same
        if chunk.index is not None:
            return self._by_index.get(chunk.index)
        return self._last if call_id is None else None


def _begins_another(draft: _Draft, chunk: StreamChunk, call_id: str | None) -> bool:
    if call_id is not None and draft.id is not None:
        return call_id != draft.id
    if not chunk.name or not draft.name:
        return False
    if draft.complete() or chunk.arguments_object is not None:
        return True
    if chunk.index is not None:
        return False
    # No index, no id: a name begins a call, unless the server repeats the name with every piece of the arguments.
    return chunk.name != draft.name or draft.empty


def _take(draft: _Draft, chunk: StreamChunk) -> None:
    if chunk.name and not draft.name.startswith(chunk.name):
        # Names may come in pieces ("memory_", "search") or grow ("memory_", "memory_search"), never after arguments.
        if chunk.name.startswith(draft.name):
            draft.name = chunk.name
        elif draft.empty:
            draft.name += chunk.name
    if chunk.arguments_object is not None:
        draft.value = chunk.arguments_object
    if chunk.arguments:
        # Some servers end with the whole call once more; its head tells it from a piece.
        has_head = bool(chunk.name or chunk.call_id)
        if not (has_head and draft.complete() and chunk.arguments == "".join(draft.pieces)):
            draft.pieces.append(chunk.arguments)


def _made_up_ids(taken_ids: Container[str], own_ids: Collection[str]) -> Iterator[str]:
    n = 0
    while True:
        n += 1
        name = f"call_{n}"
        if name not in taken_ids and name not in own_ids:
            yield name


def _finished(draft: _Draft, call_id: str, *, cut: bool) -> ToolCall:
    name = whole_characters(draft.name)
    if not name:
        return ToolCall(call_id, name, {}, "The call names no tool, so nothing was run.")
    if cut:
        return ToolCall(call_id, name, {}, CUT_OFF.format(name=name), cut_off=True)
    text = "".join(draft.pieces)
    try:
        if draft.value is not None:
            text = json.dumps(dict(draft.value), ensure_ascii=False)
        value = _arguments(whole_characters(text).strip())
    except (ValueError, RecursionError) as error:
        if _broke_off(text):
            return ToolCall(call_id, name, {}, CUT_OFF.format(name=name), cut_off=True)
        return ToolCall(call_id, name, {}, _unreadable(name, error))
    if not isinstance(value, dict):
        fault = f"The arguments of `{name}` must be one JSON object, not {type(value).__name__}, so it was not run."
        return ToolCall(call_id, name, {}, fault)
    return ToolCall(call_id, name, cast("dict[str, Any]", value))


def _arguments(text: str) -> Any:
    """The JSON value of a call's arguments; nothing at all, and `null`, mean none. Raises ValueError and
    RecursionError."""
    if not text or text == "null":
        return {}
    value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    if _HALF_ESCAPE.search(text):
        # Such an escape becomes half a character only here, and no file or database could hold it.
        value = json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is out of range")
    return value


def _broke_off(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[") and not _Scan().complete([text])


def _unreadable(name: str, error: Exception) -> str:
    return (
        f"The arguments of `{name}` are not one valid JSON object ({_short(str(error))}), so it was not run. "
        "Call it again."
    )


class _Validator(Protocol):
    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


class Wernicke:
    """The region: `begin()` a collector for each model round, then `parse_calls()` what it gathered."""

    def __init__(self) -> None:
        self._validators: dict[str, tuple[JsonObject, _Validator | None]] = {}

    def begin(self) -> CallCollector:
        """A collector for one model round."""
        return CallCollector()

    def parse_calls(
        self, collector: CallCollector, specs: Sequence[ToolSpec], taken_ids: Container[str] = ()
    ) -> tuple[ToolCall, ...]:
        """The round's calls, each checked against its tool in `specs`. `taken_ids`: ids of the turn's earlier calls."""
        return tuple(self.check_call(call, specs) for call in collector.calls(taken_ids))

    def check_call(self, call: ToolCall, specs: Sequence[ToolSpec]) -> ToolCall:
        """`call`, with a fault when its tool is unknown or its arguments do not fit the tool's JSON schema."""
        if call.fault is not None:
            return call
        spec = next((spec for spec in specs if spec.name == call.name), None)
        if spec is None:
            names = ", ".join(spec.name for spec in specs) or "none"
            shown = call.name[:FAULT_DETAIL_CHARS]
            return replace(call, fault=f"There is no tool `{shown}`. The tools here: {names}.")
        call = _in_snake_case(call, spec.parameters.get("properties"))
        validator = self._validator(spec)
        if validator is None:
            return call
        from jsonschema import exceptions
        from referencing.exceptions import Unresolvable

        try:
            error: Any = cast(Any, exceptions).best_match(validator.iter_errors(dict(call.args)))
        except (re.error, Unresolvable, RecursionError):
            return call  # a schema that cannot be applied: the tool then judges
        if error is None:
            return call
        place = "".join(f"[{part!r}]" for part in error.absolute_path)
        detail = _short(str(error.message))
        where = f" at {place}" if place else ""
        return replace(call, fault=f"The arguments of `{call.name}` do not fit{where}: {detail}. It was not run.")

    def _validator(self, spec: ToolSpec) -> _Validator | None:
        """The compiled schema of a tool, made once; None for a schema that is itself wrong (the tool then judges)."""
        known = self._validators.get(spec.name)
        if known is not None and known[0] is spec.parameters:
            return known[1]
        import jsonschema
        from jsonschema import validators

        schema = dict(spec.parameters)
        kind: Any = cast(Any, validators).validator_for(schema, default=jsonschema.Draft202012Validator)
        validator: _Validator | None = None
        with suppress(jsonschema.SchemaError):
            kind.check_schema(schema)
            validator = kind(schema)
        self._validators[spec.name] = (spec.parameters, validator)
        return validator


def _in_snake_case(call: ToolCall, properties: object) -> ToolCall:
    """The call by the names of the parameters: `sessionKey` counts as `session_key`, where there is only that one."""
    if not isinstance(properties, Mapping):
        return call
    known = cast("Mapping[str, object]", properties)
    unknown = {name: _HUMP.sub(r"_\g<0>", name).lower() for name in call.args if name not in known}
    meant = {name: snake for name, snake in unknown.items() if snake in known and snake not in call.args}
    return replace(call, args={meant.get(name, name): value for name, value in call.args.items()}) if meant else call


def _short(text: str) -> str:
    return text if len(text) <= FAULT_DETAIL_CHARS else f"{text[:FAULT_DETAIL_CHARS]}…"

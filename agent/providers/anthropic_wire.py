"""Translates between our prompts and chunks and the Messages format: pure functions, no network.

Format: https://platform.claude.com/docs/en/api/messages and .../build-with-claude/streaming.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agent.characters import whole_characters
from agent.providers import pictures
from agent.providers.base import repaired, tool_name
from agent.providers.pictures import Picture
from agent.types import Message, Prompt, ToolCall, ToolSpec

Json = dict[str, Any]
PROVIDER = "anthropic"
_MARK = {"type": "ephemeral"}
_NOTHING_SAID = "(empty)"


def request_body(
    model: str, prompt: Prompt, found: Mapping[str, Picture] | None = None, output_tokens_max: int = 1_024
) -> tuple[Json, str]:
    """The JSON of one streaming request, and what stands for everything the reply will follow (see `_Prefix`).

    At most four marks ask the service to keep what comes before them: after the tools, after the system prompt, after
    the last answer to a person (what comes then is of this turn), and in a turn that calls tools after the last result.
    """
    messages = repaired(prompt.messages)
    tools = [_tool(spec) for spec in prompt.tools]
    body: Json = {"model": model, "max_tokens": output_tokens_max, "stream": True}
    if not tools and any(message.calls for message in messages):
        # Calls in the history must have their tools, also where none may be called any more.
        names = dict.fromkeys(tool_name(call.name) for message in messages for call in message.calls)
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
        body["tool_choice"] = {"type": "none"}
    system = whole_characters(prompt.system)
    prefix = _Prefix(system, tools)
    out = _messages(model, messages, found or {}, prefix)
    if tools:
        body["tools"] = [*tools[:-1], {**tools[-1], "cache_control": _MARK}]
    if system.strip():
        body["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
    body["messages"] = out
    _mark_messages(out)
    return body, prefix.digest()


class _Prefix:
    """What stands before a message, as a digest.

    The service takes thinking back only behind the very words it was thought after (system prompt, tools, messages)
    and refuses the request otherwise, so thinking remembers its place.
    """

    def __init__(self, system: str, tools: list[Json]) -> None:
        self._hash = hashlib.sha256(json.dumps([system, tools]).encode())

    def add(self, message: Json) -> None:
        self._hash.update(json.dumps(message).encode())

    def digest(self) -> str:
        return self._hash.hexdigest()


def _messages(model: str, messages: Sequence[Message], found: Mapping[str, Picture], prefix: _Prefix) -> list[Json]:
    """Our messages in the service's form: the roles take turns, a person begins, each has something in it."""
    out: list[Json] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if not out and role == "assistant":
            out.append({"role": "user", "content": [_text(_NOTHING_SAID)]})
        goes_on = bool(out) and out[-1]["role"] == role
        if not goes_on and out:
            prefix.add(out[-1])
        thought = None if goes_on or role == "user" else _as_it_came(model, message, prefix.digest())
        blocks = thought or list(_blocks(message, found))
        if goes_on:
            out[-1]["content"] += blocks
        elif blocks or role == "user":
            out.append({"role": role, "content": blocks or [_text(_NOTHING_SAID)]})
    if out:
        prefix.add(out[-1])
    return out


def _blocks(message: Message, found: Mapping[str, Picture]) -> Iterable[Json]:
    images, text = pictures.split(message, found)
    text = whole_characters(text)
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.call_id, "content": text if text.strip() else "(nothing)"}
        return
    for picture in images:
        source = {"type": "base64", "media_type": picture.media_type, "data": picture.data}
        yield {"type": "image", "source": source}
    if text.strip():
        yield _text(text)
    for call in message.calls:
        yield {"type": "tool_use", "id": call.id, "name": tool_name(call.name), "input": _input(call)}


def _input(call: ToolCall) -> Json:
    return json.loads(whole_characters(json.dumps(dict(call.args), ensure_ascii=False)))


def _as_it_came(model: str, message: Message, digest: str) -> list[Json] | None:
    """An assistant message block by block as this very model sent it, thinking included; None when it is not known
    so, or may no longer be sent."""
    own = message.reasoning or {}
    if (own.get("provider"), own.get("model"), own.get("after")) != (PROVIDER, model, digest):
        return None
    blocks = cast("list[Json]", own["blocks"])
    said = "".join(block["text"] for block in blocks if block["type"] == "text")
    called = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    same = called == [(call.id, call.name, dict(call.args)) for call in message.calls]
    return [dict(block) for block in blocks] if same and said.strip() == message.text.strip() else None


def _mark_messages(messages: list[Json]) -> None:
    """Marks the end of what stays the same: the last message before this turn, and the last result within it."""
    ends = [n for n, message in enumerate(messages) if message["role"] == "assistant" and not _has(message, "tool_use")]
    marked = ends[-1:]
    if messages and _has(messages[-1], "tool_result"):
        marked.append(len(messages) - 1)
    for n in marked:
        messages[n]["content"][-1] = {**messages[n]["content"][-1], "cache_control": _MARK}


def _has(message: Json, kind: str) -> bool:
    return any(block["type"] == kind for block in message["content"])


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _tool(spec: ToolSpec) -> Json:
    return {"name": spec.name, "description": spec.description, "input_schema": dict(spec.parameters)}

"""Translates between our prompts and chunks and the chat-completions format: pure functions, no network.

Format: https://platform.openai.com/docs/api-reference/chat (compatible servers differ in small ways, all met here).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agent.characters import whole_characters
from agent.providers import errors, pictures
from agent.providers.base import repaired, tool_name
from agent.providers.events import members
from agent.providers.pictures import Picture
from agent.types import Message, Prompt, StreamChunk, ToolCall, ToolSpec, Usage

Json = dict[str, Any]
_STOPS = {"tool_calls": "calls", "function_call": "calls", "length": "length", "max_tokens": "length"}
_FAILED_STOPS = {
    "content_filter": errors.WITHHELD,
    "error": errors.REPORTED,
    "insufficient_system_resource": errors.DOWN,
}


def request_body(
    model: str, prompt: Prompt, found: Mapping[str, Picture] | None = None, reasoning_of: str | None = None
) -> Json:
    """The JSON of one streaming request. `found`: the pictures by their path. `reasoning_of`: the name of the provider
    that wants its reasoning back, see `_reasoning`."""
    messages: list[Json] = []
    if prompt.system:
        messages.append({"role": "system", "content": whole_characters(prompt.system)})
    for message in repaired(prompt.messages):
        fields = _message(message, found or {})
        if reasoning_of is not None and message.role == "assistant":
            fields["reasoning_content"] = _reasoning(message, reasoning_of, model)
        messages.append(fields)
    body: Json = {
        "model": model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.tools:
        body["tools"] = [_tool(spec) for spec in prompt.tools]
    return body


def _message(message: Message, found: Mapping[str, Picture]) -> Json:
    images, text = pictures.split(message, found)
    text = whole_characters(text)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    if images:
        urls = (f"data:{picture.media_type};base64,{picture.data}" for picture in images)
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return {"role": message.role, "content": [{"type": "text", "text": text or " "}, *parts]}
    if not message.calls:
        return {"role": message.role, "content": text}
    return {"role": "assistant", "content": text or None, "tool_calls": [_call(call) for call in message.calls]}


def _reasoning(message: Message, provider: str, model: str) -> str:
    """What this very model thought before its calls; empty when it is not known, or another's."""
    own = message.reasoning or {}
    return str(own["text"]) if (own.get("provider"), own.get("model")) == (provider, model) else ""


def _call(call: ToolCall) -> Json:
    arguments = whole_characters(json.dumps(dict(call.args), ensure_ascii=False))
    return {"id": call.id, "type": "function", "function": {"name": tool_name(call.name), "arguments": arguments}}


def _tool(spec: ToolSpec) -> Json:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


class StreamReader:
    """Reads the events of one reply. `end()` gives usage and the `stop` chunk, nothing when no finish reason came.

    `secret` is kept out of the service's messages. `reasoning_of` (provider, model): what was thought before calls
    is wanted back, and comes as a chunk `reasoning`.
    """

    def __init__(self, secret: str = "", reasoning_of: tuple[str, str] | None = None) -> None:
        self._secret = secret
        self._reasoning_of = reasoning_of
        self._thought: list[str] = []
        self._reason = ""
        self._called = False
        self._counts: dict[str, int] = {}

    @property
    def finished(self) -> bool:
        """The reply is whole; only usage may still follow."""
        return bool(self._reason)

    @property
    def complete(self) -> bool:
        """The stream itself says when nothing follows."""
        return False

    def read(self, event: object) -> list[StreamChunk]:
        """The chunks of one event. Raises ProviderError for an error object and for a reply the service withheld."""
        fields = members(event)
        if fields.get("error") or fields.get("object") == "error":
            raise errors.refusal(None, fields, self._secret)
        if fields.get("usage") is not None:
            self._count(fields["usage"])
        chunks: list[StreamChunk] = []
        for choice in _objects(fields.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            chunks += self._delta(members(choice.get("delta")) or members(choice.get("message")))
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                if reason in _FAILED_STOPS:
                    raise errors.failure(_FAILED_STOPS[reason])
                self._reason = reason
        return chunks

    def end(self) -> list[StreamChunk]:
        """The last two chunks of a whole reply."""
        if not self._reason:
            return []
        stop = _STOPS.get(self._reason, "calls" if self._called else "end")
        last = [StreamChunk("usage", usage=self._usage()), StreamChunk("stop", text=stop)]
        if self._reasoning_of is not None and self._called:
            provider, model = self._reasoning_of
            own = {"provider": provider, "model": model, "text": "".join(self._thought)}
            last.insert(0, StreamChunk("reasoning", reasoning=own))
        return last

    def _delta(self, delta: Mapping[str, Any]) -> list[StreamChunk]:
        chunks: list[StreamChunk] = []
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thinking, str) and thinking:
            chunks.append(StreamChunk("thinking", text=thinking))
            self._thought.append(thinking)
        for name in ("content", "refusal"):
            content = delta.get(name)
            if content and (text := _text(content)):
                chunks.append(StreamChunk("text", text=text))
        for call in _objects(delta.get("tool_calls")):
            chunks.append(_fragment(call.get("index"), call.get("id"), members(call.get("function"))))
            self._called = True
        old_form = members(delta.get("function_call"))
        if old_form:
            chunks.append(_fragment(0, None, old_form))
            self._called = True
        return chunks

    def _count(self, usage: object) -> None:
        """Usage may come in several events and is never a sum: the last stated value of each field wins."""
        fields = members(usage)
        details = members(fields.get("prompt_tokens_details"))
        stated = {
            "prompt": fields.get("prompt_tokens"),
            "output": fields.get("completion_tokens"),
            "cached": details.get("cached_tokens", fields.get("prompt_cache_hit_tokens")),
            "written": details.get("cache_write_tokens"),
        }
        self._counts.update({name: n for name, n in stated.items() if isinstance(n, int) and n >= 0})

    def _usage(self) -> Usage:
        cached, written = self._counts.get("cached", 0), self._counts.get("written", 0)
        return Usage(
            input_tokens=max(0, self._counts.get("prompt", 0) - cached - written),
            output_tokens=self._counts.get("output", 0),
            cache_read_tokens=cached,
            cache_write_tokens=written,
            requests=1,
        )


def _fragment(index: object, call_id: object, function: Mapping[str, Any]) -> StreamChunk:
    arguments = function.get("arguments")
    whole = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None
    if whole is None and arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    name = function.get("name")
    return StreamChunk(
        "call",
        index=index if isinstance(index, int) else None,
        call_id=call_id if isinstance(call_id, str) and call_id else None,
        name=name if isinstance(name, str) and name else None,
        arguments=arguments if isinstance(arguments, str) else None,
        arguments_object=whole,
    )


def _text(content: object) -> str:
    """Text that comes as a string, or as a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in _objects(content)]
    return "".join(part for part in parts if isinstance(part, str))


def _objects(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    items = cast("list[Any]", value)
    return [item for item in items if isinstance(item, dict)]

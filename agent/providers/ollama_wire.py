"""Translates between our prompts and chunks and Ollama's own chat format: pure functions, no network.

Format: https://docs.ollama.com/api/chat. Calls come whole, mostly without ids; a result names its tool.
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
PROVIDER = "ollama"


def request_body(
    model: str, prompt: Prompt, found: Mapping[str, Picture] | None = None, context_tokens: int = 32_000
) -> Json:
    """The JSON of one streaming request. The context has to be asked for: the server's own default is small, and it
    cuts what is longer without a word."""
    messages: list[Json] = []
    if prompt.system:
        messages.append({"role": "system", "content": whole_characters(prompt.system)})
    names: dict[str, str] = {}
    for message in repaired(prompt.messages):
        names.update({call.id: tool_name(call.name) for call in message.calls})
        messages.append(_message(model, message, found or {}, names))
    body: Json = {"model": model, "messages": messages, "stream": True, "options": {"num_ctx": context_tokens}}
    if prompt.tools:
        body["tools"] = [_tool(spec) for spec in prompt.tools]
    return body


def _message(model: str, message: Message, found: Mapping[str, Picture], names: Mapping[str, str]) -> Json:
    images, text = pictures.split(message, found)
    fields: Json = {"role": message.role, "content": whole_characters(text)}
    if message.role == "tool":
        fields |= {"tool_name": names[message.call_id or ""], "tool_call_id": message.call_id}
    if images:
        fields["images"] = [picture.data for picture in images]
    if message.calls:
        fields["tool_calls"] = [_call(n, call) for n, call in enumerate(message.calls)]
    own = message.reasoning or {}
    if (own.get("provider"), own.get("model")) == (PROVIDER, model):
        fields["thinking"] = own["text"]
    return fields


def _call(index: int, call: ToolCall) -> Json:
    arguments = json.loads(whole_characters(json.dumps(dict(call.args), ensure_ascii=False)))
    return {"id": call.id, "function": {"index": index, "name": tool_name(call.name), "arguments": arguments}}


def _tool(spec: ToolSpec) -> Json:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


class StreamReader:
    """Reads the events of one reply. `end()` gives the last chunks, nothing when the server did not say `done`.
    `secret` is kept out of the service's messages; `model` goes with what was thought before calls."""

    def __init__(self, secret: str = "", model: str = "") -> None:
        self.complete = False
        self._secret = secret
        self._model = model
        self._reason = ""
        self._called = False
        self._thought: list[str] = []
        self._counts: dict[str, int] = {}

    @property
    def finished(self) -> bool:
        """The reply is whole; the last event says so and has the figures."""
        return self.complete

    def read(self, event: object) -> list[StreamChunk]:
        """The chunks of one event. Raises ProviderError for an error inside the stream."""
        fields = members(event)
        if fields.get("error"):
            raise errors.refusal(None, fields, self._secret)
        if self.complete:
            return []
        message = members(fields.get("message"))
        chunks: list[StreamChunk] = []
        for kind, name in (("thinking", "thinking"), ("text", "content")):
            text = message.get(name)
            if isinstance(text, str) and text:
                chunks.append(StreamChunk("thinking" if kind == "thinking" else "text", text=text))
                if kind == "thinking":
                    self._thought.append(text)
        calls = message.get("tool_calls")
        for call in cast("list[object]", calls) if isinstance(calls, list) else ():
            self._called = True
            chunks.append(_whole_call(members(call)))
        stated = {name: fields.get(name) for name in ("prompt_eval_count", "eval_count")}
        self._counts.update({name: n for name, n in stated.items() if isinstance(n, int) and n >= 0})
        if fields.get("done") is True:
            self.complete = True
            self._reason = str(fields.get("done_reason") or "stop")
        return chunks

    def end(self) -> list[StreamChunk]:
        """The last chunks of a whole reply."""
        if not self.complete:
            return []
        chunks: list[StreamChunk] = []
        if self._called and self._thought:
            own = {"provider": PROVIDER, "model": self._model, "text": "".join(self._thought)}
            chunks.append(StreamChunk("reasoning", reasoning=own))
        # The server counts the prompt whole, whatever it had kept of it.
        usage = Usage(self._counts.get("prompt_eval_count", 0), self._counts.get("eval_count", 0), requests=1)
        stop = "length" if self._reason == "length" else "calls" if self._called else "end"
        return [*chunks, StreamChunk("usage", usage=usage), StreamChunk("stop", text=stop)]


def _whole_call(call: Mapping[str, Any]) -> StreamChunk:
    """A call. Its index is left out: some versions give all calls of a reply the same, and each is whole anyway."""
    function = members(call.get("function"))
    arguments = function.get("arguments")
    call_id, name = call.get("id"), function.get("name")
    is_text = isinstance(arguments, str) and bool(arguments.strip())
    whole = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    if arguments is not None and not isinstance(arguments, (str, dict)):
        arguments, is_text = json.dumps(arguments), True
    return StreamChunk(
        "call",
        call_id=call_id if isinstance(call_id, str) and call_id else None,
        name=name if isinstance(name, str) and name else None,
        arguments=cast("str", arguments) if is_text else None,
        arguments_object=None if is_text else whole,
    )

"""A Messages server on a loopback port that answers by a script: see `stream_server`.

`text_reply`, `call_reply`, `error_reply` make whole replies; `block`, `message_start`, `message_delta` are events for
`named(...)`. `begun`, `half_call` and `broken` are the bytes of streams that do not end well. With `strict` it signs
the thinking it sends and takes it back only in the place it was thought in.
"""

from __future__ import annotations

import json
from typing import Any

from tests.fakes import stream_server
from tests.fakes.stream_server import Json, Reply, StreamServer, error_reply, sse
from tests.fakes.strict_api import check_messages

__all__ = ["error_reply"]
PROVIDER = "anthropic"
STOP: Json = {"type": "message_stop"}


class AnthropicServer(StreamServer):
    """Use as an async context manager."""

    path = "/v1/messages"
    base_path = ""

    def check(self, body: Json) -> None:
        check_messages(body)


Server = AnthropicServer


def named(*events: Json, end: str = "\n") -> bytes:
    """Events with their names, as the service sends them."""
    return sse(*events, end=end, named=True)


def message_start(**usage: int) -> Json:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}


def message_delta(reason: str | None, **usage: int) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    """The events of one content block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text_block(index: int, *pieces: str) -> list[Json]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def call_block(index: int, call_id: str, name: str, *pieces: str) -> list[Json]:
    start: Json = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def thinking_block(index: int, text: str, signature: str) -> list[Json]:
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": text}] if text else []
    deltas.append({"type": "signature_delta", "signature": signature})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def whole(*events: Json, reason: str = "end_turn", **usage: int) -> Reply:
    """A whole answer."""
    figures = usage or {"output_tokens": 5}
    start = message_start(input_tokens=10, output_tokens=1)
    return Reply((named(start, {"type": "ping"}, *events, message_delta(reason, **figures), STOP),))


def text_reply(text: str, finish: str = "end_turn") -> Reply:
    """A whole answer of text, a word a chunk."""
    words = text.split(" ")
    return whole(*text_block(0, *(word if n == 0 else f" {word}" for n, word in enumerate(words))), reason=finish)


def call_reply(*calls: tuple[str, str, Json], text: str = "", thought: str = "", signed: str = "") -> Reply:
    """A whole answer that calls tools: (id, name, arguments) each; the arguments come in two fragments."""
    events: list[Json] = []
    if thought or signed:
        events += thinking_block(0, thought, signed)
    if text:
        events += text_block(1, text)
    for index, (call_id, name, arguments) in enumerate(calls, 2):
        raw = json.dumps(arguments, ensure_ascii=False)
        events += call_block(index, call_id, name, raw[: len(raw) // 2], raw[len(raw) // 2 :])
    return whole(*events, reason="tool_use")


def cut_call(name: str, arguments: str, finish: str = "length") -> Reply:
    """A whole stream whose one call has these arguments, good or bad."""
    reason = {"length": "max_tokens", "tool_calls": "tool_use"}[finish]
    return whole(*call_block(0, "cut", name, arguments), reason=reason)


def plain_document(text: str) -> Reply:
    """The answer of a server that does not stream."""
    body: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}]}
    usage = {"input_tokens": 10, "output_tokens": 5}
    return stream_server.document({**body, "stop_reason": "end_turn", "usage": usage})


def begun(text: str) -> bytes:
    """A stream that began to say something."""
    return named(message_start(input_tokens=10, output_tokens=1), *text_block(0, text)[:-1])


def half_call() -> bytes:
    """A stream that began to call a tool."""
    return named(message_start(input_tokens=10), *call_block(0, "c1", "memory_search", '{"query": "de')[:-1])


def broken(message: str) -> bytes:
    """An error inside the stream."""
    return named({"type": "error", "error": {"type": "overloaded_error", "message": message}})


def small() -> Reply:
    """A short stream with all there is: text, a call, figures."""
    call: Json = {"type": "tool_use", "id": "c1", "name": "memory_search"}
    delta: Json = {"type": "input_json_delta", "partial_json": '{"query":"ق"}'}
    usage = {"input_tokens": 10, "output_tokens": 5}
    events: list[Json] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "é😀"}},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": delta},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
    ]
    return Reply((sse(*events, STOP),))

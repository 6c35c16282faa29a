"""A chat-completions server on a loopback port that answers by a script: see `stream_server`.

`text_reply`, `call_reply`, `error_reply` make whole replies; `delta` and `usage` are events for `sse(...)`. `begun`,
`half_call` and `broken` are the bytes of streams that do not end well.
"""

from __future__ import annotations

import json
from typing import Any

from tests.fakes import stream_server
from tests.fakes.stream_server import (
    DROP,
    HANG,
    RELEASE,
    WAIT_FIRST,
    Json,
    Reply,
    Request,
    StreamServer,
    error_reply,
    sse,
)
from tests.fakes.strict_api import check_chat_completions

__all__ = ["DROP", "HANG", "RELEASE", "WAIT_FIRST", "OpenAiServer", "Reply", "Request", "error_reply", "sse"]
PROVIDER = "openai"


class OpenAiServer(StreamServer):
    """Use as an async context manager."""

    def check(self, body: Json) -> None:
        check_chat_completions(body)


Server = OpenAiServer


def delta(finish: str | None = None, **fields: Any) -> Json:
    """One chunk of a reply with this `delta`."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def usage(prompt_tokens: int = 10, completion_tokens: int = 5, cached_tokens: int = 0) -> Json:
    """The chunk with the figures, as the service sends it after the finish reason."""
    counts = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }
    return {**delta(), "choices": [], "usage": counts}


def text_reply(text: str, finish: str = "stop") -> Reply:
    """A whole answer of text, a word a chunk."""
    words = text.split(" ")
    pieces = [word if n == 0 else f" {word}" for n, word in enumerate(words)]
    return Reply((sse(*(delta(content=piece) for piece in pieces), delta(finish), usage(), "[DONE]"),))


def call_reply(*calls: tuple[str, str, Json], text: str = "", thought: str = "") -> Reply:
    """A whole answer that calls tools: (id, name, arguments) each; the arguments come in two fragments."""
    events: list[Json] = [delta(reasoning_content=thought)] if thought else []
    events += [delta(content=text)] if text else []
    for index, (call_id, name, arguments) in enumerate(calls):
        raw = json.dumps(arguments, ensure_ascii=False)
        head: Json = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(delta(tool_calls=[head]))
        events += [
            delta(tool_calls=[{"index": index, "function": {"arguments": part}}])
            for part in (raw[: len(raw) // 2], raw[len(raw) // 2 :])
        ]
    return Reply((sse(*events, delta("tool_calls"), usage(), "[DONE]"),))


def cut_call(name: str, arguments: str, finish: str = "length") -> Reply:
    """A whole stream whose one call has these arguments, good or bad."""
    call = {"index": 0, "id": "cut", "type": "function", "function": {"name": name, "arguments": arguments}}
    return Reply((sse(delta(tool_calls=[call]), delta(finish), usage(), "[DONE]"),))


def plain_document(text: str) -> Reply:
    """The answer of a server that does not stream."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    counts = {"prompt_tokens": 10, "completion_tokens": 5}
    return stream_server.document({"object": "chat.completion", "choices": [choice], "usage": counts})


def begun(text: str) -> bytes:
    """A stream that began to say something."""
    return sse(delta(content=text))


def half_call() -> bytes:
    """A stream that began to call a tool."""
    call = {"index": 0, "id": "c1", "function": {"name": "memory_search", "arguments": '{"query": "de'}}
    return sse(delta(tool_calls=[call]))


def broken(message: str) -> bytes:
    """An error inside the stream."""
    return sse({"choices": [], "error": {"message": message, "code": 502}}, "[DONE]")


def small() -> Reply:
    """A short stream with all there is: text, a call, figures."""
    call = {"index": 0, "id": "c1", "function": {"name": "memory_search", "arguments": '{"query":"ق"}'}}
    figures = {"prompt_tokens": 10, "completion_tokens": 5}
    choice: Json = {"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    events: list[Json] = [{"choices": [{"delta": {"content": "é😀"}}]}, {"choices": [choice], "usage": figures}]
    return Reply((sse(*events, "[DONE]"),))

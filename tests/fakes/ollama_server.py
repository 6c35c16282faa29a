"""An Ollama server on a loopback port that answers by a script: see `stream_server`.

`text_reply`, `call_reply`, `error_reply` make whole replies; `line` and `last` are events for `lines(...)`. `begun`,
`half_call` and `broken` are the bytes of streams that do not end well. It says that its model sees pictures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.fakes import stream_server
from tests.fakes.stream_server import Json, Reply, StreamServer
from tests.fakes.strict_api import check_ollama

PROVIDER = "ollama"
HEADERS = {"Content-Type": "application/x-ndjson"}


class OllamaServer(StreamServer):
    """Use as an async context manager."""

    path = "/api/{what}"
    base_path = ""

    def check(self, body: Json) -> None:
        if "messages" in body:
            check_ollama(body)


Server = OllamaServer


def lines(*events: Json, end: str = "\n") -> bytes:
    """A JSON object a line."""
    return "".join(f"{json.dumps(event, ensure_ascii=False)}{end}" for event in events).encode()


def line(**message: Any) -> Json:
    """One event of a reply with this message."""
    return {"model": "fake", "created_at": "2026-11-30T12:00:00Z", "message": {"role": "assistant", **message}}


def last(reason: str = "stop", **figures: int) -> Json:
    """The event that ends a reply."""
    counts = figures or {"prompt_eval_count": 10, "eval_count": 5}
    return {**line(content=""), "done": True, "done_reason": reason, **counts}


def call(name: str, arguments: Any, **fields: Any) -> Json:
    """A call as it stands in `tool_calls`."""
    return {**fields, "function": {"name": name, "arguments": arguments}}


def whole(*events: Json, reason: str = "stop") -> Reply:
    """A whole answer."""
    return Reply((lines(*({**event, "done": False} for event in events), last(reason)),), headers=HEADERS)


def text_reply(text: str, finish: str = "stop") -> Reply:
    """A whole answer of text, a word a chunk."""
    words = text.split(" ")
    return whole(*(line(content=word if n == 0 else f" {word}") for n, word in enumerate(words)), reason=finish)


def call_reply(*calls: tuple[str, str, Json], text: str = "", thought: str = "") -> Reply:
    """A whole answer that calls tools: (id, name, arguments) each. Ids do not come with them."""
    events = [line(content="", thinking=thought)] if thought else []
    events += [line(content=text)] if text else []
    return whole(*events, line(content="", tool_calls=[call(name, arguments) for _, name, arguments in calls]))


def cut_call(name: str, arguments: str, finish: str = "length") -> Reply:
    """A whole stream whose one call has these arguments, good or bad."""
    return whole(line(content="", tool_calls=[call(name, arguments)]), reason=finish)


def plain_document(text: str) -> Reply:
    """The answer of a server that does not stream."""
    return stream_server.document({**last(), **line(content=text)})


def error_reply(status: int, message: str = "refused", headers: Mapping[str, str] | None = None, **_: Any) -> Reply:
    """A refusal, as the server sends it."""
    body = json.dumps({"error": message}).encode()
    return Reply((body,), status, {"Content-Type": "application/json", **(headers or {})})


def begun(text: str) -> bytes:
    """A stream that began to say something."""
    return lines({**line(content=text), "done": False})


def half_call() -> bytes:
    """A stream that called a tool and is not done: here a call comes whole."""
    return lines({**line(content="", tool_calls=[call("memory_search", {"query": "dentist"})]), "done": False})


def broken(message: str) -> bytes:
    """An error inside the stream."""
    return lines({"error": message})


def small() -> Reply:
    """A short stream with all there is: text, a call, figures."""
    calls = [call("memory_search", {"query": "ق"})]
    events: list[Json] = [{"message": {"content": "é😀"}}, {"message": {"tool_calls": calls}}]
    return Reply((lines(*events, {"done": True, "prompt_eval_count": 10, "eval_count": 5}),), headers=HEADERS)

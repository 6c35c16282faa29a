"""How fast the arguments of a call are read when they stream in very small pieces."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from agent.providers import anthropic_stream, openai_wire
from agent.providers.events import ServerSentEvents
from agent.providers.remote import Reader
from agent.types import StreamChunk
from agent.wernicke import CallCollector
from tests.bench.figures import figure
from tests.fakes import anthropic_server, openai_server

PIECE_CHARS = 4
READ_BYTES = 16_384


def figures(chars: int) -> list[dict[str, Any]]:
    """CPU seconds for one call with `chars` of text in its arguments: from the chunks, and from the bytes of two
    services; beside these what it costs to parse the JSON of their events and nothing else."""
    text = json.dumps({"text": "x" * chars})
    pieces = [text[n : n + PIECE_CHARS] for n in range(0, len(text), PIECE_CHARS)]
    head: Any = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    calls = [head, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    events = [openai_server.delta(tool_calls=[call]) for call in calls]
    openai = openai_server.sse(*events, openai_server.delta("tool_calls"), "[DONE]")
    anthropic = anthropic_server.named(
        *anthropic_server.call_block(0, "c", "f", *pieces), anthropic_server.message_delta("tool_use")
    )
    return [
        figure("stream_arguments", _from_chunks(pieces, chars)),
        figure("stream_arguments_openai", *_from_bytes(openai, openai_wire.StreamReader(), chars)),
        figure("stream_arguments_anthropic", *_from_bytes(anthropic, anthropic_stream.StreamReader(), chars)),
    ]


def _from_chunks(pieces: list[str], chars: int) -> float:
    collector = CallCollector()

    def work() -> None:
        collector.add(StreamChunk("call", index=0, call_id="c", name="f"))
        for piece in pieces:
            collector.add(StreamChunk("call", index=0, arguments=piece))
        assert [len(call.args["text"]) for call in collector.calls()] == [chars]

    return _seconds(work)


def _from_bytes(data: bytes, reader: Reader, chars: int) -> tuple[float, float]:
    collector, decoder = CallCollector(), ServerSentEvents()

    def work() -> None:
        for n in range(0, len(data), READ_BYTES):
            for event in decoder.feed(data[n : n + READ_BYTES]):
                for chunk in reader.read(event):
                    collector.add(chunk)
        for chunk in reader.end():
            collector.add(chunk)
        assert [len(call.args["text"]) for call in collector.calls()] == [chars]

    def bare() -> None:
        for line in data.splitlines():
            if line.startswith(b"data: {"):
                json.loads(line[6:])

    return _seconds(work), _seconds(bare)


def _seconds(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun

"""However the network cuts a stream, the reply is the same; and no bytes at all do harm.

Longer: `python -m pytest tests/properties/test_stream_readers.py --hypothesis-profile=long --timeout=0`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.providers import anthropic_stream, ollama_wire, openai_wire
from agent.providers.events import Decoder, JsonLines, ServerSentEvents
from agent.providers.remote import Reader
from agent.types import ProviderError, StreamChunk
from agent.wernicke import CallCollector
from tests.fakes import anthropic_server, ollama_server, openai_server
from tests.fakes.stream_server import Reply

Outcome = tuple[Any, ...]
Form = tuple[Callable[[], Decoder], Callable[[], Reader], Any]
FORMS: dict[str, Form] = {
    "openai": (ServerSentEvents, openai_wire.StreamReader, openai_server),
    "anthropic": (ServerSentEvents, anthropic_stream.StreamReader, anthropic_server),
    "ollama": (JsonLines, ollama_wire.StreamReader, ollama_server),
}
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" "), min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(WORDS, WORDS | st.integers() | st.lists(WORDS, max_size=2), max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(["a", "b"]), ARGUMENTS), max_size=3)
CUTS = st.lists(st.integers(0, 10_000), max_size=12)


def read(form: Form, pieces: Sequence[bytes]) -> Outcome:
    """What all of a reply comes to, as a provider reads it: text, calls, figures and end, or the fault."""
    make_decoder, make_reader, _ = form
    decoder, reader = make_decoder(), make_reader()
    chunks: list[StreamChunk] = []
    try:
        for piece in pieces:
            for event in decoder.feed(piece):
                chunks += reader.read(event)
        for event in decoder.end():
            chunks += reader.read(event)
    except ProviderError as error:
        return ("error", str(error))
    except ValueError:
        if not reader.finished:
            return ("garbled",)
    chunks += reader.end()
    collector = CallCollector()
    for chunk in chunks:
        collector.add(chunk)
    kinds = ("text", "thinking", "stop")
    said = ["".join(chunk.text for chunk in chunks if chunk.kind == kind) for kind in kinds]
    return (*said, collector.calls(), [chunk.usage or chunk.reasoning for chunk in chunks if not chunk.text][-2:])


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    marks = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[a:b] for a, b in pairwise(marks)]


def replies(form: Form, words: list[str], calls: list[tuple[str, dict[str, Any]]], thought: str) -> Reply:
    service = form[2]
    if not calls:
        return service.text_reply(" ".join(words))
    named = [(f"c{n}", name, args) for n, (name, args) in enumerate(calls)]
    return service.call_reply(*named, text=" ".join(words), thought=thought)


@given(st.sampled_from(sorted(FORMS)), st.lists(WORDS, max_size=5), CALLS, st.sampled_from(["", "hm"]), CUTS)
@settings(deadline=None)
def test_the_cuts_of_a_reply_do_not_matter(
    name: str, words: list[str], calls: list[tuple[str, dict[str, Any]]], thought: str, cuts: list[int]
) -> None:
    form = FORMS[name]
    data = replies(form, words, calls, thought).data
    whole = read(form, [data])
    assert whole[0] == " ".join(words)
    assert [(call.name, call.args, call.fault) for call in whole[3]] == [(name, args, None) for name, args in calls]
    assert read(form, cut(data, cuts)) == whole


@given(st.sampled_from(sorted(FORMS)), st.lists(WORDS, max_size=5), CALLS, st.integers(0, 10_000))
@settings(deadline=None)
def test_a_reply_that_ends_early_is_no_whole_reply(
    name: str, words: list[str], calls: list[tuple[str, dict[str, Any]]], place: int
) -> None:
    form = FORMS[name]
    data = replies(form, words, calls, "").data
    whole, half = read(form, [data]), read(form, [data[: place % len(data)]])
    stopped = len(half) > 2 and bool(half[2])
    # Whole it is only when nothing but the end of the stream, or figures that follow, is missing.
    assert not stopped or (half[:4] == whole[:4])


LINES = st.sampled_from(
    [
        b"data: ", b"data:", b"event: error", b"event: x", b": ping", b"\r", b"\n", b"\r\n", b"\n\n", b"[DONE]", b"{",
        b"}", b'{"a": 1}', b'"', b"[", b"\xef\xbb\xbf", b"\xff", "é".encode(), b"null", b"1", b" ",
    ]
)  # fmt: skip


@given(st.sampled_from([ServerSentEvents, JsonLines]), st.lists(LINES | st.binary(max_size=4), max_size=24), CUTS)
@settings(deadline=None)
def test_any_bytes_give_the_same_events_however_they_are_cut(
    decoder: type[ServerSentEvents] | type[JsonLines], parts: list[bytes], cuts: list[int]
) -> None:
    def decoded(pieces: Sequence[bytes]) -> list[object]:
        found: list[object] = []
        one = decoder()
        try:
            for piece in pieces:
                found.extend(one.feed(piece))
            found.extend(one.end())
        except ValueError:
            found.append("fault")
        return [json.dumps(event) for event in found]

    data = b"".join(parts)
    assert decoded(cut(data, cuts)) == decoded([data])


KEYS = st.sampled_from(
    [
        "type", "index", "delta", "content_block", "choices", "message", "content", "text", "thinking", "usage",
        "error", "tool_calls", "function", "name", "arguments", "id", "partial_json", "stop_reason", "finish_reason",
        "done", "done_reason", "input_tokens", "prompt_tokens", "signature",
        "input", "reasoning_content", "eval_count", "code",
    ]
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 600) | st.floats(allow_nan=False)
    | st.sampled_from(
        [
            "", "x", "text", "tool_use", "thinking", "text_delta", "input_json_delta", "content_block_start",
            "content_block_delta", "content_block_stop", "message", "message_start", "message_delta", "message_stop",
            "error", "stop", "tool_calls", "length", '{"a":', "1}", "signature_delta", "end_turn",
        ]
    )
)  # fmt: skip
EVENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)


def valid(form: Form) -> list[object]:
    """Events of three good replies."""
    make_decoder, _, service = form
    calls = service.call_reply(("c", "f", {"q": [1]}), text="so", thought="hm")
    found: list[object] = []
    for reply in (calls, service.text_reply("a b"), service.plain_document("x")):
        decoder = make_decoder()
        found += [*decoder.feed(reply.data), *decoder.end()]
    return found


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, list[object]]:
    """Good events of a service with something else in some places."""
    name = draw(st.sampled_from(sorted(FORMS)))
    events: list[Any] = json.loads(json.dumps(valid(FORMS[name])))
    for _ in range(draw(st.integers(0, 4))):
        inside: Any = events
        while True:
            keys: Any = sorted(inside) if hasattr(inside, "keys") else range(len(inside))
            key = draw(st.sampled_from(keys))
            next_one: Any = inside[key]
            if not next_one or type(next_one) not in (dict, list) or draw(st.integers(0, 3)) == 0:
                break
            inside = next_one
        inside[key] = draw(EVENTS)
    return name, events


@given(spoilt() | st.tuples(st.sampled_from(sorted(FORMS)), st.lists(EVENTS, max_size=6)))
@settings(deadline=None)
def test_any_events_give_chunks_or_one_of_our_errors(given_events: tuple[str, list[object]]) -> None:
    name, events = given_events
    reader = FORMS[name][1]()
    collector = CallCollector()
    try:
        for event in events:
            for chunk in reader.read(event):
                collector.add(chunk)
        chunks = reader.end()
    except ProviderError:
        return
    assert bool(chunks) == reader.finished
    for chunk in chunks:
        collector.add(chunk)
    json.dumps([dict(call.args) for call in collector.calls()])

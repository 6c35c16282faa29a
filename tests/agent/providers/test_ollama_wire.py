"""Ollama's own format: what is sent, and what is read of what its versions really send."""

from __future__ import annotations

from typing import Any

import pytest

from agent.providers.ollama_wire import StreamReader, request_body
from agent.types import Message, Prompt, ProviderError, StreamChunk, ToolCall, ToolSpec, Usage
from agent.wernicke import CallCollector
from tests.fakes.ollama_server import call, last, line
from tests.fakes.strict_api import check_ollama

SEARCH = ToolSpec("f", "Searches.", {"type": "object", "properties": {}})


def read(*events: Any) -> list[StreamChunk]:
    reader = StreamReader()
    return [chunk for event in events for chunk in reader.read(event)] + reader.end()


def calls_of(*events: Any) -> tuple[ToolCall, ...]:
    collector = CallCollector()
    for chunk in read(*events):
        collector.add(chunk)
    return collector.calls()


@pytest.mark.parametrize("arguments", [{"q": "x"}, '{"q": "x"}'])
def test_arguments_come_as_an_object_or_as_a_string_and_the_id_is_made_up(arguments: Any) -> None:
    calls = calls_of(line(content="", tool_calls=[call("f", arguments)]), last())
    assert calls == (ToolCall("call_1", "f", {"q": "x"}),)
    messages = (Message("user", "a"), Message("assistant", "", calls), Message("tool", "found", call_id="call_1"))
    body = request_body("m", Prompt("Be brief.", messages, (SEARCH,)))
    check_ollama(body)
    function = {"index": 0, "name": "f", "arguments": {"q": "x"}}
    assert body["messages"][2]["tool_calls"] == [{"id": "call_1", "function": function}]
    assert body["messages"][3] == {"role": "tool", "content": "found", "tool_name": "f", "tool_call_id": "call_1"}


@pytest.mark.parametrize("arguments", [None, "", "  ", {}, "{}", "null"])
def test_a_tool_without_arguments_is_called_with_none(arguments: Any) -> None:
    assert calls_of(line(tool_calls=[call("f", arguments)]), last()) == (ToolCall("call_1", "f", {}),)


@pytest.mark.parametrize("together", [True, False])
def test_parallel_calls_that_all_have_index_zero_stay_apart(together: bool) -> None:
    calls: list[Any] = [call("f", {"p": n}) for n in (1, 2)]
    for one in calls:
        one["function"]["index"] = 0
    events = [line(tool_calls=calls)] if together else [line(tool_calls=[one]) for one in calls]
    assert [(c.name, c.args) for c in calls_of(*events, last())] == [("f", {"p": 1}), ("f", {"p": 2})]


def test_same_calls_without_arguments_are_two() -> None:
    assert len(calls_of(line(tool_calls=[call("f", None), call("f", None)]), last())) == 2


def test_ids_that_come_are_kept() -> None:
    assert calls_of(line(tool_calls=[call("f", {}, id="c9")]), last()) == (ToolCall("c9", "f", {}),)


@pytest.mark.parametrize("arguments", [[1], 7, "[1]", "not json"])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    (made,) = calls_of(line(tool_calls=[call("f", arguments)]), last())
    assert made.fault is not None
    assert made.args == {}


def test_a_stream_that_is_not_done_has_no_stop() -> None:
    assert [chunk.kind for chunk in read(line(content="Hel"))] == ["text"]


@pytest.mark.parametrize(("reason", "stop"), [("stop", "end"), ("length", "length"), ("", "end")])
def test_the_reason_for_the_end_in_our_words(reason: str, stop: str) -> None:
    chunks = read(line(content="a"), last(reason, prompt_eval_count=7, eval_count=3))
    assert chunks[-2:] == [StreamChunk("usage", usage=Usage(7, 3, 0, 0, 1)), StreamChunk("stop", text=stop)]


def test_an_error_inside_the_stream_is_an_error() -> None:
    with pytest.raises(ProviderError, match="unexpectedly stopped") as caught:
        read(line(content="a"), {"error": "model runner has unexpectedly stopped"})
    assert caught.value.transient

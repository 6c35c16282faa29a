"""The chat-completions format as servers really send it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.providers.openai_wire import StreamReader, request_body
from agent.types import Message, Prompt, StreamChunk, ToolCall, Usage
from agent.wernicke import CallCollector
from tests.fakes.openai_server import delta, usage


def read(*events: Any) -> list[StreamChunk]:
    reader = StreamReader()
    return [chunk for event in events for chunk in reader.read(event)] + reader.end()


def calls_of(*events: Any) -> tuple[ToolCall, ...]:
    collector = CallCollector()
    for chunk in read(*events):
        collector.add(chunk)
    return collector.calls()


def call_delta(finish: str | None = None, *, index: Any = 0, call_id: Any = None, **function: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"function": function}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call["id"] = call_id
    return delta(finish, tool_calls=[call])


def test_the_last_stated_figure_of_each_field_counts() -> None:
    chunks = read(
        {**delta(content="a"), "usage": {"prompt_tokens": 5210, "completion_tokens": 0}},
        {**delta("stop"), "usage": None},
        usage(5219, 311, 5207),
    )
    assert chunks[-2].usage == Usage(input_tokens=12, output_tokens=311, cache_read_tokens=5207, requests=1)


def test_a_call_without_figures_counts_as_a_request() -> None:
    assert read(delta("stop"))[0].usage == Usage(requests=1)


def test_calls_without_index_and_whole_arguments_as_an_object_are_read() -> None:
    calls = calls_of(
        call_delta(index=None, call_id="c1", name="f", arguments="{}"),
        call_delta("tool_calls", index=None, call_id="c2", name="g", arguments={"q": 1}),
    )
    assert calls == (ToolCall("c1", "f", {}), ToolCall("c2", "g", {"q": 1}))


@pytest.mark.parametrize("arguments", [{"arguments": ""}, {"arguments": None}, {"arguments": "  "}, {}])
def test_a_tool_without_arguments_goes_back_as_an_empty_object(arguments: dict[str, Any]) -> None:
    (call,) = calls_of(call_delta("tool_calls", call_id="c1", name="usage_report", **arguments))
    assert call == ToolCall("c1", "usage_report", {})
    body = request_body("m", Prompt("", (Message("assistant", "", (call,)), Message("tool", "ok", call_id="c1"))))
    assert body["messages"][0]["tool_calls"][0]["function"] == {"name": "usage_report", "arguments": "{}"}


def test_a_refused_call_goes_back_as_valid_json_with_its_result() -> None:
    (call,) = calls_of(call_delta("tool_calls", call_id="A", name="f", arguments='{"a":1}{"b":2}'))
    assert call.fault is not None
    body = request_body("m", Prompt("", (Message("assistant", "", (call,)), Message("tool", call.fault, call_id="A"))))
    assert body["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert body["messages"][1]["tool_call_id"] == "A"


def test_the_old_form_of_a_call_is_read() -> None:
    calls = calls_of(
        delta(function_call={"name": "f", "arguments": '{"q"'}),
        delta("function_call", function_call={"arguments": ":1}"}),
    )
    assert calls == (ToolCall("call_1", "f", {"q": 1}),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_and_never_text(field: str) -> None:
    chunks = read(delta(**{field: "hm"}), delta("stop", content="Yes"))
    assert [(chunk.kind, chunk.text) for chunk in chunks[:2]] == [("thinking", "hm"), ("text", "Yes")]


@pytest.mark.parametrize(
    ("reason", "stop"), [("stop", "end"), ("length", "length"), ("tool_calls", "calls"), ("eos", "end")]
)
def test_the_reason_for_the_end_in_our_words(reason: str, stop: str) -> None:
    assert read(delta(reason))[-1] == StreamChunk("stop", text=stop)


def test_an_end_called_stop_after_calls_means_calls() -> None:
    assert read(call_delta("stop", call_id="c", name="f", arguments="{}"))[-1].text == "calls"


def test_text_may_come_as_parts_and_further_choices_are_left_out() -> None:
    event = delta(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    event["choices"].append({"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"})
    assert read(event) == [StreamChunk("text", text="ab")]


@pytest.mark.parametrize(
    "event",
    [
        None, 7, "x", [], {}, {"choices": None}, {"choices": [None, 7]}, {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"tool_calls": [None, {"function": None}], "content": 7}}]},
        {"choices": [], "usage": "none"},
    ],
)  # fmt: skip
def test_odd_events_do_no_harm(event: Any) -> None:
    assert [chunk for chunk in read(event, delta("stop")) if chunk.kind == "text"] == []

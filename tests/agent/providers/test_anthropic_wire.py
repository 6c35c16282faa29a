"""The Messages format: what is sent, and what is read of what servers really send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.providers.anthropic_stream import StreamReader
from agent.providers.anthropic_wire import request_body
from agent.types import Message, Prompt, ProviderError, StreamChunk, ToolCall, ToolSpec, Usage
from agent.wernicke import CallCollector
from tests.fakes.anthropic_server import (
    STOP,
    block,
    call_block,
    message_delta,
    message_start,
    text_block,
    thinking_block,
)
from tests.fakes.strict_api import check_messages

SEARCH = ToolSpec("search", "Searches.", {"type": "object", "properties": {}})
SAVE = ToolSpec("save", "Saves.", {"type": "object", "properties": {}})
END = message_delta("end_turn")


def read(*events: Any) -> list[StreamChunk]:
    reader = StreamReader()
    return [chunk for event in events for chunk in reader.read(event)] + reader.end()


def calls_of(*events: Any) -> tuple[ToolCall, ...]:
    collector = CallCollector()
    for chunk in read(*events):
        collector.add(chunk)
    return collector.calls()


def usage_of(*events: Any) -> Usage | None:
    return next(chunk.usage for chunk in read(*events) if chunk.usage)


def body_of(*messages: Message, system: str = "Be brief.", tools: tuple[ToolSpec, ...] = (SEARCH,)) -> dict[str, Any]:
    body, _ = request_body("m", Prompt(system, messages, tools))
    check_messages(body)
    return body


def test_the_input_of_a_call_is_read_when_its_pieces_are_whole() -> None:
    pieces = ('{"path": "a.', 'md", "te', 'xt": "hi"}')
    calls = calls_of(*call_block(1, "t1", "memory_save", *pieces), message_delta("tool_use"), STOP)
    assert calls == (ToolCall("t1", "memory_save", {"path": "a.md", "text": "hi"}),)


def test_input_that_comes_whole_at_the_beginning_counts() -> None:
    start = {"type": "tool_use", "id": "t1", "name": "f", "input": {"q": 1}}
    assert calls_of(*block(0, start), message_delta("tool_use")) == (ToolCall("t1", "f", {"q": 1}),)


@pytest.mark.parametrize("pieces", [(), ("",), ("{}",), ("  ",)])
def test_a_tool_without_parameters_is_called_with_none(pieces: tuple[str, ...]) -> None:
    assert calls_of(*call_block(0, "t1", "f", *pieces), message_delta("tool_use")) == (ToolCall("t1", "f", {}),)


def test_parallel_calls_stay_apart_also_when_all_have_one_index() -> None:
    events = [*call_block(0, "t1", "f", '{"p":1}'), *call_block(0, "t2", "f", '{"p":2}')]
    assert calls_of(*events, message_delta("tool_use")) == (
        ToolCall("t1", "f", {"p": 1}),
        ToolCall("t2", "f", {"p": 2}),
    )


def test_tools_of_the_service_itself_are_no_calls() -> None:
    start: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    events = block(0, start, {"type": "input_json_delta", "partial_json": '{"q":1}'})
    assert calls_of(*events, END) == ()


def test_a_call_cut_off_by_the_token_limit_is_not_run() -> None:
    (call,) = calls_of(*call_block(0, "t1", "f", '{"a":1}'), message_delta("max_tokens"))
    assert call.cut_off


def test_later_figures_replace_earlier_ones_and_are_not_added() -> None:
    start = message_start(input_tokens=31, cache_read_input_tokens=120, output_tokens=1)
    for end in (
        message_delta("end_turn", input_tokens=31, cache_read_input_tokens=120, output_tokens=52),
        message_delta("end_turn", output_tokens=52),
    ):
        assert usage_of(start, end, STOP) == Usage(31, 52, 120, 0, 1)


def test_the_split_of_the_cache_may_come_only_at_the_end() -> None:
    start = message_start(input_tokens=5210, output_tokens=0)
    end = message_delta("end_turn", input_tokens=12, cache_read_input_tokens=5207, output_tokens=311)
    assert usage_of(start, end, STOP) == Usage(12, 311, 5207, 0, 1)


def test_tokens_written_to_the_cache_are_counted() -> None:
    start = message_start(input_tokens=3, cache_creation_input_tokens=900, output_tokens=1)
    assert usage_of(start, END) == Usage(3, 1, 0, 900, 1)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"), ("stop_sequence", "end"), ("tool_use", "calls"), ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
    ],
)  # fmt: skip
def test_the_reason_for_the_end_in_our_words(reason: str, stop: str) -> None:
    assert read(*text_block(0, "a"), message_delta(reason))[-1] == StreamChunk("stop", text=stop)


def test_a_message_that_stops_without_a_reason_is_not_whole() -> None:
    assert [chunk.kind for chunk in read(*text_block(0, "a"), message_delta(None), STOP)] == ["text"]


def test_a_withheld_answer_is_no_answer() -> None:
    with pytest.raises(ProviderError) as caught:
        read(*text_block(0, "a"), message_delta("refusal"))
    assert not caught.value.transient


def test_thinking_is_neither_text_nor_sent_back_without_its_signature() -> None:
    events = [*thinking_block(0, "hm", ""), *call_block(1, "t1", "f", "{}")]
    assert [chunk.kind for chunk in read(*events, message_delta("tool_use"))] == [
        "thinking",
        "call",
        "call",
        "usage",
        "stop",
    ]


def test_the_request_has_what_the_service_wants() -> None:
    call = ToolCall("c1", "search", {"q": "مرحبا \ud83d"})
    body = body_of(
        Message("user", "hi"),
        Message("assistant", "Let me see.", (call,)),
        Message("tool", " ", call_id="c1"),
        Message("user", "and quickly"),
        Message("user", "please"),
    )
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "مرحبا �"}},
    ]
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text", "text"]


@pytest.mark.parametrize(
    "messages",
    [
        (Message("assistant", "I began."), Message("user", "hi")),
        (Message("user", "  "),),
        (Message("user", "a"), Message("assistant", "b"), Message("assistant", "c"), Message("user", "d")),
        (Message("user", "a"), Message("assistant", " \n"), Message("user", "d")),
        (Message("user", "a"), Message("assistant", "", (ToolCall("a.b", "no such", {}, "x"),)), Message("user", "d")),
    ],
)
def test_lists_a_strict_service_would_refuse_are_set_right(messages: tuple[Message, ...]) -> None:
    body_of(*messages, system="")


def marked(body: dict[str, Any]) -> list[int]:
    return [n for n, message in enumerate(body["messages"]) if "cache_control" in message["content"][-1]]


def test_what_stays_the_same_is_marked_and_what_changes_goes_last() -> None:
    history = (Message("user", "a"), Message("assistant", "b"))
    first = body_of(*history, Message("user", "now: 12:00 c"))
    assert marked(first) == [1]
    assert "cache_control" in first["tools"][-1]
    call = ToolCall("c1", "search", {})
    rounds = (Message("assistant", "", (call,)), Message("tool", "x", call_id="c1"))
    second = body_of(*history, Message("user", "now: 12:00 c"), *rounds)
    assert marked(second) == [1, 4]


def test_the_beginning_of_a_request_is_the_same_bytes_in_the_next_one() -> None:
    def prefix(body: dict[str, Any], messages: int) -> str:
        plain = json.dumps([body["tools"], body["system"], body["messages"][:messages]])
        return plain.replace(', "cache_control": {"type": "ephemeral"}', "")

    question = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    answered = (Message("assistant", "", (ToolCall("c1", "search", {}),)), Message("tool", "x", call_id="c1"))
    assert prefix(body_of(*question), 3) == prefix(body_of(*question, *answered), 3)


def test_a_tool_that_is_loaded_later_comes_behind_the_others() -> None:
    body = body_of(Message("user", "a"), tools=(SEARCH, SAVE))
    before = body_of(Message("user", "a"), tools=(SEARCH,))
    assert [tool["name"] for tool in body["tools"]] == ["search", "save"]
    assert {**before["tools"][0], "cache_control": None} == {**body["tools"][0], "cache_control": None}
    assert "cache_control" not in body["tools"][0]

"""Tool calls in the ways services send them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from agent.types import StreamChunk, ToolCall, ToolSpec
from agent.wernicke import CallCollector, Wernicke


def fragment(arguments: str | dict[str, Any] | None = None, **fields: Any) -> StreamChunk:
    if isinstance(arguments, dict):
        return StreamChunk("call", arguments_object=arguments, **fields)
    return StreamChunk("call", arguments=arguments, **fields)


def calls_of(*chunks: StreamChunk, taken: frozenset[str] = frozenset()) -> tuple[ToolCall, ...]:
    collector = CallCollector()
    for chunk in chunks:
        collector.add(chunk)
    return collector.calls(taken)


def spec(name: str = "f", **parameters: Any) -> ToolSpec:
    return ToolSpec(name, "a tool", {"type": "object", **parameters})


def test_arguments_in_pieces_are_read_once_they_are_whole() -> None:
    pieces = ('{"path": "a.', 'md", "te', 'xt": "hi"}')
    head = StreamChunk("call", index=1, call_id="t1", name="memory_save")
    calls = calls_of(head, *(fragment(piece, index=1) for piece in pieces))
    assert calls == (ToolCall("t1", "memory_save", {"path": "a.md", "text": "hi"}),)


def test_parallel_calls_that_all_have_index_zero_stay_apart() -> None:
    calls = calls_of(
        fragment('{"p":1}', index=0, call_id="c1", name="f"),
        fragment('{"p":2}', index=0, call_id="c2", name="f"),
    )
    assert calls == (ToolCall("c1", "f", {"p": 1}), ToolCall("c2", "f", {"p": 2}))


def test_parallel_calls_without_ids_and_with_one_index_get_distinct_ids() -> None:
    calls = calls_of(fragment('{"u":"a"}', index=0, name="f"), fragment('{"u":"b"}', index=0, name="f"))
    assert [(call.id, call.args) for call in calls] == [("call_1", {"u": "a"}), ("call_2", {"u": "b"})]
    assert all(call.fault is None for call in calls)


@pytest.mark.parametrize("pieces", [('{"a":1}{"b":2}',), ('{"a":1}', '{"b":2}')])
def test_one_call_with_two_objects_is_refused_and_leaves_valid_json(pieces: tuple[str, ...]) -> None:
    (call,) = calls_of(*(fragment(piece, index=0, call_id="A", name="f") for piece in pieces))
    assert call.id == "A"
    assert call.fault is not None
    assert call.args == {}


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    calls = calls_of(
        fragment("{", call_id="c1", name="f"),
        fragment("{}", call_id="c2", name="g"),
        fragment("}", call_id="c1"),
    )
    assert [(call.id, call.name, call.args, call.fault) for call in calls] == [
        ("c1", "f", {}, None),
        ("c2", "g", {}, None),
    ]


def test_fragments_with_neither_index_nor_id_belong_to_the_call_before() -> None:
    calls = calls_of(fragment('{"q"', name="f"), fragment(':"x"}'), fragment('{"q":"y"}', name="f"), fragment(name="g"))
    assert [(call.name, call.args) for call in calls] == [("f", {"q": "x"}), ("f", {"q": "y"}), ("g", {})]


def test_calls_by_index_may_arrive_interleaved() -> None:
    calls = calls_of(
        fragment('{"a', index=0, call_id="c1", name="f"),
        fragment('{"b', index=1, call_id="c2", name="g"),
        fragment('":1}', index=0),
        fragment('":2}', index=1),
    )
    assert [call.args for call in calls] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}", None])
def test_a_tool_without_arguments_runs_once_with_an_empty_object(arguments: str | None) -> None:
    (call,) = calls_of(fragment(arguments, index=0, call_id="c", name="usage_report"))
    assert call == ToolCall("c", "usage_report", {})


def test_arguments_come_as_an_object_or_as_a_string() -> None:
    as_object = calls_of(fragment({"q": "x"}, name="f"))
    as_string = calls_of(fragment('{"q":"x"}', name="f"))
    assert as_object == as_string == (ToolCall("call_1", "f", {"q": "x"}),)


def test_whole_calls_without_ids_are_each_a_call() -> None:
    calls = calls_of(fragment({"q": 1}, index=0, name="f"), fragment({"q": 2}, index=0, name="f"))
    assert [(call.id, call.args) for call in calls] == [("call_1", {"q": 1}), ("call_2", {"q": 2})]


@pytest.mark.parametrize(
    ("arguments", "stop"),
    [
        ('{"path":"n.md","text":"abc', "length"),
        ('{"path":"n.md","text":"abc', "calls"),
        ('{"path":"n.md","text":"abc"}', "length"),
    ],
)
def test_a_call_that_was_cut_off_is_not_run_and_says_so(arguments: str, stop: str) -> None:
    (call,) = calls_of(fragment(arguments, index=0, call_id="c", name="f"), StreamChunk("stop", text=stop))
    assert call.fault is not None
    assert "cut off" in call.fault
    assert call.cut_off
    assert call.args == {}


def test_only_the_last_call_was_cut_by_the_length_limit() -> None:
    calls = calls_of(
        fragment('{"a":1}', index=0, call_id="c1", name="f"),
        fragment('{"a":2', index=1, call_id="c2", name="f"),
        StreamChunk("stop", text="length"),
    )
    assert [call.fault is None for call in calls] == [True, False]


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "7", "not json", '{"a":NaN}', '{"a":1e999}', "[" * 100_000])
def test_arguments_that_are_no_json_object_are_refused(arguments: str) -> None:
    (call,) = calls_of(fragment(arguments, index=0, call_id="c", name="f"))
    assert call.fault is not None
    assert call.args == {}
    assert call.cut_off == arguments.startswith("[[")


def test_a_whole_call_sent_once_more_at_the_end_counts_once() -> None:
    calls = calls_of(
        fragment('{"q"', index=0, call_id="c", name="f"),
        fragment(":1}", index=0, call_id="c", name="f"),
        fragment('{"q":1}', index=0, call_id="c", name="f"),
    )
    assert calls == (ToolCall("c", "f", {"q": 1}),)


def test_names_in_pieces_growing_or_repeated_are_one_name() -> None:
    pieces = calls_of(fragment(index=0, call_id="c", name="memory_"), fragment("{}", index=0, name="search"))
    growing = calls_of(fragment(index=0, call_id="c", name="mem"), fragment("{}", index=0, name="memory_search"))
    repeated = calls_of(fragment('{"q"', index=0, name="memory_search"), fragment(":1}", index=0, name="memory_search"))
    assert [call.name for call in (*pieces, *growing, *repeated)] == ["memory_search"] * 3


def test_ids_are_unique_within_the_turn() -> None:
    calls = calls_of(
        fragment("{}", index=0, call_id="call_0", name="f"),
        fragment("{}", index=1, name="f"),
        fragment("{}", index=2, call_id="call_2", name="f"),
        fragment("{}", index=3, call_id="call_2", name="f"),
        taken=frozenset({"call_0", "call_1"}),
    )
    assert [call.id for call in calls] == ["call_3", "call_4", "call_2", "call_5"]


def test_an_id_that_comes_late_is_the_calls_id() -> None:
    (call,) = calls_of(fragment('{"a"', index=0, name="f"), fragment(":1}", index=0, call_id="c9"))
    assert (call.id, call.args) == ("c9", {"a": 1})


def test_a_reset_forgets_the_calls_before_it() -> None:
    calls = calls_of(
        fragment('{"a":1', index=0, call_id="c1", name="f"),
        StreamChunk("reset"),
        fragment('{"a":2}', index=0, call_id="c1", name="f"),
    )
    assert calls == (ToolCall("c1", "f", {"a": 2}),)


def test_half_characters_do_not_reach_a_tool() -> None:
    escaped, joined, raw = calls_of(
        fragment('{"q":"\\ud83d"}', index=0, name="f"),
        fragment('{"q":"\\ud83d\\ude00"}', index=1, name="f"),
        fragment('{"q":"\ud83d"}', index=2, name="f"),
    )
    assert [call.args["q"] for call in (escaped, joined, raw)] == ["�", "😀", "�"]


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    collector = CallCollector()
    collector.add(fragment("{}", index=0, call_id="c", name="serch"))
    (call,) = Wernicke().parse_calls(collector, (spec("memory_search"), spec("memory_get")))
    assert call.fault is not None
    assert "memory_search, memory_get" in call.fault


@pytest.mark.parametrize(
    ("args", "said"),
    [({}, "query"), ({"query": 7}, "query"), ({"query": "x", "limit": 900}, "limit"), ({"query": "x", "z": 1}, "z")],
)
def test_arguments_against_the_schema_are_refused_with_the_place(args: dict[str, Any], said: str) -> None:
    tool = spec(
        properties={"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 50}},
        required=["query"],
        additionalProperties=False,
    )
    call = Wernicke().check_call(ToolCall("c", "f", args), (tool,))
    assert call.fault is not None
    assert said in call.fault
    assert call.args == args


def test_arguments_that_fit_pass_unchanged_and_a_changed_schema_counts() -> None:
    wernicke = Wernicke()
    call = ToolCall("c", "f", {"n": 1})
    assert wernicke.check_call(call, (spec(properties={"n": {"type": "integer"}}),)) is call
    assert wernicke.check_call(call, (spec(properties={"n": {"type": "string"}}),)).fault is not None


@pytest.mark.parametrize("parameters", [{"properties": 7}, {"properties": {"n": {"$ref": "#/nowhere"}}}])
def test_a_tool_whose_schema_is_wrong_judges_for_itself(parameters: dict[str, Any]) -> None:
    call = ToolCall("c", "f", {"n": 1})
    assert Wernicke().check_call(call, (spec(**parameters),)).fault is None


def test_a_fault_stays_short_whatever_the_arguments() -> None:
    tool = spec(properties={"n": {"type": "integer"}})
    call = Wernicke().check_call(ToolCall("c", "f", {"n": "x" * 1_000_000}), (tool,))
    assert call.fault is not None
    assert len(call.fault) < 1_000


@pytest.mark.parametrize("head_in_each", [False, True])
def test_a_megabyte_in_fragments_of_four_bytes_takes_linear_time(head_in_each: bool) -> None:
    arguments = json.dumps({"text": 'x{"\\' * 200_000})
    pieces = [arguments[at : at + 4] for at in range(0, len(arguments), 4)]
    name = "f" if head_in_each else None
    chunks = [fragment(piece, index=0, name=name if at else "f") for at, piece in enumerate(pieces)]
    begun = time.process_time()
    (call,) = calls_of(*chunks)
    assert time.process_time() - begun < 1.5
    assert call.fault is None
    assert len(call.args["text"]) == 800_000

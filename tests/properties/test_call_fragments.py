"""However a stream is cut, the calls are the same."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.types import StreamChunk
from agent.wernicke import CallCollector

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
CALLS = st.lists(st.tuples(st.sampled_from(["f", "memory_search", "g"]), ARGUMENTS), min_size=1, max_size=4)
FORMS = st.sampled_from(["index and id", "index", "id", "neither", "index zero and id", "head in each"])


def chunks_of(calls: list[tuple[str, dict[str, Any]]], form: str, cuts: list[int]) -> list[StreamChunk]:
    """The calls one after the other in one of the forms services use, their JSON cut at `cuts`."""
    chunks: list[StreamChunk] = []
    for n, (name, args) in enumerate(calls):
        text = json.dumps(args, ensure_ascii=n % 2 == 0)
        marks = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
        pieces = [text[a:b] for a, b in pairwise(marks)]
        call_id = f"id{n}" if "id" in form or form == "head in each" else None
        index = None if form in ("id", "neither") else 0 if "zero" in form else n
        for m, piece in enumerate(pieces):
            head = m == 0 or form == "head in each"
            has_id = head or form == "id"
            chunks.append(
                StreamChunk(
                    "call",
                    index=index,
                    call_id=call_id if has_id else None,
                    name=name if head else None,
                    arguments=piece,
                )
            )
    return chunks


@given(CALLS, FORMS, st.lists(st.integers(0, 200), max_size=6))
def test_the_cuts_of_a_stream_do_not_matter(
    calls: list[tuple[str, dict[str, Any]]], form: str, cuts: list[int]
) -> None:
    collector = CallCollector()
    for chunk in chunks_of(calls, form, cuts):
        collector.add(chunk)
    parsed = collector.calls()
    assert [(call.name, call.args, call.fault) for call in parsed] == [(name, args, None) for name, args in calls]
    assert len({call.id for call in parsed}) == len(calls)


@given(ARGUMENTS.filter(bool), st.integers(1, 500))
def test_arguments_cut_short_never_become_a_call_that_runs(args: dict[str, Any], cut: int) -> None:
    text = json.dumps(args)
    collector = CallCollector()
    collector.add(StreamChunk("call", index=0, call_id="c", name="f", arguments=text[: 1 + cut % (len(text) - 1)]))
    (call,) = collector.calls()
    assert call.fault is not None
    assert call.args == {}


FRAGMENTS = st.builds(
    StreamChunk,
    st.sampled_from(["call", "call", "call", "text", "stop", "reset"]),
    text=st.sampled_from(["", "length", "calls"]),
    index=st.none() | st.integers(0, 2),
    call_id=st.none() | st.sampled_from(["", "a", "b", "call_1"]),
    name=st.none() | st.sampled_from(["", "f", "g"]),
    arguments=st.none() | st.text('{}[]":,\\u0dn18 ', max_size=6),
    arguments_object=st.none() | ARGUMENTS,
)


@given(st.lists(FRAGMENTS, max_size=12), st.frozensets(st.sampled_from(["a", "call_1", "call_2"])))
@settings(max_examples=300)
def test_whatever_comes_gives_valid_calls_with_distinct_ids(chunks: list[StreamChunk], taken: frozenset[str]) -> None:
    collector = CallCollector()
    for chunk in chunks:
        collector.add(chunk)
    calls = collector.calls(taken)
    assert len({call.id for call in calls}) == len(calls)
    assert all(call.id and call.id not in taken for call in calls)
    for call in calls:
        json.dumps(dict(call.args), allow_nan=False).encode()
        assert call.fault is None or call.args == {}

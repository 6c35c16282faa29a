"""From the database to a prompt that the strictest service takes: each call is followed at once by its result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.openai_wire import request_body
from agent.types import Message, Prompt, ToolCall
from gateway.history import UNKNOWN, earlier_calls, prompt_history
from gateway.store.types import HistoryCall, HistoryMessage


def call(n: int, round_number: int = 1, outcome: str | None = "success", **fields: Any) -> HistoryCall:
    output = f"output {n}" if outcome not in {None, "interrupted"} else None
    values = {"call_id": f"T{n}", "name": "look", "args": '{"q": "x"}', "fault": None, "attempts": 1, "output": output}
    return HistoryCall(n=n, round=round_number, outcome=outcome, **(values | fields))


def user(text: str = "hello") -> HistoryMessage:
    return HistoryMessage(1, "user", "Sara", text, None, 0, (), ())


def reply(text: str, *calls: HistoryCall, rounds: tuple[str, ...] = ()) -> HistoryMessage:
    return HistoryMessage(2, "assistant", "", text, "t", 0, rounds, calls)


def body(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """What a service gets, checked as the strictest one does."""
    asked: list[dict[str, Any]] = request_body("m", Prompt("", messages))["messages"]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in asked:
        if message["role"] == "tool":
            assert waiting, "a result without a call"
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting, "a call without a result"
        assert message["content"] or message.get("tool_calls"), "an empty message"
        waiting = [one["id"] for one in message.get("tool_calls", ())]
        assert not seen & set(waiting), "an id twice"
        seen.update(waiting)
    assert not waiting
    return asked


def shape(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def test_rounds_come_back_as_they_were_said() -> None:
    saved = reply("a\n\nb\n\nc", call(1), call(2), call(3, 2), rounds=("a", "b", "c"))
    asked = body(prompt_history([user(), saved, user("and?")]))
    assert shape(asked) == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"]
    assert [message["content"] for message in asked if message["role"] == "assistant"] == ["a", "b", "c"]
    assert asked[2]["content"] == "output 1"


@pytest.mark.parametrize("outcome", [None, "interrupted"])
@pytest.mark.parametrize("back", [0, 10])
def test_a_call_that_a_crash_left_open_has_a_result_right_behind_it(outcome: str | None, back: int) -> None:
    later = [message for n in range(back) for message in (user(f"u{n}"), reply(f"a{n}", rounds=(f"a{n}",)))]
    asked = body(prompt_history([user(), reply("", call(1, outcome=outcome)), *later, user("hello")]))
    assert shape(asked)[:3] == ["user", "assistant", "tool"]
    assert asked[2]["tool_call_id"] == "T1"
    assert asked[2]["content"] == UNKNOWN == "interrupted, not known whether it ran"
    assert asked[-1]["content"] == "hello"


def test_a_call_that_ran_beside_one_that_was_interrupted_keeps_its_result() -> None:
    asked = body(prompt_history([user(), reply("", call(1), call(2, outcome="interrupted"))]))
    assert [message["content"] for message in asked if message["role"] == "tool"] == ["output 1", UNKNOWN]


CALL = ToolCall("T1", "look", {})
ORPHAN = Message("tool", "left over", call_id="T0")


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        pytest.param(
            (Message("assistant", "", (CALL,)), Message("user", "hello")), ["assistant", "tool", "user"], id="no result"
        ),
        pytest.param((ORPHAN, Message("user", "hello")), ["user"], id="its call was trimmed"),
        pytest.param(
            (Message("assistant", "", (CALL,)), Message("user", "hello"), Message("tool", "late", call_id="T1")),
            ["assistant", "tool", "user"],
            id="result behind another message",
        ),
        pytest.param(
            (
                Message("assistant", "", (CALL,)),
                Message("tool", "a", call_id="T1"),
                Message("tool", "b", call_id="T1"),
                Message("user", "hello"),
            ),
            ["assistant", "tool", "user"],
            id="two results",
        ),
    ],
)
def test_a_history_that_was_trimmed_or_mixed_up_is_put_right(messages: tuple[Message, ...], roles: list[str]) -> None:
    assert shape(body(messages)) == roles
    assert all(message["content"] != "left over" for message in body(messages))


OUTCOMES = st.sampled_from([None, "interrupted", "success", "failed", "denied", "blocked"])
CALLS = st.lists(st.tuples(st.integers(1, 3), OUTCOMES, st.sampled_from(["a", "b", "c"])), max_size=5)
REPLIES = st.tuples(st.text(max_size=5), CALLS, st.lists(st.text(max_size=5), max_size=5))


@given(st.lists(st.one_of(st.text(max_size=5), REPLIES), max_size=8))
def test_whatever_was_saved_a_strict_service_takes_it(history: list[Any]) -> None:
    saved: list[HistoryMessage] = []
    for item in history:
        if isinstance(item, str):
            saved.append(user(item or "x"))
            continue
        text, calls, rounds = item
        made = [
            call(n, number, outcome, call_id=name)
            for n, (number, outcome, name) in enumerate(sorted(calls, key=lambda c: c[0]), 1)
        ]
        saved.append(reply(text, *made, rounds=tuple(rounds)))
    json.dumps(body(prompt_history(saved)), allow_nan=False)


def test_what_a_broken_off_turn_did_is_handed_to_its_next_run() -> None:
    assert earlier_calls(None) == ()
    so_far = reply("", call(1), call(2, 2, "interrupted"), call(3, 2, None, fault="cut off"), rounds=("I look",))
    first, second, third = earlier_calls(so_far)
    assert (first.round, first.round_text, first.call.id) == (1, "I look", "T1")
    assert first.result is not None
    assert (first.result.ok, first.result.text) == (True, "output 1")
    assert (second.round, second.round_text, second.result) == (2, "", None)
    assert third.call.fault == "cut off"


def test_notices_of_the_program_are_no_words_of_the_model() -> None:
    notice = HistoryMessage(3, "system", "", "Stopped.", None, 0, (), ())
    assert prompt_history([user(), notice]) == (Message("user", "hello"),)

"""The registry, and the message list a strict service accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.base import INTERRUPTED, PROVIDERS, ProviderSettings, create, host_of, repaired, tool_name, warm
from agent.types import Message, ProviderError, ToolCall


def call(call_id: str, name: str = "f") -> ToolCall:
    return ToolCall(call_id, name, {})


def asks(*call_ids: str, text: str = "") -> Message:
    return Message("assistant", text, tuple(call(call_id) for call_id in call_ids))


def result(call_id: str, text: str = "done") -> Message:
    return Message("tool", text, call_id=call_id)


USER = Message("user", "hi")


async def test_each_provider_is_made_by_its_name() -> None:
    for name in PROVIDERS:
        provider = create(ProviderSettings(name, "m", "http://127.0.0.1:9/v1"))
        assert provider.name == name
        await provider.close()


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProviderError, match="offline, ollama, openai") as caught:
        create(ProviderSettings("gpt"))
    assert not caught.value.transient


def test_the_key_does_not_show_in_the_settings_text() -> None:
    assert "sk-secret" not in f"{ProviderSettings(api_key='sk-secret')!r} {ProviderSettings(api_key='sk-secret')}"


async def test_the_offline_model_has_no_host_and_nothing_to_warm() -> None:
    provider = create(ProviderSettings())
    await warm(provider)
    assert host_of(provider) == ""
    assert provider.local


def test_a_list_in_order_stays_as_it_is() -> None:
    messages = (USER, asks("a", "b"), result("a"), result("b"), Message("assistant", "Done."), USER)
    assert repaired(messages) == messages


def test_a_missing_result_stands_right_after_its_call() -> None:
    assert repaired((asks("a", "b"), result("b"), USER)) == (
        asks("a", "b"),
        result("a", INTERRUPTED),
        result("b"),
        USER,
    )


def test_a_late_result_moves_to_its_call() -> None:
    assert repaired((asks("a"), USER, result("a"))) == (asks("a"), result("a"), USER)


def test_a_result_without_call_and_a_second_result_are_dropped() -> None:
    messages = (result("x"), asks("a"), result("a", "first"), result("a", "second"), result("b"), USER)
    assert repaired(messages) == (asks("a"), result("a", "first"), USER)


def test_ids_that_come_again_in_a_later_turn_are_made_unique() -> None:
    once = (asks("a"), result("a", "1"), USER)
    assert repaired((*once, asks("a"), result("a", "2"))) == (*once, asks("a_2"), result("a_2", "2"))


def test_ids_that_not_every_service_takes_are_written_anew() -> None:
    odd = "functions.search:0"
    messages = (asks(odd, odd + "é"), result(odd, "1"), result(odd + "é", "2"), asks("x" * 50), result("x" * 50))
    ids = [call.id for message in repaired(messages) for call in message.calls]
    assert ids == ["functions_search_0", "functions_search_0_", "x" * 36]
    assert [m.call_id for m in repaired(messages) if m.role == "tool"] == ids


def test_names_that_no_service_takes_are_written_anew() -> None:
    assert [tool_name(name) for name in ("memory_search", "a.b c", "", "x" * 70)] == [
        "memory_search",
        "a_b_c",
        "unknown",
        "x" * 64,
    ]


def test_an_empty_answer_is_left_out() -> None:
    assert repaired((USER, Message("assistant", ""), USER)) == (USER, USER)


MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(asks, st.sampled_from("abc"), text=st.sampled_from(["", "t"])),
        st.lists(st.sampled_from("abc"), max_size=3).map(lambda ids: asks(*ids)),
        st.builds(result, st.sampled_from("abcd")),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_every_call_has_one_result_behind_it_and_every_result_its_call(messages: list[Message]) -> None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for message in repaired(messages):
        if message.role == "tool":
            assert message.call_id == open_ids.pop(0)
            continue
        assert open_ids == []
        open_ids = [call.id for call in message.calls]
        assert len(set(open_ids)) == len(open_ids)
        assert seen.isdisjoint(open_ids)
        seen.update(open_ids)
    assert open_ids == []
    assert [m for m in repaired(messages) if m.role == "user"] == [m for m in messages if m.role == "user"]


@given(MESSAGES)
def test_repairing_twice_changes_nothing_more(messages: list[Message]) -> None:
    once = repaired(messages)
    assert repaired(once) == once

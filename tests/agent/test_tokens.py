"""Token estimates by script, and texts cut to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tokens import ModelContext, clip, estimate_tokens, message_tokens
from agent.types import Message, ToolCall


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd" * 100, 100), ("اختبار" * 100, 200), ("航班" * 150, 200), ("abcd航班计", 3)],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(alphabet="ab \nن航é", max_size=400), st.integers(0, 120))
def test_a_cut_text_fits_and_says_what_is_missing(text: str, tokens_max: int) -> None:
    cut = clip(text, tokens_max, "whole elsewhere")
    if estimate_tokens(text) <= tokens_max:
        assert cut == text
        return
    head, _, rest = cut.partition("\n[... ")
    mark, _, tail = rest.partition(" ...]\n")
    assert mark.endswith("characters left out; whole elsewhere")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert estimate_tokens(head + tail) <= tokens_max
    assert int(mark.split()[0].replace(",", "")) == len(text) - len(head) - len(tail)


def test_calls_and_pictures_of_a_message_count_too() -> None:
    plain = message_tokens([Message("user", "hello")])
    call = ToolCall("c", "write", {"text": "abcd" * 1_000})
    assert message_tokens([Message("user", "hello", images=("a.png",))]) > plain + 1_000
    assert message_tokens([Message("assistant", "", (call,))]) > 1_000


def test_a_model_without_a_bill_is_taken_as_estimated() -> None:
    assert ModelContext().ratio == 1.0


def test_bills_move_the_ratio_and_old_ones_fade() -> None:
    context = ModelContext(1_000)
    context.note(1_000, 1_500)
    assert context.ratio == 1.5
    for _ in range(20):
        context.note(1_000, 1_200)
    assert context.ratio == pytest.approx(1.2, abs=0.01)
    assert context.share(0.5) == pytest.approx(500 / 1.2, abs=5)


@given(st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 1_000_000)), max_size=30))
def test_the_ratio_never_leaves_its_bounds(bills: list[tuple[int, int]]) -> None:
    context = ModelContext()
    for estimated, billed in bills:
        context.note(estimated, billed)
        assert 0.5 <= context.ratio <= 2.0


@pytest.mark.parametrize(("estimated", "billed"), [(100, 300), (10_000, 0), (10_000, 900), (10_000, 90_000)])
def test_short_requests_and_figures_nobody_can_mean_teach_nothing(estimated: int, billed: int) -> None:
    context = ModelContext()
    context.note(estimated, billed)
    assert context.ratio == 1.0

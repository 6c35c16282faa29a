"""Token estimates by script, and texts cut to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tokens import clip, estimate_tokens


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

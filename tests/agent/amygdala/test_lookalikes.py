"""What deceives the eye is shown as an escape; what people write stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.amygdala.lookalikes import hidden, visible


@pytest.mark.parametrize(
    "text",
    [
        "Dinner at eight – bring „the plan“ … 5 €",
        "العشاء في الثامنة مساءً، لا تنسَ الخطة",
        "Ужин в восемь, не забудь план",
        "δείπνο στις οκτώ",
        "晚上八点吃饭，带上计划",
        "résumé.txt",
        "🙂 👍🏽",
        "a\tb\nc",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text, code=False) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm\u200b -rf", "rm\\u{200b} -rf"),
        ("\u202egnp.sh", "\\u{202e}gnp.sh"),
        ("a\u00a0b", "a\\u{a0}b"),
        ("a\u2028b", "a\\u{2028}b"),
        ("a\rb\x1b[2Jc\x00", "a\\u{d}b\\u{1b}[2Jc\\u{0}"),
        ("p\u0430yp\u0430l.example", "p\\u{430}yp\\u{430}l.example"),
        ("\uff52m", "\\u{ff52}m"),
        ("\U0001d5cbm", "\\u{1d5cb}m"),
        ("r\u0336m", "r\\u{336}m"),
        ("a\u3164b", "a\\u{3164}b"),
        ("x\ufe0fy", "x\\u{fe0f}y"),
    ],
)
def test_what_hides_or_passes_for_other_letters_is_shown(text: str, shown: str) -> None:
    assert visible(text, code=False) == shown


def test_in_code_look_alikes_are_shown_even_alone() -> None:
    assert visible("\u0441\u0430\u0442 \u2013rf", code=True) == "\\u{441}\\u{430}\\u{442} \\u{2013}rf"
    assert visible("cat ملاحظات.md 計画.txt", code=True) == "cat ملاحظات.md 計画.txt"


def test_an_escape_that_was_written_out_is_told_from_one_of_ours() -> None:
    assert visible("echo \\u{200b}", code=True) == "echo \\u{5c}u{200b}"


@given(st.text(), st.booleans())
def test_two_texts_never_look_the_same(text: str, code: bool) -> None:
    shown = visible(text, code=code)
    assert not any(hidden(char) for char in shown)
    parts = shown.split("\\u{")
    back = parts[0] + "".join(chr(int(part.partition("}")[0], 16)) + part.partition("}")[2] for part in parts[1:])
    assert back == text

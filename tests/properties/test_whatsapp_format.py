"""For any Markdown: the parts are within limits and show what the source shows, nothing more and nothing less."""

from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from channels.whatsapp.format import convert, render

_MARKS = regex.compile(r"[\s*_~`#>|+\-=\[\]()!\\<\u2015\u2060\u2610\u2611]+")
"""What may come or go: marks of either side, and what stands for a rule or a box."""
LETTERS = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\u2015\u2060\u2610\u2611")

_WORD = st.text(st.sampled_from("abc مرحبا日本語👩‍👩‍👧e\u0301.,:;$%&@\"'0123456789"), min_size=1, max_size=12).map(
    str.strip
)
_WORDS = st.lists(_WORD.filter(bool), min_size=1, max_size=6).map(" ".join)
_SPAN = st.one_of(
    _WORDS,
    _WORDS.map(lambda text: f"**{text}**"),
    _WORDS.map(lambda text: f"***{text}***"),
    _WORDS.map(lambda text: f"~~{text}~~"),
    _WORDS.map(lambda text: f"`{text}`"),
    _WORDS.map(lambda text: f"[{text}](https://example.com/a_b)"),
    st.sampled_from(["https://example.com/__a__?b=*c*", "2 * 3 * 4", "__init__", "snake_case", "\\*", "<br>", "[^1]"]),
)
_LINE = st.lists(_SPAN, min_size=1, max_size=5).map(" ".join)
_BLOCK = st.one_of(
    _LINE,
    _LINE.map(lambda text: f"## {text}"),
    _LINE.map(lambda text: f"> {text}"),
    st.lists(_LINE, min_size=1, max_size=4).map(lambda lines: "\n".join(f"* {line}" for line in lines)),
    st.lists(_LINE, min_size=1, max_size=4).map(
        lambda lines: "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
    ),
    st.lists(_WORDS, min_size=1, max_size=6).map(lambda lines: "```\n" + "\n".join(lines) + "\n```"),
)
MARKDOWN = st.lists(_BLOCK, min_size=1, max_size=8).map("\n\n".join)


def letters(text: str) -> str:
    """What is left of a text without marks and white space."""
    return _MARKS.sub("", text)


@given(MARKDOWN, st.integers(64, 400))
def test_the_parts_of_an_answer_show_all_of_it(markdown: str, limit: int) -> None:
    parts = render(markdown, limit)
    assert all(0 < len(part) <= limit for part in parts)
    assert letters("".join(parts)) == letters(markdown)


@given(st.text(LETTERS, max_size=300), st.integers(64, 200))
def test_any_text_keeps_its_letters(text: str, limit: int) -> None:
    """Tables apart, which name their columns again and again."""
    source = text.replace("|", "/")
    parts = render(source, limit)
    assert all(0 < len(part) <= limit for part in parts)
    shown = letters("".join(parts))
    # The scheme of a mail address, an emphasised link's title and an empty link's brackets are no visible text.
    assert _is_shown(shown, letters(source))


def _is_shown(shown: str, source: str) -> bool:
    """Every letter that is shown is the source's, in its order."""
    rest = iter(source)
    return all(letter in rest for letter in shown) and len(shown) >= len(source) - source.count('"') * 50 - 8


@given(st.text(st.sampled_from("*_~`#>-|[]()! \\\nab1م"), max_size=200))
def test_nothing_but_marks_breaks_nothing(text: str) -> None:
    parts = render(text, 64)
    assert all(len(part) <= 64 for part in parts)
    kept = regex.sub(r"[^ab1م]", "", text)
    if "|" not in text:
        assert regex.sub(r"[^ab1م]", "", "".join(parts)) == kept


@given(st.text(max_size=100), st.sampled_from(["\ud800", "\udfff", "\0", "\ufdd0"]))
def test_what_cannot_be_sent_is_replaced(text: str, bad: str) -> None:
    shown = convert(f"{text}{bad}")
    shown.encode("utf-8")
    assert bad not in shown


@given(st.integers(2, 30), st.integers(64, 120))
def test_a_family_of_emoji_is_never_torn(count: int, limit: int) -> None:
    family = "👩‍👩‍👧‍👦"
    parts = render(f"**{family * count}**", limit)
    assert "".join(part.strip("*") for part in parts) == family * count
    assert all(part.strip("*").replace(family, "") == "" for part in parts)

"""Any Markdown on Telegram: parts it accepts, and nothing of what is to be read lost or twice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.telegram.format import Part, render
from channels.telegram.limits import ENTITIES_MAX, TEXT_UNITS_MAX
from channels.text import clean

WORD = re.compile(r"[^\W_]+")


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def assert_accepted(parts: tuple[Part, ...]) -> None:
    """What Telegram checks of each message."""
    for part in parts:
        part.text.encode("utf-8")
        assert part.text.strip()
        assert units(part.text) <= TEXT_UNITS_MAX
        assert len(part.entities) <= ENTITIES_MAX
        cuts = {0, *accumulate(map(units, part.text))}
        for entity in part.entities:
            assert entity.offset in cuts
            assert entity.length > 0
            assert entity.offset + entity.length in cuts


def words(text: str) -> list[str]:
    return WORD.findall(text)


@dataclass(frozen=True)
class Piece:
    """Markdown, and what of it is to be read."""

    source: str
    seen: str


PLAIN = st.text(st.sampled_from("abcdefgхлебابتثجمرحبا漢字日本語\U0001f600é1234567890"), min_size=1, max_size=12).map(
    lambda text: f"w{text}w"
)
"""A word that no rule of Markdown reads as something else."""


def joined(pieces: list[Piece], between: str) -> Piece:
    return Piece(between.join(one.source for one in pieces), between.join(one.seen for one in pieces))


INLINE = st.one_of(
    PLAIN.map(lambda text: Piece(text, text)),
    PLAIN.map(lambda text: Piece(f"**{text}**", text)),
    PLAIN.map(lambda text: Piece(f"*{text}*", text)),
    PLAIN.map(lambda text: Piece(f"~~{text}~~", text)),
    PLAIN.map(lambda text: Piece(f"`{text}`", text)),
    PLAIN.map(lambda text: Piece(f"[{text}](https://example.org/{units(text)})", text)),
    PLAIN.map(lambda text: Piece(f"<b>{text}</b>", f"b {text} b")),
    PLAIN.map(lambda text: Piece(f"<!-- {text} -->", text)),
    PLAIN.map(lambda text: Piece(f"https://e.org/{text}_a_b_c?q=*x*&y=$5", f"https e org {text} a b c q x y 5")),
    PLAIN.map(lambda text: Piece(f"{text}[^1]", f"{text} 1")),
    PLAIN.map(lambda text: Piece(f"${text}$ and $5", f"{text} and 5")),
    PLAIN.map(lambda text: Piece(f"||{text}||", text)),
    PLAIN.map(lambda text: Piece(f"{text}\\*", text)),
    st.just(Piece("2*3*4 and 2**3**4", "2 3 4 and 2 3 4")),
    st.just(Piece("snake_case_name and __init__", "snake case name and init")),
    st.just(Piece("a < b > c & d", "a b c d")),
)
SENTENCE = st.lists(INLINE, min_size=1, max_size=6).map(lambda pieces: joined(pieces, " "))
LINES = st.lists(SENTENCE, min_size=1, max_size=3).map(lambda pieces: joined(pieces, "\n"))


def prefixed(mark: str) -> st.SearchStrategy[Piece]:
    return st.lists(SENTENCE, min_size=1, max_size=4).map(
        lambda pieces: Piece("\n".join(f"{mark}{one.source}" for one in pieces), joined(pieces, "\n").seen)
    )


CODE = st.lists(PLAIN, min_size=1, max_size=5).map(
    lambda lines: Piece("```python\n" + "\n".join(lines) + "\n```", "\n".join(lines))
)
TABLE = st.lists(st.tuples(PLAIN, PLAIN), min_size=1, max_size=4).map(
    lambda rows: Piece(
        "| one | two |\n| --- | --- |\n" + "\n".join(f"| {first} | {second} |" for first, second in rows),
        "one two\n" + "\n".join(f"{first} {second}" for first, second in rows),
    )
)
BLOCK = st.one_of(
    LINES,
    SENTENCE.map(lambda one: Piece(f"## {one.source}", one.seen)),
    prefixed("- "),
    prefixed("> "),
    CODE,
    TABLE,
    SENTENCE.map(lambda one: Piece(f"<div>\n{one.source}\n</div>", f"div {one.seen} div")),
    SENTENCE.map(lambda one: Piece(f"[^1]: {one.source}", f"1 {one.seen}")),
    SENTENCE.map(lambda one: Piece(f"{one.source}\n---", one.seen)),
)
DOCUMENT = st.lists(BLOCK, min_size=1, max_size=8).map(lambda pieces: joined(pieces, "\n\n"))


@settings(max_examples=120)
@given(DOCUMENT, st.integers(min_value=0, max_value=60))
def test_what_is_to_be_read_is_read_in_order_and_once(document: Piece, times: int) -> None:
    whole = joined([document] * (1 + times // 20 * 5), "\n\n")
    parts = render(whole.source)
    assert_accepted(parts)
    assert words("\n".join(part.text for part in parts)) == words(whole.seen)


SOUP = st.text(
    st.sampled_from("ab \n\n*_`~[]()<>|#-+.!$\\^:1234=/&;@\"'\r\t\0\ud83d\U0001f468\u200d\U0001f469\u0301\u202eمع漢"),
    max_size=400,
)


@settings(max_examples=300)
@given(SOUP | st.text(max_size=200))
@example("[a]: b\n\n[a]")
@example("\ud83d\ude00 **a")
@example("<" * 4096)
@example("[w](https://example.org/" + "a" * 80 + ") " * 120)
def test_whatever_the_text_the_parts_are_accepted(text: str) -> None:
    parts = render(text)
    assert_accepted(parts)
    assert bool(parts) == any(not char.isspace() for char in clean(text))


@settings(max_examples=60)
@given(
    st.text(st.sampled_from("a \n\U0001f468\u200d\U0001f469\u0301e漢"), min_size=1, max_size=40), st.integers(100, 400)
)
def test_a_long_prose_is_whole_when_it_is_joined(text: str, times: int) -> None:
    source = (text * times).strip()
    shown = "".join("".join(part.text.split()) for part in render(source))
    assert shown == "".join(source.split())

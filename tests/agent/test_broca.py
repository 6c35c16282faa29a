"""What a person sees of a model's stream."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from agent.broca import Broca, Speech
from agent.types import Segment, StreamChunk


def spoken(*pieces: str) -> list[str]:
    speech = Broca().begin()
    segments = [segment for piece in pieces for segment in speech.speak(StreamChunk("text", text=piece))]
    segments += speech.finish()
    assert all(segment.kind == "text" and segment.text for segment in segments)
    assert speech.text == "".join(segment.text for segment in segments)
    return [segment.text for segment in segments]


def shown(*pieces: str) -> str:
    return "".join(spoken(*pieces))


def test_text_is_passed_on_as_it_comes() -> None:
    speech = Broca().begin()
    assert speech.speak(StreamChunk("text", text="Hello ")) == [Segment("text", "Hello")]
    assert speech.speak(StreamChunk("text", text="there\n")) == [Segment("text", " there\n")]
    assert speech.finish() == []
    assert speech.text == "Hello there\n"


@pytest.mark.parametrize("character", ["👨‍👩‍👧‍👦", "👍🏽", "🇸🇦", "é", "1️⃣", "بَّ", "क्षि", "한", "\r\n"])
def test_no_piece_ends_inside_a_character(character: str) -> None:
    pieces = spoken(*f"a{character}b")
    assert "".join(pieces) == f"a{character}b"
    assert character in pieces


def test_halves_of_an_emoji_in_two_chunks_become_one() -> None:
    assert spoken("ok \ud83d", "\ude00 done") == ["ok ", "😀 don", "e"]


def test_a_lone_half_becomes_a_replacement_sign() -> None:
    assert shown("a\ud83d", "b\ude00") == "a�b�"


def test_only_text_is_shown() -> None:
    speech = Broca().begin()
    for chunk in (
        StreamChunk("thinking", text="secret"),
        StreamChunk("call", index=0, name="f", arguments='{"secret":1}'),
        StreamChunk("stop", text="calls"),
    ):
        assert speech.speak(chunk) == []
    assert speech.finish() == []
    assert speech.text == ""


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>secret</think>\n\nHello", "Hello"),
        ("\n<think>\nsecret <b> </thin\n</think>Hello", "\nHello"),
        ("Hello <think>secret</think>there", "Hello there"),
        ("<THINKING>secret</think></Thinking>Hi", "Hi"),
        ("<think>a</think><think>b</think> c", "c"),
        ("<think>never ended", ""),
        ("The `<think>` tag opens, `</think>` closes.", "The `<think>` tag opens, `</think>` closes."),
        ("1 < 2 <thi", "1 < 2 <thi"),
        ("a <b>bold</b> <thinker>", "a <b>bold</b> <thinker>"),
    ],
)
def test_inline_thinking_is_never_shown(text: str, visible: str, size: int) -> None:
    assert shown(*(text[at : at + size] for at in range(0, len(text), size))) == visible


def test_a_reset_forgets_what_was_said_and_tells_so() -> None:
    speech = Broca().begin()
    speech.speak(StreamChunk("text", text="Hel"))
    speech.speak(StreamChunk("text", text="<think>half"))
    assert speech.speak(StreamChunk("reset")) == [Segment("reset")]
    assert speech.speak(StreamChunk("text", text="Hello.\n")) == [Segment("text", "Hello.\n")]
    assert speech.finish() == []
    assert speech.text == "Hello.\n"


@given(st.lists(st.text(st.characters(exclude_characters="<"), max_size=8), max_size=12))
def test_pieces_join_to_the_text_and_end_between_characters(pieces: list[str]) -> None:
    text = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    said = spoken(*pieces)
    assert "".join(said) == text
    borders = {found.end() for found in regex.finditer(r"\X", text)}
    at = 0
    for piece in said:
        at += len(piece)
        assert at in borders


@given(st.text("ab<think>/ \n", max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_what_is_shown_does_not_depend_on_the_cuts(text: str, cuts: list[int]) -> None:
    marks = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    assert shown(*(text[a:b] for a, b in pairwise(marks))) == shown(text)


def test_a_character_of_endless_marks_is_let_go() -> None:
    speech = Speech()
    segments = [segment for _ in range(2_000) for segment in speech.speak(StreamChunk("text", text="\u0301"))]
    assert segments


@pytest.mark.parametrize("word", ["hello ", "مرحبا ", "a < b ", "<think>x</think>"])
def test_a_long_answer_costs_little(word: str) -> None:
    speech = Speech()
    begun = time.process_time()
    for _ in range(20_000):
        speech.speak(StreamChunk("text", text=word))
    speech.finish()
    assert time.process_time() - begun < 1

"""Cutting text for platforms."""

from __future__ import annotations

import pytest

from channels.text import clean, cut, length, split

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def test_an_emoji_at_the_limit_stays_whole() -> None:
    parts = split("q" * 4095 + "\U0001f680 end", 4096)
    assert parts == ["q" * 4095, "\U0001f680 end"]
    assert all(length(part, "utf16") <= 4096 for part in parts)


def test_a_joined_emoji_at_the_limit_stays_together() -> None:
    assert split("a" * 4090 + FAMILY, 4096) == ["a" * 4090, FAMILY]


def test_an_accent_never_leaves_its_letter() -> None:
    assert split("a" * 4095 + "e\u0301", 4096) == ["a" * 4095, "e\u0301"]


def test_arabic_vowel_marks_stay_on_their_letter() -> None:
    word = "كَتَبَ"
    for part in split(word * 20, 16):
        assert part[0] == "ك" or part[0] in "تب"
        assert not "\u064b" <= part[0] <= "\u0652"


def test_a_cluster_larger_than_the_limit_is_cut_between_code_points() -> None:
    parts = split("\U0001f468" + "\u200d\U0001f469" * 20, 16)
    assert "".join(parts) == "\U0001f468" + "\u200d\U0001f469" * 20
    assert all(length(part, "utf16") <= 16 for part in parts)


def test_the_unit_decides_how_much_fits() -> None:
    assert split("\U0001f680" * 20, 20, "chars") == ["\U0001f680" * 20]
    assert split("\U0001f680" * 20, 20, "utf16") == ["\U0001f680" * 10] * 2


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("First paragraph here.\n\nSecond one is longer.", "First paragraph here.\n\n"),
        ("A line of its own\nand then another one", "A line of its own\n"),
        ("هذه جملة أولى. وهذه جملة ثانية طويلة", "هذه جملة أولى. "),
        ("ما رأيك في هذا؟ أظن أنه حسن جدا", "ما رأيك في هذا؟ "),
        ("这是第一句话，很长很长的一句话。这是第二句话，也很长很长。", "这是第一句话，很长很长的一句话。"),
        ("no full stop but some more words", "no full stop but some "),
    ],
)
def test_cuts_where_a_reader_would_pause(text: str, first: str) -> None:
    assert split(text, 26)[0] == first


def test_a_code_block_is_closed_and_opened_again_in_its_language() -> None:
    parts = split("```python\n" + "print(1)\n" * 600 + "```\nafter", 4096)
    assert len(parts) == 2
    assert all(length(part, "utf16") <= 4096 and part.count("```") == 2 for part in parts)
    assert all(part.startswith("```python\nprint(1)\n") for part in parts)
    assert parts[1].endswith("```\nafter")
    assert sum(part.count("print(1)\n") for part in parts) == 600


def test_a_code_block_that_would_begin_at_the_very_end_moves_to_the_next_part() -> None:
    parts = split("words " * 5 + "\n```sh\nls -l /tmp/long\n```\n", 40)
    assert "```" not in parts[0]
    assert parts[1].startswith("```sh\n")


def test_longer_fences_and_tildes_close_with_their_own_marker() -> None:
    parts = split("~~~~text\n" + "```\n" * 30 + "~~~~\n", 64)
    assert all(part.startswith("~~~~text\n") and part.rstrip("\n").endswith("~~~~") for part in parts)


def test_three_backticks_inside_a_sentence_are_no_code_block() -> None:
    text = "Use ```x``` inline. " * 10
    assert "".join(split(text, 32)) == text


def test_an_empty_text_has_no_parts_and_a_limit_without_room_is_refused() -> None:
    assert split("", 100) == []
    with pytest.raises(ValueError, match="16"):
        split("text", 15)


def test_a_piece_always_goes_forward() -> None:
    assert cut("\U0001f680\U0001f680", 0, 1) == 1


def test_cleaning_keeps_every_offset() -> None:
    assert clean("a\ud83db\0c\U0001f680") == "a\ufffdb\ufffdc\U0001f680"

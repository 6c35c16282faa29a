"""One form for every way a word is written."""

from __future__ import annotations

import pytest

from agent.cortex.snippets import snippet
from agent.cortex.text import clean, fold, places, sameness_key, tokens_of


def forms(text: str) -> set[str]:
    return set(" ".join(fold(text)).split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("مَدْرَسَةٌ", "مدرسه"),
        ("إجازة", "اجازه"),
        ("العربيـــة", "العربيه"),
        ("٢٠٢٤", "2024"),
        ("۲۰۲۴", "2024"),
        ("على", "علي"),
        ("مسؤول", "مسوول"),
        ("cafe\u0301", "café"),
        ("CAFÉ", "cafe"),
        ("l’été", "l'ete"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("Ｈｅｌｌｏ", "hello"),
        ("שָׁלוֹם", "שלום"),
        ("ｶﾚﾝﾀﾞｰ", "カレンダー"),
        ("don’t", "dont"),
    ],
)
def test_two_ways_to_write_a_word_have_the_same_tokens(one: str, other: str) -> None:
    assert fold(one)[0] == fold(other)[0]


@pytest.mark.parametrize(
    ("word", "found_by"),
    [
        ("والكتاب", "كتاب"),
        ("بالمدرسة", "مدرسه"),
        ("للمدرسة", "مدرسه"),
        ("كتابهم", "كتاب"),
        ("شيء", "شي"),
        ("books", "book"),
        ("hiking", "hike"),
        ("hiked", "hike"),
        ("hike", "hike"),
        ("stories", "stori"),
        ("story", "stori"),
        ("INV-2041", "2041"),
        ("INV-2041", "inv2041"),
        ("INV2041", "2041"),
        ("foo_bar", "foobar"),
        ("fooBar", "bar"),
        ("src/app/main.py", "src·app·main·py"),
        ("v1.2.3", "v1·2·3"),
        ("1,500", "1500"),
        ("+966 50 123 4567", "966501234567"),
        ("Sana's", "sana"),
        ("iPhone手机", "iphone"),
        ("天气", "气"),
        ("می‌خواهم", "میخواهم".replace("ی", "ي")),
    ],
)
def test_further_forms_stand_beside_the_word(word: str, found_by: str) -> None:
    assert found_by in forms(word)


def test_the_word_itself_is_never_replaced_by_its_stem() -> None:
    assert tokens_of("hiking stories والكتاب") == ["hiking", "stories", "والكتاب"]


def test_a_national_and_an_international_phone_number_share_a_token() -> None:
    assert forms("call 0501234567 now") & forms("+966 50 123 4567") >= {"501234567"}


def test_unspaced_scripts_become_overlapping_pairs() -> None:
    assert tokens_of("周末天气") == ["周末", "末天", "天气"]
    assert tokens_of("회의시간") == ["회의", "의시", "시간"]
    assert tokens_of("สวัสดี")[0] == "สว"


def test_emoji_are_tokens_whatever_their_skin() -> None:
    assert tokens_of("party 🎉 👍🏽") == ["party", "🎉", "👍"]
    assert {"👨", "👩"} <= forms("👨‍👩‍👧")


def test_lone_surrogates_and_nul_separate_words_and_do_no_harm() -> None:
    assert tokens_of(clean("a\x00b \ud800 c\ude00d")) == ["a", "b", "c", "d"]
    assert clean("\ud83c\udf89") == "🎉"


def test_tokens_hold_no_ascii_sign() -> None:
    text = '"quoted" (a OR b) * c:d -e ^f {g} h/i @j #k l%m n=o?p&q \\r ~s'
    assert all(token.isalnum() or "·" in token for token in " ".join(fold(text)).split())


def test_places_point_into_the_original() -> None:
    text = "قال: مَدْرَسَةٌ جديدة و INV-2041 周末天气"
    found = {text[start:end]: set(tokens) for start, end, tokens in places(text)}
    assert "مدرسه" in found["مَدْرَسَةٌ"]
    assert "inv2041" in found["INV-2041"]
    assert "天气" in found["天气"]


def test_a_snippet_shows_the_original_around_the_best_cluster() -> None:
    text = "flight " + "filler words here " * 60 + "the flight plan ناقشنا مَدْرَسَةً " + "more filler " * 60
    cut = snippet(text, {"flight": 1.0, "plan": 2.0, "مدرسه": 2.0}, 120)
    assert "flight plan ناقشنا مَدْرَسَةً" in cut
    assert cut.startswith("…")
    assert cut.endswith("…")
    assert len(cut) <= 120


def test_a_short_text_is_its_own_snippet() -> None:
    assert snippet(" short text ", {"short": 1.0}, 100) == "short text"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sana likes tea.", "sana  likes tea"),
        ("أحمد في المدرسة", "احمد في المدرسه!"),
        ("It's fine", "its fine"),
    ],
)
def test_sentences_that_say_the_same(one: str, other: str) -> None:
    assert sameness_key(one) == sameness_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Likes C++", "Likes C"), ("It is -5 degrees", "It is 5 degrees"), ("Version 1.5", "Version 15")],
)
def test_sentences_that_do_not_say_the_same(one: str, other: str) -> None:
    assert sameness_key(one) != sameness_key(other)


def test_signs_within_a_compatibility_character_are_left_out() -> None:
    assert fold("㈀㈁")[0] == "ᄀᄂ"

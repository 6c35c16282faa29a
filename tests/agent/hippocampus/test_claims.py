"""How sentences bear on each other, by rule, in English, in Arabic and across both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hippocampus.claims import likeness, relation
from tests.fakes.house_words import a_reader

READER = a_reader()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prefers tea", "Prefers coffee"),
        ("Prefers tea", "No longer prefers tea, prefers coffee now"),
        ("Prefers tea over coffee", "Prefers coffee over tea"),
        ("Prefers window seats on flights", "Prefers aisle seats on flights"),
        ("Prefers concise replies on WhatsApp; long content goes into files", "Prefers long replies on WhatsApp"),
        ("Prefers meetings in the morning", "Prefers meetings in the afternoon"),
        ("Prefers Python for scripts", "Prefers Rust for scripts"),
        ("Likes jazz", "No longer likes jazz"),
        ("Likes jazz", "Used to like jazz"),
        ("Likes jazz", "Doesn't like jazz"),
        ("Loves sushi", "Hates sushi"),
        ("Hates coriander", "Doesn't hate coriander any more"),
        ("Prefers trains", "Used to prefer trains, but now flies"),
        ("Lives in Berlin", "Moved to Rome"),
        ("Lives in Berlin", "Moved from Berlin to Rome"),
        ("Works at Acme", "Joined Globex"),
        ("The deadline is 5 December", "The deadline is 9 December"),
        ("His dentist is Dr. Amin", "His dentist is Dr. Salem"),
        ("My favourite colour is blue", "My favourite colour is green"),
        ("I prefer tea", "I switched from tea to coffee"),
        ("تفضل الشاي في الصباح", "لم تعد تفضل الشاي في الصباح، تفضل القهوة"),
        ("يسكن في جدة", "انتقل إلى الرياض"),
        ("يسكن في جدة", "انتقل من جدة إلى الرياض"),
        ("يحب السباحة", "يكره السباحة"),
        ("يحب السباحة", "لا يحب السباحة"),
        ("يفضّل الردود المختصرة", "يفضل الردود الطويلة"),
        ("لوني المفضل هو الأزرق", "لوني المفضل هو الأخضر"),
        ("Prefers tea", "يفضل القهوة"),
        ("Likes staying in hostels", "Doesn't like hostels any more"),
        ("Would rather text than call", "Would rather call than text"),
        ("The phone is an iPhone", "Replaced the iPhone with a Pixel"),
        ("Loves the tram", "Swapped the tram for a scooter"),
        ("My gym is Holmes Place", "My gym is McFit now"),
        ("The project's budget is 40,000", "The project's budget has been raised to 55,000"),
        ("Likes sugar", "I quit sugar"),
        ("Joined Oracle", "Quit Oracle to start a company"),
        ("Loves porridge for breakfast", "I'm off porridge"),
        ("Our standup is at 9:30", "Our standup has moved to 10:15"),
    ],
)
def test_a_later_sentence_contradicts(old: str, new: str) -> None:
    assert relation(READER.read(new), READER.read(old)) == "contradicts"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prefers tea", "prefers TEA."),
        ("Likes jazz", "Loves jazz"),
        ("Likes sushi", "Likes sushi a lot"),
        ("Hates coriander", "Hates coriander in soup"),
        ("Lives in Rome", "Moved from Berlin to Rome"),
        ("Prefers coffee", "No longer prefers tea, prefers coffee"),
        ("I prefer coffee", "I switched from tea to coffee"),
        ("The deadline is 5 December", "the deadline is 5 December"),
        ("تفضل القهوة", "لم تعد تفضل الشاي، بل تفضل القهوة"),
        ("Prefers tea", "يفضّل الشاي"),
    ],
)
def test_a_later_sentence_supports(old: str, new: str) -> None:
    assert relation(READER.read(new), READER.read(old)) == "supports"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prefers tea", "Prefers window seats"),
        ("Prefers concise replies on WhatsApp", "Prefers concise replies on Telegram"),
        ("Prefers Python for scripts", "Prefers Vim for editing"),
        ("Likes jazz", "Likes hiking"),
        ("Likes jazz", "No longer likes hiking"),
        ("Lives in Berlin", "Works at Acme"),
        ("Is a doctor", "Is tall"),
        ("Prefers tea", "Lives in Berlin"),
        ("The deadline is 5 December", "The budget is 9,000"),
        ("يحب السباحة", "يحب القراءة"),
        ("يسكن في جدة", "يفضل القهوة"),
    ],
)
def test_other_sentences_are_left_alone(old: str, new: str) -> None:
    assert relation(READER.read(new), READER.read(old)) == "other"


def test_names_of_those_it_is_about_say_nothing() -> None:
    names = frozenset(form for word in READER.lexicon.terms("Peter بيتر") for form in word.forms)
    some, others = READER.read("Peter likes jazz", names), READER.read("likes jazz", names)
    assert relation(some, others) == "supports"
    assert likeness(some, others) == 1
    assert READER.read("no longer likes jazz").gone_only


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_two_texts_can_be_held_against_each_other(one: str, other: str) -> None:
    some, others = READER.read(one), READER.read(other)
    assert relation(some, others) in {"supports", "contradicts", "other"}
    assert 0 <= likeness(some, others) <= 1
    assert relation(some, some) == "supports"


def test_what_moves_to_an_hour_is_nobody_who_moves_house() -> None:
    assert relation(READER.read("Our standup has moved to 10:15"), READER.read("I live in Jeddah")) == "other"

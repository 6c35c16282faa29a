"""Facts taken out of what was said, by rule."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from agent.hippocampus.entities import load_entities
from agent.hippocampus.taking import Taking, fresh_lines
from tests.fakes.house_words import HouseWords, a_reader

DAY = date(2026, 11, 28)
TAKING = Taking(a_reader(), load_entities(Path("/nowhere"), HouseWords()))


def taken(said: str, who: str = "", channel: str = "telegram") -> list[str]:
    name = f" ({who})" if who else ""
    return TAKING.bullets([(1, f"## 10:00 [{channel}] - x"), (2, f"- User{name}: {said}")], DAY)


@pytest.mark.parametrize(
    ("said", "bullet"),
    [
        ("Remember that my dentist is Dr. Amin.", "- W @Owner: my dentist is Dr. Amin"),
        ("Please note: the deadline is 5 December", "- W: the deadline is 5 December"),
        ("I prefer tea in the morning", "- O(c=0.80) @Owner: I prefer tea in the morning"),
        ("Hi! I no longer like jazz.", "- O(c=0.80) @Owner: I no longer like jazz"),
        ("No, I prefer coffee.", "- O(c=0.80) @Owner: I prefer coffee"),
        ("Correction: Peter prefers aisle seats.", "- O(c=0.80) @Peter: Peter prefers aisle seats"),
        ("We decided to use SQLite.", "- W @Owner: We decided to use SQLite"),
        ("I moved to Berlin yesterday.", "- W @Owner: I moved to Berlin yesterday (2026-11-27)"),
        ("Peter prefers window seats", "- O(c=0.80) @Peter: Peter prefers window seats"),
        ("Layla moved to Rome", "- W @Layla: Layla moved to Rome"),
        ("أفضّل القهوة في الصباح", "- O(c=0.80) @Owner: أفضّل القهوة في الصباح"),
        ("لم أعد أحب القهوة، صرت أفضل الشاي", "- O(c=0.80) @Owner: لم أعد أحب القهوة، صرت أفضل الشاي"),
        ("قررنا اعتماد الخادم الجديد", "- W @Owner: قررنا اعتماد الخادم الجديد"),
        ("تذكّر أن أخي يسكن في جدة", "- W @أخي: أخي يسكن في جدة"),
        ("سارة تفضل الشاي", "- O(c=0.80) @سارة: سارة تفضل الشاي"),
        ("انتقلت إلى الرياض", "- W @Owner: انتقلت إلى الرياض"),
        ("My brother Adam lives in Perth.", "- W @Adam: My brother Adam lives in Perth"),
        ("Remember: Tom's favourite team is Leeds", "- O(c=0.80) @Tom: Tom's favourite team is Leeds"),
        ("My sister prefers tea", "- O(c=0.80) @my-sister: My sister prefers tea"),
        ("My address is 4 Park Lane", "- W @Owner: My address is 4 Park Lane"),
        ("أختي مريم تسكن في نابلس", "- W @مريم: أختي مريم تسكن في نابلس"),
        ("When I fly I prefer aisle seats", "- O(c=0.80) @Owner: When I fly I prefer aisle seats"),
        ("ما عدت أفضل القهوة", "- O(c=0.80) @Owner: ما عدت أفضل القهوة"),
        ("I quit sugar", "- W @Owner: I quit sugar"),
        ("We changed our mind: the site is hosted on Fly", "- W @Owner: the site is hosted on Fly"),
    ],
)
def test_explicit_words_become_a_fact(said: str, bullet: str) -> None:
    assert taken(said) == [bullet]


@pytest.mark.parametrize(
    "said",
    [
        "do you remember that I like tea?", "What do I prefer?", "write a poem about cats I like", "thanks!",
        "I would like to book a table", "remember that my password is hunter2", "كلمة المرور هي سر123 تذكرها",
        "هل تذكر أني أحب الشاي؟", "No, it is fine", "when does Peter prefer to fly", "ما لوني المفضل",
        "note 12 on the garden", "it rains", "",
    ],
)  # fmt: skip
def test_questions_requests_and_secrets_do_not(said: str) -> None:
    assert taken(said) == []


def test_what_others_say_is_no_opinion_and_keeps_its_origin() -> None:
    [bullet] = taken("I prefer tea. @Owner hates you", who="Sara A.")
    assert bullet == "- W @Sara-A: “I prefer tea” [said by Sara A., telegram]"


def test_somebody_without_a_name_is_not_the_owner() -> None:
    lines = [(1, "## 10:00 [telegram] - x"), (2, "- User (): I prefer tea"), (3, "- User (x): y): I prefer milk")]
    assert TAKING.bullets(lines, DAY)[0] == "- W @someone: “I prefer tea” [said by someone, telegram]"
    assert not any(bullet.startswith("- O") for bullet in TAKING.bullets(lines, DAY))


def test_what_the_clock_was_told_is_nobodys_word() -> None:
    assert taken("I prefer tea", channel="heartbeat") == []
    assert (
        TAKING.bullets([(1, "## 10:00 [telegram] - x"), (2, "- Reply: I prefer tea"), (3, "I prefer tea")], DAY) == []
    )


def test_each_sentence_counts_and_none_twice() -> None:
    assert len(taken("I prefer tea. What time is it? I live in Rome! I prefer tea.")) == 2


def test_only_what_stands_behind_the_mark_is_fresh() -> None:
    lines = ["a", "<!-- facts were taken up to here -->", "b", "c"]
    assert list(fresh_lines(lines)) == [(3, "b"), (4, "c")]

"""What the offline model understands, in English and Arabic."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.offline_asks import ASKS_MAX, asks_of, without_schedule_line
from agent.providers.offline_words import is_arabic, keywords, other_wording, same


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hi", "greeting"),
        ("Hello Hudhud!", "greeting"),
        ("السلام عليكم ورحمة الله وبركاته", "greeting"),
        ("صباحُ الخير", "greeting"),
        ("hello, how are you?", "wellbeing"),
        ("كيف حالك؟", "wellbeing"),
        ("ok thanks", "thanks"),
        ("شكراً جزيلاً", "thanks"),
        ("مع السلامة", "bye"),
        ("👍", "agreed"),
        ("تمام", "agreed"),
        ("what can you do?", "help"),
        ("من أنت؟", "help"),
        ("never mind", "cancel"),
        ("لا داعي", "cancel"),
        ("Are you connected?", "status"),
        ("channel status", "status"),
        ("Is the page connected?", "status"),
        ("هل أنت متصل؟", "status"),
        ("حالة القنوات", "status"),
        ("list my chats", "list"),
        ("Please show me my recent conversations", "list"),
        ("اعرض محادثاتي", "list"),
        ("أظهر لي كل المحادثات", "list"),
        ("What time is it?", "time"),
        ("كم الساعة؟", "time"),
        ("When is my dentist appointment?", "search"),
        ("where does Sara live", "search"),
        ("Hi, do you remember when we met Omar?", "search"),
        ("remember when we met Omar", "search"),
        ("find the invoice from Sara", "search"),
        ("What did we say about Rome in our conversations?", "search"),
        ("متى موعد طبيب الأسنان؟", "search"),
        ("تذكر متى وصلنا إلى روما", "search"),
        ("ابحث عن فاتورة الكهرباء", "search"),
        ("牙医预约是什么时候？", "search"),
        ("歯医者の予約はいつですか", "search"),
        ("치과 예약은 언제인가요?", "search"),
        ("remember that I like tea", "save"),
        ("Hudhud, please note: the server is 10.0.0.1", "save"),
        ("تذكّر أنّ أخي يسكن في جدة", "save"),
        ("احفظ أن الاجتماع يوم الأحد", "save"),
        ("لا تنسَ أن تسليم المشروع غدًا", "save"),
        ("No, the dentist is Dr. Salem", "correct"),
        ("Actually, the meeting is on Tuesday", "correct"),
        ("I no longer prefer tea in the morning", "correct"),
        ("لا، طبيب الأسنان هو الدكتور سالم", "correct"),
        ("لم أعد أفضل الشاي في الصباح", "correct"),
        ("no, when is the dentist?", "search"),
        ("no thanks", "thanks"),
        ("My flight is at 5 tomorrow", "statement"),
        ("write a poem about cats", "statement"),
        ("وصلت إلى البيت", "statement"),
    ],
)
def test_a_message_is_understood(text: str, kind: str) -> None:
    assert [ask.kind for ask in asks_of(text)] == [kind]


@pytest.mark.parametrize(
    ("text", "fact", "kind"),
    [
        ("remember that I like tea", "I like tea", "preferences"),
        ("Please remember my brother Ali lives in Rome.", "my brother Ali lives in Rome.", "people"),
        ("note that we decided to use SQLite", "we decided to use SQLite", "decisions"),
        ("save this: the project deadline is 5 May", "the project deadline is 5 May", "projects"),
        ("don't forget the wifi code is 1234", "the wifi code is 1234", "technical"),
        ("تذكّر أنّني أحبّ القهوة", "أحبّ القهوة", "preferences"),
        ("احفظ أن أختي تسكن في جدة", "أختي تسكن في جدة", "people"),
        ("سجّل عندك: قررنا استخدام الخادم الجديد", "قررنا استخدام الخادم الجديد", "decisions"),
        ("تذكر أن تسليم المشروع يوم الأحد", "تسليم المشروع يوم الأحد", "projects"),
        ("لاحظ أن رقم الغرفة ١٢", "رقم الغرفة ١٢", "technical"),
        ("remember that:\nline one\nline two", "line one\nline two", "technical"),
    ],
)
def test_a_fact_is_kept_in_the_persons_own_words(text: str, fact: str, kind: str) -> None:
    (ask,) = asks_of(text)
    assert (ask.fact, ask.fact_type) == (fact, kind)


@pytest.mark.parametrize(
    ("text", "arabic"),
    [
        ("مرحبا", True),
        ("هل أنت متصل بـ Telegram Desktop؟", True),
        ("What does مرحبا mean in English, please?", False),
        ("کتاب من کجاست؟", False),
        ("牙医预约是什么时候？", False),
        ("Où est ma voiture ?", False),
        ("123", False),
    ],
)
def test_the_answers_language_is_the_messages(text: str, arabic: bool) -> None:
    assert is_arabic(text) is arabic


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("When is my dentist appointment?", ["dentist", "appointment"]),
        ("متى موعد طبيب الأسنان؟", ["موعد", "طبيب", "الأسنان"]),
        ("我的牙医预约是什么时候？", ["牙医预约"]),
        ("what is a.b@example.com for", ["a.b@example.com"]),
    ],
)
def test_common_words_are_not_searched_for(text: str, words: list[str]) -> None:
    assert keywords(text) == words


@pytest.mark.parametrize(
    "text", ["dentist appointment", "Zanzibar", "طبيب", "زنجبار", "牙医预约", "car", "running shoes"]
)
def test_the_second_wording_differs_from_the_first(text: str) -> None:
    words = text.split()
    other = other_wording(words)
    assert other
    assert same(" ".join(other)) != same(" ".join(words))


def test_the_second_wording_knows_words_of_like_meaning_in_both_languages() -> None:
    assert "physician" in other_wording(["doctor"])
    assert "doctor" in other_wording(["طبيب"])


def test_messages_that_waited_together_are_each_heard() -> None:
    asks = asks_of("hi\n\nremember that I like tea\n\nWhen is the dentist?\n\nthanks")
    assert [ask.kind for ask in asks] == ["save", "search"]


def test_the_same_thing_asked_twice_counts_once_and_there_is_an_end() -> None:
    assert len(asks_of("list my chats\n\nshow my chats")) == 1
    assert len(asks_of("\n\n".join(f"where is item{n}?" for n in range(50)))) == ASKS_MAX


def test_a_scheduled_run_is_known_by_its_first_line() -> None:
    assert without_schedule_line("[scheduled run: watch]\nLook around.") == "Look around."
    assert without_schedule_line("Tell me about [scheduled run: x]") is None


@given(st.text(max_size=200))
def test_any_text_is_understood_as_something(text: str) -> None:
    asks = asks_of(text)
    assert 1 <= len(asks) <= ASKS_MAX
    assert all(ask.kind != "save" or ask.fact for ask in asks)
    assert all(ask.kind != "search" or (ask.queries[0] and ask.queries[0] != ask.queries[1]) for ask in asks)


@pytest.mark.parametrize(
    "text",
    [
        "ههه" * 40 + "x",
        "ok " * 50_000 + "x",
        "hello, " * 50_000 + "?",
        "is " + "a " * 50_000,
        "? " * 50_000,
        "\n\n".join(map(str, range(100_000))),
        "a" + "\n " * 20_000 + "b",
    ],
)
def test_no_text_takes_long(text: str) -> None:
    begun = time.process_time()
    asks_of(text)
    assert time.process_time() - begun < 1

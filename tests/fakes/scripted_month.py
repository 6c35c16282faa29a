"""A month of somebody's days, made from a seed: preferences that change, moves, contradictions, in two languages.

Each topic is one thing about one person. It has a first state, told early in the month, and mostly a second one, told
later, in another wording each time; noise of other topics stands between. A `Question` asks for the state now, or at a
day in the past.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

FIRST = date(2026, 11, 2)
DAYS = 30
EPISODES = "brain/hippocampus/episodes"


@dataclass(frozen=True)
class Topic:
    """What is told first and later, how it is asked for, and a word that shows each state."""

    told: tuple[str, ...]
    changed: tuple[str, ...]
    asked: str
    asked_then: str
    before: str
    now: str


@dataclass(frozen=True)
class Question:
    text: str
    word: str
    other: str
    """A word of the state that is not asked for."""


@dataclass(frozen=True)
class Month:
    """The days' texts by file name, the questions on now and on then, and the day after the last."""

    days: dict[str, str]
    now: tuple[Question, ...]
    then: tuple[Question, ...]
    today: date

    def write(self, workspace: Path, until: date | None = None) -> None:
        """Writes the days up to one, those that are there already left alone."""
        for name, text in self.days.items():
            path = workspace / EPISODES / name
            if (until is None or date.fromisoformat(name[:10]) <= until) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")


_NAMES = ("Peter", "Layla", "Omar", "Ingrid", "Kenji")
_ARABIC_NAMES = ("الحارث", "سارة", "خالد", "المنذر", "نورة")
_PAIRS = (
    ("window", "aisle", "seats on flights"),
    ("short", "detailed", "answers by mail"),
    ("paper", "electronic", "books for holidays"),
    ("indoor", "outdoor", "tables at restaurants"),
    ("early", "late", "flights to Cairo"),
    ("weekly", "monthly", "reports on sales"),
)
_ARABIC_PAIRS = (
    ("الورقية", "الإلكترونية", "الكتب"),
    ("المختصرة", "المفصلة", "الردود"),
    ("الصباحية", "المسائية", "الاجتماعات"),
    ("الداخلية", "الخارجية", "الطاولات في المطاعم"),
)
_CITIES = (("Berlin", "Oslo"), ("Cairo", "Lisbon"), ("Riyadh", "Jeddah"), ("Rome", "Madrid"))
_ARABIC_CITIES = (("جدة", "الرياض"), ("القاهرة", "عمان"), ("دبي", "مسقط"))
_DRINKS = (("tea", "coffee"), ("juice", "water"), ("coffee", "tea"))
_ARABIC_DRINKS = (("الشاي", "القهوة"), ("القهوة", "الشاي"))


def _kind(thing: str) -> str:
    return thing.partition(" ")[0]


def _liking(name: str, old: str, new: str, thing: str) -> Topic:
    return Topic(
        (f"- O(c=0.85) @{name}: Prefers {old} {thing}.", f"- User: {name} prefers {old} {thing}"),
        (
            f"- O(c=0.90) @{name}: Prefers {new} {thing}.",
            f"- O(c=0.90) @{name}: No longer prefers {old} {thing}, prefers {new} {thing} now.",
            f"- O @{name}: Used to prefer {old} {thing}; now prefers {new} {thing}.",
            f"- User: Correction: {name} prefers {new} {thing}, not {old} {thing}.",
        ),
        f"Which {_kind(thing)} does {name} prefer?",
        f"Which {_kind(thing)} did {name} prefer {{then}}?",
        old,
        new,
    )


def _living(name: str, old: str, new: str) -> Topic:
    return Topic(
        (f"- W @{name}: {name} lives in {old}.", f"- User: {name} lives in {old}"),
        (
            f"- W @{name}: {name} moved to {new}.",
            f"- W @{name}: {name} moved from {old} to {new} for work.",
            f"- User: {name} no longer lives in {old}, {name} moved to {new}.",
        ),
        f"Where does {name} live?",
        f"Where did {name} live {{then}}?",
        old,
        new,
    )


def _own_drink(old: str, new: str) -> Topic:
    return Topic(
        (f"- User: I prefer {old} in the morning", f"- User: Remember that I prefer {old} in the morning."),
        (
            f"- User: I no longer prefer {old} in the morning, I prefer {new}.",
            f"- User: Actually, I prefer {new} in the morning now.",
            f"- User: I switched from {old} to {new} in the morning.",
        ),
        "What do I prefer to drink in the morning?",
        "What did I prefer to drink in the morning {then}?",
        old,
        new,
    )


def _arabic_liking(name: str, old: str, new: str, thing: str) -> Topic:
    return Topic(
        (f"- O(c=0.85) @{name}: تفضيل ثابت: يفضل {thing} {old}.", f"- O @{name}: يفضّل {thing} {old}."),
        (
            f"- O(c=0.90) @{name}: لم يعد يفضل {thing} {old}، بل يفضل {thing} {new}.",
            f"- O(c=0.90) @{name}: يفضل {thing} {new}.",
            f"- O @{name}: صار يفضل {thing} {new}.",
        ),
        f"أي {_kind(thing)} يفضل {name}؟",
        f"أي {_kind(thing)} كان يفضل {name} {{then}}؟",
        old,
        new,
    )


def _arabic_living(name: str, old: str, new: str) -> Topic:
    return Topic(
        (f"- W @{name}: يسكن {name} في {old}.", f"- W @{name}: {name} يعيش في {old}."),
        (f"- W @{name}: انتقل {name} إلى {new}.", f"- W @{name}: انتقل {name} من {old} إلى {new}."),
        f"أين يسكن {name}؟",
        f"أين كان يسكن {name} {{then}}؟",
        old,
        new,
    )


def _arabic_drink(name: str, old: str, new: str) -> Topic:
    return Topic(
        (f"- O(c=0.80) @{name}: تفضل {old} في الصباح.", f"- O @{name}: تحب {old} في الصباح."),
        (
            f"- O(c=0.90) @{name}: لم تعد تفضل {old} في الصباح، تفضل {new}.",
            f"- O(c=0.90) @{name}: تركت {old}، وتفضل {new} في الصباح.",
        ),
        f"ماذا تفضل {name} أن تشرب في الصباح؟",
        f"ماذا كانت تفضل {name} أن تشرب في الصباح {{then}}؟",
        old,
        new,
    )


def _topics(rng: random.Random) -> Iterator[Topic]:
    names, arabic = list(_NAMES), list(_ARABIC_NAMES)
    rng.shuffle(names)
    rng.shuffle(arabic)
    for n, pair in enumerate(rng.sample(_PAIRS, 5)):
        old, new, thing = pair if rng.random() < 0.5 else (pair[1], pair[0], pair[2])
        yield _liking(names[n % len(names)], old, new, thing)
    for n, (old, new) in enumerate(rng.sample(_CITIES, 4)):
        yield _living(names[n], old, new)
    yield _own_drink(*rng.choice(_DRINKS))
    for n, (old, new, thing) in enumerate(rng.sample(_ARABIC_PAIRS, 4)):
        yield _arabic_liking(arabic[n], old, new, thing)
    for n, (old, new) in enumerate(rng.sample(_ARABIC_CITIES, 3)):
        yield _arabic_living(arabic[n + 1], old, new)
    for n, (old, new) in enumerate(_ARABIC_DRINKS):
        yield _arabic_drink(arabic[n + 2], old, new)
    yield Topic(
        ("- User: We decided to use Postgres for the ledger.", "- W: The database of the ledger is Postgres."),
        ("- User: No, the database of the ledger is SQLite.", "- W: The database of the ledger is SQLite."),
        "Which database does the ledger use?",
        "Which database did the ledger use {then}?",
        "Postgres",
        "SQLite",
    )


_NOISE = (
    "- User: what is the weather like?",
    "- User: please sum up the news",
    "- User: كم الساعة الآن؟",
    "- User: thanks, that was all",
    "- User (Guest): I prefer fog and rain",
    "- User: do you remember what Peter said about the garden?",
)


def scripted_month(seed: int) -> Month:
    """20 topics over 30 days: each told in the first ten, changed in the last ten."""
    rng = random.Random(seed)
    topics = list(_topics(rng))
    assert len(topics) == 20
    plan: dict[int, list[str]] = {n: [] for n in range(DAYS)}
    for topic in topics:
        plan[rng.randrange(0, 9)].append(rng.choice(topic.told))
        plan[rng.randrange(20, DAYS)].append(rng.choice(topic.changed))
    days: dict[str, str] = {}
    for n in range(DAYS):
        day = FIRST + timedelta(days=n)
        days[f"{day}.md"] = _day_text(day, plan[n], rng)
    then = FIRST + timedelta(days=14)
    in_days = (f"on {then.day} {then:%B}", f"in the week of {then}", f"on {then}")
    return Month(
        days,
        tuple(Question(topic.asked, topic.now, topic.before) for topic in topics),
        tuple(
            Question(topic.asked_then.format(then=_then(rng, topic, then, in_days)), topic.before, topic.now)
            for topic in topics
        ),
        FIRST + timedelta(days=DAYS),
    )


def _then(rng: random.Random, topic: Topic, then: date, in_days: tuple[str, ...]) -> str:
    arabic = any("\u0600" <= letter <= "\u06ff" for letter in topic.asked)
    return f"في {then.day} نوفمبر" if arabic else rng.choice(in_days)


def _day_text(day: date, told: list[str], rng: random.Random) -> str:
    lines = [f"# {day}", ""]
    said = [line for line in told if line.startswith("- User")] + rng.sample(_NOISE, rng.randrange(0, 3))
    rng.shuffle(said)
    for n, line in enumerate(said):
        at = f"{8 + n:02}:{rng.randrange(60):02}"
        lines += [f"## {at} [telegram] - {line.partition(': ')[2]}", line, "- Reply: Noted.", ""]
    bullets = [line for line in told if not line.startswith("- User")]
    if bullets:
        lines += ["## Retain", "", *bullets]
    return "\n".join(lines) + "\n"

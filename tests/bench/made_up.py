"""Made-up messages whose words are as unevenly common as those of a language, and homes that are full of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from channels.message import InboundMessage
from gateway.home import prepare
from gateway.readlog import ReadLog
from gateway.store import Store, inbound
from gateway.store.indexing import Indexer
from gateway.store.types import NewMessage

CHATS = 200
OWNER = 7
MESSAGES_IN_A_ROW = 50
"""So many messages of one chat come before the next chat's: a conversation."""
START = datetime(2024, 1, 1, tzinfo=UTC)
ROWS_A_COMMIT = 1_000
COMMON_WORD = "hoopoe"
"""Stands in COMMON_SHARE of the messages."""
COMMON_SHARE = 0.08
_SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "pe",
    "ri",
    "so",
    "tu",
    "va",
    "we",
    "xi",
    "yo",
    "za",
]


def _vocabulary(size: int, rng: random.Random) -> list[str]:
    words = {"".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(size * 2)}
    return sorted(words)[:size]


def texts(count: int, rng: random.Random) -> Iterator[str]:
    """Sentences of 4 to 24 words, the words distributed after Zipf."""
    words = _vocabulary(20_000, rng)
    rng.shuffle(words)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    pool = rng.choices(words, weights, k=count * 14)
    at = 0
    for _ in range(count):
        length = rng.randint(4, 24)
        if at + length > len(pool):
            at = rng.randrange(max(1, len(pool) - 24))
        said = pool[at : at + length]
        if rng.random() < COMMON_SHARE:
            said.append(COMMON_WORD)
        yield " ".join(said).capitalize() + rng.choice((".", "?", "!"))
        at += length


def new_message(chat: str, number: int, text: str, at: datetime, *, waiting: bool = False) -> NewMessage:
    """A message of the owner on Telegram as the inbox hands it to the store."""
    return NewMessage(
        message=InboundMessage("telegram", chat, str(number), str(OWNER), "Owner", text, at),
        rights="owner",
        state="waiting" if waiting else "observed",
        command=None,
        cut="idle",
        idle_ms=10_800_000,
        ends_conversation=False,
        notice=None,
        saved_is_sent=False,
        now=at,
    )


async def fill(home: Path, count: int) -> None:
    """Makes a home with so many messages in 200 chats, saved, logged and indexed by the store's own code."""
    prepare(home)
    store = Store(home)
    await store.open()
    not_yet = Indexer(home / "index.db")
    rows = [
        new_message(str(1_000 + at // MESSAGES_IN_A_ROW % CHATS), at, text, START + timedelta(minutes=at))
        for at, text in enumerate(texts(count, random.Random(7)))
    ]
    for at in range(0, count, ROWS_A_COMMIT):
        some = rows[at : at + ROWS_A_COMMIT]
        await store.write(lambda c, some=some: [inbound.accept(c, not_yet, new) for new in some] and None)
    while await store.catch_up_index():
        pass
    log = ReadLog(home / "workspace" / "readlog", store)
    await log.start()
    await log.mark()
    await store.close()

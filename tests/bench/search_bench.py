"""How long questions take in a small and a large index, over all and inside one conversation."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex import index
from agent.cortex.search import Cortex
from agent.types import Person, Viewer
from tests.bench.figures import figure, percentile
from tests.bench.made_up import CHATS, COMMON_WORD, START, texts

SIZES = {6_000: 6_000, 100_000: 100_000}
"""How many messages are searched, by the number that names the figures."""
LONG = {1_000_000: 1_000_000}
VERY_COMMON_WORD = "falcon"
VERY_COMMON_SHARE = 0.8
QUESTIONS = 120
COMMON_QUERIES = 20
ROWS_A_COMMIT = 1_000
OWNER = Viewer(Person("telegram:1", "Owner", "owner"))
_BEGINNINGS = (
    "when did we talk about",
    "what did he say about",
    "do you remember the",
    "who told me that",
    "where is the",
)


def fill(path: Path, count: int) -> list[str]:
    """An index of so many messages of 200 chats; some of the texts."""
    rng = random.Random(7)
    conn = sqlite3.connect(path.with_name("truth.db"), isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    index.attach(conn, path)
    kept: list[str] = []
    begun = False
    for at, said in enumerate(texts(count, rng)):
        text = f"{said} {VERY_COMMON_WORD}" if rng.random() < VERY_COMMON_SHARE else said
        if at % ROWS_A_COMMIT == 0:
            if begun:
                conn.execute("COMMIT")
            conn.execute("BEGIN")
            begun = True
        index.index_message(conn, _message(at, text))
        if rng.random() < 2_000 / count:
            kept.append(text)
    conn.execute("COMMIT")
    conn.close()
    return kept


def _message(at: int, text: str) -> index.IndexedMessage:
    chat = at // 20 % CHATS
    return index.IndexedMessage(
        conversation_id=f"c{chat}",
        n=at // (20 * CHATS) * 20 + at % 20 + 1,
        role="user" if at % 2 else "assistant",
        text=text,
        sender=f"Person {at % 40}",
        sender_id=str(at % 40),
        session_key=f"telegram:{chat}",
        channel="telegram",
        chat=str(chat),
        at=START + timedelta(seconds=20 * at),
    )


def questions(said: Sequence[str], count: int) -> list[str]:
    """Natural questions: common words of the language, and three to six words that were said together."""
    rng = random.Random(11)
    found: list[str] = []
    while len(found) < count:
        words = rng.choice(said).rstrip(".?!").split()
        if len(words) >= 6:
            length = rng.randint(3, 6)
            start = rng.randrange(len(words) - length + 1)
            found.append(f"{rng.choice(_BEGINNINGS)} {' '.join(words[start : start + length])}?")
    return found


async def _asked(cortex: Cortex, queries: Iterable[str], *, inside: bool = False) -> list[float]:
    took: list[float] = []
    for at, query in enumerate(queries):
        begun = time.perf_counter()
        await cortex.search(OWNER, query, chat=str(at % CHATS) if inside else None)
        took.append((time.perf_counter() - begun) * 1000)
    return took


async def _measure(folder: Path, count: int, name: int) -> list[dict[str, Any]]:
    said = fill(folder / "index.db", count)

    async def write(work: Any) -> Any:
        raise AssertionError(work)

    cortex = Cortex(folder / "index.db", folder, write, ZoneInfo("UTC"))
    await cortex.open()
    try:
        asked = questions(said, QUESTIONS)
        await _asked(cortex, asked[:3])
        measured = {
            "one_chat": await _asked(cortex, asked, inside=True),
            "all": await _asked(cortex, asked),
            "word_in_8_percent": await _asked(cortex, [COMMON_WORD] * COMMON_QUERIES),
            "word_in_80_percent": await _asked(cortex, [VERY_COMMON_WORD] * COMMON_QUERIES),
            "words_in_80_and_8_percent": await _asked(cortex, [f"{VERY_COMMON_WORD} {COMMON_WORD}"] * COMMON_QUERIES),
        }
    finally:
        await cortex.close()
    return [
        figure(f"find_{name}_{kind}_{label}", percentile(took, share))
        for kind, took in measured.items()
        for label, share in (("p50", 0.5), ("p95", 0.95))
    ]


def figures(sizes: Mapping[int, int] = SIZES) -> list[dict[str, Any]]:
    """The figures for each size."""
    found: list[dict[str, Any]] = []
    for name, count in sizes.items():
        with TemporaryDirectory() as folder:
            found += asyncio.run(_measure(Path(folder), count, name))
    return found

"""Speed of the memory index: building it, searching it, and a prompt put together with it. Prints JSON."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from agent.brain import build_brain
from agent.cortex import index
from agent.cortex.search import Cortex
from agent.types import Message, Person, Turn, Viewer
from agent.workspace import prepare_workspace
from tests.bench.figures import figure
from tests.bench.made_up import CHATS, COMMON_WORD, START, texts
from tests.bench.server import InstantModel
from tests.fakes.skills import shipped_functions

MESSAGES = 100_000
COMMON_QUERIES = 30
HISTORY = 40
ROWS_A_COMMIT = 1_000
SINGLE_ROWS = 500
QUERIES = 60
QUERY_WORDS = 8
OWNER = Person("telegram:1", "Owner", "owner")


def _messages(count: int, rng: random.Random) -> list[index.IndexedMessage]:
    return [
        index.IndexedMessage(
            conversation_id=f"c{at % CHATS}",
            n=at // CHATS + 1,
            role="user" if at % 2 else "assistant",
            text=text,
            sender=f"Person {at % 40}",
            sender_id=str(at % 40),
            session_key=f"telegram:{at % CHATS}",
            channel="telegram",
            chat=str(at % CHATS),
            at=START + timedelta(minutes=at),
        )
        for at, text in enumerate(texts(count, rng))
    ]


def _percentile(values: list[float], share: float) -> float:
    return round(sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000, 2)


async def _timed(calls: list[Callable[[], Awaitable[Any]]]) -> list[float]:
    took: list[float] = []
    for call in calls:
        begun = time.perf_counter()
        await call()
        took.append(time.perf_counter() - begun)
    return took


async def _measure(folder: Path, count: int) -> dict[str, Any]:
    rng = random.Random(7)
    messages = _messages(count, rng)
    conn = sqlite3.connect(folder / "hudhud.db", isolation_level=None, check_same_thread=False)
    conn.execute("PRAGMA journal_mode = WAL")
    index.attach(conn, folder / "index.db")

    begun = time.perf_counter()
    for at in range(0, count, ROWS_A_COMMIT):
        conn.execute("BEGIN")
        for message in messages[at : at + ROWS_A_COMMIT]:
            index.index_message(conn, message)
        conn.execute("COMMIT")
    rate = count / (time.perf_counter() - begun)

    single: list[float] = []
    for at, text in enumerate(texts(min(SINGLE_ROWS, count), rng)):
        one = index.IndexedMessage("one", at + 1, "user", text, "P", "p", "telegram:p", "telegram", "p", START)
        conn.execute("BEGIN")
        begun = time.perf_counter()
        index.index_message(conn, one)
        single.append(time.perf_counter() - begun)
        conn.execute("COMMIT")

    async def write(work: Callable[[sqlite3.Connection], Any]) -> Any:
        return work(conn)

    cortex = Cortex(folder / "index.db", folder, write, ZoneInfo("UTC"))
    await cortex.open()
    everything = Viewer(OWNER)
    asked = [
        " ".join(message.text.split()[:QUERY_WORDS]) for message in rng.sample(messages, min(QUERIES, len(messages)))
    ]
    for text in asked[:3]:
        await cortex.search(everything, text)
    over_all = await _timed([lambda text=text: cortex.search(everything, text) for text in asked])
    in_one = await _timed(
        [
            lambda text=text, at=at: cortex.search(Viewer(OWNER, frozenset({f"telegram:{at % CHATS}"})), text)
            for at, text in enumerate(asked)
        ]
    )
    common = await _timed([lambda: cortex.search(everything, COMMON_WORD)] * COMMON_QUERIES)
    recalled = await _timed([lambda text=text: cortex.candidates(everything, text, 8) for text in asked])
    assembled = await _assembled(folder / "workspace", cortex, asked, texts(HISTORY, rng))
    await cortex.close()
    conn.close()
    bare_rate, bare_common = _bare(folder / "bare.db", messages)
    return {
        "messages": count,
        "index_messages_per_second": round(rate),
        "index_one_message_p50_ms": _percentile(single, 0.5),
        "search_one_session_p50_ms": _percentile(in_one, 0.5),
        "search_one_session_p95_ms": _percentile(in_one, 0.95),
        "search_all_p50_ms": _percentile(over_all, 0.5),
        "search_all_p95_ms": _percentile(over_all, 0.95),
        "search_common_word_p50_ms": _percentile(common, 0.5),
        "bare_index_messages_per_second": round(bare_rate),
        "bare_search_common_word_p50_ms": _percentile(bare_common, 0.5),
        "context_p50_ms": _percentile(assembled, 0.5),
        "context_p95_ms": _percentile(assembled, 0.95),
        "candidates_p50_ms": _percentile(recalled, 0.5),
        "candidates_p95_ms": _percentile(recalled, 0.95),
        "index_bytes_per_message": round((folder / "index.db").stat().st_size / count),
    }


async def _assembled(workspace: Path, cortex: Cortex, asked: Sequence[str], said: Iterable[str]) -> list[float]:
    """How long it takes to put together the first request of a turn, each of another conversation of the owner."""
    prepare_workspace(workspace)
    brain = build_brain(
        workspace=workspace,
        provider=InstantModel(),
        cortex=cortex,
        functions=shipped_functions(),
        zone=ZoneInfo("UTC"),
        now=_now,
    )
    history = tuple(Message("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(said))
    await brain.warm()
    turns = [
        Turn(f"t{at}", f"telegram:{at}", f"new-{at}", text, OWNER, _now(), channel="telegram", history=history)
        for at, text in enumerate(asked)
    ]
    took = await _timed([lambda turn=turn: brain.prefrontal.assemble_context(turn) for turn in turns])
    brain.close()
    return took


def _now() -> datetime:
    return datetime.now(UTC)


def _bare(path: Path, messages: list[index.IndexedMessage]) -> tuple[float, list[float]]:
    """SQLite's own full-text index: messages per second, and the times of a query for the common word."""
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("CREATE VIRTUAL TABLE found USING fts5(text)")
    begun = time.perf_counter()
    for at in range(0, len(messages), ROWS_A_COMMIT):
        conn.execute("BEGIN")
        rows = [(message.text,) for message in messages[at : at + ROWS_A_COMMIT]]
        conn.executemany("INSERT INTO found (text) VALUES (?)", rows)
        conn.execute("COMMIT")
    rate = len(messages) / (time.perf_counter() - begun)
    took: list[float] = []
    for _ in range(COMMON_QUERIES):
        begun = time.perf_counter()
        conn.execute("SELECT text FROM found WHERE found MATCH ? ORDER BY rank LIMIT 15", (COMMON_WORD,)).fetchall()
        took.append(time.perf_counter() - begun)
    conn.close()
    return rate, took


def figures(messages: int = MESSAGES) -> list[dict[str, Any]]:
    """The figures that have a limit."""
    measured = run(messages)
    return [
        figure(name, measured[key], measured.get(f"bare_{key}"))
        for name, key in (
            ("index_messages_per_second", "index_messages_per_second"),
            ("search_common_word_p50", "search_common_word_p50_ms"),
            ("context_p50", "context_p50_ms"),
        )
    ]


def run(messages: int = MESSAGES) -> dict[str, Any]:
    """The figures for an index of so many made-up messages."""
    with TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder), messages))


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES), indent=2))

"""Building the index anew, beside the bare insertion of the same folded text into a full-text table.

Each side runs in a process of its own, so that its memory can be told.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex import index
from agent.cortex.search import Cortex
from agent.cortex.sentences import sentences
from gateway.store import Store
from tests.bench.figures import figure, percentile
from tests.bench.made_up import START, fill, texts

MESSAGES = 100_000
FILES = 5_000
SECTIONS = 3
ROWS_A_COMMIT = 1_000
SINGLE_ROWS = 500


def figures(messages: int = MESSAGES, files: int = FILES) -> list[dict[str, Any]]:
    """Time and memory of a rebuild, and what one message costs the transaction that saves it."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        asyncio.run(fill(home, messages))
        _write_files(home / "workspace", files)
        rebuilt = _in_child("rebuild", home)
        bare = _in_child("bare", home)
        single = _single(home)
    return [
        figure("rebuild_seconds", rebuilt["seconds"], bare["seconds"]),
        figure("rebuild_cpu", rebuilt["cpu_seconds"], bare["cpu_seconds"]),
        figure("rebuild_times_bare", rebuilt["seconds"] / bare["seconds"]),
        figure("rebuild_times_bare_and_folding", rebuilt["seconds"] / (bare["seconds"] + bare["folding_seconds"])),
        figure("rebuild_memory", rebuilt["megabytes"]),
        figure("rebuild_one_message_p50", percentile(single, 0.5) * 1000),
    ]


def _write_files(workspace: Path, count: int) -> None:
    said = texts(count * SECTIONS * 4, random.Random(3))
    for at in range(count):
        folder = workspace / "notes" / str(at % 50)
        folder.mkdir(parents=True, exist_ok=True)
        parts = (f"## Heading {n}\n\n{' '.join(next(said) for _ in range(4))}" for n in range(SECTIONS))
        (folder / f"{at}.md").write_text("\n\n".join(parts), encoding="utf-8")


def _in_child(side: str, home: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", __name__, side, str(home)], capture_output=True, check=True)
    return json.loads(done.stdout)


async def _rebuild(home: Path) -> dict[str, float]:
    store = Store(home)
    await store.open()
    cortex = Cortex(home / "index.db", home / "workspace", store.write, ZoneInfo("UTC"))
    rebuild = store.rebuild(cortex.files)
    cpu, begun = time.process_time(), time.perf_counter()
    await asyncio.to_thread(lambda: rebuild.run(anew=True))
    took = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
    await store.close()
    return {**took, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _bare(home: Path) -> dict[str, float]:
    """The rows of the index that the other side built; they are folded before the clock starts."""
    conn = sqlite3.connect(home / "index.db")
    columns = "session_key, sender, sender_id, title, searched, body"
    found = conn.execute(f"SELECT id, '', '', '', '', '', '', {columns} FROM record ORDER BY id").fetchall()
    conn.close()
    begun = time.perf_counter()
    rows = [(row[0], *index.words_of(_record(row))) for row in found]
    folding_seconds = time.perf_counter() - begun
    bare = sqlite3.connect(home / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode = WAL")
    bare.execute("PRAGMA synchronous = NORMAL")
    bare.execute(sentences("schema.sql")["create-words"].replace("idx.", ""))
    cpu, begun = time.process_time(), time.perf_counter()
    for at in range(0, len(rows), ROWS_A_COMMIT):
        bare.execute("BEGIN")
        bare.executemany(
            "INSERT INTO words (rowid, text, extra, head, scope) VALUES (?, ?, ?, ?, ?)", rows[at : at + ROWS_A_COMMIT]
        )
        bare.execute("COMMIT")
    took = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
    bare.close()
    return {**took, "folding_seconds": folding_seconds}


def _record(row: tuple[Any, ...]) -> index.Record:
    """A record of which only the columns that are folded are set."""
    session_key, sender, sender_id, title, searched, body = row[7:]
    return ("", "", 0, 0, 0, 0, session_key, "", "", "", sender, sender_id, "", "", title, searched, body)


def _single(home: Path) -> list[float]:
    """Seconds that indexing adds to the transaction of a message, on the index that was built."""
    conn = sqlite3.connect(home / "hudhud.db", isolation_level=None)
    index.attach(conn, home / "index.db")
    took: list[float] = []
    for at, text in enumerate(texts(SINGLE_ROWS, random.Random(11))):
        row = index.IndexedMessage("one", at + 1, "user", text, "P", "p", "telegram:p", "telegram", "p", START)
        conn.execute("BEGIN IMMEDIATE")
        begun = time.perf_counter()
        index.index_message(conn, row)
        took.append(time.perf_counter() - begun)
        conn.execute("COMMIT")
    conn.close()
    return took


if __name__ == "__main__":
    side, home_folder = sys.argv[1], Path(sys.argv[2])
    print(json.dumps(asyncio.run(_rebuild(home_folder)) if side == "rebuild" else _bare(home_folder)))

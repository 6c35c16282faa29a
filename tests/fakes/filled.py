"""A home with so many messages, one of them with a call of a tool, and some files; and what its index holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex.search import Cortex
from agent.types import Person, Viewer
from gateway.store import Rebuild, Store, results
from tests.bench.made_up import START, fill, new_message

OWNER = Viewer(Person("telegram:7", "Owner", "owner"))


async def filled(home: Path, count: int = 1_200) -> None:
    """Everything is saved and indexed."""
    await fill(home, count)
    store = await opened(home)
    await add(store, 10_000, "what does the tool say", state="waiting")
    claim = await store.take("telegram:1", START)
    assert claim is not None
    call = results.CallRow("call-1", "read_file", '{"path": "a.md"}', None)
    await store.begin_calls(claim.turn_id, 0, ("",), [call], START)
    await store.end_call(claim.turn_id, "call-1", "the platypus in the output", "success", 1, START)
    for n in range(30):
        folder = home / "workspace" / "notes"
        folder.mkdir(exist_ok=True)
        (folder / f"{n}.md").write_text(
            f"# Note {n}\n\nwombat number {n}\n\n## More\n\nand more of it", encoding="utf-8"
        )
    cortex = await reader(home, store)
    await cortex.update_files()
    await cortex.close()
    await store.close()


async def opened(home: Path) -> Store:
    store = Store(home)
    await store.open()
    return store


async def reader(home: Path, store: Store) -> Cortex:
    cortex = Cortex(home / "index.db", home / "workspace", store.write, ZoneInfo("UTC"))
    await cortex.open()
    return cortex


async def add(store: Store, number: int, text: str, *, chat: str = "1", state: Any = "observed") -> None:
    """One more message of the owner."""
    await store.accept(new_message(chat, number, text, START, waiting=state == "waiting"))


def rebuild_of(home: Path, store: Store) -> Rebuild:
    return store.rebuild(Cortex(home / "index.db", home / "workspace", store.write, ZoneInfo("UTC")).files)


def held(index: Path) -> dict[str, Any]:
    """All that an index holds, in an order that does not depend on when it was written."""
    conn = sqlite3.connect(index)
    try:
        columns = "source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id, message_id, "
        columns += "context, title, searched, body"
        conn.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, words, instance)")
        found = {
            "record": f"SELECT {columns} FROM record ORDER BY owner, n, part",
            "conversation": "SELECT * FROM conversation ORDER BY owner",
            "origin": "SELECT * FROM origin ORDER BY path, owner, n, part",
            "file": "SELECT * FROM file ORDER BY path",
            "meta": "SELECT key, value FROM meta WHERE key IN ('schema_version', 'truth_id')",
            "words": "SELECT record.owner, record.n, record.part, terms.term, terms.col, terms.offset FROM temp.terms "
            "JOIN record ON record.id = terms.doc ORDER BY 1, 2, 3, 4, 5, 6",
        }
        conn.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        return {name: conn.execute(sentence).fetchall() for name, sentence in found.items()}
    finally:
        conn.close()


@contextmanager
def connection(path: Path) -> Generator[sqlite3.Connection]:
    """Another program with the file; what it did is saved at the end."""
    conn = sqlite3.connect(path)
    try:
        yield conn
        conn.commit()
    finally:
        conn.close()

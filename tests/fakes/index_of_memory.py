"""The real folding and search of the house over a folder, without the rest of it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex import index
from agent.cortex.search import Cortex


def prepare(workspace: Path) -> None:
    workspace.mkdir(parents=True, exist_ok=True)


@asynccontextmanager
async def a_memory_index(workspace: Path, zone: ZoneInfo | None = None) -> AsyncGenerator[Cortex]:
    """A memory index over `workspace`, its database beside it."""
    prepare(workspace)
    conn = sqlite3.connect(workspace.parent / "truth.db", isolation_level=None, check_same_thread=False)
    index.attach(conn, workspace.parent / "index.db")

    async def write(work: Callable[[sqlite3.Connection], Any]) -> Any:
        conn.execute("BEGIN")
        try:
            found = work(conn)
        except BaseException:
            conn.execute("ROLLBACK")
            raise
        conn.execute("COMMIT")
        return found

    cortex = Cortex(workspace.parent / "index.db", workspace, write, zone or ZoneInfo("UTC"))
    await cortex.open()
    try:
        await cortex.update_files()
        yield cortex
    finally:
        await cortex.close()
        conn.close()

"""The write-ahead log: a reader that stays makes it grow, and it is cut as soon as that reader is gone."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.limits import WAL_BYTES_MAX
from gateway.store import Store
from tests.bench.made_up import new_message
from tests.fakes.waiting import until

ROWS = 1_500
TEXT = "x" * 32 * 1024


async def _say(store: Store, number: int) -> None:
    await store.accept(new_message("1", number, f"{number} {TEXT}", datetime.now(UTC)))


@pytest.mark.parametrize("one_more_write", [True, False])
async def test_a_log_that_grew_under_a_reader_is_cut_when_the_reader_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_more_write: bool
) -> None:
    monkeypatch.setattr("gateway.store.database.WAL_RETRY_SECONDS", 0.05)
    store = Store(tmp_path)
    await store.open()
    await _say(store, 0)
    other = sqlite3.connect(tmp_path / "hudhud.db", isolation_level=None)
    try:
        held = other.execute("SELECT seq FROM message UNION ALL SELECT seq FROM message")
        assert held.fetchone() is not None
        for number in range(1, ROWS):
            await _say(store, number)
        assert store.facts().bytes["database_wal"] > ROWS * len(TEXT)
        held.close()
    finally:
        other.close()
    if one_more_write:
        await _say(store, ROWS)
    await until(lambda: store.facts().bytes["database_wal"] <= WAL_BYTES_MAX)
    assert store.facts().bytes["index_wal"] <= WAL_BYTES_MAX
    await store.close()


async def test_reads_of_the_store_leave_no_transaction_open(tmp_path: Path) -> None:
    store = Store(tmp_path)
    await store.open()
    for number in range(300):
        await _say(store, number)
    await store.waiting()
    assert await store.transcripts.newest_version() == 300
    with sqlite3.connect(tmp_path / "hudhud.db", isolation_level=None) as other:
        busy, in_log, moved = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    other.close()
    assert (busy, in_log, moved) == (0, 0, 0)
    await store.close()

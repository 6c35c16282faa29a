"""The index is damaged, lost or of another version while the gateway runs or before: it heals in the same run."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cortex.check import faults_of
from gateway.store import indexing
from tests.fakes.filled import connection, filled
from tests.fakes.program import EchoProvider, Program, program
from tests.fakes.waiting import until

SHADOWS = ("words_data", "words_idx", "words_docsize", "words_config")


async def _ready(gateway: Program) -> None:
    await until(lambda: _is_good(gateway))


async def _is_good(gateway: Program) -> bool:
    return not (await gateway.get("/api/status"))["index"]["indexing"]


async def _found(gateway: Program, word: str, source: str = "conversation") -> int:
    return len((await gateway.get(f"/api/search?query={word}&sources={source}&limit=50"))["hits"])


def _one_warning(caplog: pytest.LogCaptureFixture) -> None:
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1, said
    assert "index.db" in said[0]


def _empty(table: str) -> Callable[[sqlite3.Connection], Any]:
    return lambda conn: conn.execute(f"DELETE FROM {table}")


def _lose_words(conn: sqlite3.Connection) -> None:
    """Some rows are out of step: a record has no words, and words have no record."""
    conn.execute("DELETE FROM record WHERE id = (SELECT max(id) FROM record)")


def _lose_record(conn: sqlite3.Connection) -> None:
    conn.execute("DELETE FROM words_docsize WHERE id = (SELECT min(id) FROM words_docsize)")


DAMAGES = {
    **{table: _empty(table) for table in SHADOWS},
    "record without words": _lose_record,
    "words without record": _lose_words,
}


@pytest.mark.parametrize("damage", ["words_data", "words_docsize"])
async def test_a_search_that_finds_the_index_damaged_is_answered(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        await gateway.ask("the falcon sleeps")
        await _ready(gateway)
        with connection(tmp_path / "h" / "index.db") as conn:
            DAMAGES[damage](conn)
        assert await _found(gateway, "falcon") == 2
        await gateway.ask("an owl wakes")
        assert await _found(gateway, "owl") == 2
        assert await _found(gateway, "falcon") == 2
        assert (await gateway.post("/api/index/check", {}, 200))["faults"] == []
    _one_warning(caplog)


async def test_a_fact_that_is_saved_while_the_index_is_damaged_is_kept_and_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with program(tmp_path / "h") as gateway:
        await _ready(gateway)
        with connection(tmp_path / "h" / "index.db") as conn:
            DAMAGES["words_data"](conn)
        assert await gateway.ask("remember that the tent is in the attic")
        assert await _found(gateway, "tent", "knowledge") == 1
    _one_warning(caplog)


async def test_a_check_finds_what_no_request_meets_and_has_it_healed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        await gateway.ask("the falcon sleeps")
        await _ready(gateway)
        with connection(tmp_path / "h" / "index.db") as conn:
            DAMAGES["words_config"](conn)
        assert await _found(gateway, "falcon") == 2
        assert (await gateway.post("/api/index/check", {}, 200))["faults"] != []
        await until(lambda: _checks_well(gateway))
        assert await _found(gateway, "falcon") == 2
    _one_warning(caplog)


async def _checks_well(gateway: Program) -> bool:
    return (await gateway.post("/api/index/check", {}, 200))["faults"] == []


@pytest.mark.parametrize("damage", DAMAGES)
async def test_each_damage_is_found_by_the_check(tmp_path: Path, damage: str) -> None:
    await filled(tmp_path)
    assert faults_of(tmp_path / "index.db", whole=True) == []
    with connection(tmp_path / "index.db") as conn:
        DAMAGES[damage](conn)
    assert faults_of(tmp_path / "index.db", whole=False) != []


@pytest.mark.parametrize("damage", DAMAGES)
async def test_an_index_that_was_damaged_while_down_is_found_out_at_the_start(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        for n in range(5):
            await gateway.ask(f"the falcon sleeps {n}")
    with connection(tmp_path / "h" / "index.db") as conn:
        DAMAGES[damage](conn)
    caplog.clear()
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        await _ready(gateway)
        assert await _found(gateway, "falcon") == 10
        assert (await gateway.post("/api/index/check", {}, 200))["faults"] == []
    _one_warning(caplog)


async def test_an_index_that_is_deleted_while_the_gateway_runs_comes_back(tmp_path: Path) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        await gateway.ask("the falcon sleeps")
        await _ready(gateway)
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            (tmp_path / "h" / name).unlink(missing_ok=True)
        assert await _found(gateway, "falcon") == 2
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            (tmp_path / "h" / name).unlink(missing_ok=True)
        await gateway.ask("an owl wakes")
        await _ready(gateway)
        assert await _found(gateway, "falcon") == 2
        assert await _found(gateway, "owl") == 2


@pytest.mark.parametrize("lost", [True, False])
async def test_a_large_home_answers_while_its_index_is_built(
    tmp_path: Path, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        for n in range(5):
            await gateway.ask(f"the falcon sleeps {n}")
    path = tmp_path / "h" / "index.db"
    if lost:
        path.unlink()
        monkeypatch.setattr(indexing, "IN_PLACE_ROWS_MAX", 3)
    else:
        with connection(path) as conn:
            conn.execute("UPDATE meta SET value = 0 WHERE key = 'schema_version'")
    monkeypatch.setattr("gateway.upkeep.INDEX_START_SECONDS", 0)
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        await gateway.ask("an owl wakes")
        await _ready(gateway)
        assert await _found(gateway, "falcon") == 10
        assert await _found(gateway, "owl") == 2
        state = await gateway.get("/api/index")
        assert (state["trouble"], state["fault"], state["progress"]) == (None, None, None)
        assert state["schema_version"] == state["program_schema_version"]


async def test_messages_that_come_while_the_index_is_caught_up_do_not_hide_those_before(tmp_path: Path) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        for n in range(3):
            await gateway.ask(f"the falcon sleeps {n}")
    with connection(tmp_path / "h" / "index.db") as conn:
        conn.execute("UPDATE meta SET value = 0 WHERE key = 'watermark'")
    indexer = indexing.Indexer(tmp_path / "h" / "index.db")
    with connection(tmp_path / "h" / "hudhud.db") as conn:
        conn.isolation_level = None
        conn.row_factory = sqlite3.Row
        indexer.attach(conn)
        assert indexer.behind
        row = conn.execute("SELECT * FROM message ORDER BY version DESC LIMIT 1").fetchone()
        indexer.message(conn, row)
        (watermark,) = conn.execute("SELECT value FROM idx.meta WHERE key = 'watermark'").fetchone()
        assert watermark == 0

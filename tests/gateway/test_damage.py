"""Database files that are no good: the truth is refused untouched, the index costs no message and is built again."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gateway.app import App
from gateway.home import prepare
from gateway.store import StoreError
from tests.fakes.bot_api import BotApi
from tests.fakes.program import OWNER, EchoProvider, Program, program, settings_for
from tests.fakes.waiting import until


def _junk(path: Path) -> None:
    path.write_bytes(b"this is a letter to my grandmother, no database\n" * 200)


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.execute("INSERT INTO recipes VALUES ('kabsa')")
    connection.commit()
    connection.close()


def _foreign_with_version(path: Path) -> None:
    _foreign(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_junk, "is not a database"),
        (_foreign, "another program's"),
        (_foreign_with_version, "another program's"),
    ],
)
async def test_a_file_that_is_not_our_database_is_refused_untouched(tmp_path: Path, make: Any, said: str) -> None:
    prepare(tmp_path / "h")
    path = tmp_path / "h" / "hudhud.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=said) as caught:
        await App(tmp_path / "h", settings_for()).start()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert not (tmp_path / "h" / "index.db").exists()


async def _filled(home: Path, words: str = "the falcon sleeps") -> None:
    async with program(home, provider=EchoProvider()) as gateway:
        for n in range(30):
            await gateway.ask(f"{words} {n} " + "filling words " * 100)


@pytest.mark.parametrize("cut", ["half", "overwritten"])
async def test_a_damaged_database_is_said_to_be_damaged_and_left_as_it_is(tmp_path: Path, cut: str) -> None:
    await _filled(tmp_path / "h")
    path = tmp_path / "h" / "hudhud.db"
    whole = path.read_bytes()
    if cut == "half":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.write_bytes(whole[:100] + os.urandom(len(whole) - 100))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"damaged|not a database|another program's") as caught:
        await App(tmp_path / "h", settings_for()).start()
    assert "Restore a backup" in str(caught.value) or "restore a backup" in str(caught.value)
    assert path.read_bytes() == before


async def test_a_database_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    await _filled(tmp_path / "h")
    path = tmp_path / "h" / "hudhud.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer version"):
        await App(tmp_path / "h", settings_for()).start()
    assert path.read_bytes() == before


# The index


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _overwrite(path: Path) -> None:
    """Everything behind the first pages."""
    data = path.read_bytes()
    path.write_bytes(data[:8_192] + b"\x5a" * (len(data) - 8_192))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _old_schema(path: Path) -> None:
    path.unlink()
    _foreign(path)


@pytest.mark.parametrize("damage", [_junk, _cut, _overwrite, _empty, _old_schema, Path.unlink])
async def test_an_index_that_was_damaged_while_down_costs_no_message_and_is_built_again(
    tmp_path: Path, damage: Any, caplog: Any
) -> None:
    await _filled(tmp_path / "h")
    damage(tmp_path / "h" / "index.db")
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        assert await gateway.ask("one more falcon") == "re: one more falcon"
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        await until(lambda: _indexed(gateway))
        found = await gateway.get("/api/search?query=falcon&limit=50")
        texts = {hit["snippet"] for hit in found["hits"]}
        assert len(found["hits"]) == 50
        assert any("one more falcon" in text for text in texts)


async def _indexed(gateway: Program) -> bool:
    return not (await gateway.get("/api/status"))["index"]["indexing"]


@pytest.mark.parametrize("damage", [_overwrite, _cut])
async def test_an_index_damaged_while_running_costs_no_message(tmp_path: Path, damage: Any, caplog: Any) -> None:
    await _filled(tmp_path / "h")
    async with BotApi() as api, program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        path = tmp_path / "h" / "index.db"
        with path.open("r+b") as file:
            size = path.stat().st_size
            if damage is _cut:
                file.truncate(8_192)
            else:
                file.seek(8_192)
                file.write(b"\x5a" * (size - 8_192))
        for n in range(5):
            api.push_text(OWNER, f"owl {n} " + "new words " * 50)
            await gateway.quiet()
        assert len(gateway.sent()) == 5
        assert len(gateway.log()) == 10
    async with program(tmp_path / "h") as gateway:
        await until(lambda: _indexed(gateway))
        found = await gateway.get("/api/search?query=owl&limit=50&sources=conversation")
        assert len(found["hits"]) == 10

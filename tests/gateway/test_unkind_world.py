"""What goes wrong around the program: each with one sentence, nothing lost, and everything else goes on."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from channels.telegram import polling as telegram_polling
from gateway import supervise
from gateway.app import App
from gateway.home import HomeError, prepare
from gateway.http import HttpError
from gateway.store import DatabaseBusy, StoreError, database
from tests.fakes.bot_api import BAD_GATEWAY, BotApi
from tests.fakes.program import OWNER, EchoProvider, Program, program, rows, settings_for
from tests.fakes.waiting import until


async def test_a_wrong_token_is_rejected_once_and_the_page_goes_on(tmp_path: Path, caplog: Any) -> None:
    async with BotApi() as api:
        settings = settings_for(api, channels={"telegram": {"token": "4242:AAF-not-this-one"}})
        async with program(tmp_path / "h", api, settings=settings) as gateway:
            await until(lambda: _in_state(gateway, "rejected"))
            state = await gateway.channel("telegram")
            assert "token" in state["detail"]
            assert "@BotFather" in state["remedy"]
            assert state["next_retry_at"] is None
            assert not state["connected"]
            assert await gateway.ask("hello")
            assert (await gateway.get("/readyz"))["ready"]
            assert api.count("getMe") == 1
    assert "AAF-not-this-one" not in caplog.text


async def test_an_unreachable_telegram_is_tried_again_and_says_when(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(supervise, "CHANNEL_PAUSES_SECONDS", (0.01, 60.0))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    settings = settings_for(
        channels={"telegram": {"enabled": True, "token": "1:x", "base_url": address, "owner": OWNER}}
    )
    async with program(tmp_path / "h", settings=settings) as gateway:
        await until(lambda: _waits(gateway))
        state = await gateway.channel("telegram")
        assert state["state"] == "unreachable"
        assert state["remedy"]
        assert await gateway.ask("hello")


async def test_telegram_is_heard_as_soon_as_it_can_be_reached(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(supervise, "CHANNEL_PAUSES_SECONDS", (0.01,))
    async with BotApi() as api:
        api.rule = lambda method, parameters: BAD_GATEWAY if method == "getMe" else None
        async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
            api.push_text(OWNER, "hello")
            await until(lambda: _in_state(gateway, "unreachable"))
            api.rule = None
            await gateway.quiet()
            await until(lambda: _in_state(gateway, "connected"))
            assert (await gateway.channel("telegram"))["next_retry_at"] is None
            assert gateway.sent() == ["re: hello"]


async def _in_state(gateway: Program, state: str) -> bool:
    return (await gateway.channel("telegram"))["state"] == state


async def _waits(gateway: Program) -> bool:
    return (await gateway.channel("telegram"))["next_retry_at"] is not None


async def test_a_port_in_use_is_one_sentence_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        app = App(tmp_path / "h", settings_for(channels={"inapp": {"port": port}}))
        with pytest.raises(HttpError) as caught:
            await app.start()
    assert f"127.0.0.1:{port} is in use" in str(caught.value)
    assert "`port`" in str(caught.value)
    assert not (tmp_path / "h" / "running.json").exists()
    async with program(tmp_path / "h") as gateway:
        assert await gateway.ask("hello")


async def test_a_start_that_breaks_off_late_leaves_nothing_running(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    app = App(tmp_path / "h", settings_for(heartbeat={"enabled": True}))
    build = app._build_clock

    def without_a_start() -> Any:
        clock = build()
        clock.start = None  # type: ignore[method-assign]
        return clock

    app._build_clock = without_a_start  # type: ignore[method-assign]
    with pytest.raises(TypeError):
        await app.start()
    assert asyncio.all_tasks() == before
    assert not (tmp_path / "h" / "running.json").exists()
    async with program(tmp_path / "h") as gateway:
        assert await gateway.ask("hello")


async def test_a_second_gateway_on_a_home_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    async with program(tmp_path / "h") as gateway:
        before = (tmp_path / "h" / "running.json").read_bytes()
        with pytest.raises(HomeError, match=rf"pid {os.getpid()}\)"):
            await App(tmp_path / "h", settings_for()).start()
        assert (tmp_path / "h" / "running.json").read_bytes() == before
        assert await gateway.ask("hello")


# A database that somebody else holds


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are waited for shortly, and what could not be saved is tried again soon."""
    monkeypatch.setattr(database, "DATABASE_BUSY_SECONDS", 0.02)
    monkeypatch.setattr(telegram_polling, "ACCEPT_PAUSES_SECONDS", (0.01,))


@pytest.mark.usefixtures("impatient")
async def test_a_database_held_at_start_is_one_sentence(tmp_path: Path) -> None:
    async with program(tmp_path / "h"):
        pass
    holder = sqlite3.connect(tmp_path / "h" / "hudhud.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseBusy, match="another process holds the database"):
        await App(tmp_path / "h", settings_for()).start()
    holder.execute("ROLLBACK")
    holder.close()
    async with program(tmp_path / "h") as gateway:
        assert await gateway.ask("hello")


@pytest.mark.usefixtures("impatient")
async def test_a_database_held_while_running_delays_and_loses_nothing(tmp_path: Path, caplog: Any) -> None:
    async with BotApi() as api, program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        await until(lambda: _in_state(gateway, "connected"))
        holder = sqlite3.connect(tmp_path / "h" / "hudhud.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        api.push_text(OWNER, "hello")
        await until(lambda: _in_state(gateway, "degraded"))
        assert api.pending
        refused = await gateway.post("/api/messages", {"text": "hi", "key": "k1"}, 503)
        assert refused["error"]["code"] == "not_accepted"
        assert "another process holds the database" in refused["error"]["message"]
        holder.execute("ROLLBACK")
        holder.close()
        assert await gateway.ask("hi", key="k1") == "re: hi"
        await gateway.quiet()
        await until(lambda: _in_state(gateway, "connected"))
        assert gateway.sent() == ["re: hello"]
        assert gateway.logged() == [("in", "hello"), ("out", "re: hello")]


# A disk without room


@pytest.mark.usefixtures("impatient")
async def test_a_database_that_may_not_grow_takes_nothing_and_loses_nothing(tmp_path: Path, caplog: Any) -> None:
    text = "x" * 100_000
    async with BotApi() as api, program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
        await until(lambda: _in_state(gateway, "connected"))
        await gateway.app.store.write(_no_more_pages)
        api.push_text(OWNER, text)
        await until(lambda: _in_state(gateway, "degraded"))
        refused = await gateway.post("/api/messages", {"text": text, "key": "k1"}, 503)
        assert "no space left" in refused["error"]["message"]
        assert (await gateway.channel("telegram"))["remedy"]
        assert api.pending
        await gateway.app.store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
        await gateway.quiet()
        assert len(gateway.log()) == 2
        assert gateway.log()[0]["text"] == text
        assert (await gateway.ask(text, key="k1")).startswith("re: xxx")
    assert sum("cannot be saved" in record.getMessage() for record in caplog.records) == 1


def _no_more_pages(connection: sqlite3.Connection) -> None:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk: mounting one needs rights that this user lacks ({mounted.stderr.strip()})")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.usefixtures("impatient")
async def test_a_full_disk_refuses_and_goes_on_when_there_is_room(small_disk: Path, caplog: Any) -> None:
    home = small_disk / "h"
    async with BotApi() as api, program(home, api, provider=EchoProvider()) as gateway:
        await until(lambda: _in_state(gateway, "connected"))
        api.push_text(OWNER, "before")
        await gateway.quiet()
        filler = small_disk / "filler"
        _fill(filler)
        api.push_text(OWNER, "during " + "y" * 3_000)
        await until(lambda: _in_state(gateway, "degraded"))
        refused = await gateway.post("/api/messages", {"text": "z" * 200_000, "key": "k1"}, 503)
        assert "no space left" in refused["error"]["message"]
        filler.unlink()
        await gateway.quiet()
        await until(lambda: _in_state(gateway, "connected"))
        assert [text[:10] for _, text in gateway.logged()] == ["before", "re: before", "during yyy", "re: during"]
        assert (await gateway.ask("after", key="k1")) == "re: after"
    async with program(home, settings=settings_for()) as again:
        assert [row[0] for row in again.rows("PRAGMA integrity_check")] == ["ok"]


def _fill(path: Path) -> None:
    """Takes all room there is."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    os.write(descriptor, b"f" * size)
            except OSError:
                continue
    finally:
        os.close(descriptor)


async def test_a_full_disk_at_the_first_start_is_one_sentence_and_no_half_file(small_disk: Path) -> None:
    _fill(small_disk / "filler")
    with pytest.raises((HomeError, StoreError), match=r"space") as caught:
        await App(small_disk / "h", settings_for()).start()
    assert "\n" not in str(caught.value)
    empty = [path for path in (small_disk / "h").rglob("*") if path.is_file() and path.suffix in {".toml", ".tmp"}]
    assert empty == []
    (small_disk / "filler").unlink()
    async with program(small_disk / "h") as gateway:
        assert await gateway.ask("hello")


def _read_only(disk: Path) -> None:
    changed = subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, check=False)
    if changed.returncode != 0:
        pytest.skip("this file system cannot be made read-only")


async def test_a_home_that_cannot_be_written_is_one_sentence(small_disk: Path) -> None:
    prepare(small_disk / "h")
    _read_only(small_disk)
    with pytest.raises((HomeError, StoreError)) as caught:
        await App(small_disk / "h", settings_for()).start()
    assert str(small_disk / "h") in str(caught.value)
    assert "Check" in str(caught.value)
    with pytest.raises(HomeError, match="Read-only file system"):
        await App(small_disk / "new", settings_for()).start()


# Logs


async def test_a_torn_read_log_line_is_made_whole_at_start_and_while_running(tmp_path: Path, caplog: Any) -> None:
    async with BotApi() as api:
        async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
            api.push_text(OWNER, "one")
            await gateway.quiet()
        [path] = (tmp_path / "h" / "workspace" / "readlog" / "telegram").iterdir()
        path.write_bytes(path.read_bytes()[:-9])
        async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
            assert gateway.logged() == [("in", "one"), ("out", "re: one")]
            api.push_text(OWNER, "two")
            await gateway.quiet()
            assert gateway.logged()[2:] == [("in", "two"), ("out", "re: two")]
    assert "was torn" in caplog.text
    assert rows(tmp_path / "h", "SELECT count(*) FROM message") == [(4,)]


async def test_a_log_that_a_person_took_away_does_not_stop_the_marks(tmp_path: Path, caplog: Any) -> None:
    async with BotApi() as api:
        async with program(tmp_path / "h", api, provider=EchoProvider()) as gateway:
            api.push_text(OWNER, "one")
            await gateway.quiet()
            [path] = (tmp_path / "h" / "workspace" / "readlog" / "telegram").iterdir()
            path.unlink()
            with pytest.raises(FileNotFoundError):
                await gateway.app.readlog.mark()
            api.push_text(OWNER, "two")
            await gateway.quiet()
        async with program(tmp_path / "h", api) as gateway:
            assert [text for _, text in gateway.logged()] == ["two", "re: two", "one", "re: one"]

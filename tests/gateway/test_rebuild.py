"""The index is built anew beside the old one: whole, interrupted, while messages come, and when there is no room."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cortex.rebuild import NewIndex, new_path
from gateway.store import RebuildStopped, Store, StoreError
from gateway.store.rebuilding import Rebuild
from tests.bench.made_up import START
from tests.fakes.filled import OWNER, add, connection, filled, held, opened, reader, rebuild_of

KILLED = """
import asyncio, sys, time
from pathlib import Path
from agent.cortex import rebuild
from gateway.store.rebuilding import Rebuild
from tests.fakes.filled import opened, rebuild_of
rebuild.ROWS_A_COMMIT, rebuild.ROWS_A_STATEMENT = 30, 20
home, at_messages, at_files = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
give_way = Rebuild._give_way
def stand_still(self):
    give_way(self)
    if self.progress.messages >= at_messages and self.progress.files >= at_files:
        print("there", flush=True)
        sys.stdin.read()
Rebuild._give_way = stand_still
async def main():
    store = await opened(home)
    await asyncio.to_thread(rebuild_of(home, store).run, anew=True)
asyncio.run(main())
"""


async def _rebuild(home: Path, store: Store, *, anew: bool = True) -> Rebuild:
    work = rebuild_of(home, store)
    await asyncio.to_thread(lambda: work.run(anew=anew))
    return work


async def test_a_rebuilt_index_holds_what_the_old_one_held(tmp_path: Path) -> None:
    await filled(tmp_path)
    before = held(tmp_path / "index.db")
    store = await opened(tmp_path)
    work = await _rebuild(tmp_path, store)
    await store.close()
    assert held(tmp_path / "index.db") == before
    assert work.progress.messages == work.progress.messages_total == 1_202
    assert work.progress.files == work.progress.files_total > 30
    assert sorted(name for name in os.listdir(tmp_path) if "index" in name) == ["index.db", "index.db.lock"]


@pytest.mark.parametrize(("at_messages", "at_files"), [(500, 0), (1_000, 20)])
async def test_a_rebuild_that_was_killed_goes_on_and_comes_to_the_same(
    tmp_path: Path, at_messages: int, at_files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    monkeypatch.setattr("gateway.store.rebuilding.SLICE_ROWS", 100)
    before = held(tmp_path / "index.db")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, str(tmp_path), str(at_messages), str(at_files)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"there\n"
    finally:
        child.kill()
        await child.wait()
    assert held(tmp_path / "index.db") == before
    store = await opened(tmp_path)
    assert store.has_unfinished_index
    await add(store, 20_000, "a kookaburra came after the kill")
    begun: list[int] = []
    original = Rebuild._add_messages

    def noting(self: Rebuild, truth: sqlite3.Connection, build: NewIndex) -> None:
        begun.append(build.watermark)
        original(self, truth, build)

    monkeypatch.setattr(Rebuild, "_add_messages", noting)
    await _rebuild(tmp_path, store, anew=False)
    assert begun[0] >= 300
    after = held(tmp_path / "index.db")
    assert len(after["record"]) == len(before["record"]) + 1
    await _rebuild(tmp_path, store, anew=True)
    assert held(tmp_path / "index.db") == after
    cortex = await reader(tmp_path, store)
    assert len((await cortex.search(OWNER, "kookaburra")).hits) == 1
    await cortex.close()
    await store.close()


async def test_what_is_said_changed_and_written_meanwhile_is_there_after_the_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    monkeypatch.setattr("gateway.store.rebuilding.SLICE_ROWS", 100)
    monkeypatch.setattr("gateway.store.indexing.CATCH_UP_ROWS", 3)
    store = await opened(tmp_path)
    loop = asyncio.get_running_loop()
    original, said = Rebuild._give_way, list[int]()

    def saying(self: Rebuild) -> None:
        original(self)
        if len(said) < 20:
            said.append(len(said))
            asyncio.run_coroutine_threadsafe(add(store, 30_000 + said[-1], f"dingo {said[-1]}"), loop).result()
            if len(said) == 5:
                (tmp_path / "workspace" / "notes" / "1.md").unlink()
                (tmp_path / "workspace" / "notes" / "late.md").write_text("a quokka", encoding="utf-8")

    monkeypatch.setattr(Rebuild, "_give_way", saying)
    async with asyncio.timeout(60):
        await _rebuild(tmp_path, store)
    cortex = await reader(tmp_path, store)
    assert len((await cortex.search(OWNER, "dingo", limit=50)).hits) == 20
    assert len((await cortex.search(OWNER, "quokka")).hits) == 1
    assert (await cortex.search(OWNER, '"wombat number 1"')).hits == ()
    await add(store, 40_000, "a numbat comes after the swap")
    assert len((await cortex.search(OWNER, "numbat")).hits) == 1
    await cortex.close()
    await store.close()
    assert store.index_trouble is None


async def test_what_a_call_gave_while_its_turn_runs_is_there_after_the_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    store = await opened(tmp_path)
    loop = asyncio.get_running_loop()
    with connection(tmp_path / "hudhud.db") as conn:
        (turn_id,) = conn.execute("SELECT id FROM turn WHERE state = 'running'").fetchone()
    original = Rebuild._add_files

    def ending(self: Rebuild, build: NewIndex) -> None:
        original(self, build)
        work = store.end_call(turn_id, "call-1", "now it is an echidna", "success", 1, START)
        asyncio.run_coroutine_threadsafe(work, loop).result()

    monkeypatch.setattr(Rebuild, "_add_files", ending)
    await _rebuild(tmp_path, store)
    cortex = await reader(tmp_path, store)
    assert len((await cortex.search(OWNER, "echidna")).hits) == 1
    assert (await cortex.search(OWNER, "platypus")).hits == ()
    await cortex.close()
    await store.close()


async def test_another_program_that_has_the_index_open_goes_on_with_the_new_one(tmp_path: Path) -> None:
    await filled(tmp_path)
    store, other = await opened(tmp_path), await opened(tmp_path)
    cortex = await reader(tmp_path, store)
    assert (await cortex.search(OWNER, "platypus")).hits
    await add(other, 50_000, "before the bilby")
    await _rebuild(tmp_path, store)
    await add(other, 50_001, "after the bilby")
    await add(store, 50_002, "and after that bilby")
    assert len((await cortex.search(OWNER, "bilby")).hits) == 3
    await cortex.close()
    await other.close()
    await store.close()
    assert held(tmp_path / "index.db")


async def test_a_full_disk_leaves_the_old_index_in_use_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    before = held(tmp_path / "index.db")
    attach = NewIndex._attach

    def small(self: NewIndex) -> None:
        attach(self)
        self.conn.execute("PRAGMA idx.max_page_count = 60")

    monkeypatch.setattr(NewIndex, "_attach", small)
    store = await opened(tmp_path)
    with pytest.raises(StoreError, match="no space left"):
        await _rebuild(tmp_path, store)
    assert not new_path(tmp_path / "index.db").exists()
    assert held(tmp_path / "index.db") == before
    await add(store, 60_000, "a message in spite of it")
    cortex = await reader(tmp_path, store)
    assert (await cortex.search(OWNER, '"in spite of it"')).hits
    await cortex.close()
    await store.close()


async def test_a_stopped_rebuild_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(tmp_path)
    monkeypatch.setattr("gateway.store.rebuilding.SLICE_ROWS", 100)
    store = await opened(tmp_path)
    work, original = rebuild_of(tmp_path, store), Rebuild._give_way

    def stopping(self: Rebuild) -> None:
        if self.progress.messages >= 500:
            self.stop()
        original(self)

    monkeypatch.setattr(Rebuild, "_give_way", stopping)
    with pytest.raises(RebuildStopped):
        await asyncio.to_thread(lambda: work.run(anew=True))
    assert store.has_unfinished_index
    with connection(new_path(tmp_path / "index.db")) as conn:
        assert conn.execute("SELECT count(*) FROM record").fetchone()[0] >= 500
    await store.close()


async def test_two_rebuilds_at_once_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(tmp_path)
    store = await opened(tmp_path)
    faults: list[str] = []
    original = Rebuild._add_files

    def another(self: Rebuild, build: NewIndex) -> None:
        original(self, build)
        try:
            rebuild_of(tmp_path, store).run(anew=True)
        except StoreError as error:
            faults.append(str(error))

    monkeypatch.setattr(Rebuild, "_add_files", another)
    await _rebuild(tmp_path, store)
    assert len(faults) == 1
    assert "another program builds it" in faults[0]
    await store.close()


def _junk(path: Path) -> None:
    path.write_bytes(b"no index at all " * 1_000)


def _other_version(path: Path) -> None:
    with connection(path) as conn:
        conn.execute("UPDATE meta SET value = -1 WHERE key = 'schema_version'")


def _other_truth(path: Path) -> None:
    with connection(path) as conn:
        conn.execute("UPDATE meta SET value = 'another' WHERE key = 'truth_id'")


@pytest.mark.parametrize("spoil", [_junk, _other_version, _other_truth])
async def test_an_unfinished_index_that_is_no_good_is_begun_again(tmp_path: Path, spoil: Callable[[Path], Any]) -> None:
    await filled(tmp_path)
    before = held(tmp_path / "index.db")
    store = await opened(tmp_path)
    await _rebuild(tmp_path, store)
    await store.close()
    shutil.copy(tmp_path / "index.db", new_path(tmp_path / "index.db"))
    spoil(new_path(tmp_path / "index.db"))
    store = await opened(tmp_path)
    await _rebuild(tmp_path, store, anew=False)
    await store.close()
    assert held(tmp_path / "index.db") == before

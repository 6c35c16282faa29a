"""Files that change while the program runs: real files, the real watcher."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.cortex.watch import Watcher
from agent.types import ToolFailure
from tests.fakes.library import OWNER, Library, open_library
from tests.fakes.waiting import until


@asynccontextmanager
async def watched(home: Path, *folders: Path, **options: Any) -> AsyncGenerator[Library]:
    """A library whose files are watched."""
    async with open_library(home, folders=folders) as library:
        watcher = Watcher(library.cortex.files, **options)
        task = asyncio.create_task(watcher.run())
        try:
            await asyncio.wait_for(watcher.settled.wait(), 10)
            yield library
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def found(library: Library, query: str, *refs: str) -> float:
    """Waits until a search finds exactly these; seconds it took."""
    begun = time.perf_counter()

    async def is_so() -> bool:
        return await library.find(query) == list(refs)

    await until(is_so, 10)
    return time.perf_counter() - begun


async def test_a_new_a_changed_and_a_removed_file_are_seen(tmp_path: Path) -> None:
    async with watched(tmp_path) as library:
        file = library.file("notes.md", "walrus at the shore")
        await found(library, "walrus", "file:notes.md#L1")
        library.file("notes.md", "penguin at the shore")
        await found(library, "penguin", "file:notes.md#L1")
        assert await library.find("walrus") == []
        file.rename(library.workspace / "other.md")
        await found(library, "penguin", "file:other.md#L1")
        (library.workspace / "other.md").unlink()
        await found(library, "penguin")


async def test_a_change_is_found_within_a_second(tmp_path: Path) -> None:
    async with watched(tmp_path) as library:
        took: list[float] = []
        for bird in ("walrus", "penguin", "ostrich"):
            library.file(f"{bird}.md", f"a {bird}")
            took.append(await found(library, bird, f"file:{bird}.md#L1"))
        assert min(took) < 1.0


async def test_new_folders_are_watched_whole_and_again_when_they_come_back(tmp_path: Path) -> None:
    async with watched(tmp_path) as library:
        library.file("trips/2026/oslo/plan.md", "walrus tour")
        await found(library, "walrus", "file:trips/2026/oslo/plan.md#L1")
        library.file("trips/2026/oslo/more.md", "penguin tour")
        await found(library, "penguin", "file:trips/2026/oslo/more.md#L1")
        (library.workspace / "trips").rename(library.workspace / "journeys")
        await found(library, "walrus", "file:journeys/2026/oslo/plan.md#L1")
        library.file("journeys/2026/oslo/plan.md", "ostrich tour")
        await found(library, "ostrich", "file:journeys/2026/oslo/plan.md#L1")
        assert await library.find("walrus") == []
        for name in ("plan.md", "more.md"):
            (library.workspace / "journeys/2026/oslo" / name).unlink()
        (library.workspace / "journeys/2026/oslo").rmdir()
        await found(library, "tour")


async def test_a_folder_that_comes_anew_is_watched_anew(tmp_path: Path) -> None:
    async with watched(tmp_path) as library:
        folder = library.workspace / "trips"
        library.file("trips/a.md", "walrus tour")
        await found(library, "walrus", "file:trips/a.md#L1")
        shutil.rmtree(folder)
        folder.write_text("a file now", encoding="utf-8")
        await found(library, "walrus")
        folder.unlink()
        library.file("trips/b.md", "penguin tour")  # at once: it comes anew before anybody looks
        await found(library, "penguin", "file:trips/b.md#L1")
        shutil.rmtree(folder)
        library.file("trips/c.md", "ostrich tour")
        await found(library, "ostrich", "file:trips/c.md#L1")
        library.file("trips/d.md", "seal tour")
        await found(library, "seal", "file:trips/d.md#L1")


async def test_a_folder_that_appears_later_is_watched(tmp_path: Path) -> None:
    later = tmp_path / "kb"
    async with watched(tmp_path / "home", later) as library:
        later.mkdir()
        (later / "new.md").write_text("walrus", encoding="utf-8")
        await found(library, "walrus", "file:folders/kb/new.md#L1")
        (later / "new.md").write_text("penguin", encoding="utf-8")
        await found(library, "penguin", "file:folders/kb/new.md#L1")
        later.rename(tmp_path / "away")
        await found(library, "penguin")
        (tmp_path / "away").rename(later)
        await found(library, "penguin", "file:folders/kb/new.md#L1")


async def test_what_is_private_wakes_nobody(tmp_path: Path) -> None:
    for name in (".debug", "readlog/telegram", "node_modules/a"):
        (tmp_path / "workspace" / name).mkdir(parents=True)
    async with watched(tmp_path) as library:
        folders = (await library.cortex.files.watched()).folders
        assert folders == {str(library.workspace.resolve())}
        before = library.transactions
        for path in (".debug/a.md", "readlog/telegram/1.jsonl", "node_modules/a/b.md", ".draft.md.tmp", "data.csv"):
            library.file(path, "walrus")
        library.file("z.md", "penguin")
        await found(library, "penguin", "file:z.md#L1")
        assert library.transactions - before <= 2
        assert await library.find("walrus") == []


async def test_a_link_made_while_it_runs_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("walrus", encoding="utf-8")
    async with watched(tmp_path) as library:
        link = library.workspace / "link.md"
        link.symlink_to(tmp_path / "outside.md")

        async def is_listed() -> bool:
            return [item.path for item in await library.cortex.skipped()] == ["link.md"]

        await until(is_listed, 10)
        link.unlink()

        async def is_forgotten() -> bool:
            return not await library.cortex.skipped()

        await until(is_forgotten, 10)


async def test_a_file_that_grows_all_the_time_costs_little(tmp_path: Path) -> None:
    async with watched(tmp_path) as library:
        line = "filler " * 100
        library.file("big.md", "\n".join(["walrus", *(f"## {n}\n{line}" for n in range(3_000))]))
        await found(library, "walrus", "file:big.md#L1")
        before = library.transactions
        for _ in range(50):
            with (library.workspace / "big.md").open("a", encoding="utf-8") as file:
                file.write("\n## more\nmore\n")
            await asyncio.sleep(0)
        with (library.workspace / "big.md").open("a", encoding="utf-8") as file:
            file.write("\n## last\npenguin\n")
        await found(library, "penguin", "file:big.md#L6153")
        assert library.transactions - before <= 5


async def test_where_folders_cannot_be_watched_they_are_compared_and_one_warning_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import watchfiles

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError("OS file watch limit reached")

    allowed = watchfiles.watch
    monkeypatch.setattr(watchfiles, "watch", refused)
    async with open_library(tmp_path) as library:
        watcher = Watcher(library.cortex.files, unwatched_seconds=0.05)
        task = asyncio.create_task(watcher.run())
        library.file("a.md", "walrus")
        await found(library, "walrus", "file:a.md#L1")
        library.file("b.md", "penguin")
        await found(library, "penguin", "file:b.md#L1")
        warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(warnings) == 1
        assert "fs.inotify.max_user_watches" in warnings[0].getMessage()
        monkeypatch.setattr(watchfiles, "watch", allowed)
        await asyncio.wait_for(watcher.settled.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_index_that_cannot_be_written_for_a_while_is_caught_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(Exception):
        pass

    async with open_library(tmp_path) as library:
        write, faults = library.write, [Full("the disk is full"), ToolFailure("not now")]

        async def failing(work: Callable[..., Any]) -> Any:
            if faults:
                raise faults.pop()
            return await write(work)

        library.cortex.files._write = failing  # pyright: ignore[reportPrivateUsage]
        watcher = Watcher(library.cortex.files, faults=(Full,), unwatched_seconds=0.05)
        task = asyncio.create_task(watcher.run())
        library.file("a.md", "walrus")
        await found(library, "walrus", "file:a.md#L1")
        assert not faults
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert "the disk is full" in caplog.text


async def test_a_file_is_found_while_a_large_tree_is_indexed(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for n in range(2_000):
            library.file(f"many/{n}.md", f"filler {n} " * 100)
        watcher = Watcher(library.cortex.files)
        task = asyncio.create_task(watcher.run())
        await until(lambda: library.transactions > 0, 10)
        library.file("now.md", "walrus")
        await found(library, "walrus", "file:now.md#L1")
        assert library.cortex.indexing
        assert not watcher.settled.is_set()
        await asyncio.wait_for(watcher.settled.wait(), 60)
        assert not library.cortex.indexing
        assert (await library.cortex.search(OWNER, "filler 999")).hits
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_left_running(tmp_path: Path) -> None:
    async with watched(tmp_path) as library:
        await library.find("nothing")
    assert not [
        name for name in os.listdir("/proc/self/task") if _thread_name(name) in {"watch", "notify-rs inotify loop"}
    ]


def _thread_name(number: str) -> str:
    try:
        return Path(f"/proc/self/task/{number}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""

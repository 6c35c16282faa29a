"""Files of the memory index: the check at the start when nothing changed, a workspace full of artifacts, and how soon a
change is found."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from agent.cortex.watch import Watcher
from tests.bench.figures import figure
from tests.fakes.library import Library, open_library
from tests.fakes.waiting import until

FOLDERS = 100
ARTIFACT_BYTES = 100_000
"""Of each of the 99 % of a workspace that is artifacts; the files are sparse."""
IDLE_SECONDS = 5.0
CHANGES = 15


async def run(notes: int, artifacts: int, megabytes: int, rounds: int) -> list[dict[str, Any]]:
    """Medians over so many rounds, one of ours and one of a bare walk by turns."""
    check, bare = await _check(notes, artifacts, rounds)
    indexed, checked = await _artifacts(megabytes)
    seen, idle = await _watched(rounds)
    return [
        figure("files_check", check * 1000, bare * 1000),
        figure("files_check_times_bare", check / bare),
        figure("files_index_artifacts", indexed),
        figure("files_check_artifacts", checked),
        figure("files_seen_p50", median(seen)),
        figure("files_seen_slowest", max(seen)),
        figure("files_watch_idle_cpu", idle),
    ]


async def _check(notes: int, artifacts: int, rounds: int) -> tuple[float, float]:
    """Seconds of a check that finds nothing new, and of a walk that only lists and asks for times and sizes."""
    ours: list[float] = []
    bare: list[float] = []
    with TemporaryDirectory() as folder:
        async with open_library(Path(folder)) as library:
            _make_notes(library, notes)
            _make_artifacts(library, artifacts, 0)
            await library.cortex.update_files()
            for _ in range(rounds):
                gc.collect()
                begun = time.perf_counter()
                assert await library.cortex.update_files() == 0
                ours.append(time.perf_counter() - begun)
                gc.collect()
                begun = time.perf_counter()
                assert _bare(str(library.workspace)) == notes + artifacts
                bare.append(time.perf_counter() - begun)
    return median(ours), median(bare)


def _bare(folder: str) -> int:
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                count += _bare(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                count += 1
    return count


async def _artifacts(megabytes: int) -> tuple[float, float]:
    """Seconds to index a workspace that is artifacts for the most part, and to check it again."""
    with TemporaryDirectory() as folder:
        async with open_library(Path(folder)) as library:
            _make_artifacts(library, megabytes * 990_000 // ARTIFACT_BYTES, ARTIFACT_BYTES)
            _make_notes(library, max(1, megabytes * 10_000 // 5_000))
            begun = time.perf_counter()
            await library.cortex.update_files()
            indexed = time.perf_counter() - begun
            begun = time.perf_counter()
            await library.cortex.update_files()
            return indexed, time.perf_counter() - begun


async def _watched(rounds: int) -> tuple[list[float], float]:
    """Seconds from writing a file until a search finds it; CPU seconds of a minute in which nothing happens."""
    seen: list[float] = []
    with TemporaryDirectory() as folder:
        async with open_library(Path(folder)) as library:
            _make_notes(library, FOLDERS)
            watcher = Watcher(library.cortex.files)
            task = asyncio.create_task(watcher.run())
            await watcher.settled.wait()
            for at in range(rounds):
                word = f"sighting{'abcdefghijklmnop'[at % 16]}"

                async def is_found(word: str = word) -> bool:
                    return bool(await library.find(word))

                library.file(f"notes/{at % FOLDERS}/new-{at}.md", word)
                begun = time.perf_counter()
                await until(is_found, 30)
                seen.append(time.perf_counter() - begun)
            begun = time.process_time()
            idle_seconds = IDLE_SECONDS if rounds > 1 else 0.1
            await asyncio.sleep(idle_seconds)
            idle = (time.process_time() - begun) * 60 / idle_seconds
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    return seen, idle


def _make_notes(library: Library, count: int) -> None:
    for at in range(count):
        library.file(f"notes/{at % FOLDERS}/note-{at}.md", f"# Note {at}\n\nWhat was noted at number {at}.\n")


def _make_artifacts(library: Library, count: int, size_bytes: int) -> None:
    for at in range(count):
        file = library.file(f"files/{at % FOLDERS}/report-{at}.pdf", "")
        if size_bytes:
            os.truncate(file, size_bytes)

"""A run that is killed at any write leaves whole pages, and the next run completes the work."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agent.hippocampus import pages, retain
from tests.fakes.a_memory import AMemory, a_memory

TODAY = date(2026, 11, 30)


def some_days(memory: AMemory) -> None:
    memory.day(
        "2026-11-16", "- W @Peter @Sara: Peter met Sara.", "- O(c=0.90) @Peter: Prefers tea.", said="I prefer tea"
    )
    memory.day("2026-11-17", "- O(c=0.90) @Peter: Prefers coffee.", "- B: I fixed it.", said="We decided to use SQLite")
    memory.day("2026-11-24", "- W @Sara: Sara moved to Rome.", "- W: It rains.", said="I no longer prefer tea")


async def everything(memory: AMemory) -> None:
    await memory.index.update_files()
    await memory.reflection.daily(memory.now)
    await memory.reflection.reflect()
    await memory.reflection.weekly(memory.now)


class Killed(BaseException):
    """Like a kill: nothing catches it."""


class Writes:
    """Counts the writes of the memory and dies before or after one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.dies_at, self.after = 0, -1, False
        monkeypatch.setattr(pages, "replace_file", self._wrapped(pages.replace_file))
        monkeypatch.setattr(retain, "append_lines", self._wrapped(retain.append_lines))

    def _wrapped(self, real: Callable[..., None]) -> Callable[..., None]:
        def write(*args: Any, **named: Any) -> None:
            self.count += 1
            if self.count == self.dies_at and not self.after:
                raise Killed
            real(*args, **named)
            if self.count == self.dies_at:
                raise Killed

        return write


async def test_at_whatever_write_it_dies_the_next_run_completes_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Writes(monkeypatch)
    async with a_memory(tmp_path / "whole", TODAY) as memory:
        some_days(memory)
        await everything(memory)
        wanted = memory.files()
    total = writes.count
    assert total > 15
    for n in range(1, total + 1):
        for after in (False, True):
            folder = tmp_path / f"{n}-{after}"
            async with a_memory(folder, TODAY) as memory:
                some_days(memory)
                writes.count, writes.dies_at, writes.after = 0, n, after
                with pytest.raises(Killed):
                    await everything(memory)
                writes.dies_at = -1
                for name, text in memory.files().items():
                    # Each page is as it was, or as it was to be at some step; none is cut.
                    assert text.endswith(b"\n"), name
                    assert not name.endswith(".tmp")
            async with a_memory(folder, TODAY) as memory:
                await everything(memory)
                assert memory.files() == wanted, (n, after)
                assert await memory.reflection.daily(memory.now) == ""


CHILD = """
import asyncio, os, signal, sys
from datetime import date
from pathlib import Path
from agent.hippocampus import pages, retain
from tests.agent.hippocampus.test_killed import TODAY, everything, some_days
from tests.fakes.a_memory import a_memory

left = int(sys.argv[2])

def dying(real):
    def write(*args, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*args, **named)
    return write

pages.replace_file, retain.append_lines = dying(pages.replace_file), dying(retain.append_lines)

async def main():
    async with a_memory(Path(sys.argv[1]), TODAY) as memory:
        some_days(memory)
        await everything(memory)

asyncio.run(main())
"""


@pytest.mark.parametrize("write", [2, 7, 12])
async def test_a_real_kill_too(tmp_path: Path, write: int) -> None:
    root = Path(__file__).parents[3]
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CHILD,
        str(tmp_path / "killed"),
        str(write),
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    async with asyncio.timeout(60):
        assert await child.wait() == -signal.SIGKILL
    async with a_memory(tmp_path / "whole", TODAY) as memory:
        some_days(memory)
        await everything(memory)
        wanted = memory.files()
    async with a_memory(tmp_path / "killed", TODAY) as memory:
        await everything(memory)
        assert memory.files() == wanted

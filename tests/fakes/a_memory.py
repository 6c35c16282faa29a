"""The readable memory over a folder, with a clock in hand and every write counted."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.cortex.search import Cortex
from agent.hippocampus.recall import Found
from agent.hippocampus.reflection import Reflection
from agent.types import JsonObject, Person, Viewer
from tests.fakes.index_of_memory import a_memory_index

OWNER = Viewer(Person("inapp:1", "Owner", "owner"))
EPISODES = "brain/hippocampus/episodes"


@dataclass
class FakeJudge:
    """A model that gives the answers it was told, by a word of what it is asked; what it was asked is kept."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def judge(self, prompt: str, material: str, schema: JsonObject) -> Any | None:
        self.asked.append((prompt, material))
        return next((answer for word, answer in self.answers.items() if word in prompt), None)


@dataclass
class AMemory:
    """`now` is what the memory's clock says."""

    workspace: Path
    index: Cortex
    now: datetime
    reflection: Reflection

    def write(self, path: str, text: str) -> None:
        whole = self.workspace / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(text.encode())

    def day(self, day: str, *bullets: str, said: str = "", who: str = "") -> None:
        """A day file with one entry, where something was said, and a Retain section."""
        lines = [f"# {day}", ""]
        if said:
            lines += [
                "## 10:00 [telegram] - entry",
                f"- User{f' ({who})' if who else ''}: {said}",
                "- Reply: Noted.",
                "",
            ]
        if bullets:
            lines += ["## Retain", "", *bullets]
        self.write(f"{EPISODES}/{day}.md", "\n".join(lines) + "\n")

    def read(self, path: str) -> str:
        return (self.workspace / path).read_bytes().decode()

    def line(self, source: str) -> str:
        """The line that a source leads to."""
        path, _, number = source.partition("#L")
        return self.read(path).splitlines()[int(number) - 1]

    def files(self) -> dict[str, bytes]:
        """Everything that persons see, hidden files aside."""
        return {
            path.relative_to(self.workspace).as_posix(): path.read_bytes()
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(self.workspace).parts)
        }

    def at(self, day: date, hour: int = 3) -> datetime:
        self.now = datetime.combine(day, time(hour), UTC)
        return self.now

    async def recall(self, text: str, **args: Any) -> list[Found]:
        await self.index.update_files()
        return await self.reflection.recall(OWNER, text, args)


@asynccontextmanager
async def a_memory(
    folder: Path, today: date = date(2026, 11, 30), judge: FakeJudge | None = None
) -> AsyncGenerator[AMemory]:
    """A memory in `folder`/workspace, at three in the morning of `today`."""
    workspace = folder / "workspace"
    async with a_memory_index(workspace) as index:
        memory: AMemory

        def now() -> datetime:
            return memory.now

        reflection = Reflection(workspace, index, ZoneInfo("UTC"), now, judge)
        memory = AMemory(workspace, index, datetime.combine(today, time(3), UTC), reflection)
        yield memory

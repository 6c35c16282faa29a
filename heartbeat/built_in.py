"""The program's own jobs: they use the same forms, rows and list as the owner's, none of its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from heartbeat.headings import parse_schedule
from heartbeat.types import Catchup, DueRun, Job, Key, Kind, Outcome, Parsed, QueueState


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """`schedule` as in heartbeat.md. `work(due)` says in a few words what it changed, nothing when it changed nothing.
    `grace_seconds`, `catchup`: its own way with what was missed; None: as the settings say."""

    name: str
    schedule: str
    does: str
    work: Callable[[datetime], Awaitable[str]]
    grace_seconds: float | None = None
    catchup: Catchup | None = None


class Keeper(Protocol):
    """The part of the Runner that is told how a run ended."""

    async def contained(self, what: str, step: Awaitable[None], /) -> str | None: ...

    async def finished(self, key: Key, due_at: datetime, outcome: Outcome, note: str = "", /) -> None: ...


class BuiltInJobs:
    """A JobSource and the RunQueue of these jobs: each runs in a task, at once."""

    kind: Kind = "built-in"

    def __init__(self, jobs: Sequence[BuiltIn]) -> None:
        self._jobs = {job.name: job for job in jobs}
        self._running: dict[str, asyncio.Task[None]] = {}
        self.keeper: Keeper | None = None

    def changed(self) -> bool:
        return False

    def load(self) -> Parsed:
        return Parsed(
            tuple(
                Job(
                    job.name,
                    "built-in",
                    job.schedule,
                    parse_schedule(job.schedule),
                    job.does,
                    0,
                    grace_seconds=job.grace_seconds,
                    catchup=job.catchup,
                )
                for job in self._jobs.values()
            )
        )

    async def submit(self, run: DueRun) -> None:
        task = asyncio.create_task(self._work(run), name=f"built-in {run.job.name}")
        self._running[run.key] = task

    async def state(self, kind: Kind, key: str) -> QueueState:
        # Half done when the program ended, or done and not written down: it is not begun again.
        return "open" if key in self._running else "interrupted"

    async def close(self) -> None:
        """Ends what runs; its rows are closed at the next start."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _work(self, run: DueRun) -> None:
        notes: list[str] = []
        job = self._jobs[run.job.name]

        async def work() -> None:
            notes.append(await job.work(run.due_at))

        assert self.keeper is not None
        try:
            failure = await self.keeper.contained(f"The built-in job `{job.name}` failed", work())
        finally:
            self._running.pop(run.key, None)
        outcome: Outcome = "ok" if failure is None else "error"
        await self.keeper.finished(run.job.key, run.due_at, outcome, failure or " ".join(notes))

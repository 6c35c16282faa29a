"""The program's own jobs: run at once, fenced, and never begun again after a kill."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime

from heartbeat.built_in import BuiltIn, BuiltInJobs
from heartbeat.types import DueRun, Key, Outcome
from tests.fakes.waiting import until

AT = datetime(2027, 1, 1, 3, 0, tzinfo=UTC)


class Book:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, str]] = []

    async def contained(self, what: str, step: Awaitable[None]) -> str | None:
        try:
            await step
        except ValueError as error:
            return str(error)
        return None

    async def finished(self, key: Key, due_at: datetime, outcome: Outcome, note: str = "") -> None:
        self.ended.append((key[1], outcome, note))


async def tidied(now: datetime) -> str:
    return f"tidied at {now:%H:%M}"


async def broken(now: datetime) -> str:
    raise ValueError("no disk")


async def test_each_job_runs_and_says_what_it_changed_or_why_not() -> None:
    jobs = BuiltInJobs([BuiltIn("tidy", "Daily (03:00)", "tidies", tidied), BuiltIn("bad", "Hourly (5)", "x", broken)])
    jobs.keeper = book = Book()
    tidy, bad = jobs.load().jobs
    assert (tidy.kind, tidy.heading, tidy.instruction) == ("built-in", "Daily (03:00)", "tidies")
    run = DueRun(tidy, AT, 0.0, "none")
    assert await jobs.state("built-in", run.key) == "interrupted"
    await jobs.submit(run)
    assert await jobs.state("built-in", run.key) == "open"
    await jobs.submit(DueRun(bad, AT, 0.0, "none"))
    await until(lambda: len(book.ended) == 2)
    assert sorted(book.ended) == [("bad", "error", "no disk"), ("tidy", "ok", "tidied at 03:00")]
    await jobs.close()

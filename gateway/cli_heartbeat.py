"""`hudhud heartbeat`: the jobs of heartbeat.md, when they are due, and what became of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from gateway.cli_options import Home, Json, Place, place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from gateway.library import Library
    from heartbeat.runner import Runner
    from heartbeat.types import DueRun, JobState, Kind, QueueState, Run

T = TypeVar("T")
app = typer.Typer(help="The clock: jobs of heartbeat.md.")


@app.command("list")
def list_(home: Home = None, as_json: Json = False) -> None:
    """The jobs, their next and last runs, and what is wrong with them."""
    _list(place(home), as_json)


@app.command("next")
def next_(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One job; all of them otherwise.")] = None,
    count: Annotated[int, typer.Option("-n", metavar="N", min=1, max=1000, help="How many times.")] = 5,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The next due times of one job, or of all."""
    _next(place(home), name, count, as_json)


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The job, as `heartbeat list` shows it.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run a job now, in the running gateway.

    Its answer goes where it always goes.
    """
    from gateway.cli_output import print_json
    from gateway.client import quoted

    place(home).needed_client().post(f"/api/heartbeat/{quoted(name)}/run")
    if as_json:
        print_json({"name": name, "state": "waiting"})


@app.command()
def history(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many, newest first.")] = 20,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What ran, was late, skipped or missed, and why."""
    _history(place(home), limit, as_json)


def _list(where: Place, as_json: bool) -> None:
    from gateway.cli_output import print_json, remark, table, when

    clock_on = where.settings.heartbeat.enabled

    async def all_jobs(runner: Runner) -> tuple[JobState, ...]:
        return await runner.list()

    jobs = asyncio.run(_with_clock(where, all_jobs))
    if as_json:
        print_json({"jobs": [_job_shape(job, clock_on) for job in jobs]})
        return
    if jobs:
        table(
            ("job", "schedule", "next", "last", "remark"),
            [
                (
                    job.name,
                    job.schedule if job.schedule != job.name else "",
                    when(job.next_at, where.zone) if clock_on else "",
                    "" if job.last is None else job.last.outcome or "running",
                    job.fault or _last_run(job, when(job.last and job.last.due_at, where.zone)),
                )
                for job in jobs
            ],
            short=("job", "schedule"),
            state="last",
            wrap=True,
        )
    else:
        remark(f"No job is written in {where.home / 'workspace' / 'heartbeat.md'} yet.")
    if jobs and not clock_on:
        remark("The clock is off: set `enabled = true` under [heartbeat] in config.toml.")


def _last_run(job: JobState, at: str) -> str:
    if job.last is None:
        return ""
    return ": ".join(part for part in (f"last at {at}", job.last.reason) if part)


def _next(where: Place, name: str | None, count: int, as_json: bool) -> None:
    from gateway.cli_errors import no_such
    from gateway.cli_output import print_json, remark, table, when
    from heartbeat.types import UnknownJob

    async def due(runner: Runner) -> tuple[tuple[str, datetime], ...]:
        return runner.next(name, count)

    try:
        times = asyncio.run(_with_clock(where, due)) if where.settings.heartbeat.enabled else ()
    except UnknownJob as error:
        raise no_such(f"No job is called {name}.", "`hudhud heartbeat list` shows them.") from error
    if as_json:
        print_json({"next": [{"name": job, "at": at.isoformat()} for job, at in times]})
    elif times:
        table(("due", "job"), [(when(at, where.zone), job) for job, at in times], short=("job",))
    else:
        remark("Nothing is due." if where.settings.heartbeat.enabled else "The clock is off.")


def _history(where: Place, limit: int, as_json: bool) -> None:
    from gateway.backend import run_json
    from gateway.cli_output import print_json, remark, table, when
    from heartbeat.history import late_words

    runs = asyncio.run(_runs(where, limit))
    if as_json:
        print_json({"runs": [run_json(run) for run in runs]})
        return
    if not runs:
        remark("Nothing has run yet.")
        return
    table(
        ("due", "job", "outcome", "took", "remark"),
        [
            (
                when(run.due_at, where.zone),
                run.job,
                run.outcome or "running",
                _took(run),
                "; ".join(part for part in (late_words(run.late_seconds), run.reason) if part),
            )
            for run in runs
        ],
        short=("job",),
        right=("took",),
        state="outcome",
        wrap=True,
    )


def _took(run: Run) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    return f"{max(0.0, (run.ended_at - run.started_at).total_seconds()):.1f} s"


async def _runs(where: Place, limit: int) -> list[Run]:
    from gateway.cli_library import opened

    async with opened(where) as library:
        return list(await library.store.runs.history(limit))


async def _with_clock(where: Place, ask: Callable[[Runner], Awaitable[T]]) -> T:
    """What `ask(runner)` answers about the jobs as they stand in the file now. Nothing is run."""
    from gateway.cli_library import opened

    async with opened(where) as library:
        runner = _clock(where, library)
        await runner.reload()
        return await ask(runner)


def _clock(where: Place, library: Library) -> Runner:
    from datetime import UTC, datetime

    from heartbeat.history import RunHistory
    from heartbeat.jobs import HeartbeatFile
    from heartbeat.runner import Runner
    from heartbeat.timer import SchedulerTimer

    workspace = where.home / "workspace"
    return Runner(
        HeartbeatFile(workspace / "heartbeat.md"),
        library.store.runs,
        _NoQueue(),
        RunHistory(workspace / "run-history.md", where.zone),
        SchedulerTimer(),
        zone=where.zone,
        now=lambda: datetime.now(UTC),
        target=where.settings.heartbeat.target,
    )


class _NoQueue:
    """`heartbeat.types.RunQueue` of a clock that only tells the time: it is never started, so nothing comes."""

    async def submit(self, run: DueRun) -> None:
        raise RuntimeError("this clock does not run jobs")

    async def state(self, kind: Kind, key: str) -> QueueState:
        return "open"


def _job_shape(job: JobState, clock_on: bool) -> dict[str, Any]:
    """The shape of docs/formats.md."""
    from gateway.backend import run_json

    on = job.enabled and clock_on
    return {
        "name": job.name,
        "kind": job.kind,
        "schedule": job.schedule,
        "zone": job.zone,
        "enabled": on,
        "next_at": job.next_at.isoformat() if on and job.next_at is not None else None,
        "last": None if job.last is None else run_json(job.last),
        "fault": job.fault,
    }

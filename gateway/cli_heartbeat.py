"""`hudhud heartbeat`: the jobs of heartbeat.md, when they are due, and what became of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from gateway.cli_options import Home, Json, Place, place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from gateway.library import Library
    from heartbeat.runner import Runner
    from heartbeat.types import JobState, Run

T = TypeVar("T")
app = typer.Typer(help="The clock: jobs of heartbeat.md.")
procedures = typer.Typer(help="Procedures: what is worth doing again, a file each.")


@procedures.command("list")
def list_procedures(home: Home = None, as_json: Json = False) -> None:
    """The procedures, their next and last runs, and what is wrong with them."""
    _list(place(home), as_json, "procedure")


@procedures.command("run")
def run_procedure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The procedure, as its file is called.")],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="VALUE", help="What it asks for, as WORD=VALUE.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run a procedure now.

    It needs the running gateway.
    """
    from gateway.cli_errors import used_wrongly

    pairs = [value.partition("=") for value in values or []]
    for word, equals, _ in pairs:
        if not equals:
            raise used_wrongly(f"`{word}` is no value.", "Write WORD=VALUE, for example city=Riyadh.")
    _run(place(home), name, {word: value for word, _, value in pairs}, as_json, "procedure")


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
    _run(place(home), name, {}, as_json)


@app.command()
def on(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The job, as `heartbeat list` shows it.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Switch a job on again.

    It needs the running gateway.
    """
    _switch(place(home), name, on=True, as_json=as_json)


@app.command()
def off(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The job, as `heartbeat list` shows it.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Switch a job off.

    Its file stays as it is; it needs the running gateway.
    """
    _switch(place(home), name, on=False, as_json=as_json)


@app.command()
def history(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many, newest first.")] = 20,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What ran, was late, skipped or missed, and why."""
    _history(place(home), limit, as_json)


def _run(where: Place, name: str, arguments: dict[str, str], as_json: bool, kind: str | None = None) -> None:
    from gateway.cli_output import print_json
    from gateway.client import quoted

    body = {"arguments": arguments} | ({} if kind is None else {"kind": kind})
    where.needed_client().post(f"/api/heartbeat/{quoted(name)}/run", body)
    if as_json:
        print_json({"name": name, "state": "waiting"})


def _switch(where: Place, name: str, *, on: bool, as_json: bool) -> None:
    from gateway.cli_output import print_json
    from gateway.client import quoted

    where.needed_client().post(f"/api/heartbeat/{quoted(name)}/switch", {"on": on})
    if as_json:
        print_json({"name": name, "enabled": on})


def _list(where: Place, as_json: bool, kind: str = "") -> None:
    from gateway.cli_output import print_json, remark, table, when

    clock_on = where.settings.heartbeat.enabled

    async def all_jobs(runner: Runner) -> tuple[JobState, ...]:
        return await runner.list()

    jobs = [job for job in asyncio.run(_with_clock(where, all_jobs)) if kind in {"", job.kind}]
    if as_json:
        from gateway.backend import job_json

        print_json({"jobs": [job_json(job, clock_on=clock_on) for job in jobs]})
        return
    if jobs:
        table(
            ("job", "kind", "schedule", "next", "last", "remark"),
            [
                (
                    job.name,
                    job.kind,
                    job.schedule if job.schedule != job.name else "",
                    when(job.next_at, where.zone) if clock_on else "",
                    "" if job.last is None else job.last.outcome or "running",
                    job.fault
                    or ("" if job.enabled else "switched off")
                    or _last_run(job, when(job.last and job.last.due_at, where.zone)),
                )
                for job in jobs
            ],
            short=("job", "schedule"),
            state="last",
            wrap=True,
        )
    else:
        remark(f"No procedure is written in {where.home / 'workspace' / 'procedures'} yet.")
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

    from gateway.chores import listed_jobs
    from gateway.clock import Clock

    jobs = listed_jobs(where.settings.memory)
    return Clock(where.home, where.settings, library.store, lambda: datetime.now(UTC), jobs).runner

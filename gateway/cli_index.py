"""`hudhud index`: the memory index, how it stands, and building it anew; beside a running gateway or without."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import typer

from gateway.cli_options import Home, Json, Place, place

if TYPE_CHECKING:
    from gateway.client import Client
    from gateway.upkeep import Upkeep

app = typer.Typer(help="The index of everything that can be found.")
POLL_SECONDS = 0.2
REMEDY = "`hudhud index rebuild` builds it anew from the database and the files."
_SIZES = (("database", "database"), ("database_wal", "its log"), ("index", "index"), ("index_wal", "its log"))


@app.command()
def status(home: Home = None, as_json: Json = False) -> None:
    """What is indexed, how far, and what is not.

    The log of a database is emptied by itself; it grows while somebody reads for long.
    """
    where = place(home)
    client = where.client()
    _show(where, asyncio.run(_alone(where, _status)) if client is None else client.get("/api/index"), as_json)


@app.command()
def update(home: Home = None, as_json: Json = False) -> None:
    """Take in now what changed: messages that are not indexed yet, and files.

    A running gateway does it by itself.
    """
    _work(place(home), "update", as_json)


@app.command()
def rebuild(home: Home = None, as_json: Json = False) -> None:
    """Build the index anew, from the database and the files.

    The old one answers meanwhile. Broken off, it goes on at the next start.
    """
    _work(place(home), "rebuild", as_json)


@app.command()
def check(home: Home = None, as_json: Json = False) -> int:
    """Whether the index holds together and has what the database has.

    The exit code is 1 when something is wrong.
    """
    from gateway.cli_errors import failed
    from gateway.cli_output import print_json, say

    where = place(home)
    client = where.client()
    faults = asyncio.run(_alone(where, _check)) if client is None else client.post("/api/index/check")["faults"]
    if as_json:
        print_json({"ok": not faults, "faults": faults, "remedy": REMEDY if faults else None})
        return 1 if faults else 0
    if faults:
        raise failed("index", f"The index is not good: {'; '.join(faults)}.", REMEDY)
    say("The index is good.")
    return 0


async def _alone(where: Place, work: Callable[[Upkeep], Awaitable[Any]]) -> Any:
    """Without the gateway."""
    from gateway.cli_library import opened

    async with opened(where) as library:
        return await work(library.upkeep)


async def _status(upkeep: Upkeep) -> Any:
    return await upkeep.status()


async def _check(upkeep: Upkeep) -> Any:
    return await upkeep.check()


def _work(where: Place, what: str, as_json: bool) -> None:
    """Does it with the bar before the eyes, then says how the index stands."""
    from gateway.cli_output import print_json, say

    client = where.client()
    with _Bar() as bar:
        found: dict[str, Any] = (
            asyncio.run(_alone(where, lambda upkeep: _with_bar(upkeep, what, bar)))
            if client is None
            else _through(client, what, bar)
        )
    if as_json:
        print_json(found)
        return
    say(f"{sum(found['records'].values()):,} records of {found['files']:,} files and all messages are indexed.")


def _through(client: Client, what: str, bar: _Bar) -> dict[str, Any]:
    from gateway.cli_errors import failed

    found = client.post(f"/api/index/{what}")
    while found["indexing"]:
        bar.show(found["progress"])
        time.sleep(POLL_SECONDS)
        found = client.get("/api/index")
        if found["fault"] and found["progress"] is None:
            break
    if found["fault"]:
        raise failed("index", found["fault"])
    return found


async def _with_bar(upkeep: Upkeep, what: str, bar: _Bar) -> dict[str, Any]:
    work = asyncio.ensure_future(upkeep.rebuild() if what == "rebuild" else upkeep.settle())
    while not (await asyncio.wait({work}, timeout=POLL_SECONDS))[0]:
        bar.show(upkeep.state()["progress"])
    work.result()
    return await upkeep.status()


class _Bar:
    """How far it is, for a person at a terminal."""

    def __enter__(self) -> _Bar:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self._progress = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._progress.start()
        self._task = self._progress.add_task("Indexing", total=None)
        return self

    def show(self, progress: dict[str, int] | None) -> None:
        """`progress` as in docs/formats.md; files count as much as messages."""
        if progress is not None:
            total = progress["messages_total"] + progress["files_total"]
            self._progress.update(self._task, completed=progress["messages"] + progress["files"], total=total or None)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _show(where: Place, found: dict[str, Any], as_json: bool) -> None:
    from gateway.cli_output import print_json, say, table, when

    if as_json:
        print_json(found)
        return
    rows = [
        ("state", _state(found)),
        ("fault", found["fault"] or ""),
        ("version", _version(found)),
        ("reached", _reached(found)),
        ("files", f"{found['files']:,}"),
        ("sizes", ", ".join(f"{name} {_size(found['bytes'][key])}" for key, name in _SIZES)),
        ("checked", _checked(found["last_check"], lambda at: when(at, where.zone))),
    ]
    for name, value in rows:
        if value:
            say(value, head=f"{name:<10}")
    if found["records"]:
        say()
        records = [(source, f"{count:,}") for source, count in sorted(found["records"].items())]
        table(("source", "records"), records, right=("records",))
    if found["skipped"]:
        say()
        table(("not indexed", "because"), [(each["path"], each["reason"]) for each in found["skipped"]], wrap=True)


def _state(found: dict[str, Any]) -> str:
    progress = found["progress"]
    if progress is not None:
        return (
            f"is built anew: {progress['messages']:,} of {progress['messages_total']:,} messages, "
            f"{progress['files']:,} of {progress['files_total']:,} files"
        )
    if found["trouble"]:
        return f"cannot be used ({found['trouble']}); it is built anew at the next start"
    return "takes in what is new" if found["indexing"] else "good"


def _version(found: dict[str, Any]) -> str:
    there, ours = found["schema_version"], found["program_schema_version"]
    return str(ours) if there == ours else f"{'none' if there is None else there}; this program's is {ours}"


def _reached(found: dict[str, Any]) -> str:
    if found["watermark"] is None:
        return ""
    return f"change {found['watermark']:,} of {found['newest']:,}"


def _checked(check: dict[str, Any] | None, shown: Callable[[str], str]) -> str:
    if check is None:
        return ""
    return f"{shown(check['at'])}: {'; '.join(check['faults']) or 'good'}"


def _size(count: int) -> str:
    return f"{count / 1_048_576:,.1f} MB"

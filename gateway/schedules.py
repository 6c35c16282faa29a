"""The owner's jobs as the tools and commands change and start them: heartbeat.md edited with care, runs by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.capabilities.schedule.tools import Listed, Planned
from agent.files import replace_file
from agent.types import ToolFailure
from agent.when import When
from gateway.limits import STEP_NOTE_CHARS
from gateway.store import Store
from heartbeat.editing import with_heading, with_instruction, with_job, without_job
from heartbeat.headings import BadSchedule, parse_schedule
from heartbeat.jobs import default_text
from heartbeat.procedures import steps
from heartbeat.runner import Runner
from heartbeat.types import CannotRun, Job, Kind, UnknownJob

TIMES_SHOWN = 3
TRIES = 3
Edit = Callable[[str], str]


class OwnersSchedules:
    """`agent.capabilities.schedule.tools.Schedules`. `runner` is set when there is a clock; `runs`: it starts jobs."""

    def __init__(self, workspace: Path, store: Store, *, runs: bool = True) -> None:
        self._runs = runs
        self._path = workspace / "heartbeat.md"
        self._store = store
        self._lock = asyncio.Lock()
        self._done: dict[str, dict[int, str]] = {}
        self._totals: dict[str, int] = {}
        self.runner: Runner | None = None

    async def preview(self, when: When) -> Planned:
        try:
            job = Job("", "heartbeat", when.heading, parse_schedule(when.heading), "", 0, zone=when.zone or None)
        except BadSchedule as error:
            raise ToolFailure(f"{str(error)[:1].upper()}{str(error)[1:]}. Nothing was written.") from error
        return Planned("", when.heading, self._clock().coming(job, TIMES_SHOWN))

    async def create(self, when: When, instruction: str, *, name: str, target: str, tools: str) -> Planned:
        clock = self._clock()
        markers = {"name": name, "zone": when.zone, "target": target, "tools": tools}
        given = {word: value for word, value in markers.items() if value}

        def edit(text: str) -> str:
            taken = {watched.job.name.casefold() for watched in clock.board.watched.values()}
            number, unique = 2, name
            while unique.casefold() in taken:
                unique, number = f"{name} {number}", number + 1
            given["name"] = unique
            return with_job(text, when.heading, given, instruction)[0]

        await self._edit(edit)
        return await self._planned(given["name"])

    async def jobs(self) -> Sequence[Listed]:
        return [
            Listed(
                job.name,
                job.kind,
                job.schedule,
                job.next_at,
                "" if job.last is None else job.last.outcome or "running",
                job.fault or "",
                job.enabled,
            )
            for job in await self._clock().list()
        ]

    async def edit(self, name: str, when: When | None, instruction: str | None) -> Planned:
        def edit(text: str) -> str:
            if when is not None:
                text = with_heading(text, name, when.heading)
            return text if instruction is None else with_instruction(text, name, instruction)

        self._of_the_file(name)
        await self._edit(edit)
        return await self._planned(name)

    async def delete(self, name: str) -> None:
        self._of_the_file(name)
        await self._edit(lambda text: without_job(text, name))

    async def run(self, name: str, arguments: Mapping[str, str]) -> None:
        clock = self._clock()
        if not self._runs:
            raise ToolFailure("Jobs run in the gateway: `hudhud heartbeat run NAME` starts one there.")
        try:
            await clock.run_now(name, None, arguments)
        except UnknownJob as error:
            raise ToolFailure(f"No job is called {name}. `schedule_list` shows them.") from error
        except CannotRun as error:
            raise ToolFailure(str(error)) from error

    async def step(self, conversation_id: str, step: int, note: str) -> str:
        found = await self._store.runs.of_conversation(conversation_id)
        if found is None:
            raise ToolFailure("No procedure is running here: steps are ticked off in its own run.")
        kind, name, due_at = found
        job = self._clock().job(kind, name)
        checklist = () if job is None else steps(job.instruction)
        if not 1 <= step <= len(checklist):
            raise ToolFailure(f"There is no step {step}: the checklist has {len(checklist)}.")
        total, done = len(checklist), self._done.setdefault(conversation_id, {})
        done[step] = note
        self._totals[conversation_id] = total
        said = f"step {len(done)} of {len(checklist)}"
        shown = f"{said}: {note or checklist[step - 1]}"[:STEP_NOTE_CHARS]
        await self._store.runs.progress((kind, name), due_at, shown, conversation_id)
        left = [f"{n}. {text}" for n, text in enumerate(checklist, start=1) if n not in done]
        return f"{said} done." + (f" Left: {'; '.join(left)}" if left else " That was the last one.")

    def progress(self, conversation_id: str) -> str:
        """What the row of an ended run says of its steps; empty for a run without any."""
        done = self._done.pop(conversation_id, None)
        total = self._totals.pop(conversation_id, 0)
        return "" if done is None else f"{len(done)} of {total} steps done"

    def _clock(self) -> Runner:
        if self.runner is None:
            raise ToolFailure("The clock runs in the gateway only: start it with `hudhud run`.")
        return self.runner

    def _of_the_file(self, name: str) -> None:
        """Raises ToolFailure when the job does not stand in heartbeat.md."""
        clock = self._clock()
        if clock.job("heartbeat", name) is not None:
            return
        others: tuple[Kind, ...] = ("procedure", "built-in")
        if any(clock.job(kind, name) is not None for kind in others):
            raise ToolFailure(f"{name} does not stand in heartbeat.md; a procedure is changed in its own file.")
        raise ToolFailure(f"No job is called {name}. `schedule_list` shows them.")

    async def _planned(self, name: str) -> Planned:
        clock = self._clock()
        await clock.reload()
        try:
            times = clock.next(name, TIMES_SHOWN)
            return Planned(name, clock.board.find(name, "heartbeat").job.heading, tuple(at for _, at in times))
        except UnknownJob as error:
            raise ToolFailure("The job was written down and could not be read back; look at heartbeat.md.") from error

    async def _edit(self, edit: Edit) -> None:
        """Changes the file as it stands now. A person may be writing in it: it is looked at again before it is
        replaced, and what was written meanwhile is edited instead."""
        async with self._lock:
            try:
                for _ in range(TRIES):
                    if await asyncio.to_thread(_replaced, self._path, edit):
                        break
                else:
                    raise ToolFailure("heartbeat.md is being changed by someone else right now; nothing was written.")
            except BadSchedule as error:
                raise ToolFailure(f"{str(error)[:1].upper()}{str(error)[1:]}. Nothing was written.") from error
            except KeyError as error:
                raise ToolFailure(f"No job is called {error.args[0]}. Nothing was written.") from error
            except UnicodeDecodeError as error:
                raise ToolFailure("heartbeat.md is not UTF-8 text; nothing was written.") from error
            except OSError as error:
                raise ToolFailure(f"heartbeat.md cannot be written ({error.strerror}).") from error


def _replaced(path: Path, edit: Edit) -> bool:
    """False when the file became another one while it was edited."""
    before = _read(path)
    text = edit(default_text() if before is None else before.decode("utf-8"))
    if _read(path) != before:
        return False
    replace_file(path, text)
    return True


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None

"""Jobs by the clock as tools. Where they are written down, and who runs them, is the program's business: Schedules."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from agent.limits import JOBS_LISTED_MAX
from agent.lines import one_line
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction
from agent.when import When, read_when

NAME_CHARS = 40
UNREADABLE = (
    "{when} names no time that is certain. Write for example `tomorrow at 9`, `every sunday at 9`, `in two hours`, "
    "or a form such as Once (2027-01-31 09:00) or Weekly (Sun 09:00)."
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A job as it was written down; `next` are its next times, in its zone."""

    name: str
    schedule: str
    next: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A job in the list. `last` is the outcome of its last run, `fault` why it is off."""

    name: str
    kind: str
    schedule: str
    next_at: datetime | None
    last: str = ""
    fault: str = ""
    on: bool = True


class Schedules(Protocol):
    """The owner's jobs. Every method raises ToolFailure with one sentence when it could not be done."""

    async def preview(self, when: When) -> Planned:
        """What a job at this time would be, without a name; nothing is written."""
        ...

    async def create(self, when: When, instruction: str, *, name: str, target: str, tools: str) -> Planned: ...

    async def jobs(self) -> Sequence[Listed]: ...

    async def edit(self, name: str, when: When | None, instruction: str | None) -> Planned: ...

    async def delete(self, name: str) -> None: ...

    async def run(self, name: str, arguments: Mapping[str, str]) -> None: ...

    async def step(self, conversation_id: str, step: int, note: str) -> str:
        """Ticks off a step of the run that has this conversation; how far it is now, in a few words."""
        ...


class Schedule:
    """The tools' code. Raises ToolFailure with one sentence. `zone` is the owner's."""

    def __init__(self, schedules: Schedules, zone: ZoneInfo) -> None:
        self._schedules = schedules
        self._zone = zone

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {
            "schedule_create": self.schedule_create,
            "schedule_list": self.schedule_list,
            "schedule_edit": self.schedule_edit,
            "schedule_delete": self.schedule_delete,
            "schedule_run": self.schedule_run,
            "procedure_step": self.procedure_step,
        }

    async def schedule_create(self, ctx: CallContext, args: JsonObject) -> str:
        instruction = str(args.get("instruction", "")).strip()
        if not instruction:
            raise ToolFailure("The instruction is empty. Nothing was written.")
        when = self._when(ctx, args)
        if ctx.preview:
            return _told("To be written", await self._schedules.preview(when))
        planned = await self._schedules.create(
            when,
            instruction,
            name=one_line(str(args.get("name") or ""), NAME_CHARS) or _name(instruction),
            target=str(args.get("target") or "").strip(),
            tools=str(args.get("tools") or "").strip(),
        )
        return _told("Written", planned)

    async def schedule_list(self, ctx: CallContext, args: JsonObject) -> str:
        jobs = await self._schedules.jobs()
        lines = [_line(job) for job in jobs[:JOBS_LISTED_MAX]]
        if len(jobs) > JOBS_LISTED_MAX:
            lines.append(f"and {len(jobs) - JOBS_LISTED_MAX} more: heartbeat.md has them all")
        return "\n".join(lines) or "No jobs are written down."

    async def schedule_edit(self, ctx: CallContext, args: JsonObject) -> str:
        instruction = str(args.get("instruction") or "").strip() or None
        when = self._when(ctx, args) if args.get("when") else None
        if when is None and instruction is None:
            raise ToolFailure("Give another `when`, another `instruction`, or both. Nothing was changed.")
        return _told("Changed", await self._schedules.edit(str(args.get("name", "")), when, instruction))

    async def schedule_delete(self, ctx: CallContext, args: JsonObject) -> str:
        name = str(args.get("name", ""))
        await self._schedules.delete(name)
        return f"{one_line(name, 100)} is taken out."

    async def schedule_run(self, ctx: CallContext, args: JsonObject) -> str:
        name = str(args.get("name", ""))
        await self._schedules.run(name, _values(str(args.get("arguments") or "")))
        return f"{one_line(name, 100)} is started; its answer comes by itself. Do not wait for it."

    async def procedure_step(self, ctx: CallContext, args: JsonObject) -> str:
        note = one_line(str(args.get("note") or ""), 200)
        return await self._schedules.step(ctx.conversation_id, int(args.get("step", 0)), note)

    def _when(self, ctx: CallContext, args: JsonObject) -> When:
        """A form as it is written, or what a person means by it."""
        text = " ".join(str(args.get("when", "")).split())
        if text.endswith(")") or text.casefold() == "startup":
            return When(text)
        found = read_when(text, ctx.now.astimezone(self._zone))
        if found is None:
            raise ToolFailure(UNREADABLE.format(when=f'"{one_line(text, 80)}"'))
        return found


def _values(text: str) -> dict[str, str]:
    """`city="New York" week=46` as a mapping."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ToolFailure("A quotation mark in the arguments is not closed.") from error
    pairs = [word.partition("=") for word in words]
    if not all(equals for _, equals, _ in pairs):
        raise ToolFailure("Arguments are written `word=value`, with blanks between them.")
    return {word: value for word, _, value in pairs}


def _name(instruction: str) -> str:
    """The first words of an instruction."""
    text = one_line(instruction.partition("\n")[0], 200).removeprefix("Remind me:").removeprefix("ذكّرني:").strip()
    text = text.replace("<", "").replace(">", "").rstrip(".!?؟ ")
    return text if len(text) <= NAME_CHARS else text[:NAME_CHARS].rpartition(" ")[0] or text[:NAME_CHARS]


def _told(what: str, planned: Planned) -> str:
    times = ", ".join(f"{at:%A %Y-%m-%d %H:%M %z}" for at in planned.next)
    after = f"Next: {times}." if times else "It has no time to come."
    return f"{what}: {', '.join(filter(None, (planned.name, planned.schedule)))}. {after}"


def _line(job: Listed) -> str:
    parts = [f"{job.name} ({job.kind}): {job.schedule or 'by hand'}"]
    if job.fault:
        parts.append(f"off, {job.fault}")
    elif not job.on:
        parts.append("switched off")
    elif job.next_at is not None:
        parts.append(f"next {job.next_at:%Y-%m-%d %H:%M %z}")
    if job.last:
        parts.append(f"last {job.last}")
    return "- " + "; ".join(parts)

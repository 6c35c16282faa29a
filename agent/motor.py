"""Runs one tool call: deadline, further tries, bounded output and a written step. The task runner."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from agent.cerebellum import Cerebellum
from agent.files import append_lines, replace_file
from agent.limits import RETRY_PAUSES_SECONDS, TASK_PREVIEW_CHARS, TOOL_OUTPUT_CHARS
from agent.lines import bounded
from agent.types import CallContext, Outcome, ToolCall, ToolFailure, ToolResult, ToolSpec, Turn, Viewer

_log = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class _Step:
    """One call of a task. `outcome` is `running` until it ended."""

    call: ToolCall
    started_at: datetime
    outcome: str = "running"
    attempts: int = 0
    took_seconds: float = 0.0
    output: str = ""


@dataclass(slots=True)
class _Task:
    """The calls of one turn, as its task file shows them."""

    turn: Turn
    created_at: datetime
    status: str = "running"
    steps: list[_Step] = field(default_factory=list[_Step])


class Motor:
    """Task runner. `now` gives aware UTC times; `sleep` is awaited between tries."""

    def __init__(
        self,
        cerebellum: Cerebellum,
        workspace: Path,
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._cerebellum = cerebellum
        self._folder = workspace / "brain" / "motor" / "tasks"
        self._now = now
        self._sleep = sleep
        self._tasks: dict[str, _Task] = {}

    async def run_task(self, turn: Turn, call: ToolCall, spec: ToolSpec) -> ToolResult:
        """Runs an allowed call and gives back what came of it; only cancellation is let through.

        One try, and after a ToolFailure that may pass, of a tool that may be repeated, up to three more after
        2, 6 and 18 seconds. Each try has `spec.timeout_seconds`. The text is at most 100,000 characters, head and tail.
        """
        task = self._task(turn)
        step = _Step(call, self._now())
        task.steps.append(step)
        number = len(task.steps)
        if not spec.read_only:
            # What changes something is on disk before it starts, so that a broken-off run leaves a trace.
            self._write(task)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            ok, text = await self._tries(turn, step, spec)
        except asyncio.CancelledError:
            self._end(task, step, number, "interrupted", "", loop.time() - begun)
            raise
        outcome: Outcome = "success" if ok else "failed"
        took_seconds = round(loop.time() - begun, 3)
        self._end(task, step, number, outcome, text, took_seconds)
        text = bounded(text, TOOL_OUTPUT_CHARS)
        return ToolResult(call.id, ok, text, outcome, attempts=step.attempts, took_seconds=took_seconds)

    def note_task(self, turn: Turn, call: ToolCall, result: ToolResult) -> None:
        """Writes the step of a call that was not run (blocked, denied, faulty), so that steps count as calls do."""
        task = self._task(turn)
        task.steps.append(_Step(call, self._now()))
        self._end(task, task.steps[-1], len(task.steps), result.outcome, result.text, 0.0)

    def end_task(self, turn: Turn, status: str) -> None:
        """Closes the task of a turn, where it has one. `status` is how the turn ended."""
        task = self._tasks.pop(turn.id, None)
        if task is not None:
            task.status = status
            self._write(task)

    async def _tries(self, turn: Turn, step: _Step, spec: ToolSpec) -> tuple[bool, str]:
        pauses = RETRY_PAUSES_SECONDS if spec.repeatable else ()
        while True:
            step.attempts += 1
            failure = await self._try(turn, step, spec)
            if failure is None:
                return True, step.output
            if not failure.transient or step.attempts > len(pauses):
                return False, str(failure)
            await self._sleep(pauses[step.attempts - 1])

    async def _try(self, turn: Turn, step: _Step, spec: ToolSpec) -> ToolFailure | None:
        """One try; its text is left in the step. None when it succeeded."""
        context = call_context(turn, self._now(), step.call.id)
        deadline = asyncio.timeout(spec.timeout_seconds)
        try:
            async with deadline:
                step.output = await self._cerebellum.execute_tool(context, step.call)
        except ToolFailure as failure:
            return failure
        except asyncio.CancelledError:
            running = asyncio.current_task()
            if running is None or running.cancelling():
                raise
            # Something inside the tool was cancelled, not this turn.
            return ToolFailure(f"{spec.name} was broken off.")
        except TimeoutError as error:
            if deadline.expired():
                sentence = f"{spec.name} did not finish within {spec.timeout_seconds:g} seconds."
                return ToolFailure(sentence, transient=True)
            return ToolFailure(f"{spec.name} failed: {_reason(error)}", transient=True)
        except Exception as error:  # noqa: BLE001
            # One of the broad handlers: a fault in a tool's code is a failed call, not the end of the turn.
            _log.exception("tool %s failed in turn %s", spec.name, turn.id)
            return ToolFailure(f"{spec.name} failed: {_reason(error)}")
        return None

    def _task(self, turn: Turn) -> _Task:
        task = self._tasks.get(turn.id)
        if task is None:
            task = self._tasks[turn.id] = _Task(turn, self._now())
            for earlier in turn.earlier_calls:
                result = earlier.result
                step = _Step(earlier.call, turn.started_at, "interrupted")
                if result is not None:
                    step.outcome, step.output = result.outcome, result.text
                    step.attempts, step.took_seconds = result.attempts, result.took_seconds
                task.steps.append(step)
        return task

    def _end(self, task: _Task, step: _Step, number: int, outcome: str, text: str, took_seconds: float) -> None:
        step.outcome, step.output, step.took_seconds = outcome, text, took_seconds
        if len(text) > TASK_PREVIEW_CHARS:
            # The head says how many characters follow: whatever the output holds, its end is known.
            detail = f"=== step {number} | {step.call.name} | {len(text)} characters ===\n{text}\n"
            self._quietly(lambda: append_lines(self._path(task, "-detail.log"), detail))
        self._write(task)

    def _write(self, task: _Task) -> None:
        # No fsync: the calls are in the database before this file is written, it can be made again from there.
        self._quietly(lambda: replace_file(self._path(task, ".md"), self._page(task), durable=False))

    def _quietly(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            _log.warning("a task file could not be written: %s", error)

    def _path(self, task: _Task, ending: str) -> Path:
        return self._folder / f"TASK-{quote(task.turn.id, safe='')}{ending}"

    def _page(self, task: _Task) -> str:
        ended = sum(step.outcome != "running" for step in task.steps)
        lines = [
            f"# TASK-{task.turn.id}",
            "",
            f"- ID: {task.turn.id}",
            f"- Status: {task.status}",
            f"- Conversation: {task.turn.conversation_id}",
            f"- Created: {task.created_at.isoformat(timespec='seconds')}",
            f"- Updated: {self._now().isoformat(timespec='seconds')}",
            f"- Steps: {ended}/{len(task.steps)}",
        ]
        for number, step in enumerate(task.steps, 1):
            # The file is written anew for each step, and the whole arguments stand in the database.
            arguments = json.dumps(dict(step.call.args), ensure_ascii=False, default=str)
            if len(arguments) > TASK_PREVIEW_CHARS:
                arguments = f"{arguments[:TASK_PREVIEW_CHARS]}… ({len(arguments):,} characters)"
            lines += [
                "",
                f"## Step {number}: {step.call.name}",
                f"- Args: {arguments}",
                f"- Started: {step.started_at.isoformat(timespec='seconds')}",
                f"- Took: {step.took_seconds:.3f} s",
                f"- Attempts: {step.attempts}",
                f"- Outcome: {step.outcome}",
            ]
            if step.output:
                lines += ["- Output:", "", *_preview(step.output, number, task.turn.id)]
        return "\n".join(lines) + "\n"


def call_context(turn: Turn, now: datetime, call_id: str = "") -> CallContext:
    """What a tool is told of the call. The owner sees everything, everyone else their own sessions."""
    seen = None if turn.person.rights == "owner" else frozenset({turn.session_key, *turn.session_keys})
    return CallContext(Viewer(turn.person, seen), turn.session_key, turn.conversation_id, turn.id, now, call_id)


def _preview(output: str, number: int, turn_id: str) -> list[str]:
    """The first characters of an output, indented: no line of it can pass for a heading of the task file."""
    lines = [f"    {line}" for line in output[:TASK_PREVIEW_CHARS].splitlines()]
    if len(output) > TASK_PREVIEW_CHARS:
        lines += ["", f"({len(output):,} characters; the whole output: task:{turn_id}#detail{number})"]
    return lines


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__

"""Calls are run within their deadline, tried again only where that is right, and written down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.motor import Motor, call_context
from agent.types import CallContext, EarlierCall, ToolCall, ToolFailure, ToolResult, ToolSpec
from tests.fakes.turns import GUEST, FakeClock, a_turn

SPEC = ToolSpec("look", "Looks.", {"type": "object"}, read_only=True, repeatable=True, timeout_seconds=5)
ONCE = ToolSpec("send", "Sends.", {"type": "object"}, timeout_seconds=5)
CALL = ToolCall("c1", "look", {"what": "the plan"})


class FakeTools:
    """In the place of the registry: each try gets the next step, the last one again and again."""

    def __init__(self, *steps: str | Exception | asyncio.Event) -> None:
        self.steps: Sequence[str | Exception | asyncio.Event] = steps
        self.contexts: list[CallContext] = []

    async def execute_tool(self, context: CallContext, call: ToolCall) -> str:
        step = self.steps[min(len(self.contexts), len(self.steps) - 1)]
        self.contexts.append(context)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, asyncio.Event):
            await step.wait()
            return "late"
        return step


def a_motor(tools: FakeTools, tmp_path: Path, clock: FakeClock | None = None) -> Motor:
    clock = clock or FakeClock()
    return Motor(tools, tmp_path, clock, clock.sleep)


def task_page(tmp_path: Path) -> str:
    return (tmp_path / "brain/motor/tasks/TASK-t-1.md").read_text()


async def test_a_call_that_works_runs_once(tmp_path: Path) -> None:
    tools = FakeTools("found it")
    result = await a_motor(tools, tmp_path).run_task(a_turn(), CALL, SPEC)
    assert (result.ok, result.text, result.outcome, result.attempts) == (True, "found it", "success", 1)
    assert len(tools.contexts) == 1
    assert tools.contexts[0].viewer.session_keys is None


async def test_others_look_with_their_own_eyes(tmp_path: Path) -> None:
    tools = FakeTools("x")
    await a_motor(tools, tmp_path).run_task(a_turn(person=GUEST), CALL, SPEC)
    assert tools.contexts[0].viewer.session_keys == frozenset({"telegram:42"})


async def test_a_failure_that_may_pass_is_tried_after_2_6_and_18_seconds(tmp_path: Path) -> None:
    clock = FakeClock()
    tools = FakeTools(ToolFailure("The service is busy.", transient=True))
    result = await a_motor(tools, tmp_path, clock).run_task(a_turn(), CALL, SPEC)
    assert clock.slept == [2.0, 6.0, 18.0]
    assert (result.ok, result.text, result.outcome, result.attempts) == (False, "The service is busy.", "failed", 4)


async def test_it_stops_trying_when_it_works(tmp_path: Path) -> None:
    clock = FakeClock()
    tools = FakeTools(ToolFailure("busy", transient=True), "there")
    result = await a_motor(tools, tmp_path, clock).run_task(a_turn(), CALL, SPEC)
    assert (result.text, result.attempts, clock.slept) == ("there", 2, [2.0])


@pytest.mark.parametrize(
    ("failure", "spec"),
    [
        (ToolFailure("There is no such file."), SPEC),
        (ToolFailure("The service is busy.", transient=True), ONCE),
        (ZeroDivisionError("division by zero"), SPEC),
    ],
)
async def test_other_failures_are_not_tried_again(tmp_path: Path, failure: Exception, spec: ToolSpec) -> None:
    clock = FakeClock()
    result = await a_motor(FakeTools(failure), tmp_path, clock).run_task(a_turn(), CALL, spec)
    assert (result.ok, result.attempts, clock.slept) == (False, 1, [])
    assert str(failure) in result.text


async def test_a_call_past_its_deadline_is_ended(tmp_path: Path) -> None:
    spec = ToolSpec("look", "Looks.", {"type": "object"}, timeout_seconds=0.01)
    result = await a_motor(FakeTools(asyncio.Event()), tmp_path).run_task(a_turn(), CALL, spec)
    assert (result.outcome, result.text) == ("failed", "look did not finish within 0.01 seconds.")


async def test_a_tool_that_cancels_itself_fails(tmp_path: Path) -> None:
    class Cancelling(FakeTools):
        async def execute_tool(self, context: CallContext, call: ToolCall) -> str:
            raise asyncio.CancelledError

    result = await a_motor(Cancelling("x"), tmp_path).run_task(a_turn(), CALL, SPEC)
    assert result.outcome == "failed"


async def test_a_stop_ends_the_tool_and_is_written_down(tmp_path: Path) -> None:
    started = asyncio.Event()

    class Hanging(FakeTools):
        async def execute_tool(self, context: CallContext, call: ToolCall) -> str:
            started.set()
            return await super().execute_tool(context, call)

    motor = a_motor(Hanging(asyncio.Event()), tmp_path)
    task = asyncio.create_task(motor.run_task(a_turn(), CALL, ONCE))
    await asyncio.wait_for(started.wait(), 5)
    assert "- Outcome: running" in task_page(tmp_path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    motor.end_task(a_turn(), "stopped")
    assert "- Outcome: interrupted" in task_page(tmp_path)
    assert "- Status: stopped" in task_page(tmp_path)


async def test_the_task_file_has_a_section_for_each_call(tmp_path: Path) -> None:
    motor = a_motor(FakeTools("first\n## Step 9: not a heading", "x" * 5_000), tmp_path)
    turn = a_turn()
    await motor.run_task(turn, CALL, SPEC)
    await motor.run_task(turn, ToolCall("c2", "look", {"what": "الخطة"}), SPEC)
    motor.note_task(turn, ToolCall("c3", "send", {}), ToolResult("c3", False, "Blocked: no.", "blocked"))
    motor.end_task(turn, "done")
    page = task_page(tmp_path)
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings == ["# TASK-t-1", "## Step 1: look", "## Step 2: look", "## Step 3: send"]
    assert "- Status: done" in page
    assert "- Steps: 3/3" in page
    assert '- Args: {"what": "الخطة"}' in page
    assert "- Outcome: blocked" in page
    assert "x" * 2_000 in page
    assert "x" * 2_001 not in page
    detail = (tmp_path / "brain/motor/tasks/TASK-t-1-detail.log").read_text()
    head, _, rest = detail.partition("\n")
    assert head == "=== step 2 | look | 5000 characters ==="
    assert rest == "x" * 5_000 + "\n"


async def test_steps_go_on_after_those_of_a_broken_off_run(tmp_path: Path) -> None:
    earlier = (
        EarlierCall(1, "", ToolCall("e1", "look", {}), ToolResult("e1", True, "seen", "success")),
        EarlierCall(1, "", ToolCall("e2", "send", {}), None),
    )
    motor = a_motor(FakeTools("more"), tmp_path)
    await motor.run_task(a_turn(earlier_calls=earlier), CALL, SPEC)
    page = task_page(tmp_path)
    assert "## Step 3: look" in page
    assert "- Outcome: interrupted" in page


async def test_long_output_is_bounded_for_the_model_only(tmp_path: Path) -> None:
    text = "head" + "x" * 300_000 + "tail"
    result = await a_motor(FakeTools(text), tmp_path).run_task(a_turn(), CALL, SPEC)
    assert len(result.text) == 100_000
    assert result.text.startswith("head")
    assert result.text.endswith("tail")
    assert text in (tmp_path / "brain/motor/tasks/TASK-t-1-detail.log").read_text()


async def test_a_disk_that_cannot_be_written_does_not_fail_the_call(tmp_path: Path) -> None:
    (tmp_path / "brain").write_text("a file where a folder should be")
    result = await a_motor(FakeTools("fine"), tmp_path).run_task(a_turn(), CALL, ONCE)
    assert result.ok


def test_a_guest_s_tools_see_the_guest_s_own_sessions_and_the_owner_s_see_all() -> None:
    guest = a_turn(person=GUEST, session_key="telegram:-5", session_keys=("telegram:2",))
    assert call_context(guest, FakeClock()()).viewer.session_keys == {"telegram:-5", "telegram:2"}
    assert call_context(a_turn(), FakeClock()()).viewer.session_keys is None

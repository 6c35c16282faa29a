"""Shell commands run in the workspace, say how they ended, and know nothing of our keys."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent.capabilities.shell.tools import Shell
from agent.motor import Motor, call_context
from agent.types import CallContext, ToolCall, ToolFailure, ToolSpec
from tests.fakes.turns import MONDAY, FakeClock, a_turn
from tests.fakes.waiting import until

CONTEXT = call_context(a_turn(), MONDAY)


async def run(tmp_path: Path, command: str, **args: object) -> str:
    return await Shell(tmp_path).run_command(CONTEXT, {"command": command, **args})


async def test_a_command_runs_in_the_workspace(tmp_path: Path) -> None:
    assert await run(tmp_path, "pwd; echo سلام | tee a.md") == f"exit code 0\n{tmp_path}\nسلام"
    assert (tmp_path / "a.md").read_text() == "سلام\n"
    assert await run(tmp_path, "true") == "exit code 0"


async def test_any_exit_code_is_an_answer(tmp_path: Path) -> None:
    assert await run(tmp_path, "echo no >&2; exit 2") == "exit code 2\nno"
    assert await run(tmp_path, "kill -9 $$") == "ended by signal 9"


async def test_what_runs_is_what_was_written(tmp_path: Path) -> None:
    text = "a\n b\t\"'$x`\\ é\u200b"
    here = f"cat <<'END'\n{text}\nEND"
    assert await run(tmp_path, here) == f"exit code 0\n{text}"


async def test_the_keys_of_the_program_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANY_API_KEY", "sesame")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "evil"))
    (tmp_path / "evil").write_text("echo evil\n")
    text = await run(tmp_path, "env")
    assert "sesame" not in text
    assert "evil" not in text
    assert f"PATH={os.environ['PATH']}" in text


async def test_a_command_past_its_time_is_ended_and_shows_what_it_said(tmp_path: Path) -> None:
    text = await run(tmp_path, "echo begun; sleep 300", timeout_seconds=1)
    assert text == "not finished within 1 seconds, so it was ended\nbegun"


async def test_long_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    text = await run(tmp_path, "echo first; seq 1 100000; echo last")
    assert len(text) <= 100_000
    assert text.startswith("exit code 0\nfirst\n1\n")
    assert text.endswith("\n100000\nlast")


@pytest.mark.parametrize("command", ["\0", "\ud800", "x" * 3_000_000])
async def test_what_no_shell_can_be_given_is_said(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolFailure, match="could not be started"):
        await run(tmp_path, command)


async def test_a_stop_ends_what_runs(tmp_path: Path) -> None:
    class Tools:
        async def execute_tool(self, context: CallContext, call: ToolCall) -> str:
            return await Shell(tmp_path).run_command(context, call.args)

    clock = FakeClock()
    motor = Motor(Tools(), tmp_path, clock, clock.sleep)
    call = ToolCall("1", "run_command", {"command": "echo $$ > pid; sleep 300; echo late > late"})
    spec = ToolSpec("run_command", "Runs.", {"type": "object"}, timeout_seconds=60)
    task = asyncio.create_task(motor.run_task(a_turn(), call, spec))
    pid = tmp_path / "pid"
    await until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())
    assert "- Outcome: interrupted" in (tmp_path / "brain/motor/tasks/TASK-t-1.md").read_text()

"""Programs run without secrets, within bounds, and leave nothing running."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.programs import Ended, child_environment, run_program
from tests.fakes.waiting import until


async def bash(tmp_path: Path, command: str, chars_max: int = 1_000, seconds: float = 20, data: bytes = b"") -> Ended:
    return await run_program(
        ("bash", "-c", command),
        folder=tmp_path,
        environment=child_environment(os.environ),
        chars_max=chars_max,
        timeout_seconds=seconds,
        data=data,
    )


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_output_and_errors_come_as_they_are_written(tmp_path: Path) -> None:
    ended = await bash(tmp_path, "echo one; echo two >&2; pwd; exit 3")
    assert ended == Ended(3, f"one\ntwo\n{tmp_path}\n")
    assert ended.how == "exit code 3"
    assert (await bash(tmp_path, "kill -9 $$")).how == "ended by signal 9"


async def test_stdin_is_the_data_or_nothing(tmp_path: Path) -> None:
    assert (await bash(tmp_path, "cat", data="سلام".encode())).output == "سلام"
    assert (await bash(tmp_path, "cat")).output == ""
    big = b"x" * 2_000_000
    assert (await bash(tmp_path, "exit 0", data=big)).exit_code == 0
    assert (await bash(tmp_path, "wc -c", data=big)).output.strip() == "2000000"


async def test_long_output_keeps_head_and_tail(tmp_path: Path) -> None:
    ended = await bash(tmp_path, "echo begin; yes العربية | head -c 9000000; echo; echo end")
    assert len(ended.output) <= 1_000
    assert ended.output.startswith("begin\nالعربية\n")
    assert ended.output.endswith("\nend\n")
    assert "left out" in ended.output
    short = await bash(tmp_path, "yes | head -c 1500")
    assert len(short.output) <= 1_000
    assert "left out" in short.output


async def test_output_is_plain_text(tmp_path: Path) -> None:
    ended = await bash(tmp_path, r"printf '\033[31mred\033[0m\033]0;title\007 \000 \377 a\r\nb'")
    assert ended.output == "red � � a\nb"


async def test_a_program_past_its_time_is_ended_with_what_it_started(tmp_path: Path) -> None:
    ended = await bash(tmp_path, "sleep 300 & echo $!; trap '' TERM; sleep 300", seconds=0.4)
    assert ended.timed_out
    await until(lambda: not alive(int(ended.output)))


async def test_a_stop_ends_the_whole_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    task = asyncio.create_task(bash(tmp_path, f"sleep 300 & echo $! $$ > {pids}; sleep 300"))
    await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in pids.read_text().split():
        await until(lambda pid=pid: not alive(int(pid)), 30)


async def test_what_it_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    ended = await asyncio.wait_for(bash(tmp_path, "sleep 300 & echo $!"), 10)
    assert ended.exit_code == 0
    await until(lambda: not alive(int(ended.output)))


async def test_a_program_that_leaves_the_group_does_not_hold_the_call_up(tmp_path: Path) -> None:
    ended = await asyncio.wait_for(bash(tmp_path, "setsid sleep 300 & sleep 0.2; echo $!"), 10)
    os.kill(int(ended.output), signal.SIGKILL)


async def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    async def start(command: Sequence[str], folder: Path = tmp_path) -> Ended:
        return await run_program(command, folder=folder, environment={}, chars_max=10)

    before = len(os.listdir("/proc/self/fd"))
    for command in (("no-such-program-here",), ("bash", "-c", "\0"), ("bash", "-c", "\ud800"), (str(tmp_path),)):
        with pytest.raises((OSError, ValueError)):
            await start(command)
    with pytest.raises(OSError, match="No such file"):
        await start(("true",), tmp_path / "absent")
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_harmless_variables_are_handed_on() -> None:
    ours = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "X_TOKEN": "t", "BASH_ENV": "/e", "LD_PRELOAD": "/l", "A": "1"}
    assert child_environment(ours) == {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "TERM": "dumb"}
    assert child_environment(ours, also=["A"])["A"] == "1"

"""`hudhud heartbeat`: the jobs and their times without a gateway, a run by hand with one."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.store import Store
from tests.fakes.terminal import FREE_PORT, Shell

JOBS = """\
## Daily (08:00)
name: morning
zone: Asia/Riyadh
What is on today?

## Every (2h)
Look around.

## Weekly (Someday 09:00)
Never.
"""
DUE = datetime(2026, 11, 29, 5, 0, tzinfo=UTC)


@pytest.fixture
def clock(shell: Shell) -> Shell:
    """A home with three jobs, one of them faulty."""
    shell.prepared(f"[agent]\ntimezone = 'UTC'\n{FREE_PORT}")
    shell.write("workspace/heartbeat.md", JOBS)
    return shell


def ran(shell: Shell) -> None:
    """Writes one run of the morning job that was late, and one that was missed."""

    async def work() -> None:
        store = Store(shell.home)
        await store.open()
        await store.runs.claim("morning", "heartbeat", DUE, 1200.0, DUE + timedelta(minutes=20))
        ended = DUE + timedelta(minutes=20, seconds=3)
        await store.runs.finish("morning", "heartbeat", DUE, "ok", "quiet", "c-1", ended)
        await store.runs.skip("morning", "heartbeat", [DUE - timedelta(days=1)], "missed", "it was off", DUE)
        await store.close()

    asyncio.run(work())


def test_the_jobs_with_their_next_time_last_run_and_faults(clock: Shell) -> None:
    ran(clock)
    found = {job["name"]: job for job in clock("heartbeat", "list", "--json").json["jobs"]}
    morning = found["morning"]
    assert (morning["kind"], morning["schedule"], morning["zone"]) == ("heartbeat", "Daily (08:00)", "Asia/Riyadh")
    assert morning["enabled"]
    assert datetime.fromisoformat(morning["next_at"]) > datetime.now(UTC)
    assert morning["last"]["outcome"] == "ok"
    assert morning["fault"] is None
    faulty = found["Weekly (Someday 09:00)"]
    assert not faulty["enabled"]
    assert faulty["fault"].startswith("line 9: ")
    said = clock("heartbeat", "list")
    assert said.err == ""
    assert said.out.splitlines()[0].split() == ["job", "kind", "schedule", "next", "last", "remark"]


def test_the_next_times_of_one_job_and_of_all(clock: Shell) -> None:
    times = clock("heartbeat", "next", "morning", "-n", "3", "--json").json["next"]
    assert [entry["name"] for entry in times] == ["morning"] * 3
    first, second, third = (datetime.fromisoformat(entry["at"]) for entry in times)
    assert second - first == third - second == timedelta(days=1)
    assert (first.hour, first.utcoffset()) == (8, timedelta(hours=3))
    everything = [
        datetime.fromisoformat(entry["at"]) for entry in clock("heartbeat", "next", "-n", "20", "--json").json["next"]
    ]
    assert len(everything) == 20
    assert everything == sorted(everything)


def test_a_job_that_is_not_there_is_exit_code_3(clock: Shell) -> None:
    said = clock("heartbeat", "next", "evening")
    assert said.code == 3
    assert "evening" in said.err


def test_what_ran_and_what_did_not(clock: Shell) -> None:
    ran(clock)
    late, missed = clock("heartbeat", "history", "--json").json["runs"]
    assert (late["name"], late["outcome"], late["late_seconds"], late["conversation"]) == (
        "morning",
        "ok",
        1200.0,
        "c-1",
    )
    assert (missed["outcome"], missed["reason"], missed["started_at"]) == ("missed", "it was off", None)
    lines = clock("heartbeat", "history").out.splitlines()
    assert lines[1].split()[:6] == ["2026-11-29", "05:00", "morning", "ok", "3.0", "s"]
    assert "late by 20 min; quiet" in lines[1]
    assert len(clock("heartbeat", "history", "--limit", "1", "--json").json["runs"]) == 1


def test_without_jobs_and_runs_there_is_silence(shell: Shell) -> None:
    shell.prepared()
    for command in ("next", "history"):
        said = shell("heartbeat", command)
        assert (said.code, said.out, said.err) == (0, "", "")
    jobs = shell("heartbeat", "list", "--json").json["jobs"]
    assert {(job["name"], job["kind"], job["enabled"]) for job in jobs} == {
        ("channel_status", "built-in", True),
        ("prune", "built-in", True),
        ("database", "built-in", True),
        ("reflect", "built-in", True),
        ("consolidate", "built-in", True),
    }
    shell.write("config.toml", '[memory]\nreflect = "Hourly (5)"\nconsolidate = ""\n')
    jobs = shell("heartbeat", "list", "--json").json["jobs"]
    assert {job["name"]: job["schedule"] for job in jobs if job["name"] in {"reflect", "consolidate"}} == {
        "reflect": "Hourly (5)"
    }


def test_a_clock_that_is_switched_off_has_jobs_but_no_times(clock: Shell) -> None:
    clock.write("config.toml", "[heartbeat]\nenabled = false\n")
    jobs = clock("heartbeat", "list", "--json").json["jobs"]
    assert {(job["enabled"], job["next_at"]) for job in jobs} == {(False, None)}
    assert clock("heartbeat", "next", "--json").json == {"next": []}


def test_a_job_is_run_by_hand_in_the_running_gateway(clock: Shell) -> None:
    ended = threading.Event()
    with clock.gateway() as gateway:
        note = gateway.app.clock.run_ended

        async def noted(*given: Any) -> None:
            await note(*given)
            ended.set()

        gateway.app.queue.clock.run_ended = noted
        said = clock("heartbeat", "run", "morning")
        assert (said.code, said.out, said.err) == (0, "", "")
        assert ended.wait(30)
        assert clock("heartbeat", "run", "evening").code == 3
        assert clock("heartbeat", "run", "Weekly (Someday 09:00)").code == 3
    (run, *_) = clock("heartbeat", "history", "--json").json["runs"]
    assert (run["name"], run["outcome"]) == ("morning", "ok")


def test_procedures_are_listed_and_run_with_their_values(clock: Shell) -> None:
    clock.write("workspace/procedures/greet.md", "---\ntitle: Greet\narguments: [who]\n---\nRemind me: greet {who}\n")
    clock.write("workspace/procedures/broken.md", "no head")
    jobs = clock("procedure", "list", "--json").json["jobs"]
    assert [(job["name"], job["kind"], bool(job["fault"])) for job in jobs] == [
        ("greet", "procedure", False),
        ("broken", "procedure", True),
    ]
    assert clock("procedure", "run", "greet").code == 4
    ended = threading.Event()
    with clock.gateway() as gateway:
        note = gateway.app.clock.run_ended

        async def noted(*given: Any) -> None:
            await note(*given)
            ended.set()

        gateway.app.queue.clock.run_ended = noted
        assert clock("procedure", "run", "greet", "who").code == 2
        refused = clock("procedure", "run", "greet")
        assert (refused.code, "needs who" in refused.err) == (1, True)
        assert clock("procedure", "run", "greet", "who=Sara").code == 0
        assert ended.wait(30)
        assert clock("heartbeat", "off", "greet").code == 0
        assert clock("heartbeat", "on", "nobody").code == 3
    (run, *_) = clock("heartbeat", "history", "--json").json["runs"]
    assert (run["name"], run["kind"], run["outcome"]) == ("greet", "procedure", "ok")
    assert "greet Sara" in run["reason"]
    assert not next(job for job in clock("procedure", "list", "--json").json["jobs"] if job["name"] == "greet")[
        "enabled"
    ]


def test_a_job_is_written_by_the_tool_with_consent_and_without_a_gateway(clock: Shell) -> None:
    wish = '{"when": "every sunday at 9", "instruction": "Remind me: water"}'
    refused = clock("tool", "schedule_create", wish)
    assert (refused.code, "consent" in refused.err) == (1, True)
    said = clock("tool", "schedule_create", wish, "--yes")
    assert "water, Weekly (Sun 09:00)" in said.out
    assert (clock.home / "workspace" / "heartbeat.md").read_text(encoding="utf-8").startswith(JOBS)
    assert "next " in clock("tool", "schedule_list", "{}").out
    assert clock("tool", "schedule_run", '{"name": "water"}', "--yes").code == 1

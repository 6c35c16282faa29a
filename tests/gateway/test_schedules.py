"""Jobs that are asked for in words, procedures with their steps, and the switch: through the whole program."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agent.capabilities.schedule.tools import Schedule
from agent.types import CallContext, Person, ToolFailure, Viewer
from tests.fakes.bot_api import BotApi
from tests.fakes.program import OWNER, Program
from tests.fakes.waiting import until
from tests.gateway.test_scheduled_runs import clock, clockwork, due, ended

MINE = "# Mine\r\n\r\n## Daily (07:00)\r\nname: morning\r\n\r\nRemind me: get up\r\n<!-- ## Daily (09:00) -->\r\n"


async def allowed(gateway: Program, api: BotApi, answer: str = "1") -> str:
    """The owner answers the open question; what was asked."""
    await until(lambda: bool(gateway.sent()) and "schedule_" in gateway.sent()[-1])
    asked = gateway.sent()[-1]
    api.push_text(OWNER, answer)
    await gateway.quiet()
    return asked


@pytest.mark.parametrize(
    ("said", "span", "told"),
    [
        ("remind me tomorrow at 9 to call mom", {"hours": 22}, "Reminder: call mom"),
        ("ذكرني بعد ساعتين أن أشرب الماء", {"hours": 2}, "تذكير: أشرب الماء"),
    ],
)
async def test_a_reminder_in_words_comes_at_the_owners_local_time(
    tmp_path: Path, said: str, span: dict[str, float], told: str
) -> None:
    at = clock()  # 11:00 in Riyadh
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, MINE) as gateway,
    ):
        api.push_text(OWNER, said)
        asked = await allowed(gateway, api)
        assert "schedule_create" in asked
        assert "Next: " in asked  # before consent too
        written = (tmp_path / "h" / "workspace" / "heartbeat.md").read_bytes().decode()
        assert written.startswith(MINE)
        assert ("Next: " in gateway.sent()[-1]) or ("القادمة" in gateway.sent()[-1])
        before = len(gateway.sent())
        at.forward(minutes=-1)
        await due(gateway, at, **span)
        await gateway.quiet()
        assert told not in gateway.sent()[before:]
        at.forward(minutes=1)
        await due(gateway, at, seconds=1)
        await until(lambda: told in gateway.sent()[before:])


async def test_what_the_owner_refuses_is_not_written(tmp_path: Path) -> None:
    at = clock()
    async with BotApi(chats={OWNER: "private"}) as api, clockwork(tmp_path / "h", api, at, MINE) as gateway:
        api.push_text(OWNER, "remind me tomorrow at 9 to call mom")
        await allowed(gateway, api, "2")
        assert (tmp_path / "h" / "workspace" / "heartbeat.md").read_bytes().decode() == MINE


def a_call(now: datetime) -> CallContext:
    return CallContext(Viewer(Person("owner", "owner", "owner")), "telegram:7", "c", "t", now)


async def test_the_tools_create_list_change_start_and_delete(tmp_path: Path) -> None:
    at = clock()
    path = tmp_path / "h" / "workspace" / "heartbeat.md"
    async with clockwork(tmp_path / "h", None, at, MINE) as gateway:
        app = gateway.app
        tools = Schedule(app.schedules, app.settings.zone)
        call = a_call(at())

        async def use(tool: str, /, **args: Any) -> str:
            return await tools.functions()[tool](call, args)

        made = await use("schedule_create", when="every sunday at 9", instruction="Remind me: water the plants")
        assert "water the plants, Weekly (Sun 09:00)" in made
        assert made.count("+0300") == 3
        again = await use("schedule_create", when="Daily (08:00)", instruction="Remind me: water the plants")
        assert "water the plants 2, Daily (08:00)" in again
        changed = await use("schedule_edit", name="morning", when="كل يوم الساعة ٦", instruction="Remind me: sleep on")
        assert "morning, Daily (06:00)" in changed
        listed = await use("schedule_list")
        assert "morning (heartbeat): Daily (06:00); next 2026-12-01 06:00 +0300" in listed
        assert "prune (built-in)" in listed
        await use("schedule_run", name="morning")
        await gateway.quiet()
        assert (await ended(gateway))[0]["reason"] == "Reminder: sleep on"
        for name in ("water the plants", "water the plants 2"):
            await use("schedule_delete", name=name)
        text = path.read_bytes().decode()
        assert text.rstrip() == MINE.replace("07:00", "06:00").replace("get up", "sleep on").rstrip()
        for name, args, said in (
            ("schedule_create", {"when": "soon", "instruction": "x"}, "no time that is certain"),
            ("schedule_create", {"when": "Daily (25:00)", "instruction": "x"}, "no time of day"),
            ("schedule_create", {"when": "Daily (08:00)", "instruction": "## Daily (09:00)"}, "cannot stand"),
            ("schedule_create", {"when": "Daily (08:00)", "instruction": "x", "target": "sara"}, "is no target"),
            ("schedule_create", {"when": "Daily (08:00)", "instruction": " "}, "is empty"),
            ("schedule_edit", {"name": "morning"}, "Give another"),
            ("schedule_edit", {"name": "prune", "when": "Daily (08:00)"}, "does not stand in heartbeat.md"),
            ("schedule_delete", {"name": "nobody"}, "No job is called nobody"),
            ("schedule_run", {"name": "nobody"}, "No job is called nobody"),
            ("procedure_step", {"step": 1}, "No procedure is running here"),
        ):
            with pytest.raises(ToolFailure, match=said):
                await use(name, **args)
        assert path.read_bytes().decode() == text


async def test_a_hand_edit_while_the_tool_writes_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway import schedules

    at = clock()
    async with clockwork(tmp_path / "h", None, at, MINE) as gateway:
        path = tmp_path / "h" / "workspace" / "heartbeat.md"
        reads = iter((None, "by hand\n"))
        read = schedules._read  # pyright: ignore[reportPrivateUsage]

        def between(place: Path) -> bytes | None:
            added = next(reads, None)
            if added:
                path.write_bytes(path.read_bytes() + added.encode())
            return read(place)

        monkeypatch.setattr(schedules, "_read", between)
        tools = Schedule(gateway.app.schedules, gateway.app.settings.zone)
        await tools.schedule_create(a_call(at()), {"when": "Daily (08:00)", "instruction": "x", "name": "new"})
        text = path.read_bytes().decode()
        assert text.startswith(MINE + "by hand\n")
        assert "name: new" in text


PROCEDURE = """---
title: Evening check
schedule: Daily (12:00)
arguments:
  - who: Sara
---

For {who}:

- [ ] are you connected?
- [ ] Search for flight plans
- [ ] think hard
"""


async def test_a_procedure_runs_by_schedule_and_by_command_and_its_steps_show(tmp_path: Path) -> None:
    at = clock()
    async with BotApi(chats={OWNER: "private"}) as api, clockwork(tmp_path / "h", api, at, MINE) as gateway:
        (tmp_path / "h" / "workspace" / "procedures" / "check.md").write_text(PROCEDURE, encoding="utf-8")
        await due(gateway, at, seconds=2)
        await due(gateway, at, hours=1)
        [run] = await ended(gateway)
        assert (run["name"], run["kind"], run["outcome"]) == ("check", "procedure", "ok")
        assert run["reason"].startswith("2 of 3 steps done")
        found = await gateway.get(f"/api/conversations/{run['conversation']}")
        assert "For Sara:" in found["messages"][0]["text"]
        names = [call["name"] for call in found["messages"][-1]["tool_calls"]]
        assert names.count("procedure_step") == 2
        api.push_text(OWNER, "/run check who=Omar")
        await gateway.quiet()
        runs = await ended(gateway, 2)
        assert "Started: check." in gateway.sent()
        found = await gateway.get(f"/api/conversations/{runs[0]['conversation']}")
        assert "For Omar:" in found["messages"][0]["text"]
        api.push_text(OWNER, "/run check what=x")
        await gateway.quiet()
        assert "has no argument what" in gateway.sent()[-1]


async def test_the_page_lists_starts_and_switches_jobs(tmp_path: Path) -> None:
    at = clock()
    async with clockwork(tmp_path / "h", None, at, MINE) as gateway:
        jobs = {job["name"]: job for job in (await gateway.get("/api/jobs"))["jobs"]}
        assert (jobs["morning"]["kind"], jobs["morning"]["enabled"]) == ("heartbeat", True)
        assert jobs["prune"]["kind"] == "built-in"
        await gateway.post("/api/heartbeat/morning/switch", {"on": False}, 200)
        await gateway.post("/api/heartbeat/prune/switch", {"on": False, "kind": "built-in"}, 200)
        jobs = {job["name"]: job for job in (await gateway.get("/api/jobs"))["jobs"]}
        assert (jobs["morning"]["enabled"], jobs["morning"]["next_at"]) == (False, None)
        assert not jobs["prune"]["enabled"]
        await gateway.post("/api/heartbeat/morning/switch", {"on": "no"}, 400)
        await gateway.post("/api/heartbeat/morning/switch", {"on": True, "kind": "odd"}, 400)
        await gateway.post("/api/heartbeat/nobody/switch", {"on": True}, 404)
        await due(gateway, at, hours=23)
        assert {run["reason"] for run in (await gateway.get("/api/runs"))["runs"]} == {"switched off"}

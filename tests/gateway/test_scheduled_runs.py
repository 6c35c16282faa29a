"""A job that comes due, from heartbeat.md to the owner's chat, by a clock that is set by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.home import prepare
from tests.fakes.bot_api import BotApi
from tests.fakes.clock import FakeClock
from tests.fakes.hub import crashed_copy
from tests.fakes.program import OWNER, EchoProvider, Program, program, settings_for
from tests.fakes.waiting import until

EVERY_HALF_HOUR = "## Every (30m)\nname: look around\n\n"


@asynccontextmanager
async def clockwork(
    home: Path, api: BotApi | None, clock: FakeClock, jobs: str, **options: Any
) -> AsyncIterator[Program]:
    """The program with its clock on, and these jobs; those of the memory only where they are asked for."""
    prepare(home)
    (home / "workspace" / "heartbeat.md").write_text(jobs, encoding="utf-8")
    heartbeat = {"enabled": True} | options.pop("heartbeat", {})
    memory = options.pop("memory", {"reflect": "", "consolidate": ""})
    settings = settings_for(api, heartbeat=heartbeat, memory=memory, agent={"timezone": "Asia/Riyadh"})
    async with program(home, api, settings=settings, now=clock, **options) as gateway:
        await gateway.app.runner.tick()
        yield gateway


def clock() -> FakeClock:
    return FakeClock(datetime(2026, 11, 30, 8, 0, tzinfo=UTC))


async def due(gateway: Program, at: FakeClock, **span: float) -> None:
    """Time passes, and what came due has had its turn."""
    at.forward(**span)
    await gateway.app.runner.tick()
    await gateway.quiet()


def history(home: Path) -> list[str]:
    path = home / "workspace" / "run-history.md"
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]


async def ended(gateway: Program, count: int = 1) -> list[dict[str, Any]]:
    """The runs, when so many have ended."""

    async def all_ended() -> bool:
        runs = (await gateway.get("/api/runs"))["runs"]
        return len(runs) >= count and all(run["ended_at"] for run in runs)

    await until(all_ended)
    return (await gateway.get("/api/runs"))["runs"]


async def test_the_answer_of_a_job_goes_to_the_owners_chat_and_is_known_there(tmp_path: Path) -> None:
    at = clock()
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, EVERY_HALF_HOUR + "Are you connected?\n") as gateway,
    ):
        assert [job["name"] for job in (await gateway.get("/api/status"))["next_jobs"]][:1] == ["look around"]
        await due(gateway, at, minutes=30)
        [run] = await ended(gateway)
        assert (run["name"], run["outcome"]) == ("look around", "ok")
        assert run["conversation"]
        [answer] = gateway.sent()
        assert "telegram" in answer.lower()
        assert [(way, text[:8]) for way, text in gateway.logged()] == [("out", answer[:8])]
        [line] = history(tmp_path / "h")
        assert "| heartbeat | look around | ok |" in line
        # The owner asks back: the model is shown what it said.
        api.push_text(OWNER, "what was that?")
        await gateway.quiet()
        chat = next(
            item for item in (await gateway.get("/api/conversations"))["conversations"] if item["channel"] == "telegram"
        )
        found = await gateway.get(f"/api/conversations/{chat['id']}")
        assert [message["role"] for message in found["messages"]] == ["assistant", "user", "assistant"]


async def test_when_all_is_well_nobody_is_told_and_the_run_is_written_down(tmp_path: Path) -> None:
    at = clock()
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, EVERY_HALF_HOUR + "Anything that needs me?\n") as gateway,
    ):
        await due(gateway, at, minutes=30)
        [run] = await ended(gateway)
        assert run["outcome"] == "ok"
        assert gateway.sent() == []
        assert gateway.rows("SELECT state FROM delivery") == [("suppressed",)]
        found = await gateway.get(f"/api/conversations/{run['conversation']}")
        assert found["messages"][-1]["text"] == "HEARTBEAT_OK"
        [line] = history(tmp_path / "h")
        assert line.endswith("| quiet")


async def test_without_a_messenger_the_answer_appears_on_the_open_page(tmp_path: Path) -> None:
    at = clock()
    async with clockwork(tmp_path / "h", None, at, EVERY_HALF_HOUR + "Are you connected?\n") as gateway:
        seen: list[tuple[str, Any]] = []
        gateway.app.observers.add(lambda kind, data: seen.append((kind, data)))
        await due(gateway, at, minutes=30)
        await ended(gateway)
        [told] = [data for kind, data in seen if kind == "message" and data["conversation"] == "home"]
        assert told["summary"]["channel"] == "inapp"
        found = await gateway.get("/api/conversations/home")
        assert [message["text"] for message in found["messages"]] == [told["message"]["text"]]
        assert [line["dir"] for line in gateway.log("home", "inapp")] == ["out"]


async def test_a_due_time_runs_once_over_a_restart(tmp_path: Path) -> None:
    at = clock()
    jobs = EVERY_HALF_HOUR + "Are you connected?\n"
    async with BotApi(chats={OWNER: "private"}) as api:
        async with clockwork(tmp_path / "h", api, at, jobs) as gateway:
            await due(gateway, at, minutes=30)
            await ended(gateway)
        async with clockwork(tmp_path / "h", api, at, jobs) as gateway:
            await due(gateway, at, seconds=1)
            assert len(await ended(gateway)) == 1
            assert len(gateway.sent()) == 1
            await due(gateway, at, minutes=30)
            assert len(await ended(gateway, 2)) == 2
            assert len(gateway.sent()) == 2


async def test_a_run_that_was_under_way_at_a_kill_goes_on_once(tmp_path: Path) -> None:
    at = clock()
    jobs = EVERY_HALF_HOUR + "Count the birds.\n"
    provider = EchoProvider()
    provider.gate.clear()
    async with BotApi(chats={OWNER: "private"}) as api:
        async with clockwork(tmp_path / "h", api, at, jobs, provider=provider) as gateway:
            gateway.app.queue._stop_seconds_max = 0.01
            at.forward(minutes=30)
            await gateway.app.runner.tick()
            await until(lambda: bool(provider.prompts))
            crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
        assert gateway.sent() == []
        async with clockwork(crashed, api, at, jobs, provider=EchoProvider()) as gateway:
            await gateway.quiet()
            [run] = await ended(gateway)
            assert run["outcome"] == "ok"
            assert len(gateway.sent()) == 1
            assert "Count the birds" in gateway.sent()[0]


async def test_a_job_by_hand_and_one_that_cannot(tmp_path: Path) -> None:
    at = clock()
    jobs = EVERY_HALF_HOUR + "Are you connected?\n\n## Daily (07:00)\nname: nothing\n"
    async with clockwork(tmp_path / "h", None, at, jobs) as gateway:
        await gateway.post("/api/heartbeat/look%20around/run", {})
        await gateway.quiet()
        [run] = await ended(gateway)
        assert run["outcome"] == "ok"
        refused = await gateway.post("/api/heartbeat/nothing/run", {}, 409)
        assert "instruction is empty" in refused["error"]["message"]
        await gateway.post("/api/heartbeat/nobody/run", {}, 404)


async def test_an_answer_to_a_chat_that_there_is_not_is_kept_and_said(tmp_path: Path, caplog: Any) -> None:
    at = clock()
    jobs = "## Every (30m)\nname: lost\ntarget: pigeon:7\n\nAre you connected?\n"
    async with clockwork(tmp_path / "h", None, at, jobs) as gateway:
        await due(gateway, at, minutes=30)
        [run] = await ended(gateway)
        assert run["outcome"] == "ok"
        state = await gateway.channel("heartbeat")
        assert state["state"] == "degraded"
        assert "pigeon:7" in state["detail"]
        assert gateway.rows("SELECT count(*) FROM delivery") == [(0,)]
        found = await gateway.get(f"/api/conversations/{run['conversation']}")
        assert found["messages"][-1]["text"]

"""The program's own jobs in the running program: the memory's by the clock, and a word on channels that are down."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from channels.channel import ChannelDown, ChannelState
from gateway.home import prepare
from tests.fakes.bot_api import BotApi
from tests.fakes.clock import FakeClock
from tests.fakes.program import OWNER, Program
from tests.fakes.waiting import until
from tests.gateway.test_scheduled_runs import clockwork, history

EPISODES = "brain/hippocampus/episodes"
WEEK = "brain/hippocampus/consolidated/2026-W47.md"
REFLECT = {"reflect": "Daily (03:00)", "consolidate": ""}
CONSOLIDATE = {"reflect": "", "consolidate": "Weekly (Mon 00:30)"}
ROWS = "SELECT job, datetime(due_at / 1000, 'unixepoch'), outcome FROM run WHERE job IN ('reflect', 'consolidate')"


def day(home: Path, name: str, bullet: str) -> None:
    page = home / "workspace" / EPISODES / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"# {name}\n\n## Retain\n\n{bullet}\n", encoding="utf-8")


async def looked(gateway: Program, at: FakeClock, **span: float) -> None:
    """Time passes, and what came due has ended."""
    at.forward(**span)
    await gateway.app.runner.tick()
    await until(lambda: gateway.rows("SELECT count(*) FROM run WHERE outcome IS NULL") == [(0,)])


async def test_each_night_the_memory_is_brought_up_to_date(tmp_path: Path) -> None:
    home, at = tmp_path / "h", FakeClock(datetime(2026, 11, 24, 20, 0, tzinfo=UTC))
    async with clockwork(home, None, at, "", memory=REFLECT) as gateway:
        day(home, "2026-11-24", "- W @Peter: Peter moved to Oslo.")
        await looked(gateway, at, hours=3, minutes=59)
        assert gateway.rows(ROWS) == []
        await looked(gateway, at, minutes=1)
        assert gateway.rows(ROWS) == [("reflect", "2026-11-25 00:00:00", "ok")], "at 03:00 in Riyadh"
        assert "Oslo" in (home / "workspace" / "bank" / "entities" / "Peter.md").read_text(encoding="utf-8")
        await until((home / "workspace" / "run-history.md").exists)
        [line] = history(home)
        assert "| built-in | reflect | ok |" in line
        await looked(gateway, at, days=1)
        assert len(gateway.rows(ROWS)) == 2
        assert len(history(home)) == 1, "a night without news has no line"


async def test_a_missed_week_is_made_up_at_the_next_start_and_once(tmp_path: Path) -> None:
    home, at = tmp_path / "h", FakeClock(datetime(2026, 11, 20, 8, 0, tzinfo=UTC))
    prepare(home)
    day(home, "2026-11-17", "- W @Peter: Peter moved to Oslo.")
    async with clockwork(home, None, at, "", memory=CONSOLIDATE, heartbeat={"catchup": "skip"}) as gateway:
        assert gateway.rows(ROWS) == []
    at.forward(days=5)
    made: list[bytes] = []
    for _ in range(3):
        async with clockwork(home, None, at, "", memory=CONSOLIDATE, heartbeat={"catchup": "skip"}) as gateway:
            await looked(gateway, at, minutes=5)
            assert gateway.rows(ROWS) == [("consolidate", "2026-11-22 21:30:00", "ok")]
            made.append((home / "workspace" / WEEK).read_bytes())
            assert "home" not in [one["id"] for one in (await gateway.get("/api/conversations"))["conversations"]]
    assert b"Oslo" in made[0]
    assert len(set(made)) == 1
    assert len(history(home)) == 1


async def test_a_job_of_the_memory_without_a_schedule_is_not_there(tmp_path: Path) -> None:
    at = FakeClock(datetime(2026, 11, 24, 20, 0, tzinfo=UTC))
    async with clockwork(tmp_path / "h", None, at, "") as gateway:
        assert [job.name for job in await gateway.app.runner.list()] == ["channel_status", "prune", "database"]


async def test_tidying_forgets_no_latest_run_of_a_rare_job(tmp_path: Path) -> None:
    at = FakeClock(datetime(2026, 10, 31, 2, 0, tzinfo=UTC))
    monthly = {"reflect": "", "consolidate": "Monthly (1 09:00)"}
    async with clockwork(tmp_path / "h", None, at, "", memory=monthly) as gateway:
        await looked(gateway, at, days=1, hours=4)
        await looked(gateway, at, days=19, hours=20)
        tidied = gateway.rows("SELECT outcome, count(*) FROM run WHERE job = 'prune' GROUP BY outcome ORDER BY 1")
        assert ("ok", 1) in tidied
    async with clockwork(tmp_path / "h", None, at, "", memory=monthly) as gateway:
        await looked(gateway, at, hours=1)
        assert gateway.rows(ROWS) == [("consolidate", "2026-11-01 06:00:00", "ok")]
        assert gateway.rows(
            "SELECT started_at / 1000 / 86400 - due_at / 1000 / 86400 FROM run WHERE job = 'consolidate'"
        ) == [(0,)]


async def alerts(gateway: Program) -> list[str]:
    return [message["text"] for message in (await gateway.get("/api/conversations/home"))["messages"]]


async def test_an_outage_has_one_word_and_its_end_another(tmp_path: Path) -> None:
    """Told of at once where a person is needed, then looked at many times, over a restart, until it is up again."""
    home, at = tmp_path / "h", FakeClock(datetime(2026, 11, 30, 8, 0, tzinfo=UTC))
    lost = ChannelDown("rejected", "Telegram rejected the token", terminal=True, remedy="Ask @BotFather for another.")

    async def down(gateway: Program) -> Any:
        channel = gateway.app.health._channels["telegram"]  # pyright: ignore[reportPrivateUsage]
        await until(lambda: channel.state == "connected")
        return channel

    async def as_it_is(gateway: Program, state: ChannelState) -> None:
        channel = await down(gateway)
        channel.state, channel.detail = state, lost.detail
        for _ in range(5):
            await looked(gateway, at, minutes=5)

    async with BotApi(chats={OWNER: "private"}) as api:
        async with clockwork(home, api, at, "") as gateway:
            await down(gateway)
            await gateway.app.watch.ended("telegram", lost)
            await as_it_is(gateway, "rejected")
            await gateway.app.watch.ended("telegram", lost)
            [word] = await alerts(gateway)
            assert word == "telegram has stopped: Telegram rejected the token. Ask @BotFather for another."
        async with clockwork(home, api, at, "") as gateway:
            await down(gateway)
            await until(lambda: gateway.sent() == ["telegram is back."])
            await looked(gateway, at, minutes=5)
            assert await alerts(gateway) == [word]
            assert gateway.sent() == ["telegram is back."]
            # The next outage is another one.
            await gateway.app.watch.ended("telegram", lost)
            assert await alerts(gateway) == [word, word]


async def test_a_word_on_a_channel_is_not_held_while_no_clock_gives_it_back(tmp_path: Path) -> None:
    at = FakeClock(datetime(2026, 11, 30, 20, 0, tzinfo=UTC))
    quiet = {"enabled": False, "quiet": "22:00-07:00"}
    lost = ChannelDown("rejected", "no", terminal=True, remedy="Do.")
    async with (
        BotApi(chats={OWNER: "private"}) as api,
        clockwork(tmp_path / "h", api, at, "", heartbeat=quiet) as gateway,
    ):
        await gateway.app.watch.ended("telegram", lost)
        assert await alerts(gateway) == ["telegram has stopped: no. Do."]

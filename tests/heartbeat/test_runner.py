"""What becomes of due times: run, late, skipped, missed; over restarts, sleep, and clocks that jump."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from heartbeat.board import Board
from heartbeat.grammar import parse_heartbeat
from heartbeat.history import RunHistory
from heartbeat.runner import Runner
from heartbeat.types import CannotRun, Defaults, Parsed, QueueState, UnknownJob
from tests.fakes.clock import FakeClock, FakeHerald, FakeRunQueue, FakeRunStore, FakeSource, FakeTimer

RIYADH = ZoneInfo("Asia/Riyadh")
UTC_ZONE = ZoneInfo("UTC")
NOTHING_SET = Defaults()


class World:
    """What outlives a process (rows, queue, files, time), and a runner on it."""

    def __init__(
        self, folder: Path, text: str, start: str = "2027-05-10T06:00", defaults: Defaults = NOTHING_SET
    ) -> None:
        self.clock = FakeClock(datetime.fromisoformat(start).replace(tzinfo=UTC))
        self.store = FakeRunStore()
        self.queue = FakeRunQueue()
        self.source = FakeSource(parse_heartbeat(text))
        self.path = folder / "run-history.md"
        self.herald = FakeHerald()
        self.defaults = defaults
        self.runner = self.restart()

    def restart(self, zone: ZoneInfo = UTC_ZONE) -> Runner:
        """A new process; the old one left without a word."""
        self.source = FakeSource(self.source.parsed)
        self.timer = FakeTimer()
        history = RunHistory(self.path, RIYADH)
        self.runner = Runner(
            [self.source],
            self.store,
            self.queue,
            history,
            self.timer,
            zone=zone,
            now=self.clock,
            defaults=self.defaults,
            herald=self.herald,
        )
        return self.runner

    def edit(self, text: str) -> None:
        self.source.parsed = parse_heartbeat(text)

    async def tick(self, **forward: float) -> None:
        self.clock.forward(**forward)
        assert await self.runner.tick()

    async def end_all(self) -> None:
        for run in self.queue.submitted:
            await self.runner.finished(run.job.key, run.due_at, "ok")

    def lines(self) -> list[str]:
        """The lines of the history without their time."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [line.partition(" | ")[2] for line in lines if line.startswith("- ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


async def test_a_due_time_goes_into_the_queue_and_leaves_a_row_and_a_line(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: morning\ntarget: telegram:7\n\nGood morning")
    await world.tick()
    await world.tick(hours=1, minutes=59, seconds=59)
    assert world.queue.dues == []
    await world.tick(seconds=1.2)
    (run,) = world.queue.submitted
    assert (run.key, run.target) == ("beat:morning:2027-05-10T08:00:00+00:00", "telegram:7")
    assert run.job.instruction == "Good morning"
    assert run.late_seconds == pytest.approx(0.2)
    world.clock.forward(seconds=3)
    await world.runner.finished(("heartbeat", "morning"), run.due_at, "ok", "all well", "c9")
    (row,) = await world.store.history(5)
    assert (row.outcome, row.conversation, row.reason) == ("ok", "c9", "all well")
    assert world.path.read_text(encoding="utf-8").splitlines()[-1] == (
        "- 2027-05-10T11:00:03+03:00 | heartbeat | morning | ok | 3.0s | all well"
    )
    await world.runner.finished(("heartbeat", "morning"), run.due_at, "error", "told twice")
    assert len(world.lines()) == 1


async def test_the_settings_target_counts_where_a_job_names_none(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nhello")
    await world.tick()
    await world.tick(hours=2)
    assert world.queue.submitted[0].target == "owner"


async def test_a_due_time_never_runs_twice_over_restarts(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx")
    await world.tick()
    await world.tick(hours=2)
    await world.end_all()
    for _ in range(3):
        world.restart()
        await world.tick(seconds=1)
    assert world.queue.dues == ["a 10 08:00"]


async def test_a_job_never_overlaps_itself(folder: Path) -> None:
    world = World(folder, "## Cron (* * * * *)\nname: a\n\nx\n## Daily (06:02)\nname: b\n\ny")
    await world.tick()
    for _ in range(3):
        await world.tick(minutes=1)
    assert world.queue.dues == ["a 10 06:01", "b 10 06:02"]
    assert world.store.told("a") == [("10 06:01", None), ("10 06:02", "skipped"), ("10 06:03", "skipped")]
    assert world.lines().count("heartbeat | a | skipped | 0.0s | still running") == 2
    await world.end_all()
    await world.tick(minutes=1)
    assert world.queue.dues[-1] == "a 10 06:04"


async def test_after_a_restart_a_run_that_still_waits_in_the_queue_is_not_overlapped(folder: Path) -> None:
    world = World(folder, "## Cron (* * * * *)\nname: a\n\nx")
    await world.tick()
    await world.tick(minutes=1)
    world.restart()
    await world.tick(minutes=1)
    assert world.queue.dues == ["a 10 06:01"]
    assert world.store.told("a") == [("10 06:01", None), ("10 06:02", "skipped")]


async def test_the_latest_due_time_missed_within_grace_runs_late_and_the_older_are_missed(folder: Path) -> None:
    world = World(folder, "## Hourly (0)\nname: a\n\nx")
    await world.tick()
    world.restart()
    await world.tick(hours=4, minutes=20)
    assert world.queue.dues == ["a 10 10:00"]
    await world.end_all()
    assert world.store.told("a") == [
        ("10 07:00", "missed"),
        ("10 08:00", "missed"),
        ("10 09:00", "missed"),
        ("10 10:00", "ok"),
    ]
    assert world.lines()[0] == "heartbeat | a | missed | 0.0s | the gateway was not running"
    assert world.lines()[-1] == "heartbeat | a | ok | 0.0s | late by 20 min"


async def test_a_weekly_job_missed_while_down_is_made_up_and_the_next_is_in_a_week(folder: Path) -> None:
    world = World(folder, "## Weekly (Mon 09:00)\nname: week\n\nx", "2026-11-23T08:00")
    await world.tick()
    await world.tick(hours=1)
    await world.end_all()
    world.clock.at = datetime(2026, 11, 30, 10, 30, tzinfo=UTC)
    world.restart()
    await world.tick()
    assert world.queue.dues == ["week 23 09:00", "week 30 09:00"]
    assert world.queue.submitted[-1].late_seconds == 5_400
    assert [at.isoformat() for _, at in world.runner.next("week", 1)] == ["2026-12-07T09:00:00+00:00"]


async def test_past_its_grace_a_due_time_is_missed(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\ngrace: 1h\n\nx", "2027-05-11T08:00")
    await world.tick()
    world.restart()
    await world.tick(days=1, hours=1, seconds=1)
    assert world.queue.dues == []
    assert world.store.told("a") == [("12 08:00", "missed")]
    assert [at.isoformat() for _, at in world.runner.next("a", 1)] == ["2027-05-13T08:00:00+00:00"]


async def test_a_job_that_skips_catching_up_runs_on_time_or_not_at_all(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\ncatchup: skip\n\nx")
    await world.tick()
    await world.tick(hours=2, seconds=59)
    assert world.queue.dues == ["a 10 08:00"]
    await world.end_all()
    world.restart()
    await world.tick(days=1, minutes=5)
    assert world.store.told("a") == [("10 08:00", "ok"), ("11 08:00", "missed")]


async def test_after_sleep_of_the_machine_one_run_makes_up_for_all(folder: Path) -> None:
    world = World(folder, "## Every (30m)\nname: beat\n\nx\n## Daily (03:00)\nname: night\n\ny", "2027-05-10T02:50")
    await world.tick()
    await world.tick(minutes=30)
    assert world.queue.dues == ["beat 10 03:00", "night 10 03:00"]
    assert world.queue.submitted[1].late_seconds == 1_200
    await world.end_all()
    await world.tick(hours=6)
    assert world.queue.dues[2:] == ["beat 10 09:00"]
    assert [outcome for _, outcome in world.store.told("beat")] == ["ok", *["missed"] * 11, None]
    assert "heartbeat | beat | missed | 0.0s | the machine was asleep or busy" in world.lines()


async def test_a_long_absence_leaves_a_bounded_number_of_rows(folder: Path) -> None:
    world = World(folder, "## Cron (* * * * *)\nname: a\n\nx")
    await world.tick()
    world.restart()
    await world.tick(days=400)
    assert world.queue.dues == ["a 13 06:00"]
    assert len(world.store.rows) == 20_001
    assert len(world.lines()) == 51
    assert "19,950 times since 2028-05-30" in world.lines()[0]


async def test_what_was_due_before_a_job_was_written_down_is_not_missed(folder: Path) -> None:
    world = World(folder, "## Daily (07:00)\nname: a\n\nx")
    await world.tick()
    world.edit("## Daily (07:00)\nname: a\n\nx\n## Hourly (0)\nname: new\n\ny")
    world.restart()
    await world.tick(hours=3)
    assert world.store.told("new") == []
    await world.tick(hours=1)
    assert world.queue.dues[-1] == "new 10 10:00"


async def test_an_edited_schedule_counts_from_the_edit(folder: Path) -> None:
    world = World(folder, "## Weekly (Mon 07:00)\nname: a\n\nx")
    await world.tick()
    await world.tick(hours=1)
    await world.end_all()
    world.clock.forward(days=3)
    world.edit("## Hourly (30)\nname: a\n\nx")
    world.restart()
    await world.tick()
    assert world.store.told("a") == [("10 07:00", "ok")]
    await world.tick(minutes=30)
    assert world.queue.dues[-1] == "a 13 07:30"


async def test_a_job_switched_off_for_a_while_has_missed_nothing(folder: Path) -> None:
    text = "## Hourly (0)\nname: a\n\nx"
    world = World(folder, text)
    await world.tick()
    world.edit("<!--\n" + text + "\n-->")
    await world.tick(minutes=1)
    world.edit(text)
    await world.tick(days=2)
    world.restart()
    await world.tick(minutes=1)
    assert world.store.told("a") == []


async def test_an_edit_of_the_text_takes_effect_before_the_due_time_and_moves_no_due_time(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nold")
    await world.tick()
    world.edit("## Daily (08:00)\nname: a\n\nnew")
    await world.tick(hours=2)
    assert [run.job.instruction for run in world.queue.submitted] == ["new"]
    world.edit("## Daily (08:00)\nname: a\n\nnewest")
    await world.tick(seconds=1)
    await world.runner.finished(("heartbeat", "a"), world.queue.submitted[0].due_at, "ok")
    assert world.store.told("a") == [("10 08:00", "ok")]


async def test_startup_runs_once_at_each_start(folder: Path) -> None:
    world = World(folder, "## Startup\nname: hello\n\nx")
    await world.tick()
    await world.tick(hours=5)
    await world.end_all()
    world.restart()
    await world.tick(hours=1)
    world.edit("## Startup\nname: hello\n\nx\n## Startup\nname: later\n\ny")
    await world.tick(hours=1)
    assert world.queue.dues == ["hello 10 06:00", "hello 10 12:00"]


async def test_an_empty_instruction_is_skipped_with_a_row(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n")
    await world.tick()
    await world.tick(hours=2)
    assert world.queue.dues == []
    assert world.lines() == ["heartbeat | a | skipped | 0.0s | the instruction is empty"]


async def test_killed_between_the_row_and_the_queue_the_run_is_handed_over_at_the_next_start(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx")
    await world.tick()
    due_at = datetime(2027, 5, 10, 8, tzinfo=UTC)
    await world.store.claim("a", "heartbeat", due_at, 0.0, due_at)
    world.restart()
    await world.tick(hours=2, minutes=30)
    assert world.queue.dues == ["a 10 08:00"]
    await world.end_all()
    assert world.store.told("a") == [("10 08:00", "ok")]


@pytest.mark.parametrize(
    ("state", "outcome", "reason"),
    [
        ("unknown", "interrupted", "the gateway stopped before the run began"),
        ("error", "error", ""),
        ("ok", "ok", ""),
    ],
)
async def test_an_open_row_of_an_ended_run_is_closed_at_the_next_start(
    folder: Path, state: QueueState, outcome: str, reason: str
) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx")
    due_at = datetime(2027, 5, 9, 8, tzinfo=UTC)
    await world.store.claim("a", "heartbeat", due_at, 0.0, due_at)
    world.queue.states["beat:a:2027-05-09T08:00:00+00:00"] = state
    await world.tick()
    (run,) = await world.store.history(5)
    assert (run.outcome, run.reason) == (outcome, reason)
    assert world.queue.dues == []


async def test_a_run_the_queue_does_not_take_is_an_error_and_the_next_one_runs(folder: Path) -> None:
    world = World(folder, "## Hourly (0)\nname: a\n\nx\n## Hourly (0)\nname: b\n\ny")
    await world.tick()
    world.queue.fails = OSError("no space left")
    await world.tick(hours=1)
    assert world.lines() == [
        f"heartbeat | {name} | error | 0.0s | did not reach the queue: no space left" for name in "ab"
    ]
    world.queue.fails = None
    await world.tick(hours=1)
    assert world.queue.dues == ["a 10 08:00", "b 10 08:00"]


async def test_rows_that_cannot_be_written_are_tried_again(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx")
    await world.tick()
    world.store.fails = RuntimeError("disk full")
    world.clock.forward(hours=2)
    assert not await world.runner.tick()
    assert world.queue.dues == []
    world.store.fails = None
    await world.tick(minutes=3)
    assert world.queue.dues == ["a 10 08:00"]


async def test_an_edit_that_could_not_be_written_down_takes_effect_later(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx")
    await world.tick()
    world.edit("## Daily (07:00)\nname: a\n\nx")
    world.store.fails = RuntimeError("disk full")
    assert not await world.runner.tick()
    world.store.fails = None
    await world.tick(seconds=30)
    await world.tick(hours=1)
    assert world.queue.dues == ["a 10 07:00"]


@pytest.mark.parametrize(("state", "outcome"), [("unknown", "interrupted"), ("error", "error")])
async def test_a_run_that_left_the_queue_unheard_does_not_block_its_job(
    folder: Path, state: QueueState, outcome: str
) -> None:
    world = World(folder, "## Hourly (0)\nname: a\n\nx")
    await world.tick()
    await world.tick(hours=1)
    world.queue.states[world.queue.submitted[0].key] = state
    await world.tick(hours=1)
    assert world.queue.dues == ["a 10 07:00", "a 10 08:00"]
    assert world.store.told("a") == [("10 07:00", outcome), ("10 08:00", None)]


async def test_another_default_zone_makes_nothing_late(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx", "2027-05-10T07:30")
    await world.tick()
    await world.tick(minutes=30)
    await world.end_all()
    world.restart(ZoneInfo("America/New_York"))
    await world.tick(hours=5)
    assert world.store.told("a") == [("10 08:00", "ok")]
    await world.tick(hours=23)
    assert world.queue.dues[-1] == "a 11 12:00"


async def test_a_start_that_cannot_write_begins_later(folder: Path) -> None:
    world = World(folder, "## Startup\nname: hello\n\nx")
    world.store.fails = RuntimeError("database is locked")
    assert not await world.runner.tick()
    world.store.fails = None
    await world.tick(seconds=30)
    assert len(world.queue.submitted) == 1


async def test_a_history_that_cannot_be_written_stops_no_run_and_is_made_up(folder: Path) -> None:
    world = World(folder, "## Hourly (0)\nname: a\n\nx")
    await world.tick()
    await world.tick(hours=1)
    await world.end_all()
    moved = world.path.rename(folder / "kept.md")
    world.path.mkdir()
    await world.tick(hours=1)
    await world.end_all()
    assert world.store.told("a")[-1] == ("10 08:00", "ok")
    world.path.rmdir()
    moved.rename(world.path)
    world.restart()
    await world.tick(minutes=1)
    assert len(world.lines()) == 2


async def test_a_clock_set_back_runs_nothing_twice_and_stops_nothing(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx", "2030-05-10T07:00")
    await world.tick()
    await world.tick(hours=1)
    await world.end_all()
    world.clock.at = datetime(2027, 5, 10, 7, 0, tzinfo=UTC)
    await world.tick()
    await world.tick(hours=1)
    await world.end_all()
    await world.tick(minutes=-30)
    await world.tick(minutes=30)
    assert [run.due_at.year for run in world.queue.submitted] == [2030, 2027]
    world.restart()
    await world.tick(days=1)
    assert len(world.queue.submitted) == 3


async def test_a_run_by_hand(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx\n## Daily (08:00)\nname: empty")
    run = await world.runner.run_now("a")
    assert world.queue.submitted == [run]
    with pytest.raises(CannotRun, match="still running"):
        await world.runner.run_now("a")
    with pytest.raises(CannotRun, match="the instruction is empty"):
        await world.runner.run_now("empty")
    with pytest.raises(UnknownJob):
        await world.runner.run_now("nobody")
    await world.end_all()
    await world.tick(hours=2)
    assert world.queue.dues == ["a 10 06:00", "a 10 08:00"]


async def test_the_list_tells_next_last_and_faults(folder: Path) -> None:
    text = (
        "## Daily (08:00)\nname: a\nzone: Asia/Riyadh\n\nx\n"
        "## Nonsense\n\n## Once (2020-01-01 00:00)\nname: past\n\ny\n## Startup\nz"
    )
    world = World(folder, text, "2027-05-10T04:00")
    await world.tick()
    await world.tick(hours=1)
    states = {state.name: state for state in await world.runner.list()}
    assert list(states) == ["a", "past", "Startup", "Nonsense"]
    a = states["a"]
    assert (a.schedule, a.zone, a.enabled, a.fault) == ("Daily (08:00)", "Asia/Riyadh", True, None)
    assert a.next_at is not None
    assert a.next_at.isoformat() == "2027-05-11T08:00:00+03:00"
    assert a.last is not None
    assert a.last.due_at == datetime(2027, 5, 10, 5, tzinfo=UTC)
    past = states["past"]
    assert past.next_at is None
    assert past.fault == "line 8: this time had passed when the job was first seen; it does not run"
    bad = states["Nonsense"]
    assert not bad.enabled
    assert bad.fault is not None
    assert bad.fault.startswith("line 6: `Nonsense` is no schedule")


async def test_next_mixes_the_jobs_by_time(folder: Path) -> None:
    world = World(folder, "## Hourly (30)\nname: h\n\nx\n## Daily (07:00)\nname: d\nzone: Asia/Kathmandu\n\ny")
    await world.tick()
    assert [f"{name} {at.isoformat()}" for name, at in world.runner.next(n=3)] == [
        "h 2027-05-10T06:30:00+00:00",
        "h 2027-05-10T07:30:00+00:00",
        "h 2027-05-10T08:30:00+00:00",
    ]
    assert world.runner.next("d", 1)[0][1].isoformat() == "2027-05-11T07:00:00+05:45"
    with pytest.raises(UnknownJob):
        world.runner.next("nobody")


async def until(holds: Callable[[], bool]) -> None:
    """Lets the clock's task go on until something holds."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - no time passes here, only turns of the event loop
            await asyncio.sleep(0)


async def test_the_timer_holds_the_next_due_time_of_each_job_and_wakes_the_clock(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx\n## Hourly (30)\nname: b\n\ny\n## Startup\nz")
    world.runner.start()
    await until(lambda: len(world.timer.alarms) == 2 and len(world.queue.submitted) == 1)
    assert {name: f"{at:%H:%M}" for name, at in world.timer.alarms.items()} == {
        "heartbeat:a": "08:00",
        "heartbeat:b": "06:30",
    }
    world.edit("## Daily (08:00)\nname: a\n\nx\n## Startup\nz")
    world.clock.forward(hours=2)
    world.timer.ring()
    await until(lambda: f"{world.timer.alarms['heartbeat:a']:%d}" == "11")
    assert world.queue.dues == ["Startup 10 06:00", "a 10 08:00"]
    assert list(world.timer.alarms) == ["heartbeat:a"]
    await world.runner.stop()
    assert not world.timer.running


async def test_with_no_job_that_comes_due_no_timer_is_started(folder: Path) -> None:
    world = World(folder, "## Startup\nx")
    world.runner.start()
    await until(lambda: len(world.queue.submitted) == 1)
    await world.runner.stop()
    assert not world.timer.running


async def test_what_nobody_made_up_for_is_told_the_owner_in_one_summary(folder: Path) -> None:
    text = "## Daily (08:00)\nname: a\n\nx\n## Hourly (0)\nname: b\ncatchup: skip\n\ny\n## Daily (20:00)\nname: c\n\nz"
    world = World(folder, text)
    await world.tick()
    world.restart()
    await world.tick(hours=14, minutes=30)
    assert world.queue.dues == ["c 10 20:00"]
    (told,) = world.herald.missed
    assert [(missed.job.name, missed.count, f"{missed.last_due_at:%H:%M}") for missed in told] == [
        ("a", 1, "08:00"),
        ("b", 14, "20:00"),
    ]
    await world.tick(minutes=1)
    assert len(world.herald.missed) == 1


async def test_the_limit_of_runs_in_a_day_holds_over_restarts(folder: Path) -> None:
    world = World(folder, "## Every (30m)\nname: a\n\nx", defaults=Defaults(daily_runs=6))
    await world.tick()
    for _ in range(5):
        for _ in range(4):
            await world.tick(minutes=30)
            await world.end_all()
        world.restart()
        await world.tick(seconds=1)
    assert len(world.queue.submitted) == 6
    skipped = [run for run in world.store.rows.values() if run.outcome == "skipped"]
    assert {run.reason for run in skipped} == {"over today's limit of 6 runs"}
    await world.runner.run_now("a")  # by hand is not the clock's doing
    await world.end_all()
    await world.tick(hours=18)
    assert f"{world.queue.submitted[-1].due_at:%d}" == "11"


async def test_no_run_begins_when_the_days_tokens_are_used_up(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx", defaults=Defaults(daily_tokens=1_000))
    await world.tick()
    world.store.tokens = 1_000
    await world.tick(hours=2)
    assert world.queue.submitted == []
    assert world.lines() == ["heartbeat | a | skipped | 0.0s | over today's limit of 1,000 tokens"]


async def test_a_job_switched_off_leaves_rows_and_runs_only_by_hand(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nx")
    await world.tick()
    await world.runner.switch("a", on=False)
    await world.tick(hours=2)
    world.restart()
    await world.tick(days=1)
    assert world.queue.submitted == []
    assert world.store.told("a") == [("10 08:00", "skipped"), ("11 08:00", "skipped")]
    assert (world.lines(), world.herald.missed) == ([], [])
    (state,) = await world.runner.list()
    assert (state.enabled, state.next_at) == (False, None)
    assert world.runner.next() == ()
    await world.runner.run_now("a")
    await world.end_all()
    await world.runner.switch("a", on=True)
    await world.tick(days=1)
    assert len(world.queue.submitted) == 2
    with pytest.raises(UnknownJob):
        await world.runner.switch("b", on=False)


async def test_a_procedure_and_a_heartbeat_job_may_share_a_name(folder: Path) -> None:
    world = World(folder, "## Daily (08:00)\nname: a\n\nbeat")
    job = replace(world.source.parsed.jobs[0], kind="procedure", instruction="proceed")
    other = FakeSource(Parsed((job,)), "procedure")
    world.runner.board = Board([world.source, other], world.store, UTC_ZONE)
    await world.tick()
    await world.tick(hours=2)
    assert sorted(run.job.instruction for run in world.queue.submitted) == ["beat", "proceed"]
    assert len({(run.job.kind, run.key) for run in world.queue.submitted}) == 2
    await world.runner.finished(("procedure", "a"), world.queue.submitted[0].due_at, "ok")
    with pytest.raises(CannotRun):
        await world.runner.run_now("a", "heartbeat")
    assert (await world.runner.run_now("a", "procedure")).instruction == "proceed"


async def test_a_built_in_job_writes_a_line_only_when_something_changed(folder: Path) -> None:
    world = World(folder, "")
    job = parse_heartbeat("## Hourly (0)\nname: tidy\n\nx").jobs[0]
    source = FakeSource(Parsed((replace(job, kind="built-in"),)), "built-in")
    world.runner.board = Board([source], world.store, UTC_ZONE)
    world.runner.defaults = Defaults(daily_runs=1)
    await world.tick()
    for note in ("", "", "2 files removed"):
        await world.tick(hours=1)
        await world.runner.finished(("built-in", "tidy"), world.queue.submitted[-1].due_at, "ok", note)
    await world.tick(hours=9)
    assert len(world.queue.submitted) == 4
    assert world.lines() == ["built-in | tidy | ok | 0.0s | 2 files removed"]
    assert world.herald.missed == []

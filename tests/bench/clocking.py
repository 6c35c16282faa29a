"""The clock: a thousand jobs from start to the first look, what it costs when nothing is due, and how punctual it is
while turns run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from agent.types import Turn, TurnPort, TurnResult
from gateway.store import Store
from heartbeat.history import RunHistory
from heartbeat.jobs import HeartbeatFile
from heartbeat.runner import Runner
from heartbeat.timer import SchedulerTimer
from heartbeat.types import DueRun, Kind, QueueState
from tests.bench.figures import figure
from tests.fakes.hub import hub, telegram_settings
from tests.fakes.waiting import until

ZONE = ZoneInfo("Europe/Berlin")
BEFORE_DUE_SECONDS = 1.5
PIECE_SECONDS = 0.01
PUNCTUAL_JOBS = 20


class Shifted:
    """The wall clock, moved so that a full minute comes soon; the timer goes by it."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        full = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        self.by = full - now - timedelta(seconds=BEFORE_DUE_SECONDS)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.by


class ShiftedTimer(SchedulerTimer):
    def __init__(self, clock: Shifted) -> None:
        super().__init__()
        self._clock = clock

    def set(self, name: str, at: datetime) -> None:
        super().set(name, at - self._clock.by)


class Noted:
    """A queue that notes how late each run reaches it."""

    def __init__(self, clock: Shifted) -> None:
        self._clock = clock
        self.late: list[float] = []

    async def submit(self, run: DueRun) -> None:
        self.late.append((self._clock() - run.due_at).total_seconds())

    async def state(self, kind: Kind, key: str) -> QueueState:
        return "unknown"


@asynccontextmanager
async def clockwork(folder: Path, text: str) -> AsyncIterator[tuple[Runner, Noted]]:
    """A runner on real rows and a real timer; nothing runs yet."""
    (folder / "heartbeat.md").write_text(text, encoding="utf-8")
    store, clock = Store(folder), Shifted()
    await store.open()
    queue = Noted(clock)
    runner = Runner(
        [HeartbeatFile(folder / "heartbeat.md")],
        store.runs,
        queue,
        RunHistory(folder / "run-history.md", ZONE),
        ShiftedTimer(clock),
        zone=ZONE,
        now=clock,
    )
    try:
        yield runner, queue
    finally:
        await runner.stop()
        await store.close()


def jobs(count: int) -> str:
    headings = ("Daily ({at})", "Weekly (Wed {at})", "Monthly ({day} {at})", "Weekday ({at})")
    return "".join(
        f"## {headings[n % 4].format(at=f'{n % 24:02}:{n % 60:02}', day=n % 28 + 1)}\nname: job {n}\n\nLook around.\n\n"
        for n in range(count)
    )


async def run(count: int, idle_seconds: float, turns: int) -> list[dict[str, Any]]:
    """`count` jobs, so many seconds of rest, then a due minute while `turns` turns run."""
    with TemporaryDirectory() as folder:
        start_seconds, idle_share = await _rest(Path(folder), count, idle_seconds)
    with TemporaryDirectory() as folder:
        drift_seconds = await _punctual(Path(folder), turns)
    return [
        figure("clock_start", start_seconds),
        figure("clock_idle_cpu", 100 * idle_share),
        figure("clock_drift", drift_seconds),
    ]


async def _rest(folder: Path, count: int, idle_seconds: float) -> tuple[float, float]:
    """Seconds until all alarms are set, and the share of a processor that the clock takes afterwards."""
    async with clockwork(folder, jobs(count)) as (runner, _):
        began = time.perf_counter()
        runner.start()
        await until(lambda: len(runner._alarms) == count, 30)  # pyright: ignore[reportPrivateUsage]
        start_seconds = time.perf_counter() - began
        await asyncio.sleep(BEFORE_DUE_SECONDS + 0.5)
        wall, used = time.perf_counter(), time.process_time()
        await asyncio.sleep(idle_seconds)
        return start_seconds, (time.process_time() - used) / (time.perf_counter() - wall)


async def _punctual(folder: Path, turns: int) -> float:
    """How late the latest of 20 jobs of one minute begins while so many turns stream their answers."""
    stop = asyncio.Event()

    async def busy(turn: Turn, port: TurnPort) -> TurnResult:
        while not stop.is_set():
            "".join(map(str, range(200)))
            await asyncio.sleep(PIECE_SECONDS)
        return TurnResult(turn.id, "done", "x", ("x",))

    (folder / "clock").mkdir()
    async with hub(folder / "home", busy, telegram_settings(workers=min(64, turns))) as core:
        for n in range(turns):
            await core.say(f"{n}", chat=f"g{n}")
        text = "".join(f"## Cron (* * * * *)\nname: job {n}\n\nLook.\n\n" for n in range(PUNCTUAL_JOBS))
        async with clockwork(folder / "clock", text) as (runner, queue):
            runner.start()
            await until(lambda: len(queue.late) == PUNCTUAL_JOBS, 30)
        stop.set()
        await core.quiet()
    return max(queue.late)

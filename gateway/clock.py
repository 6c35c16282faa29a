"""The clock on one home: the runner with its three sources of jobs, and the way of a due run into the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from channels.scheduled.channel import ScheduledChannel
from channels.scheduled.types import ScheduledRun
from gateway.alerts import Alerts
from gateway.config import Settings
from gateway.schedules import OwnersSchedules
from gateway.store import Store
from gateway.store.alerts import Alert
from heartbeat.built_in import BuiltIn, BuiltInJobs
from heartbeat.history import RunHistory
from heartbeat.jobs import HeartbeatFile
from heartbeat.procedures import ProcedureFolder
from heartbeat.runner import Runner
from heartbeat.timer import SchedulerTimer
from heartbeat.types import DueRun, Job, Kind, QueueState, RunQueue, due_of_key


class Clock:
    """`gateway.lanes.ClockDesk`. `channel` None: it only tells the time, for the commands, and runs nothing."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        store: Store,
        now: Callable[[], datetime],
        built_in: Sequence[BuiltIn],
        channel: ScheduledChannel | None = None,
        alerts: Alerts | None = None,
        schedules: OwnersSchedules | None = None,
    ) -> None:
        workspace = home / "workspace"
        self._alerts = alerts
        self._schedules = schedules
        self._built_in = BuiltInJobs(built_in)
        self.runner = Runner(
            [HeartbeatFile(workspace / "heartbeat.md"), ProcedureFolder(workspace / "procedures"), self._built_in],
            store.runs,
            _RunQueue(store, channel, self._built_in),
            RunHistory(workspace / "run-history.md", settings.zone),
            SchedulerTimer(),
            zone=settings.zone,
            now=now,
            defaults=settings.heartbeat.defaults,
            herald=alerts,
        )
        self._built_in.keeper = self.runner
        if schedules is not None:
            schedules.runner = self.runner

    def start(self) -> None:
        self.runner.start()

    async def stop(self) -> None:
        await self.runner.stop()
        await self._built_in.close()

    def job(self, kind: Kind, name: str) -> Job | None:
        return self.runner.job(kind, name)

    def alert(self, kind: Kind, name: str, text: str, now: datetime) -> Alert:
        """What becomes of a run's word to its target."""
        assert self._alerts is not None, "a clock without alerts runs nothing"
        return self._alerts.alert(self.job(kind, name), kind, name, text, now)

    async def run_ended(self, kind: Kind, job: str, run_key: str, status: str, conversation_id: str, note: str) -> None:
        """The queue's word on a run that it was given."""
        outcome: Any = status
        steps = "" if self._schedules is None else self._schedules.progress(conversation_id)
        note = "; ".join(part for part in (steps, note) if part)
        await self.runner.finished((kind, job), due_of_key(run_key)[1], outcome, note, conversation_id)


class _RunQueue:
    """`heartbeat.types.RunQueue`: a due run becomes a message of the scheduled channel; built-in jobs run at once."""

    def __init__(self, store: Store, channel: ScheduledChannel | None, built_in: RunQueue) -> None:
        self._store = store
        self._channel = channel
        self._built_in = built_in

    async def submit(self, run: DueRun) -> None:
        job = run.job
        if job.kind == "built-in":
            await self._built_in.submit(run)
            return
        assert self._channel is not None, "a clock without a channel runs nothing"
        await self._channel.submit(ScheduledRun(job.kind, job.name, run.key, run.due_at, run.instruction, run.target))

    async def state(self, kind: Kind, key: str) -> QueueState:
        if kind == "built-in":
            return await self._built_in.state(kind, key)
        return await self._store.runs.state_in_queue(kind, key)

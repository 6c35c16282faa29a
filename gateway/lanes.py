"""A session's place in the queue, and what the queue asks of the clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from agent.types import TurnResult
from gateway.store.alerts import Alert
from gateway.store.types import Claim
from heartbeat.types import Job, Kind


class ClockDesk(Protocol):
    """What the queue wants to know of a scheduled run, and where it tells how the run ended."""

    def job(self, kind: Kind, name: str) -> Job | None: ...

    def alert(self, kind: Kind, name: str, text: str, now: datetime) -> Alert:
        """What becomes of a run's word to its target."""
        ...

    async def run_ended(
        self, kind: Kind, job: str, run_key: str, status: str, conversation_id: str, note: str
    ) -> None: ...


@dataclass(slots=True)
class Lane:
    """One session's place in the queue. `running` is the lane's work, `turn` the part of it that can be stopped.
    `again`: something came while it ran. `said`: the text that the turn has shown so far."""

    session_key: str
    scheduled: bool
    queued: bool = False
    running: asyncio.Task[None] | None = None
    turn: asyncio.Task[TurnResult] | None = None
    claim: Claim | None = None
    finishing: bool = False
    again: bool = False
    stop_reason: Literal["stopped", "shutdown"] | None = None
    said: list[str] = field(default_factory=list[str])

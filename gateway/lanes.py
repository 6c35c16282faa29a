"""A session's place in the queue, and what the queue tells the clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent.types import TurnResult
from gateway.store.types import Claim


class RunEnded(Protocol):
    """The clock wants to know how its run ended."""

    async def __call__(self, job: str, run_key: str, status: str, conversation_id: str, note: str) -> None: ...


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

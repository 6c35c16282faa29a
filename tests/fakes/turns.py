"""Turns, ports and clocks for tests of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.types import Person, Question, Segment, ToolCall, ToolResult, Turn

OWNER = Person("telegram:1", "Layla", "owner")
GUEST = Person("telegram:2", "Sara", "allowed")
MONDAY = datetime(2026, 11, 30, 11, 21, tzinfo=UTC)
"""14:21 in Riyadh."""


def a_turn(text: str = "hello", person: Person = OWNER, **fields: Any) -> Turn:
    """A turn of the owner on Telegram, unless told otherwise."""
    given: dict[str, Any] = {
        "id": "t-1",
        "session_key": "telegram:42",
        "conversation_id": "c-1",
        "started_at": MONDAY,
        "channel": "telegram",
        "may_ask": True,
    }
    return Turn(text=text, person=person, **{**given, **fields})


class FakeClock:
    """Stands still unless it is moved; as `sleep` it moves at once and notes how far."""

    def __init__(self, at: datetime = MONDAY) -> None:
        self.at = at
        self.slept: list[float] = []

    def __call__(self) -> datetime:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += timedelta(seconds=seconds)
        await asyncio.sleep(0)


@dataclass
class FakePort:
    """Notes everything. `answers` are given to questions in turn, `said` is what is heard after a round."""

    answers: list[bool | None] = field(default_factory=list)
    said: dict[int, Sequence[str]] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    heard_rounds: list[int] = field(default_factory=list)
    stopped: bool = False

    def emit(self, segment: Segment) -> None:
        self.segments.append(segment)

    async def ask(self, question: Question) -> bool | None:
        self.questions.append(question)
        return self.answers.pop(0)

    async def heard(self, round: int) -> Sequence[str]:
        self.heard_rounds.append(round)
        return self.said.get(round, ())

    async def calls_begin(self, round: int, text: str, calls: Sequence[ToolCall]) -> None:
        self.log.append(f"begin {round} {text!r} {','.join(call.id for call in calls)}")

    async def call_ended(self, call: ToolCall, result: ToolResult) -> None:
        assert result.call_id == call.id
        self.log.append(f"ended {call.id} {result.outcome}")

    @property
    def shown(self) -> str:
        """The text a person sees at the end."""
        text = ""
        for segment in self.segments:
            text = "" if segment.kind == "reset" else text + segment.text if segment.kind == "text" else text
        return text

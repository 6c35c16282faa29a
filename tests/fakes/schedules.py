"""The owner's jobs in memory, in the place of heartbeat.md and the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.capabilities.schedule.tools import Listed, Planned
from agent.types import ToolFailure
from agent.when import When


class FakeSchedules:
    """Jobs by name, with their schedule; nothing ever comes due."""

    def __init__(self, *names: str) -> None:
        self.known = dict.fromkeys(names, "Hourly (0)")
        self.started: list[str] = []

    async def preview(self, when: When) -> Planned:
        return Planned("", when.heading, ())

    async def create(self, when: When, instruction: str, *, name: str, target: str, tools: str) -> Planned:
        self.known[name] = when.heading
        return Planned(name, when.heading, ())

    async def jobs(self) -> Sequence[Listed]:
        return [Listed(name, "heartbeat", schedule, None) for name, schedule in self.known.items()]

    async def edit(self, name: str, when: When | None, instruction: str | None) -> Planned:
        self._check(name)
        if when is not None:
            self.known[name] = when.heading
        return Planned(name, self.known[name], ())

    async def delete(self, name: str) -> None:
        self._check(name)
        del self.known[name]

    async def run(self, name: str, arguments: Mapping[str, str]) -> None:
        self._check(name)
        self.started.append(name)

    async def step(self, conversation_id: str, step: int, note: str) -> str:
        return f"step {step} of {step} done. {note}".strip()

    def _check(self, name: str) -> None:
        if name not in self.known:
            raise ToolFailure("No job has this name.")

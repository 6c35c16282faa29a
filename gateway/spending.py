"""What models cost: a row and a line for each call, and the day's budget that stops them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent.files import append_lines
from agent.types import ProviderError, Turn
from agent.usage import ModelCall, usage_line
from gateway.config import Settings
from gateway.limits import RUN_TOKENS_MAX, RUNS_COUNTED_MAX
from gateway.sentences import sentence
from gateway.store import Store, StoreError

LOG = logging.getLogger(__name__)

WARN_SHARE = 0.8
FACTS = "budget"


class BudgetUsedUp(ProviderError):
    """The day's budget is spent; nothing is sent to the model before midnight or the owner's word."""


@dataclass(slots=True)
class _Day:
    """One day in the owner's zone: what was spent in it, and how often the owner gave more."""

    start: datetime
    cost_usd: float
    tokens: int
    more: int
    warned: bool


class Spending:
    """`agent.usage.Ledger`. `warn` is told once a day, when four fifths of the budget are spent."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        workspace: Path,
        now: Callable[[], datetime],
        warn: Callable[[str], None],
    ) -> None:
        self._store = store
        self._budget = settings.budget
        self._zone = settings.zone
        self._folder = workspace / "usage" / "daily"
        self._now = now
        self._warn = warn
        self._day: _Day | None = None
        self._runs: dict[str, int] = {}

    @property
    def limited(self) -> bool:
        return bool(self._budget.daily_usd or self._budget.daily_tokens)

    async def check(self, turn: Turn) -> None:
        if self._runs.get(turn.id, 0) >= RUN_TOKENS_MAX:
            raise BudgetUsedUp(
                sentence("run_used_up", "en").format(tokens=RUN_TOKENS_MAX),
                transient=False,
                arabic=sentence("run_used_up", "ar").format(tokens=RUN_TOKENS_MAX),
            )
        if not self.limited:
            return
        day = await self._today()
        if self._share(day) >= 1:
            raise BudgetUsedUp(sentence("budget_used", "en"), transient=False, arabic=sentence("budget_used", "ar"))

    async def note(self, turn: Turn, call: ModelCall) -> None:
        day = await self._today()
        day.cost_usd += float(call.cost_usd or 0)
        tokens = call.usage.input_tokens + call.usage.output_tokens + call.usage.cache_write_tokens
        day.tokens += tokens
        if turn.origin == "scheduled":
            # Of runs that ended long ago nothing is asked any more.
            self._runs = dict([*self._runs.items()][-RUNS_COUNTED_MAX:])
            self._runs[turn.id] = self._runs.get(turn.id, 0) + tokens
        try:
            await self._store.add_usage(call, turn.id, turn.conversation_id, turn.origin)
            local = call.at.astimezone(self._zone)
            head = f"# {local:%Y-%m-%d}\n\n"
            append_lines(self._folder / f"{local:%Y-%m-%d}.md", usage_line(call, self._zone), head=head)
        except (StoreError, OSError) as error:
            LOG.error("a model call could not be written down: %s", error)
        if self.limited and not day.warned and self._share(day) >= WARN_SHARE:
            day.warned = True
            await self._store.put_fact(FACTS, "warned", day.start.isoformat())
            self._warn("budget_nearly")

    async def give_more(self) -> bool:
        """Raises today's budget by its own amount until midnight; False when there is no budget."""
        if not self.limited:
            return False
        day = await self._today()
        day.more += 1
        day.warned = False
        await self._store.put_fact(FACTS, "more", f"{day.start.isoformat()} {day.more}")
        return True

    def _share(self, day: _Day) -> float:
        """How much of the budget is spent; of two limits the one that is nearer its end."""
        usd, tokens = self._budget.daily_usd * (1 + day.more), self._budget.daily_tokens * (1 + day.more)
        return max(day.cost_usd / usd if usd else 0.0, day.tokens / tokens if tokens else 0.0)

    async def _today(self) -> _Day:
        now = self._now().astimezone(self._zone)
        start = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if self._day is None or self._day.start.date() != start.date():
            cost_usd, tokens = await self._store.spent_since(start)
            more = (await self._store.fact(FACTS, "more") or "").split(" ")
            warned = await self._store.fact(FACTS, "warned")
            given = int(more[1]) if len(more) == 2 and more[0] == start.isoformat() else 0
            self._day = _Day(start, cost_usd, tokens, given, warned == start.isoformat())
        return self._day

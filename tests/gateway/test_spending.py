"""What models cost: a row and a line for each call; at four fifths a word, at the end a plain stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from agent.types import Person, ProviderError, Turn, Usage
from agent.usage import ModelCall, price, usage_line
from gateway.config import Settings
from gateway.spending import Spending
from gateway.store import Store

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TURN = Turn("t1", "telegram:7", "c1", "hi", Person("telegram:7", "Owner", "owner"), NOON)


class Clock:
    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at


def call(cost: str | None, tokens: int = 1000, at: datetime = NOON) -> ModelCall:
    usage = Usage(input_tokens=tokens, output_tokens=10, cache_read_tokens=5, cache_write_tokens=3, requests=1)
    return ModelCall(at, "openai", "gpt-5-mini", usage, None if cost is None else Decimal(cost))


@asynccontextmanager
async def ledger(home: Path, clock: Clock, warnings: list[str], **budget: float) -> AsyncIterator[Spending]:
    settings = Settings.model_validate({"agent": {"timezone": "Asia/Riyadh"}, "budget": budget})
    store = Store(home)
    await store.open()
    try:
        yield Spending(store, settings, home / "workspace", clock, warnings.append)
    finally:
        await store.close()


async def test_every_call_is_a_line_of_its_day_in_the_owners_zone(tmp_path: Path) -> None:
    clock = Clock()
    async with ledger(tmp_path, clock, []) as spending:
        await spending.note(TURN, call("0.000338"))
        await spending.note(TURN, call(None, at=NOON + timedelta(hours=10)))
    folder = tmp_path / "workspace" / "usage" / "daily"
    assert (folder / "2026-03-01.md").read_text() == (
        "# 2026-03-01\n\n- 15:00:00 | openai | gpt-5-mini | in:1000 out:10 cw:3 cr:5 | $0.000338\n"
    )
    assert "| unknown" in (folder / "2026-03-02.md").read_text()


async def test_without_a_budget_nothing_stops(tmp_path: Path) -> None:
    async with ledger(tmp_path, Clock(), []) as spending:
        await spending.note(TURN, call("1000"))
        await spending.check(TURN)
        assert not await spending.give_more()


@pytest.mark.parametrize(
    ("budget", "first", "second"),
    [({"daily_usd": 1.0}, call("0.81"), call("0.2")), ({"daily_tokens": 1000}, call(None, 800), call(None, 300))],
)
async def test_the_owner_is_told_once_at_four_fifths_and_calls_stop_at_the_end(
    tmp_path: Path, budget: dict[str, float], first: ModelCall, second: ModelCall
) -> None:
    clock, warnings = Clock(), list[str]()
    async with ledger(tmp_path, clock, warnings, **budget) as spending:
        await spending.note(TURN, first)
        await spending.check(TURN)
        assert warnings == ["budget_nearly"]
        await spending.note(TURN, second)
        assert warnings == ["budget_nearly"]
        with pytest.raises(ProviderError, match="used up") as stopped:
            await spending.check(TURN)
        assert not stopped.value.transient
        assert stopped.value.arabic
    async with ledger(tmp_path, clock, warnings, **budget) as spending:
        with pytest.raises(ProviderError):
            await spending.check(TURN)
        assert await spending.give_more()
        await spending.check(TURN)
    async with ledger(tmp_path, clock, warnings, **budget) as spending:
        await spending.check(TURN)
        clock.at = NOON + timedelta(hours=9, minutes=1)
        assert clock.at.day == 1  # In UTC it is the same day; in the owner's zone midnight has passed.
        await spending.check(TURN)
        await spending.note(TURN, call("0.5", 100, clock.at))
        await spending.check(TURN)


async def test_prices_come_from_the_list_and_an_unknown_model_has_none() -> None:
    usage = Usage(input_tokens=500, output_tokens=100, cache_read_tokens=500)
    known = await price("openai", "gpt-5-mini", usage)
    assert known == Decimal("0.0003375")
    assert await price("openai", "no-such-model", usage) is None
    assert await price("ollama", "qwen3:8b", usage, local=True) == 0
    assert await price("openai", "model-of-the-house", usage, local=True) == 0
    assert await price("openai", "gpt-5-mini", usage, local=True) == known  # through a proxy on this machine
    from zoneinfo import ZoneInfo

    line = usage_line(ModelCall(NOON, "openai", "", usage, None), ZoneInfo("UTC"))
    assert line == "- 12:00:00 | openai | - | in:500 out:100 cw:0 cr:500 | unknown"

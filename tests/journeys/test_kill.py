"""The gateway is killed while people write: a short form of `python -m tests.journeys.kill`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.kill import WAYS, Plan, run


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_written_while_the_gateway_is_killed_is_answered_once(way: str, tmp_path: Path) -> None:
    figures = await run(Plan(way, seed=1, chats=4, messages=5, kills=3, pace=0.3), tmp_path / "journey")
    assert figures["broken"] == []
    assert figures["kills"] == figures["restarts"] == 3
    assert figures["messages"] == 20

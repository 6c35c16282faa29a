"""A year in six zones, and months of kills: each due time exactly one row, no run twice. See `simulations`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.heartbeat.simulations import a_month_of_kills, a_year


async def test_a_year_of_forty_jobs_in_six_zones(tmp_path: Path) -> None:
    assert await a_year(tmp_path, 2027) > 10_000


@pytest.mark.parametrize("seed", range(3))
async def test_a_month_of_kills_leaves_one_row_for_each_due_time_and_no_double_run(tmp_path: Path, seed: int) -> None:
    assert await a_month_of_kills(tmp_path, seed) > 10

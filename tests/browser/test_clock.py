"""The clock on the page: jobs with their next time, a run by hand, the switch; in both languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.home import prepare
from tests.fakes.program import program, settings_for

pytestmark = pytest.mark.browser
JOBS = "## Daily (08:00)\nname: morning\n\nAre you connected?\n\n## Sometimes\nx\n"


@pytest.mark.parametrize(("language", "started", "off"), [("en", "has started", "is off"), ("ar", "بدأ", "متوقفة")])
async def test_jobs_are_shown_started_and_switched(
    tmp_path: Path, browser: Any, language: str, started: str, off: str
) -> None:
    prepare(tmp_path / "h")
    (tmp_path / "h" / "workspace" / "heartbeat.md").write_text(JOBS, encoding="utf-8")
    async with program(tmp_path / "h", settings=settings_for(heartbeat={"enabled": True})) as gateway:
        await gateway.app.runner.tick()
        context = await browser.new_context(locale=language)
        try:
            page = await context.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            await page.goto(gateway.app.new_link())
            await page.click("#go-clock")
            card = page.locator(".job", has_text="morning")
            assert "Daily (08:00)" in await card.inner_text()
            assert "is no schedule" in await page.locator(".job-fault").inner_text()
            assert await page.locator(".job").count() == 7  # with the five built-in ones
            await card.locator(".button").click()
            await page.wait_for_selector(f".clock-said:has-text('{started}')")
            await gateway.quiet()
            await page.wait_for_selector(".ran")
            switch = page.locator(".job", has_text="morning").locator("[role=switch]")
            await switch.click()
            await page.wait_for_selector(f".clock-said:has-text('{off}')")
            assert await switch.get_attribute("aria-checked") == "false"
            assert ("heartbeat", "morning") in gateway.app.runner.board.off
            assert not faults
        finally:
            await context.close()

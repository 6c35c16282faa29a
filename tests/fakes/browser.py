"""A headless Chromium for the page tests; without one on this machine they are skipped with the reason."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def chromium_path() -> str | None:
    """The system's Chromium, None when there is none."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


@pytest.fixture
async def browser() -> AsyncIterator[object]:
    """A Playwright browser with a fresh profile; ends with the test."""
    playwright = pytest.importorskip("playwright.async_api", reason="the `playwright` package is not installed")
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium on this machine: install the package `chromium`")
    async with playwright.async_playwright() as running:
        chromium = await running.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield chromium
        finally:
            await chromium.close()

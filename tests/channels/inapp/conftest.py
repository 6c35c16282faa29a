from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.fakes.backend import FakeBackend, PageServer


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return FakeBackend(workspace)


@pytest.fixture
async def server(backend: FakeBackend, tmp_path: Path) -> AsyncIterator[PageServer]:
    running = PageServer(backend, tmp_path, token="the-token")
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(server: PageServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A client with the token."""
    headers = {"Authorization": "Bearer the-token"}
    async with aiohttp.ClientSession(server.url, headers=headers) as session:
        yield session


@pytest.fixture
async def stranger(server: PageServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A client without credentials, but with a place for cookies."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(server.url, cookie_jar=jar) as session:
        yield session

"""The rows of scheduled runs in the database keep what heartbeat asks of a RunStore."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store import Store
from gateway.store.runs import StoredRuns
from tests.contracts.run_store import RunStoreContract


class TestStoredRuns(RunStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[StoredRuns]:
        opened = Store(tmp_path)
        await opened.open()
        yield opened.runs
        await opened.close()

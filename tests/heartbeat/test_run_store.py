"""The fake of the tests keeps the same promises as the store of the program."""

from __future__ import annotations

import pytest

from tests.contracts.run_store import RunStoreContract
from tests.fakes.clock import FakeRunStore


class TestFakeRunStore(RunStoreContract):
    @pytest.fixture
    def store(self) -> FakeRunStore:
        return FakeRunStore()

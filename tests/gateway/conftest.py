"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.terminal import Shell, Terminal


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands on a home that does not exist yet."""
    monkeypatch.delenv("HUDHUD_HOME", raising=False)
    return Shell(tmp_path / "home", capsys, monkeypatch)


@pytest.fixture
def at_terminal(shell: Shell) -> Iterator[Callable[..., Terminal]]:
    """Opens commands at terminals; what still runs at the end is ended."""
    opened: list[Terminal] = []

    def open_(*arguments: str) -> Terminal:
        opened.append(Terminal(*arguments, home=shell.home))
        return opened[-1]

    yield open_
    for terminal in opened:
        terminal.close()

"""run-history.md: readable lines that survive a torn end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from heartbeat.history import TITLE, RunHistory
from heartbeat.types import Outcome, Run

DUE = datetime(2027, 1, 1, 5, tzinfo=UTC)


def run(job: str = "صباح", *, end: float = 4.25, late: float = 0.0, outcome: Outcome = "ok", reason: str = "") -> Run:
    return Run(job, "heartbeat", DUE, DUE, DUE + timedelta(seconds=end), outcome, late, reason)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run-history.md"


@pytest.fixture
def history(path: Path) -> RunHistory:
    return RunHistory(path, ZoneInfo("Asia/Riyadh"))


def test_a_line_has_time_kind_name_outcome_duration_and_note(history: RunHistory, path: Path) -> None:
    history.append(run(reason="said\nhello | twice", late=1_200))
    line = "- 2027-01-01T08:00:04+03:00 | heartbeat | صباح | ok | 4.2s | late by 20 min; said hello ¦ twice\n"
    assert path.read_text(encoding="utf-8") == TITLE + line


def test_a_long_lateness_is_told_in_hours_and_a_long_note_is_cut(history: RunHistory) -> None:
    line = history.line(run(late=7_500, reason="x" * 1_000))
    note = line.rpartition(" | ")[2]
    assert note.startswith("late by 2 h 5 min; xxx")
    assert len(note) == 300


def test_a_lone_surrogate_in_a_note_stops_no_line(history: RunHistory, path: Path) -> None:
    history.append(run(reason="bad \ud800 end"))
    assert "bad ? end" in path.read_text(encoding="utf-8")


def test_a_torn_line_is_left_and_the_next_one_stands_alone(history: RunHistory, path: Path) -> None:
    history.append(run("a"))
    path.write_bytes(path.read_bytes() + "- a person's own words, الس".encode()[:-1])
    history.append(run("b"))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[-2] == "- a person's own words, ال"
    assert " | b | " in lines[-1]


@pytest.mark.parametrize("kept", [1, 30, 46, -1])
def test_the_torn_line_of_a_run_is_completed(history: RunHistory, path: Path, kept: int) -> None:
    history.append(run("a"))
    before = path.read_bytes()
    line = history.line(run(end=9)).encode() + b"\n"
    path.write_bytes(before + line[:kept])
    history.make_up([run(end=9), run("a")])
    assert path.read_bytes() == before + line


def test_what_ended_after_the_last_line_is_made_up_in_order(history: RunHistory, path: Path) -> None:
    history.append(run("a", end=10))
    history.make_up([run("d", end=30), run("c", end=20), run("a", end=10), run("old", end=5)])
    lines = path.read_text(encoding="utf-8").splitlines()[2:]
    assert [line.split(" | ")[2] for line in lines] == ["a", "c", "d"]
    history.make_up([run("d", end=30), run("c", end=20)])
    assert len(path.read_text(encoding="utf-8").splitlines()) == 5


def test_an_emptied_history_is_not_filled_again(history: RunHistory, path: Path) -> None:
    history.make_up([run("a")])
    assert not path.exists()
    path.write_text("# Mine\n", encoding="utf-8")
    history.make_up([run("a")])
    assert path.read_text(encoding="utf-8") == "# Mine\n"

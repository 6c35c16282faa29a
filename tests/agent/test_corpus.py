"""The event log: what a turn did and when, and nothing that people said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.corpus import Corpus
from agent.limits import CORPUS_PAUSE_SECONDS
from tests.fakes.turns import MONDAY, FakeClock, a_turn

RIYADH = ZoneInfo("Asia/Riyadh")
ENTRY = re.compile(r"^## (\d\d:\d\d:\d\d\.\d{3}) \[(turn|run) ([^\]\n]+)\]\n\n- (\S+) (\{.*\})$", re.MULTILINE)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def corpus(tmp_path: Path, clock: FakeClock) -> Iterator[Corpus]:
    corpus = Corpus(tmp_path, RIYADH, clock)
    yield corpus
    corpus.close()


def entries(path: Path) -> list[tuple[str, str, str, str, object]]:
    found = ENTRY.findall(path.read_text(encoding="utf-8"))
    return [(at, kind, id_, event, json.loads(facts)) for at, kind, id_, event, facts in found]


async def test_events_are_entries_with_time_turn_and_facts(corpus: Corpus, clock: FakeClock, tmp_path: Path) -> None:
    corpus.note(a_turn(), "context", messages=3)
    clock.at += timedelta(milliseconds=1_250)
    corpus.note(replace(a_turn(), id="t-2", origin="scheduled"), "tool", name="look", outcome="success")
    corpus.close()
    assert entries(tmp_path / "brain/corpus/2026-11-30.log.md") == [
        ("14:21:00.000", "turn", "t-1", "context", {"messages": 3}),
        ("14:21:01.250", "run", "t-2", "tool", {"name": "look", "outcome": "success"}),
    ]


async def test_nothing_is_written_before_its_time(corpus: Corpus, tmp_path: Path) -> None:
    corpus.note(a_turn(), "context")
    assert CORPUS_PAUSE_SECONDS == 2
    assert not (tmp_path / "brain").exists()


async def test_a_day_has_its_own_file_in_the_owners_zone(corpus: Corpus, clock: FakeClock, tmp_path: Path) -> None:
    clock.at = MONDAY.replace(hour=20, minute=59, second=59)
    corpus.note(a_turn(), "context")
    clock.at += timedelta(seconds=1)
    corpus.note(a_turn(), "reply")
    corpus.close()
    days = {path.name: entries(path)[0][0] for path in (tmp_path / "brain/corpus").iterdir()}
    assert days == {"2026-11-30.log.md": "23:59:59.000", "2026-12-01.log.md": "00:00:00.000"}


async def test_long_texts_are_cut_to_one_line_wherever_they_stand(corpus: Corpus, tmp_path: Path) -> None:
    corpus.note(a_turn(id="t\n## 1"), "failure", error="بطيء\n" * 200, more=[{"deep": "x" * 500}])
    corpus.close()
    ((_, _, id_, _, facts),) = entries(tmp_path / "brain/corpus/2026-11-30.log.md")
    assert id_ == "t ## 1"
    assert isinstance(facts, dict)
    assert facts["error"].startswith("بطيء بطيء")
    assert len(facts["error"]) <= 200
    assert len(facts["more"][0]["deep"]) == 200


@pytest.mark.parametrize("how", ["at the start", "with the first event of a day"])
async def test_logs_older_than_a_week_are_removed(corpus: Corpus, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "brain/corpus"
    folder.mkdir(parents=True)
    for name in ("2026-11-22.log.md", "2026-11-23.log.md", "2025-12-01.log.md", "notes.md"):
        (folder / name).write_text("x")
    if how == "at the start":
        corpus.prune()
    else:
        corpus.note(a_turn(), "context")
    corpus.close()
    kept = {path.name for path in folder.iterdir()} - {"2026-11-30.log.md"}
    assert kept == {"2026-11-23.log.md", "notes.md"}


async def test_a_disk_that_cannot_be_written_stops_nothing(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "brain").write_text("a file in the way")
    corpus.note(a_turn(), "context")
    corpus.close()
    assert "event log could not be written" in caplog.text

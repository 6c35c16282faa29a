"""heartbeat.md on disk: read again when it changes, and what happens when it cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartbeat.jobs import HeartbeatFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "heartbeat.md"


def names(file: HeartbeatFile) -> list[str]:
    return [job.name for job in file.load().jobs]


def test_a_missing_file_has_no_jobs_until_it_is_written(path: Path) -> None:
    file = HeartbeatFile(path)
    assert names(file) == []
    assert not file.changed()
    path.write_bytes(b"\xef\xbb\xbf## Daily (08:00)\r\nname: a\r\n")
    assert file.changed()
    assert names(file) == ["a"]
    assert not file.changed()
    path.unlink()
    assert file.changed()
    assert names(file) == []


def test_an_edit_of_the_same_length_is_noticed_when_the_file_was_replaced(path: Path, tmp_path: Path) -> None:
    path.write_text("## Daily (08:00)", encoding="utf-8")
    file = HeartbeatFile(path)
    assert names(file) == ["Daily (08:00)"]
    other = tmp_path / "new"
    other.write_text("## Daily (09:00)", encoding="utf-8")
    other.replace(path)
    assert file.changed()
    assert names(file) == ["Daily (09:00)"]


@pytest.mark.parametrize("content", [b"## Daily (09:00)\n\xff\xfe", b"x" * 1_000_001, None])
def test_a_file_that_cannot_be_read_keeps_its_last_jobs_and_says_so(path: Path, content: bytes | None) -> None:
    path.write_text("## Daily (08:00)", encoding="utf-8")
    file = HeartbeatFile(path)
    file.load()
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    parsed = file.load()
    assert [job.name for job in parsed.jobs] == ["Daily (08:00)"]
    assert len(parsed.faults) == 1
    assert not file.changed()

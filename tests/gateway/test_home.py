"""The home folder: made once, never overwritten, held by one program, readable by its owner alone."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent import files
from gateway.config import Settings, load_settings
from gateway.home import HomeError, HomeLock, forget_running, prepare, read_running, write_running


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_new_home_is_the_owners_alone_and_its_settings_are_the_defaults(tmp_path: Path) -> None:
    assert prepare(tmp_path / "h") is True
    assert mode(tmp_path / "h") == 0o700
    assert mode(tmp_path / "h" / "config.toml") == 0o600
    assert load_settings(tmp_path / "h" / "config.toml") == Settings()
    assert (tmp_path / "h" / "workspace" / "heartbeat.md").is_file()


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    prepare(tmp_path / "h")
    before = contents(tmp_path / "h")
    assert prepare(tmp_path / "h") is False
    assert contents(tmp_path / "h") == before


def test_what_the_owner_wrote_is_never_overwritten(tmp_path: Path) -> None:
    prepare(tmp_path / "h")
    mine = {
        name: f"mine: {name}\n".encode() for name in contents(tmp_path / "h") if not name.endswith("agents.core.md")
    }
    for name, text in mine.items():
        (tmp_path / "h" / name).write_bytes(text)
    prepare(tmp_path / "h", "Another name", config="[agent]\nname = 'x'\n")
    after = contents(tmp_path / "h")
    assert {name: after[name] for name in mine} == mine
    assert b"mine" not in after["workspace/agents.core.md"]


def test_a_file_in_the_place_of_the_home_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("a letter")
    with pytest.raises(HomeError, match="cannot be written") as caught:
        prepare(tmp_path / "h")
    assert str(tmp_path / "h") in str(caught.value)
    assert (tmp_path / "h").read_text() == "a letter"


# A disk that fills up after ten bytes


@pytest.fixture
def ten_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file takes ten bytes, then there is no space left."""
    whole = os.write

    def write(descriptor: int, data: Any) -> int:
        whole(descriptor, bytes(data)[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "write", write)


@pytest.mark.usefixtures("ten_bytes")
def test_a_full_disk_leaves_no_half_settings(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="No space left on device"):
        prepare(tmp_path / "h")
    assert contents(tmp_path / "h") == {}


def test_a_full_disk_leaves_the_old_state_byte_for_byte(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    prepare(tmp_path)
    write_running(tmp_path, {"pid": 1, "address": "a", "token": "t"})
    before = contents(tmp_path)
    request.getfixturevalue("ten_bytes")
    with pytest.raises(HomeError, match="No space left on device"):
        write_running(tmp_path, {"pid": 2, "address": "b" * 100, "token": "t"})
    with pytest.raises(OSError, match="No space left on device"):
        files.replace_file(tmp_path / "config.toml", "[agent]\nname = 'a much longer file than before'\n")
    assert contents(tmp_path) == before


@pytest.mark.usefixtures("ten_bytes")
def test_a_full_disk_cannot_hold_a_lock_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HomeError, match="No space left on device"):
        HomeLock(tmp_path).acquire()
    monkeypatch.undo()
    lock = HomeLock(tmp_path)
    lock.acquire()
    lock.release()


# The lock


def test_one_program_at_a_time_and_the_next_when_it_is_gone(tmp_path: Path) -> None:
    first, second = HomeLock(tmp_path), HomeLock(tmp_path)
    first.acquire()
    with pytest.raises(HomeError, match=rf"another gateway runs on this home \(pid {os.getpid()}\)"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_a_lock_file_that_a_dead_program_left_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "hudhud.lock").write_text("999999999\n")
    lock = HomeLock(tmp_path)
    lock.acquire()
    assert (tmp_path / "hudhud.lock").read_text() == f"{os.getpid()}\n"
    lock.release()


# The way to the running gateway


def test_the_way_to_the_gateway_is_known_while_it_runs(tmp_path: Path) -> None:
    facts = {"pid": 1, "address": "http://127.0.0.1:1", "token": "secret"}
    assert read_running(tmp_path) is None
    write_running(tmp_path, facts)
    assert mode(tmp_path / "running.json") == 0o600
    assert read_running(tmp_path) is None, "nobody holds the home: it is the note of a dead program"
    lock = HomeLock(tmp_path)
    lock.acquire()
    assert read_running(tmp_path) == facts
    forget_running(tmp_path)
    forget_running(tmp_path)
    assert read_running(tmp_path) is None
    lock.release()


@pytest.mark.parametrize("text", ["", "{", "\x00"])
def test_a_torn_note_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "running.json").write_text(text)
    lock = HomeLock(tmp_path)
    lock.acquire()
    assert read_running(tmp_path) is None
    lock.release()


def test_a_note_readable_by_others_becomes_the_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "running.json").write_text("{}")
    (tmp_path / "running.json").chmod(0o644)
    write_running(tmp_path, {"token": "secret"})
    assert mode(tmp_path / "running.json") == 0o600
    assert json.loads((tmp_path / "running.json").read_text()) == {"token": "secret"}

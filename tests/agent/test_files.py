"""Whole files or none, and appends that outlive a torn line."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agent.files import append_lines, replace_file


def test_a_whole_file_is_put_in_place(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.md"
    replace_file(path, "one\n")
    replace_file(path, "two\n", durable=False)
    assert path.read_text() == "two\n"
    assert os.listdir(path.parent) == ["a.md"]


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "new.md"
    replace_file(path, "mine")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    link = tmp_path / "notes" / "link.md"
    link.parent.mkdir()
    link.symlink_to(path)
    replace_file(link, "still mine")
    assert link.is_symlink()
    assert path.read_text() == "still mine"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.md"
    replace_file(path, "old\n")
    real_write = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        if len(data) > 10:
            return real_write(descriptor, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agent.files.os.write", full_disk)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, "a longer text than the disk takes")
    monkeypatch.undo()
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_torn_last_line_is_ended_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "log.md"
    path.write_bytes(b"# day\n- whole\n- cut inside a character: " + "ن".encode()[:1])
    append_lines(path, "- next")
    append_lines(path, "- after\n")
    lines = path.read_bytes().split(b"\n")
    assert lines[1] == b"- whole"
    assert lines[3:] == [b"- next", b"- after", b""]


def test_the_head_comes_first_and_once(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "day.md"
    append_lines(path, "one", head="# day\n")
    append_lines(path, "two", head="# day\n")
    assert path.read_text() == "# day\none\ntwo\n"


def test_lone_surrogates_do_not_stop_a_write(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    append_lines(path, "ok \udcb2 \ud83c end")
    assert path.read_text() == "ok \ufffd \ufffd end\n"

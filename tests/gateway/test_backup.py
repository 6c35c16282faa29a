"""A home in one file and back: whole, private, safe against what such a file may hold."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from pathlib import Path

import pytest

from gateway.backup import MANIFEST, BackupError, back_up, restore
from tests.fakes.terminal import FREE_PORT, Shell


def archive(file: Path, *entries: tuple[tarfile.TarInfo, bytes], manifest: object = None) -> Path:
    """A file of the form of a backup with these entries."""
    first = json.dumps({"format": 1} if manifest is None else manifest).encode()
    with tarfile.open(file, "w:gz") as made:
        for info, data in ((tarfile.TarInfo(MANIFEST), first), (tarfile.TarInfo("config.toml"), b""), *entries):
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return file


def entry(name: str, *, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    if link:
        info.type, info.linkname = tarfile.SYMTYPE, link
    return info


def test_a_running_home_comes_back_whole(shell: Shell, tmp_path: Path) -> None:
    shell.prepared(FREE_PORT)
    shell.write("workspace/files/kept.bin", "x" * 100_000)
    shell.write("whatsapp/auth/session.db", "login")
    shell.write("workspace/.trash/old.md", "an older page")
    file = tmp_path / "home.tar.gz"
    with shell.gateway():
        shell("chat", "remember that the falcon is called Barq")
        said = shell("backup", str(file), "--json")
        assert said.code == 0
        shell("chat", "remember that the owl is called Layl")
    assert said.json["size_bytes"] == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    other = tmp_path / "other"
    other.mkdir()
    restored = shell("restore", str(file), "--home", str(other), "--json", anywhere=True)
    assert (restored.code, restored.json["files"]) == (0, said.json["files"])
    assert "Barq" in shell("memory", "search", "falcon", "--home", str(other), anywhere=True).out
    assert "Barq" in shell("sessions", "search", "falcon", "--home", str(other), anywhere=True).out
    assert "Layl" not in shell("memory", "search", "owl", "--home", str(other), anywhere=True).out
    assert (other / "workspace/files/kept.bin").stat().st_size == 100_000
    assert (other / "workspace/.trash/old.md").exists()
    assert not (other / "whatsapp").exists()
    assert not (other / "running.json").exists()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (other / "config.toml",)} == {0o600}
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    assert "Barq" in shell("chat", "what is the falcon called?", "--home", str(other), anywhere=True).out


def test_logins_go_along_when_asked_for(shell: Shell, tmp_path: Path) -> None:
    shell.prepared().write("whatsapp/auth/session.db", "login")
    back_up(shell.home, tmp_path / "all.tar.gz", with_credentials=True)
    restore(tmp_path / "all.tar.gz", tmp_path / "made")
    assert (tmp_path / "made/whatsapp/auth/session.db").read_text() == "login"


def test_what_is_no_file_is_left_out_and_named(shell: Shell, tmp_path: Path) -> None:
    shell.prepared().write("workspace/notes/real.md", "x")
    workspace = shell.home / "workspace"
    os.symlink("real.md", workspace / "notes/inside.md")
    os.symlink("/etc/passwd", workspace / "notes/outside.md")
    os.symlink("/", workspace / "root")
    os.mkfifo(workspace / "notes/pipe")
    made = back_up(shell.home, tmp_path / "b.tar.gz")
    assert {name for name, _ in made.skipped} == {
        "workspace/notes/outside.md",
        "workspace/root",
        "workspace/notes/pipe",
    }
    restore(tmp_path / "b.tar.gz", tmp_path / "made")
    assert os.readlink(tmp_path / "made/workspace/notes/inside.md") == "real.md"


def test_nothing_is_overwritten_and_a_failure_leaves_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.prepared()
    file = tmp_path / "b.tar.gz"
    assert shell("backup", str(file)).code == 0
    before = file.read_bytes()
    again = shell("backup", str(file))
    assert (again.code, file.read_bytes()) == (2, before)
    assert "another file" in again.err
    assert shell("restore", str(file)).code == 2, "the home is not empty"
    assert "not empty" in shell("restore", str(file)).err
    assert shell("backup", str(shell.home / "workspace/b.tar.gz")).code == 2
    assert shell("backup", str(tmp_path / "no/b.tar.gz")).code == 2
    assert shell("restore", str(tmp_path / "none.tar.gz"), "--home", str(tmp_path / "x"), anywhere=True).code == 3
    for size in (10, len(before) // 2, len(before) - 5):
        (tmp_path / "torn.tar.gz").write_bytes(before[:size])
        with pytest.raises(BackupError, match="no whole backup"):
            restore(tmp_path / "torn.tar.gz", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar.gz", "home", "torn.tar.gz"]


@pytest.mark.parametrize(
    "evil",
    [
        entry("../outside.md"),
        entry("/tmp/outside.md"),
        entry("workspace/../../outside.md"),
        entry("workspace/link", link="/etc"),
        entry("bin/anything"),
    ],
)
def test_an_archive_cannot_write_outside_the_new_home(tmp_path: Path, evil: tarfile.TarInfo) -> None:
    file = archive(tmp_path / "evil.tar.gz", (evil, b"" if evil.linkname else b"data"))
    with pytest.raises(BackupError, match="no whole backup"):
        restore(file, tmp_path / "made")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.tar.gz"]


def test_what_is_no_backup_of_ours_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("hello")
    newer = archive(tmp_path / "newer.tar.gz", manifest={"format": 99})
    damaged = archive(tmp_path / "damaged.tar.gz", (entry("hudhud.db"), b"no database at all" * 100))
    for file in (plain, newer, damaged):
        with pytest.raises(BackupError, match=r"Nothing was restored\.$"):
            restore(file, tmp_path / "made")
    assert not (tmp_path / "made").exists()

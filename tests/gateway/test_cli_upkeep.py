"""`hudhud doctor`, `tasks` and `service`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from gateway.cli_service import command
from tests.fakes.terminal import FREE_PORT, Shell


def areas(shell: Shell, state: str) -> dict[str, str]:
    found = shell("doctor", "--json").json["findings"]
    return {one["area"]: one["what"] for one in found if one["state"] == state}


def test_a_sound_home_has_no_fault(shell: Shell) -> None:
    shell.prepared(FREE_PORT)
    with shell.gateway():
        shell("chat", "remember that the falcon is called Barq")
        said = shell("doctor")
        assert said.code == 0, said.out
        found = shell("doctor", "--json").json
    assert found["faults"] == 0
    assert {
        "settings",
        "rights",
        "disk",
        "database",
        "index",
        "read logs",
        "clock",
        "skills",
        "model",
        "gateway",
        "channels",
    } == {one["area"] for one in found["findings"]}
    assert "it does not run" in areas(shell, "warning")["gateway"]


def test_each_fault_is_named_with_its_remedy(shell: Shell) -> None:
    shell.prepared('[model]\nprovider = "openai"\n')
    shell.write("workspace/heartbeat.md", "## Sometimes\n\nDo it.\n")
    shell.write("workspace/skills/broken/SKILL.md", "no head")
    shell.write("workspace/readlog/telegram/1.jsonl", '{"id": "1"}\nnonsense\n{"torn')
    shell.write("hudhud.db", "this is no database")
    (shell.home / "config.toml").chmod(0o644)
    said = shell("doctor")
    assert said.code == 1
    faults = areas(shell, "fault")
    assert set(faults) == {"rights", "database", "clock", "skills", "model"}
    assert "line 1" in faults["clock"]
    assert "line 2" in areas(shell, "warning")["read logs"]
    remedies = [one["remedy"] for one in shell("doctor", "--json").json["findings"] if one["state"] != "good"]
    assert all(remedies)

    mended = shell("doctor", "--fix", "--json").json
    assert [one["area"] for one in mended["mended"]] == ["rights"]
    assert (shell.home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert "rights" not in areas(shell, "fault")


def test_what_a_command_makes_is_its_owners_alone(shell: Shell) -> None:
    before = os.umask(0o022)
    try:
        assert shell("init", "--yes").code == 0
        shell("memory", "save", "The falcon is called Barq")
    finally:
        os.umask(before)
    made = [path for path in shell.home.rglob("*") if path.is_file()]
    assert {path.name for path in made} >= {"hudhud.db", "index.db", "config.toml", "technical.md"}
    assert not [path for path in made if path.stat().st_mode & 0o077 and path.parent == shell.home]


def test_wrong_settings_do_not_stop_the_rest(shell: Shell) -> None:
    shell.prepared('[agent]\nnmae = "x"\n[channels.telegram]\nenabled = 7\n')
    said = shell("doctor")
    assert said.code == 1
    assert "unknown key `agent.nmae`" in said.out
    assert "the home is the owner's alone" in said.out
    assert shell("doctor", "--home", str(shell.home / "none"), anywhere=True).code == 3


def test_tasks_are_listed_and_opened(shell: Shell) -> None:
    shell.prepared()
    assert shell("tasks").out == ""
    shell("chat", "remember that the falcon is called Barq")
    [task] = shell("tasks", "--json").json["tasks"]
    assert (task["status"], task["steps"]) == ("done", "1/1")
    assert task["id"] in shell("tasks").out
    assert "memory_save" in shell("tasks", task["id"][-6:]).out
    assert "memory_save" in shell("tasks", f"task:{task['id']}", "--json").json["text"]
    assert shell("tasks", "no-such").code == 3


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl that writes down how it was called; the file."""
    log, program = tmp_path / "calls", tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(log))}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return log


def test_the_service_is_written_started_and_taken_away(shell: Shell, systemctl: Path, tmp_path: Path) -> None:
    shell.prepared()
    unit = tmp_path / "config/systemd/user/hudhud.service"
    for _ in range(2):  # again is no fault: it may have moved
        said = shell("service", "install", "--json")
        assert (said.code, said.json["systemd"]) == (0, "ok")
    assert f"ExecStart={command(shell.home)}\n" in unit.read_text()
    assert systemctl.read_text().splitlines()[:2] == ["--user daemon-reload", "--user enable --now hudhud.service"]
    assert shell("service", "remove", "--home", str(tmp_path / "other"), anywhere=True).code == 3
    assert shell("service", "remove", "--json").json["state"] == "removed"
    assert not unit.exists()
    assert "--user disable --now hudhud.service" in systemctl.read_text()
    assert shell("service", "remove", anywhere=True).code == 3


def test_what_is_not_ours_is_left_alone(shell: Shell, systemctl: Path, tmp_path: Path) -> None:
    shell.prepared()
    unit = tmp_path / "config/systemd/user/hudhud.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Unit]\n")
    assert shell("service", "install").code == 1
    assert shell("service", "remove", anywhere=True).code == 1
    assert unit.read_text() == "[Unit]\n"
    assert not systemctl.exists()


def test_the_command_survives_any_folder_name() -> None:
    assert command(Path("/home/me/x")).endswith("-m gateway run --home /home/me/x")
    assert command(Path('/a b/100%/$HOME/"q"')).endswith('--home "/a b/100%%/$$HOME/\\"q\\""')
    assert command(Path("/x")).startswith(sys.executable)


def test_without_systemd_it_says_what_to_do(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.prepared()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", str(tmp_path))
    said = shell("service", "install")
    assert said.code == 0
    assert "no systemctl" in said.err
    assert "systemctl --user enable --now" in said.err
    assert json.loads(shell("service", "remove", "--json", anywhere=True).out)["state"] == "removed"

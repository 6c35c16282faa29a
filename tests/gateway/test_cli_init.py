"""`hudhud init`: a home that works, and nothing overwritten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.config import load_settings
from tests.fakes.terminal import Shell, Terminal


def test_without_questions_it_makes_a_home_with_the_defaults(shell: Shell) -> None:
    said = shell("init", "--yes")
    assert said.code == 0
    assert str(shell.home) in said.out
    assert load_settings(shell.home / "config.toml").model.provider == "offline"
    assert (shell.home / "workspace" / "heartbeat.md").is_file()
    assert (shell.home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert shell.home.stat().st_mode & 0o077 == 0


def test_what_is_there_is_never_overwritten(shell: Shell) -> None:
    shell.prepared("[agent]\nname = 'Mine'\n")
    shell.write("workspace/memory.md", "# My own words\n")
    (shell.home / "workspace" / "heartbeat.md").unlink()
    said = shell("init", stdin="Asia/Riyadh\n\n\n")
    assert said.code == 0
    assert "stays as it is" in said.out
    assert (shell.home / "config.toml").read_text() == "[agent]\nname = 'Mine'\n"
    assert (shell.home / "workspace" / "memory.md").read_text() == "# My own words\n"
    assert (shell.home / "workspace" / "heartbeat.md").is_file()


def test_answers_become_settings(shell: Shell) -> None:
    answers = ["Asia/Riyadh", "openai", "http://127.0.0.1:11434/v1", 'a "quoted" model', "k-123", "12:abc", "77"]
    assert shell("init", stdin="\n".join(answers) + "\n").code == 0
    settings = load_settings(shell.home / "config.toml")
    assert settings.agent.timezone == "Asia/Riyadh"
    assert settings.model.provider == "openai"
    assert settings.model.base_url == "http://127.0.0.1:11434/v1"
    assert settings.model.name == 'a "quoted" model'
    assert settings.model.api_key.get_secret_value() == "k-123"
    telegram = settings.channel("telegram")
    assert telegram.enabled
    assert telegram.token.get_secret_value() == "12:abc"
    assert "77" in telegram.owner_ids


def test_enter_takes_the_defaults(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Africa/Cairo")
    assert shell("init", stdin="\n\n\n").code == 0
    settings = load_settings(shell.home / "config.toml")
    assert settings.agent.timezone == "Africa/Cairo"
    assert settings.model.provider == "offline"
    assert not settings.channel("telegram").enabled


def test_an_answer_that_will_not_do_is_asked_for_again(shell: Shell) -> None:
    answers = ["Mars/Olympus", "UTC", "gpt", "openai", "localhost", "http://x/v1", "", "m", "k", "t", "me", "5"]
    said = shell("init", stdin="\n".join(answers) + "\n")
    assert said.code == 0
    assert len(said.err.splitlines()) == 5
    assert load_settings(shell.home / "config.toml").model.name == "m"


def test_questions_that_break_off_write_nothing(shell: Shell) -> None:
    said = shell("init", stdin="UTC\n")
    assert said.code == 1
    assert "nothing was written" in said.err
    assert not shell.home.exists()


def test_a_secret_is_not_shown_while_it_is_typed(shell: Shell, at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("init")
    for question, answer in (
        ("Time zone [", ""),
        ("Model (", "openai"),
        ("Address of the server [", ""),
        ("Name of the model", "m"),
        ("Key, or env:NAME", "sesame-key"),
        ("Telegram bot token", "sesame-token"),
        ("Your own Telegram id", "42"),
    ):
        terminal.wait_for(question)
        terminal.type(f"{answer}\n")
    assert terminal.ended() == 0
    assert "sesame" not in terminal.shown
    assert load_settings(shell.home / "config.toml").model.api_key.get_secret_value() == "sesame-key"


def test_json_says_whether_the_home_is_new(shell: Shell) -> None:
    assert shell("init", "--yes", "--json").json == {"home": str(shell.home), "created": True}
    assert shell("init", "--yes", "--json").json == {"home": str(shell.home), "created": False}

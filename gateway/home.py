"""The home folder: made once, held by one program at a time, never overwritten."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from agent.files import replace_file
from agent.workspace import prepare_workspace
from heartbeat.jobs import default_text

CONFIG = "config.toml"
RUNNING = "running.json"
LOCK = "hudhud.lock"

FIRST_CONFIG = """\
# Settings of Hudhud. Everything has a default; what you may write here is in docs/run-it.md.
# A secret may be "env:NAME": then it is read from that environment variable.

# [agent]
# timezone = "Asia/Riyadh"

# A real model: "anthropic", "openai" (with base_url any server that speaks its protocol), "deepseek" or "ollama":
# [model]
# provider = "openai"
# name = "gpt-5-mini"
# base_url = "https://api.openai.com/v1"
# api_key = "env:OPENAI_API_KEY"

# Telegram: make a bot with @BotFather, then
# [channels.telegram]
# enabled = true
# token = "env:TELEGRAM_TOKEN"
# owner = 123456789
"""


FIRST_FILES = {
    "identity/user.md": "# About the owner\n\n",
    "agents.md": "# My own rules for the agent\n\n",
    "memory.md": "# Memory\n\n",
}


class HomeError(Exception):
    """The home folder cannot be used; `str()` is one sentence that says what to do."""


class HomeHeld(HomeError):
    """Another gateway works on this home."""


def prepare(home: Path, agent_name: str = "Hudhud", config: str = FIRST_CONFIG) -> bool:
    """Makes the folders and first files that are missing, and writes the product's contract anew. True when the
    home is new: then `config` is its config.toml. Raises HomeError when it cannot be written."""
    try:
        is_new = not (home / CONFIG).exists()
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_new(home / CONFIG, config, 0o600)
        workspace = home / "workspace"
        prepare_workspace(workspace, agent_name)
        for name, text in FIRST_FILES.items():
            _write_new(workspace / name, text)
        _write_new(workspace / "heartbeat.md", default_text())
    except OSError as error:
        raise _not_writable(home, error) from error
    return is_new


def _not_writable(path: Path, error: OSError) -> HomeError:
    return HomeError(f"{path}: cannot be written ({error.strerror}). Check its owner, rights and free space.")


def _write_new(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes a file that is not there yet: whole or not at all."""
    if path.exists():
        return
    replace_file(path, text)
    path.chmod(mode)


def _locked(file: int) -> bool:
    """Takes the lock; a short second try, since a command that only looks holds it for an instant."""
    for pause_seconds in (0.05, 0.1, None):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if pause_seconds is not None:
                time.sleep(pause_seconds)
            continue
        return True
    return False


class HomeLock:
    """Held while a program works on a home; the system frees it when the program dies, however it dies."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file: int | None = None

    def acquire(self) -> None:
        """Raises HomeError with the pid of the program that holds it."""
        path = self._home / LOCK
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _not_writable(path, error) from error
        if not _locked(file):
            holder = os.read(file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise HomeHeld(
                f"{self._home}: another gateway runs on this home (pid {holder}). Stop it first, or use --home."
            )
        try:
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode("ascii"))
        except OSError as error:
            os.close(file)
            raise _not_writable(path, error) from error
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def write_running(home: Path, facts: dict[str, Any]) -> None:
    """Notes how the command line reaches the running gateway (address and token; readable by the owner alone).

    Raises HomeError when it cannot be written."""
    path = home / RUNNING
    try:
        replace_file(path, json.dumps(facts))
        path.chmod(0o600)
    except OSError as error:
        raise _not_writable(path, error) from error


def read_running(home: Path) -> dict[str, Any] | None:
    """What `write_running` noted, None when no gateway holds the home."""
    try:
        facts: dict[str, Any] = json.loads((home / RUNNING).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if is_held(home) else None


def is_held(home: Path) -> bool:
    """Whether a program works on this home now."""
    if not (home / LOCK).exists():
        return False
    lock = HomeLock(home)
    try:
        lock.acquire()
    except HomeHeld:
        return True
    except HomeError:
        return False
    lock.release()
    return False


def forget_running(home: Path) -> None:
    (home / RUNNING).unlink(missing_ok=True)

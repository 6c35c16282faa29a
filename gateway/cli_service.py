"""`hudhud service`: the gateway as a systemd unit of this user, started with the machine and again after a crash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import typer

from gateway.cli_options import Home, Json, Place, place

app = typer.Typer(help="The gateway as a systemd unit of this user.")

NAME = "hudhud.service"
MARK = "# Written by `hudhud service install`; `hudhud service remove` takes it away."
UNIT = """\
[Unit]
Description=Hudhud, a personal agent
# A fault that stays (a wrong setting, a full disk) is tried again 20 times in 10 minutes, then left alone.
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
ExecStart={command}
# Started again after a crash. Exit code 2 means that the settings are wrong: only a person can mend that.
Restart=on-failure
RestartPreventExitStatus=2
RestartSec=5
# A stop lets running turns end (five seconds at most) and closes the database.
TimeoutStopSec=20
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""
"""deploy/hudhud.service is this with a comment and another command."""
_SECONDS_MAX = 30.0


@app.command()
def install(home: Home = None, as_json: Json = False) -> None:
    """Write the unit and start it, now and with every start of the machine."""
    _install(place(home), as_json)


@app.command()
def remove(home: Home = None, as_json: Json = False) -> None:
    """Stop it and take the unit away. The home stays as it is."""
    _remove(home, as_json)


def unit_path() -> Path:
    """Where systemd looks for units of this user."""
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(config).expanduser() / "systemd" / "user" / NAME


def command(home: Path) -> str:
    """How systemd starts the gateway on a home, with this Python."""
    words = (sys.executable, "-m", "gateway", "run", "--home", str(home))
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    r"""A word as `ExecStart=` takes it (systemd.service(5)): `\`, `"`, `%` and `$` mean something there."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if escaped == word and word.isprintable() and " " not in word and "'" not in word else f'"{escaped}"'


def _install(where: Place, as_json: bool) -> None:
    from agent.files import replace_file
    from gateway.cli_errors import failed, no_such
    from gateway.home import CONFIG, is_held

    if not (where.home / CONFIG).exists():
        raise no_such(f"There is no home at {where.home}.", "Make one with `hudhud init`, or name another with --home.")
    path = unit_path()
    if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
        raise failed("exists", f"{path} is not of this command's making.", "Move it away first.")
    if is_held(where.home) and not path.exists():
        raise failed("running", f"A gateway runs on {where.home} already.", "Stop it, then install the service.")
    try:
        replace_file(path, f"{MARK}\n\n{UNIT.format(command=command(where.home))}")
    except OSError as error:
        raise failed("io", f"{path}: cannot be written ({error.strerror}).", "Check its owner and rights.") from error
    trouble = _systemctl("daemon-reload") or _systemctl("enable", "--now", NAME)
    _tell(path, "written", trouble, as_json, f"systemctl --user daemon-reload && systemctl --user enable --now {NAME}")


def _remove(home: str | None, as_json: bool) -> None:
    from gateway.cli_errors import failed, no_such
    from gateway.config import home_folder

    path = unit_path()
    if not path.exists():
        raise no_such(f"There is no {path}.", "Nothing is to be removed.")
    text = path.read_text(encoding="utf-8", errors="replace")
    if MARK not in text:
        raise failed("exists", f"{path} is not of this command's making.", "Remove it by hand.")
    if home is not None and f"ExecStart={command(home_folder(home))}\n" not in text:
        raise no_such(f"{path} serves another home than {home}.", "Name that one, or none.")
    trouble = _systemctl("disable", "--now", NAME)
    path.unlink()
    trouble = trouble or _systemctl("daemon-reload")
    _tell(path, "removed", trouble, as_json, f"systemctl --user stop {NAME}; systemctl --user daemon-reload")


def _systemctl(*words: str) -> str:
    """Runs systemctl for this user; why it could not, empty when it could."""
    program = shutil.which("systemctl")
    if program is None:
        return "there is no systemctl on this machine"
    try:
        done = subprocess.run(
            [program, "--user", *words], capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"systemctl did not answer ({error})"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"systemctl ended with {done.returncode}")


def _tell(path: Path, what: str, trouble: str, as_json: bool, by_hand: str) -> None:
    from gateway.cli_output import complain, print_json, say

    if as_json:
        print_json({"unit": str(path), "state": what, "systemd": trouble or "ok"})
        return
    say(f"{path} {what}.")
    if trouble:
        complain(f"systemd was not told: {trouble}. Do it by hand: {by_hand}")
    elif what == "written":
        say("It runs. To keep it running while you are logged out: loginctl enable-linger")

"""`hudhud run` as a real process: one line, a clean stop, and what stops it from starting."""

from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar

import pytest

from tests.fakes.terminal import FREE_PORT, Shell, Terminal, environment, hudhud

ADDRESS = r"http://127\.0\.0\.1:\d+"


@contextmanager
def running(shell: Shell, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A gateway whose output goes to a pipe; the process and its first line."""
    process = subprocess.Popen(
        hudhud("run", *options, home=shell.home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_with_the_bare_address_and_a_clean_stop(shell: Shell, number: signal.Signals) -> None:
    with running(shell.prepared()) as (process, line):
        assert re.fullmatch(f"Hudhud runs at {ADDRESS}\n", line)
        with urllib.request.urlopen(f"{line.split()[-1]}/readyz", timeout=30) as answer:
            assert json.load(answer)["ready"] is True
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    assert not (shell.home / "running.json").exists()


def test_a_terminal_gets_an_address_that_opens_the_page_once(
    shell: Shell, at_terminal: Callable[..., Terminal]
) -> None:
    shell.prepared()
    terminal = at_terminal("run")
    terminal.wait_for("\n")
    found = re.fullmatch(rf"Hudhud runs at ({ADDRESS}/\?code=\S+)\n", terminal.shown)
    assert found
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(found[1], timeout=30) as page:
        assert page.status == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(found[1], timeout=30)
    refused.value.close()
    terminal.type("\x03")
    assert terminal.ended() == 0


def test_a_home_that_does_not_exist_is_made(shell: Shell) -> None:
    shell.write("config.toml", FREE_PORT)
    with running(shell, "--json") as (process, line):
        facts = json.loads(line)
        assert re.fullmatch(ADDRESS, facts["address"])
        assert facts["pid"] == process.pid
        assert (shell.home / "workspace" / "agents.core.md").is_file()


def test_the_second_gateway_on_a_home_is_refused_with_the_pid_of_the_first(shell: Shell) -> None:
    with running(shell.prepared()) as (process, _):
        said = shell("run")
        assert (said.code, said.out) == (1, "")
        assert f"(pid {process.pid})" in said.err
        assert said.err.count("\n") == 1


def test_a_port_in_use_is_one_sentence(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = shell.prepared(f"[channels.inapp]\nport = {port}\n")("run")
    assert (said.code, said.out) == (1, "")
    assert f"127.0.0.1:{port} is in use" in said.err
    assert said.err.count("\n") == 1


def test_a_database_that_another_program_holds_is_one_sentence(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.database.DATABASE_BUSY_SECONDS", 0.05)
    shell.prepared()
    holder = sqlite3.connect(shell.home / "hudhud.db")
    try:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        said = shell("run")
    finally:
        holder.close()
    assert said.code == 1
    assert "another process holds the database" in said.err
    assert said.err.count("\n") == 1


def test_the_second_interrupt_ends_it_at_once(shell: Shell, at_terminal: Callable[..., Terminal]) -> None:
    shell.prepared()
    terminal = at_terminal("run")
    terminal.wait_for("?code=")
    # A request that is never finished keeps a clean stop busy for a moment.
    host, port = re.findall(r"//([\d.]+):(\d+)", terminal.shown)[0]
    with socket.create_connection((host, int(port))) as open_request:
        open_request.sendall(b"POST /api/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
        terminal.type("\x03")
        terminal.wait_for("Stopping.")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() in {-signal.SIGINT, 0}


def test_what_happens_is_in_a_log_without_secrets_and_a_warning_on_the_screen(shell: Shell) -> None:
    shell.prepared(f'{FREE_PORT}token = "a-very-secret-token"\n')
    shell.write("workspace/heartbeat.md", "## Weekly (a-very-secret-token 09:00)\nDo it.\n")
    with running(shell) as (process, _):
        assert process.stderr is not None
        warning = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert warning.startswith("warning: heartbeat: `Weekly ([redacted: secret] 09:00)` is off")
    log = (shell.home / "workspace" / "logs" / "gateway.log").read_text(encoding="utf-8")
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00 WARNING heartbeat\.board: heartbeat: `Weekly", log)
    assert "a-very-secret" not in log + warning

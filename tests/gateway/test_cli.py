"""The door of the command line: help, wrong use, errors of one sentence with their exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from gateway.cli_app import app
from gateway.cli_errors import explained
from gateway.cli_help import HELP
from tests.fakes.terminal import ROOT, Shell, environment, hudhud


def _commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that can be given, with its words."""
    children: dict[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path.strip(), command
    for name, child in children.items():
        yield from _commands(child, f"{path} {name}")


COMMANDS = dict(_commands(get_command(app)))


def test_help_names_every_command_with_its_arguments_and_nothing_else() -> None:
    shown: dict[str, str] = {}
    for line in HELP.splitlines():
        if found := re.match(r"  ((?:[a-z]+ )*[a-z]+)((?: \[?[A-Z]+\]?)*)  +\S", line):
            shown[found[1]] = found[2].strip()
    arguments = {
        path: " ".join(
            part.metavar if part.required else f"[{part.metavar}]"
            for part in command.params
            if part.param_type_name == "argument"
        )
        for path, command in COMMANDS.items()
    }
    assert shown == arguments


def test_help_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, HELP.splitlines())) <= 80


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_command_explains_itself_and_takes_a_home(path: str, shell: Shell) -> None:
    said = shell(*path.split(), "--help", anywhere=True)
    assert said.code == 0
    assert said.out.startswith(f"Usage: hudhud {path} ")
    assert "--home DIR" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


@pytest.mark.parametrize("group", ["memory", "conversations", "queue", "heartbeat"])
def test_a_group_lists_its_commands_in_whole_sentences(group: str, shell: Shell) -> None:
    said = shell(group, "--help", anywhere=True)
    assert said.code == 0
    assert "..." not in said.out.partition("Commands:")[2]


def test_help_is_there_without_loading_anything() -> None:
    program = (
        "import sys; sys.argv = ['hudhud', '--help']; from gateway.cli import main; main();"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, timeout=30, text=True
    )
    assert done.stdout == HELP
    assert not {"typer", "rich", "pydantic", "sqlite3", "asyncio", "aiohttp"} & set(done.stderr.split())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["fly"], "No such command 'fly'"),
        (["memory", "serch"], "Did you mean 'search'?"),
        (["memory", "search"], "Missing argument 'QUERY'"),
        (["status", "--lnk"], "--lnk"),
        (["heartbeat", "next", "-n", "0"], "'-n'"),
        (["memory", "save", "x", "--type", "jokes"], "'projects', 'people'"),
        (["conversations", "list", "--limit", "many"], "'--limit'"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(given: list[str], wanted: str, shell: Shell) -> None:
    said = shell(*given, anywhere=True)
    assert (said.code, said.out) == (2, "")
    assert wanted in said.err
    assert said.err.count("\n") == 1
    assert re.search(r"`hudhud [a-z ]*--help` says how it is used\.\n$", said.err)


def test_nothing_given_shows_the_help_and_is_wrong_use(shell: Shell) -> None:
    said = shell(anywhere=True)
    assert (said.code, said.out, said.err) == (2, "", HELP)


def test_an_error_with_json_is_one_document_on_stdout(shell: Shell) -> None:
    said = shell("memory", "get", "--json", anywhere=True)
    assert said.code == 2
    assert said.json["error"]["code"] == "usage"
    assert set(said.json["error"]) == {"code", "message", "remedy"}
    assert said.err == ""


def test_a_bad_setting_names_the_key_what_was_found_and_what_is_allowed(shell: Shell) -> None:
    shell.prepared("[agent]\nworkers = 0\n")
    for command in (["run"], ["status"], ["memory", "search", "x"], ["chat", "x"]):
        said = shell(*command)
        assert said.code == 1
        assert "agent.workers" in said.err
        assert "greater than or equal to 1" in said.err
        assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "command", [["memory", "search", "x"], ["conversations", "list"], ["queue", "list"], ["heartbeat", "list"]]
)
def test_without_a_home_a_reading_command_makes_none(command: list[str], shell: Shell) -> None:
    said = shell(*command)
    assert said.code == 3
    assert said.err == (
        f"There is no home at {shell.home}. Make one with `hudhud init`, or name another with --home.\n"
    )
    assert not shell.home.exists()


@pytest.mark.parametrize("command", [["status"], ["status", "--link"], ["heartbeat", "run", "x"]])
def test_what_needs_a_gateway_says_that_none_runs(command: list[str], shell: Shell) -> None:
    said = shell.prepared()(*command)
    assert said.code == 4
    assert said.err == f"No gateway runs on {shell.home}. Start it with `hudhud run`.\n"


def test_a_home_that_is_a_file_is_one_sentence(shell: Shell) -> None:
    shell.home.write_text("")
    said = shell("init", "--yes")
    assert said.code == 1
    assert str(shell.home) in said.err
    assert said.err.count("\n") == 1


def test_a_fault_of_the_program_is_a_sentence_and_with_debug_a_trace(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(home: str | None) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("gateway.cli_queue.place", broken)
    said = shell("queue", "list")
    assert said.code == 1
    assert said.err.startswith("Something went wrong inside Hudhud (ZeroDivisionError: division by zero).")
    assert "Traceback" not in said.err
    assert "Traceback" in shell("queue", "list", "--debug").err


def test_an_error_of_two_sentences_is_message_and_remedy() -> None:
    from gateway.home import HomeError

    error = explained(HomeError("/x: another gateway runs on this home (pid 7). Stop it first, or use --home."))
    assert error.message == "/x: another gateway runs on this home (pid 7)."
    assert error.remedy == "Stop it first, or use --home."


def test_a_reader_that_leaves_early_ends_the_command_quietly(shell: Shell) -> None:
    shell.prepared()
    process = subprocess.Popen(
        hudhud("memory", "search", "heartbeat", "--json", home=shell.home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stderr:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.wait(60) == 1


def test_the_module_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "memory", "get", "--json"],
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"


def test_every_command_and_option_is_in_the_documentation() -> None:
    rows = [line for line in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    everywhere = {"--home", "--json", "--help", "-h"}
    faults: list[str] = []
    for path, command in COMMANDS.items():
        row = next((row for row in rows if re.match(rf"\| `hudhud {path}[ `]", row)), None)
        if row is None:
            faults.append(f"hudhud {path}: no row")
            continue
        options = {option for part in command.params for option in part.opts if option.startswith("-")} - everywhere
        faults += [f"hudhud {path}: {option} is not named" for option in sorted(options) if f"`{option}" not in row]
        if f"hudhud {path}" not in row.rsplit("|", 2)[1]:
            faults.append(f"hudhud {path}: the last cell is no example of it")
    rows_of = [found[1] for row in rows if (found := re.match(r"\| `hudhud ((?:[a-z]+ )*[a-z]+)", row))]
    assert faults == []
    assert sorted(rows_of) == sorted(COMMANDS)

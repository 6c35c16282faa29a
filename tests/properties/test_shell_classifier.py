"""No way of writing a dangerous command makes it harmless, and what is called harmless is so under a real shell.

Longer: `python -m pytest tests/properties/test_shell_classifier.py --hypothesis-profile=long`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.amygdala.places import Places
from agent.amygdala.shell import classify_command
from tests.fakes.shell_commands import BLOCK, CONFIRM, SAFE, a_workspace

DANGEROUS = (
    ("rm", "-rf", "~"),
    ("rm", "-rf", "/"),
    ("rm", "-r", "-f", "/etc"),
    ("cat", "/etc/shadow"),
    ("cat", "~/.ssh/id_rsa"),
    ("dd", "if=x", "of=/dev/sda"),
    ("mkfs.ext4", "/dev/sda1"),
    ("wipefs", "-a", "/dev/sdb"),
    ("printenv",),
)
PIECES = (
    *"abdx .;|&<>(){}$`\"'\\#=*?!~[]-+/:%@,^12\n\t",
    *(
        "ls",
        "cat",
        "rm",
        "boom",
        "wc",
        "sort",
        "echo ",
        "printf ",
        "cd ",
        "test ",
        "-f ",
        "-c ",
        "eval ",
        "bash ",
        "env ",
    ),
    *("||", "&&", "<<", "<<<", ">&", "[[", "]]", "((", "))", "$(", "${", "$((", "$[", "$'", '$"', "..", "../", "--"),
    *("<<E", "<<-E", "<<'E'", "\nE\n", "case ", "in ", "esac", "if ", "then ", "fi", "for ", "do ", "done", "while "),
    *(
        "time ",
        "coproc ",
        "function ",
        "\\\n",
        ">&2",
        "2>",
        "/dev/null",
        "$IFS",
        "${IFS}",
        "$x",
        "$HOME",
        "{a,b}",
        "\\x62",
    ),
)
PLAIN = (
    *("ls -la d | wc", "cat a && echo b", "cat <<E\nx\nE", 'echo "$(ls)"', "for f in a b; do echo $f; done"),
    *("if [ -f a ]; then cat a; fi", "cd d && ls", "[ -f a ] && cat a", "cat <<< x", "ls 2>/dev/null", "x=5; echo $x"),
    *("diff <(cat a) <(cat b)", "find . -name '*.md'", "sort a | uniq", "(ls; cat a)", "{ ls; }", "bash -c 'ls a'"),
    *("cat <<'E' | wc\n$(boom)\nE", "timeout 5 ls", "! cat a", "sed -n '1,3p' a", "awk '{print $1}' a", "echo a # b"),
)
BY_ITSELF = ["ls", "cat", "wc", "find", "sort", "uniq", "git", "date", "head", "diff", "sed", "awk"]
REAL = ["env", "timeout", "bash"]
OTHERS = ["rm", "boom", "x", "a", "b", "tee", "dd", "chmod", "curl"]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return a_workspace(tmp_path_factory.mktemp("shell"))


def quoted(word: str, way: int) -> str:
    """A word written another way; the tilde at its start keeps its meaning."""
    head = "~" if word.startswith("~") else ""
    rest = word.removeprefix("~")
    if not rest:
        return word
    ways: tuple[Callable[[str], str], ...] = (
        str,
        lambda text: f"'{text}'",
        lambda text: f'"{text}"',
        lambda text: f"{text[0]}''{text[1:]}",
        lambda text: f'{text[0]}"{text[1:]}"',
        lambda text: "".join(f"\\{char}" for char in text),
        lambda text: "$'" + "".join(f"\\x{ord(char):02x}" for char in text) + "'",
        lambda text: "$'" + "".join(f"\\{ord(char):03o}" for char in text) + "'",
        lambda text: f"{text[0]}\\\n{text[1:]}",
    )
    # The tilde-prefix ends at the first slash; a quote before that would make it a plain letter.
    if head:
        return f"~/{ways[way % len(ways)](rest[1:])}" if len(rest) > 1 else word
    return ways[way % len(ways)](rest)


JOINS = (" ", "\t", "   ", "${IFS}", "$IFS", " \\\n ", "\t\\\n")
AROUND: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"sudo {text}",
    lambda text: f"env {text}",
    lambda text: f"env -i X=1 {text}",
    lambda text: f"nohup {text}",
    lambda text: f"timeout -k 1 5 {text}",
    lambda text: f"nice -n 5 {text}",
    lambda text: f"time -p {text}",
    lambda text: f"command {text}",
    lambda text: f"exec {text}",
    lambda text: f"busybox {text}",
    lambda text: f"stdbuf -oL {text}",
    lambda text: f"X=1 {text}",
    lambda text: f">/dev/null {text}",
    lambda text: f"{text} 2>&1",
)
INSIDE: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"ls; {text}",
    lambda text: f"ls\n{text}\nls",
    lambda text: f"true && {text}",
    lambda text: f"false || {text}",
    lambda text: f"ls | {text}",
    lambda text: f"{text} | cat",
    lambda text: f"{text} &",
    lambda text: f" ( {text} )",
    lambda text: f"{{ {text}; }}",
    lambda text: f"! {text}",
    lambda text: f"if true; then {text}; fi",
    lambda text: f"while :; do {text}; done",
    lambda text: f"for i in 1 2; do {text}; done",
    lambda text: f"case x in *) {text};; esac",
    lambda text: f"f() {{ {text}; }}; f",
    lambda text: f"echo $({text})",
    lambda text: f'echo "x $({text}) y"',
    lambda text: f"cat <({text})",
    lambda text: f"x=$({text})",
    lambda text: f"echo ${{x:-$({text})}}",
    lambda text: f"{text} # and no more",
    lambda text: f"# first\n{text}",
    lambda text: f"sh -c {shlex.quote(text)}",
    lambda text: f"bash -lc {shlex.quote(text)}",
    lambda text: f"eval {shlex.quote(text)}",
    lambda text: f"trap {shlex.quote(text)} EXIT",
    lambda text: f"su -c {shlex.quote(text)}",
    lambda text: f"ssh host {shlex.quote(text)}",
    lambda text: f"watch {shlex.quote(text)}",
    lambda text: f"echo {shlex.quote(text)} | sh",
    lambda text: f"printf %s {shlex.quote(text)} | bash -s",
    lambda text: f"bash <<< {shlex.quote(text)}",
    lambda text: f"sh <<'THE_END'\n{text}\nTHE_END",
    lambda text: f"find . -exec sh -c {shlex.quote(text)} \\;",
    lambda text: f"xargs sh -c {shlex.quote(text)}",
)


@st.composite
def disguised(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from(DANGEROUS))
    join = draw(st.sampled_from(JOINS))
    text = quoted(words[0], draw(st.integers(0, 8)))
    for word in words[1:]:
        more = quoted(word, draw(st.integers(0, 8)))
        # `$IFSx` would be a variable of that name.
        text += ("${IFS}" if join == "$IFS" and more[0].isalnum() else join) + more
    text = draw(st.sampled_from(AROUND))(text)
    for wrap in draw(st.lists(st.sampled_from(INSIDE), max_size=2)):
        text = wrap(text)
    return text


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(disguised())
def test_a_disguised_command_is_refused_like_the_plain_one(places: Places, command: str) -> None:
    assert classify_command(command, places).decision == "block"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from((*CONFIRM, *BLOCK)).filter(lambda command: "\n" not in command),
    st.sampled_from(INSIDE[:4] + INSIDE[8:16]),
)
def test_what_is_not_safe_alone_is_not_safe_inside_another(places: Places, command: str, inside: object) -> None:
    assert callable(inside)
    assert classify_command(str(inside(command)), places).decision != "safe"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
def test_any_text_gets_a_verdict_and_always_the_same(places: Places, command: str) -> None:
    verdict = classify_command(command, places).verdict()
    assert verdict == classify_command(command, places).verdict()
    assert (verdict.reason == "") == (verdict.decision == "safe")


@st.composite
def edited(draw: st.DrawFn) -> str:
    """A harmless command with a few pieces put in, taken out or put in the place of others."""
    text = draw(st.sampled_from(PLAIN))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 2))
        text = text[:at] + draw(st.sampled_from(("", *PIECES))) + text[at + gone :]
    return text


class Stage:
    """A workspace and a PATH in which every program writes down its name and arguments instead of running."""

    def __init__(self, root: Path) -> None:
        self.places = Places(root / "home" / "workspace", root / "user")
        self.workspace = Path(self.places.workspace)
        self.log = root / "log"
        (self.workspace / "d").mkdir(parents=True)
        (root / "user").mkdir()
        for name in ("a", "b"):
            (self.workspace / name).write_text(name)
        self.programs = root / "programs"
        self.programs.mkdir()
        for name in (*BY_ITSELF, *OTHERS):
            program = self.programs / name
            program.write_text(
                '#!/bin/sh\nline="${0##*/}"\nfor word; do line="$line\t$word"; done\n'
                f'printf "%s\\0" "$line" >>{self.log}\n'
            )
            program.chmod(0o755)
        for name in REAL:
            (self.programs / name).symlink_to(str(shutil.which(name)))
        self.before = self.files()

    def files(self) -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in self.workspace.parent.rglob("*"))

    def run(self, command: str) -> list[list[str]]:
        """The programs that a real shell starts for the command."""
        self.log.write_text("")
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", command],
            cwd=self.workspace,
            env={"PATH": str(self.programs), "HOME": str(self.workspace.parent.parent / "user")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        return [line.split("\t") for line in self.log.read_text().split("\0") if line]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash on this machine")
    return Stage(tmp_path_factory.mktemp("stage"))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(edited(), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)))
def test_what_is_safe_runs_listed_programs_on_workspace_files_only(stage: Stage, command: str) -> None:
    if classify_command(command, stage.places).decision != "safe":
        return
    for name, *words in stage.run(command):
        assert name in BY_ITSELF, command
        for word in words:
            if not word.startswith(("-", "/dev/fd/", "/dev/null")) and name not in {
                "git",
                "date",
                "find",
                "sed",
                "awk",
            }:
                assert stage.places.inside(os.path.realpath(stage.workspace / word)), command
    assert stage.files() == stage.before, command


def test_the_harmless_commands_are_harmless_under_a_real_shell(stage: Stage) -> None:
    for command in SAFE:
        if "WS" not in command and classify_command(command, stage.places).decision == "safe":
            assert {name for name, *_ in stage.run(command)} <= set(BY_ITSELF), command
    assert stage.files() == stage.before

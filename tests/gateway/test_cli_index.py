"""`hudhud index`: without and beside a gateway."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext

import pytest

from agent.cortex.index import SCHEMA_VERSION
from tests.fakes.filled import connection
from tests.fakes.terminal import Shell


def _home(shell: Shell) -> Shell:
    shell.prepared()
    shell.write("workspace/memory.md", "# Memory\n\nThe boiler was serviced in October.\n")
    assert shell("chat", "the falcon sleeps").code == 0
    assert shell("memory", "search", "boiler").code == 0
    return shell


def _beside(shell: Shell, beside: bool) -> AbstractContextManager[object]:
    return shell.gateway() if beside else nullcontext()


@pytest.mark.parametrize("beside", [False, True])
def test_how_the_index_stands(shell: Shell, beside: bool) -> None:
    with _beside(_home(shell), beside):
        found = shell("index", "update", "--json").json
        assert found == {**shell("index", "status", "--json").json, "last_check": found["last_check"]}
        assert found["records"]["conversation"] == 2
        assert found["records"]["doc"] > 0
        assert found["files"] > 3
        assert (found["indexing"], found["progress"], found["trouble"], found["fault"]) == (False, None, None, None)
        assert found["schema_version"] == found["program_schema_version"] == SCHEMA_VERSION
        assert 0 < found["watermark"] <= found["newest"]
        assert found["bytes"]["database"] > 0 < found["bytes"]["index"]
        said = shell("index", "status")
        assert said.code == 0
        assert re.search(r"^state +good$", said.out, re.MULTILINE)
        assert re.search(r"^conversation +2$", said.out, re.MULTILINE)


@pytest.mark.parametrize("beside", [False, True])
def test_the_index_is_built_anew(shell: Shell, beside: bool) -> None:
    with _beside(_home(shell), beside):
        before = (shell.home / "index.db").stat().st_ino
        said = shell("index", "rebuild")
        assert (said.code, said.err) == (0, "")
        assert "all messages are indexed" in said.out
        assert (shell.home / "index.db").stat().st_ino != before
        assert len(shell("memory", "search", "falcon", "--sources", "conversation", "--json").json["hits"]) == 1
        assert shell("memory", "search", "boiler", "--json").json["hits"][0]["ref"].startswith("file:memory.md")
        assert shell("index", "check").out == "The index is good.\n"


def test_a_file_that_was_written_by_hand_is_taken_in(shell: Shell) -> None:
    _home(shell)
    before = shell("index", "status", "--json").json
    shell.write("workspace/notes/a.md", "a wombat")
    assert shell("index", "update", "--json").json["files"] == before["files"] + 1


@pytest.mark.parametrize("beside", [False, True])
def test_a_check_says_what_is_wrong_and_what_to_do(shell: Shell, beside: bool) -> None:
    with _beside(_home(shell), beside):
        assert shell("index", "check", "--json").json == {"ok": True, "faults": [], "remedy": None}
        with connection(shell.home / "index.db") as conn:
            conn.execute("DELETE FROM record WHERE id = (SELECT max(id) FROM record)")
        said = shell("index", "check")
        assert said.code == 1
        assert "have no record" in said.err
        assert "hudhud index rebuild" in said.err
        assert shell("index", "rebuild").code == 0
        assert shell("index", "check", "--json").json["ok"]


def test_a_message_that_the_index_lacks_is_counted(shell: Shell) -> None:
    _home(shell)
    with connection(shell.home / "index.db") as conn:
        (rowid,) = conn.execute("SELECT max(id) FROM record WHERE source = 'conversation'").fetchone()
        conn.execute("DELETE FROM record WHERE id = ?", (rowid,))
        conn.execute("UPDATE conversation SET records = records - 1")
        conn.execute("INSERT INTO words (words) VALUES ('delete-all')")
        for (id,) in conn.execute("SELECT id FROM record").fetchall():
            conn.execute("INSERT INTO words (rowid, text) VALUES (?, 'x')", (id,))
        with connection(shell.home / "hudhud.db") as truth:
            (newest,) = truth.execute("SELECT max(version) FROM message").fetchone()
        conn.execute("UPDATE meta SET value = ? WHERE key = 'watermark'", (newest,))
    said = shell("index", "check", "--json")
    assert said.code == 1
    assert said.json["faults"] == ["it holds 1 messages, of 2 that the database has"]


def test_without_an_index_it_is_said(shell: Shell) -> None:
    _home(shell)
    (shell.home / "index.db").write_bytes(b"no index " * 1_000)
    found = shell("index", "status", "--json").json
    assert found["trouble"]
    assert found["schema_version"] is None
    assert shell("index", "check").code == 1
    assert shell("index", "rebuild").code == 0
    assert shell("index", "check").code == 0

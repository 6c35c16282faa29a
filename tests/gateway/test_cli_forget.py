"""`hudhud memory forget` and `hudhud sessions remove`: shown, agreed to, gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.terminal import Shell, Terminal

CHAT = "1/9/24, 6:15\u202fPM - Ann: the spare key is at the bakery\n2/23/24, 1:40\u202fAM - Bo: ok then\n"


BOTH_WAYS = pytest.mark.parametrize("beside_a_gateway", [False, True])


@pytest.fixture
def home(shell: Shell, tmp_path: Path) -> Shell:
    """A home with an imported chat and two facts."""
    shell.prepared()
    file = tmp_path / "WhatsApp Chat with Ann.txt"
    file.write_text(CHAT, encoding="utf-8")
    assert shell("import", "whatsapp", str(file)).code == 0
    for fact in ("Ann has the spare key", "Bo likes melons"):
        assert shell("memory", "save", fact, "--type", "people").code == 0
    return shell


def people(shell: Shell) -> str:
    return (shell.home / "workspace/brain/hippocampus/knowledge/people.md").read_text(encoding="utf-8")


@BOTH_WAYS
def test_a_fact_is_shown_then_removed_and_can_be_copied_back(home: Shell, beside_a_gateway: bool) -> None:
    def use() -> None:
        before = people(home)
        planned = home("memory", "forget", "bo likes melons", "--dry-run", "--json").json
        assert (planned["status"], planned["remove"][0]["text"]) == ("planned", "- Bo likes melons")
        assert people(home) == before
        assert home("memory", "forget", "bo likes melons").code == 1  # nobody to ask
        assert people(home) == before
        done = home("memory", "forget", "bo likes melons", "--yes", "--json").json
        assert (done["status"], done["messages"]) == ("removed", 0)
        assert people(home) == before.replace("- Bo likes melons\n", "")
        assert (home.home / "workspace" / done["kept"][0]).read_text(encoding="utf-8") == before
        assert home("memory", "search", "melons", "--json").json["hits"] == []

    if beside_a_gateway:
        with home.gateway():
            use()
    else:
        use()


@BOTH_WAYS
def test_a_session_goes_and_no_rebuild_nor_import_brings_it_back(
    home: Shell, tmp_path: Path, beside_a_gateway: bool
) -> None:
    def use() -> None:
        (chat,) = home("conversations", "list", "--json").json["conversations"]
        assert home("sessions", "remove", chat["sessionKey"], "--dry-run").out.count("2 messages") == 1
        done = home("sessions", "remove", chat["sessionKey"], "--yes", "--json").json
        assert done["messages"] == 2
        assert home("conversations", "list", "--json").json["conversations"] == []
        assert home("conversations", "read", chat["id"]).code == 3
        assert home("sessions", "history", chat["sessionKey"]).code == 3
        assert home("sessions", "remove", chat["sessionKey"], "--yes").code == 3
        again = home("import", "whatsapp", str(tmp_path / "WhatsApp Chat with Ann.txt"), "--json")
        assert again.code == 0
        assert home("memory", "search", "bakery", "--sources", "conversation", "--json").json["hits"] == []

    if beside_a_gateway:
        with home.gateway():
            use()
    else:
        use()
    (home.home / "index.db").unlink()
    assert home("memory", "search", "bakery", "--json").json["hits"] == []
    assert home("memory", "search", "melons", "--json").json["hits"] != []


def test_a_message_is_named_by_its_reference(home: Shell) -> None:
    (hit,) = home("memory", "search", "bakery", "--json").json["hits"]
    assert home("memory", "forget", hit["ref"], "--yes").code == 0
    assert home("memory", "get", hit["ref"]).code == 3
    (chat,) = home("conversations", "list", "--json").json["conversations"]
    shown = home("conversations", "read", chat["id"], "--json").json
    assert [(message["n"], message["text"]) for message in shown["messages"]] == [(2, "ok then")]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("memory", "forget", "key"), 2, "Name one by its reference"),
        (("memory", "forget", "xyzzy"), 3, "Nothing that is remembered matches"),
        (("memory", "forget", "conversation:nope#1"), 3, "no conversation"),
        (("memory", "forget", "Bo likes melons"), 1, "--yes"),
        (("sessions", "remove", "telegram:nobody"), 3, "no session"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    home: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = people(home)
    said = home(*arguments)
    assert (said.code, said.out) == (code, "")
    assert words in said.err
    assert people(home) == before


def test_the_tool_shows_what_would_go_before_it_has_consent(home: Shell) -> None:
    asked = json.dumps({"what": "Bo likes melons"})
    said = home("tool", "memory_forget", asked)
    assert said.code == 1
    assert "people.md#L4  - Bo likes melons" in said.err
    assert home("tool", "memory_forget", asked, "--yes").code == 0
    assert "melons" not in people(home)


@pytest.mark.parametrize(("typed", "gone"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_it_is_asked(home: Shell, at_terminal: Callable[..., Terminal], typed: str, gone: bool) -> None:
    terminal = at_terminal("memory", "forget", "Bo likes melons")
    terminal.wait_for("Remove this? [y/N]")
    terminal.type(f"{typed}\n")
    terminal.ended()
    assert ("melons" not in people(home)) is gone

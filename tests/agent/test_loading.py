"""Capabilities are loaded when they are needed, stay within limits, and are read again when they change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent.cerebellum import BUILT_IN, Cerebellum
from agent.motor import call_context
from agent.skills import read_skill
from agent.types import Rights, ToolCall, ToolFailure
from tests.fakes.skills import SKILL, Notes, skill_folder
from tests.fakes.turns import GUEST, MONDAY, OWNER, a_turn

PLAIN = """---
name: {name}
description: Knows {name}.
{more}---
How {name} works.
"""


def a_skill(root: Path, name: str, more: str = "") -> Path:
    return skill_folder(root, PLAIN.format(name=name, more=more), name)


def tool(name: str, more: str = "") -> str:
    return f'tools:\n  - name: {name}\n    description: Does {name}.\n    command: ["cat"]\n{more}'


def a_registry(root: Path) -> Cerebellum:
    """The notes, which are always there, and whatever else is in the folder."""
    return Cerebellum(Notes().functions(), [BUILT_IN, skill_folder(root)], workspace=root)


def names(registry: Cerebellum, rights: Rights = "owner", conversation: str = "c-1") -> list[str]:
    return [spec.name for spec in registry.definitions(rights, conversation)]


async def load(registry: Cerebellum, name: str, rights: Rights = "owner") -> str:
    turn = a_turn(person=OWNER if rights == "owner" else GUEST)
    context = call_context(turn, MONDAY)
    return await registry.execute_tool(context, ToolCall("1", "load_capability", {"name": name}))


def touch(file: Path, text: str) -> None:
    """A change that the clock of the file system shows."""
    before = file.stat().st_mtime_ns
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(before + 1_000_000, before + 1_000_000))


CORE = ["keep", "load_capability", "look", "peek"]


async def test_a_prompt_holds_a_line_and_the_rest_comes_when_it_is_asked_for(tmp_path: Path) -> None:
    a_skill(tmp_path, "maps", tool("draw"))
    registry = a_registry(tmp_path)
    lines = registry.lines("owner")
    assert "- maps: Knows maps. Tools: draw." in lines
    assert "How maps works." not in lines
    assert "- notes: Looks things up and keeps them.\nLook before you keep." in lines
    assert "`load_capability`" in lines
    assert names(registry) == CORE
    assert registry.loaded_bodies("owner", "c-1") == ()
    assert await load(registry, "maps") == "maps is loaded. Tools: draw."
    assert names(registry) == [*CORE, "draw"]
    assert registry.loaded_bodies("owner", "c-1") == (("maps", "How maps works."),)
    assert names(registry, conversation="c-2") == CORE
    assert registry.lines("owner") == lines


def test_loaded_tools_stand_at_the_end_and_the_list_stays_the_same_object(tmp_path: Path) -> None:
    for name in ("alpha", "beta"):
        a_skill(tmp_path, name, tool(f"{name}_tool"))
    registry = a_registry(tmp_path)
    registry.use("owner", "c-1", "beta_tool")
    first = registry.definitions("owner", "c-1")
    registry.use("owner", "c-1", "alpha_tool")
    assert names(registry) == [*CORE, "beta_tool", "alpha_tool"]
    assert registry.definitions("owner", "c-1")[: len(first)] == first
    registry.use("owner", "c-1", "beta_tool")
    assert registry.definitions("owner", "c-1") is registry.definitions("owner", "c-1")
    assert names(registry) == [*CORE, "beta_tool", "alpha_tool"]


def test_the_longest_unused_gives_way_to_the_eleventh(tmp_path: Path) -> None:
    for number in range(11):
        a_skill(tmp_path, f"s{number:02}", tool(f"t{number:02}"))
    registry = a_registry(tmp_path)
    for number in range(10):
        registry.use("owner", "c-1", f"t{number:02}")
    registry.use("owner", "c-1", "t00")
    registry.use("owner", "c-1", "t10")
    assert names(registry) == [*CORE, "t00", *(f"t{number:02}" for number in range(2, 11))]


async def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    a_skill(tmp_path, "maps", tool("draw"))
    a_skill(tmp_path, "broken", "requires: [no-such-command-here]\n")
    registry = a_registry(tmp_path)
    with pytest.raises(ToolFailure, match=r"no capability 'mops' to load. There are: maps\."):
        await load(registry, "mops")
    with pytest.raises(ToolFailure, match=r"broken is not available: .*no-such-command-here"):
        await load(registry, "broken")
    line = next(line for line in registry.lines("owner").splitlines() if line.startswith("- broken"))
    assert "Knows broken. Not available: " in line
    assert str(tmp_path.parent) not in line


async def test_others_see_and_load_only_what_has_a_tool_for_them(tmp_path: Path) -> None:
    a_skill(tmp_path, "maps", tool("draw"))
    registry = a_registry(tmp_path)
    assert names(registry, "allowed") == ["look"]
    assert "maps" not in registry.lines("allowed")
    with pytest.raises(ToolFailure, match="There are: none"):
        await load(registry, "maps", "allowed")
    registry.use("allowed", "c-1", "draw")
    assert names(registry) == CORE
    a_skill(tmp_path, "poems", tool("rhyme", "    rights: allowed\n"))
    registry.refresh()
    assert names(registry, "allowed") == ["load_capability", "look"]
    assert await load(registry, "poems", "allowed") == "poems is loaded. Tools: rhyme."
    assert names(registry, "allowed") == ["load_capability", "look", "rhyme"]
    assert [spec.name for spec in registry.tools("allowed")] == ["load_capability", "look", "rhyme"]


def test_words_of_the_person_load_a_capability(tmp_path: Path) -> None:
    a_skill(tmp_path, "maps", 'triggers: ["map", "https://", "خريطة"]\n' + tool("draw"))
    registry = a_registry(tmp_path)
    for text in ("mapping", "a bitmap", "nothing"):
        registry.trigger("owner", "c-1", text)
    assert names(registry) == CORE
    for number, text in enumerate(["Draw a MAP.", "see https://x.example", "أرني خريطة", "بخريطة"]):
        registry.trigger("owner", f"d-{number}", text)
        assert "draw" in names(registry, conversation=f"d-{number}")
    registry.trigger("allowed", "c-9", "map")
    assert "draw" not in names(registry, conversation="c-9")


async def test_files_are_read_again_when_they_changed(tmp_path: Path) -> None:
    a_skill(tmp_path, "maps", tool("draw"))
    a_skill(tmp_path, "songs")
    registry = a_registry(tmp_path)
    file = tmp_path / "maps" / "SKILL.md"
    await load(registry, "maps")
    before = registry.definitions("owner", "c-1")
    registry.refresh()
    assert registry.definitions("owner", "c-1") is before

    touch(file, PLAIN.format(name="maps", more=tool("sketch")))
    registry.refresh()
    assert names(registry) == [*CORE, "sketch"]

    touch(file, "no head")
    registry.refresh()
    assert names(registry) == CORE
    assert "no YAML head" in registry.lines("owner")

    touch(file, PLAIN.format(name="maps", more=tool("sketch")))
    a_skill(tmp_path, "poems")
    registry.refresh()
    assert names(registry) == [*CORE, "sketch"]
    assert "- poems: Knows poems." in registry.lines("owner")

    shutil.rmtree(tmp_path / "maps")
    registry.refresh()
    assert names(registry) == CORE
    assert "maps" not in registry.lines("owner")


def test_a_program_that_is_installed_later_is_found(tmp_path: Path) -> None:
    a_skill(tmp_path / "skills", "maps", "requires: {programs: [drawer], env: [MAP_KEY]}\n" + tool("draw"))
    environ = {"PATH": str(tmp_path / "bin")}
    registry = Cerebellum({}, [tmp_path / "skills"], environ=environ)
    assert registry.spec("draw") is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "drawer").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "drawer").chmod(0o755)
    environ["MAP_KEY"] = "k"
    registry.refresh()
    assert registry.spec("draw") is not None


def test_the_same_name_twice_is_the_first_one(tmp_path: Path) -> None:
    skill_folder(tmp_path / "one")
    skill_folder(tmp_path / "two", SKILL.replace("Looks things up", "Steals"))
    registry = Cerebellum(Notes().functions(), [tmp_path / "one", tmp_path / "two"])
    assert [bool(one.fault) for one in registry.capabilities()] == [False, True]
    assert "another capability has this name" in registry.lines("owner")
    assert registry.spec("look") is not None


async def test_a_tool_may_be_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_KEY", "six")
    monkeypatch.setenv("OTHER_KEY", "x")
    more = (
        "requires: {env: [DICE_KEY]}\n"
        'tools:\n  - {name: roll, description: Rolls., command: [sh, -c, "cat; echo; pwd; echo $DICE_KEY$OTHER_KEY"]}\n'
        '  - {name: fall, description: Falls., command: [sh, -c, "echo off the table; exit 4"], repeatable: true}\n'
        "  - {name: gone, description: Gone., command: [no-such-program-here]}\n"
    )
    a_skill(tmp_path, "dice", more)
    registry = a_registry(tmp_path)
    context = call_context(a_turn(), MONDAY)
    text = await registry.execute_tool(context, ToolCall("1", "roll", {"sides": "ستة"}))
    assert text == f'{{"sides": "ستة"}}\n{tmp_path}\nsix\n'
    with pytest.raises(ToolFailure, match=r"fall failed \(exit code 4\): off the table\."):
        await registry.execute_tool(context, ToolCall("1", "fall", {}))
    with pytest.raises(ToolFailure, match="could not be started"):
        await registry.execute_tool(context, ToolCall("1", "gone", {}))
    roll = registry.spec("roll")
    assert roll is not None
    assert (roll.command[0], roll.outside, roll.capability) == ("sh", True, "dice")


def test_a_skill_in_the_open_form_without_tools_is_read(tmp_path: Path) -> None:
    text = (
        "\ufeff---\nname: pdf-forms\ndescription: |\n  Fills forms.\n  Use it for PDF files.\nlicense: MIT\n"
        "allowed-tools: Bash\nmetadata:\n  author: someone\n---\n\n# Forms\n\nOpen, fill, save.\n"
    )
    skill_folder(tmp_path, text, "pdf-forms")
    found = read_skill(tmp_path / "pdf-forms" / "SKILL.md")
    assert (found.description, found.tools, found.fault) == ("Fills forms. Use it for PDF files.", (), None)
    assert found.instructions == "# Forms\n\nOpen, fill, save."

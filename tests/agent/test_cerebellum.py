"""Capabilities are loaded from SKILL.md files; a broken one harms nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cerebellum import Cerebellum
from agent.motor import call_context
from agent.types import ToolCall, ToolFailure
from tests.fakes.skills import SKILL, Notes, a_registry, skill_folder
from tests.fakes.turns import FakeClock, a_turn


def test_tools_are_listed_by_name_and_rights(tmp_path: Path) -> None:
    registry = a_registry(tmp_path)
    assert [tool.name for tool in registry.definitions("owner")] == ["keep", "look", "peek"]
    assert [tool.name for tool in registry.definitions("allowed")] == ["look"]
    assert registry.definitions("owner") is registry.definitions("owner")
    look = registry.spec("look")
    assert look is not None
    assert look.read_only
    assert look.repeatable
    assert look.timeout_seconds == 30
    assert registry.spec("nothing") is None


def test_a_capability_is_described(tmp_path: Path) -> None:
    (capability,) = a_registry(tmp_path).capabilities()
    assert (capability.name, capability.version, capability.always) == ("notes", "1", True)
    assert capability.instructions == "Look before you keep."
    assert [pattern.level for pattern in capability.patterns] == ["block", "confirm"]
    assert capability.patterns[0].tools == frozenset({"look", "keep", "peek"})


async def test_a_call_is_routed_to_its_code(tmp_path: Path) -> None:
    notes = Notes()
    registry = a_registry(tmp_path, notes)
    context = call_context(a_turn(), FakeClock()())
    assert await registry.execute_tool(context, ToolCall("1", "keep", {"text": "x"})) == "kept"
    assert notes.ran == [("keep", {"text": "x"})]
    with pytest.raises(ToolFailure, match="no tool named absent"):
        await registry.execute_tool(context, ToolCall("1", "absent", {}))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("---\nname", "name", "no YAML head"),
        ("name: notes", "name: [", "cannot be read"),
        ("name: notes", "name: other", "must be the folder's"),
        ("description: Looks things up and keeps them.", "description: ''", "description must be a text"),
        ("- name: keep", "- name: keep it", "is not 1 to 64 letters"),
        ("- name: keep", "- name: look", "the same name"),
        ("- name: keep", "- name: fly", "no code for its tool fly"),
        ("      type: object", "      type: array", "JSON schema of type object"),
        ("rights: allowed", "rights: everyone", "allowed are owner and allowed"),
        ("read_only: true", "timeout_seconds: -1", "a number above 0"),
        ('pattern: "wipe .* disk"', 'pattern: "wipe (disk"', "no regular expression"),
        ('pattern: "wipe .* disk"', 'pattern: "(wipe)?"', "matches everything"),
        ("level: block", "level: maybe", "allowed are confirm and block"),
        ("always: true", "requires: [no-such-command-here]", "which this machine does not have"),
        ("always: true", "requires: {env: [NO_SUCH_VARIABLE]}", "it needs the variable NO_SUCH_VARIABLE"),
        ("always: true", "requires: {programms: [sh]}", "it may have programs and env"),
        ("always: true", "triggers: yes", "triggers must be a list"),
        ("always: true", "triggers: ['']", "triggers must be a list"),
        ("    read_only: true\n", "    command: ls\n", "command must be a list"),
        ("tools:", "tools: 3\nold:", "tools must be a list"),
    ],
)
def test_a_broken_capability_is_listed_with_its_fault(tmp_path: Path, old: str, new: str, said: str) -> None:
    skill_folder(tmp_path, SKILL.replace(old, new, 1), "notes")
    skill_folder(tmp_path, SKILL.replace("notes", "sound").replace("name: look", "name: hear", 1), "sound")
    notes = Notes()
    functions = {**notes.functions(), "sound": {"hear": notes.look, "keep": notes.keep, "peek": notes.peek}}
    registry = Cerebellum(functions, [tmp_path])
    broken, sound = registry.capabilities()
    assert broken.fault is not None
    assert said in broken.fault
    assert not broken.tools
    assert sound.fault is None
    assert [tool.name for tool in registry.definitions("owner")] == ["hear", "keep", "peek"]
    assert len(registry.patterns()) == 2


def test_a_file_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "SKILL.md").write_bytes(b"---\n\xff\xfe\n---\n")
    (broken,) = Cerebellum({}, [tmp_path]).capabilities()
    assert broken.fault is not None


def test_a_second_capability_cannot_take_a_tool(tmp_path: Path) -> None:
    skill_folder(tmp_path)
    skill_folder(tmp_path, SKILL.replace("notes", "thief"), "thief")
    notes = Notes()
    registry = Cerebellum({**notes.functions(), "thief": notes.functions()["notes"]}, [tmp_path])
    assert [bool(capability.fault) for capability in registry.capabilities()] == [False, True]
    assert "already another capability's" in str(registry.capabilities()[1].fault)


def test_a_capability_without_code_here_is_not_offered() -> None:
    assert [capability.name for capability in Cerebellum({}).capabilities()] == ["loader"]
    assert Cerebellum({}).definitions("owner") == ()

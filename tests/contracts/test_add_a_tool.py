"""The recipes of docs/add-a-tool.md, followed to the letter."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.cerebellum import Cerebellum
from agent.motor import call_context
from agent.types import ToolCall, ToolFailure
from tests.contracts.test_capabilities import owners_world
from tests.contracts.test_capability_contract import CapabilityContract, World
from tests.fakes.turns import MONDAY, a_turn

RECIPE = (Path(__file__).parents[2] / "docs" / "add-a-tool.md").read_text(encoding="utf-8")
CONTEXT = call_context(a_turn(), MONDAY)


def written(place: str) -> str:
    """The text that the recipe gives for a file: the block after these words."""
    found = re.search(rf"{re.escape(place)}:\n\n```\w+\n(.*?)```", RECIPE, re.DOTALL)
    assert found, place
    return found[1]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "skills" / "dice").mkdir(parents=True)
    skill = written("Write `skills/dice/SKILL.md` in the workspace")
    (tmp_path / "skills" / "dice" / "SKILL.md").write_text(skill, encoding="utf-8")
    (tmp_path / "skills" / "dice" / "throw.py").write_text(
        written("the program, `skills/dice/throw.py`"), encoding="utf-8"
    )
    return tmp_path


async def test_the_skill_throws_dice(workspace: Path) -> None:
    registry = Cerebellum({}, [workspace / "skills"], workspace=workspace)
    [dice] = registry.capabilities()
    assert dice.fault is None
    assert [pattern.level for pattern in dice.patterns] == ["confirm"]
    faces = (await registry.execute_tool(CONTEXT, ToolCall("1", "throw_dice", {"count": 5}))).split()
    assert len(faces) == 5
    assert set(faces) <= set("123456")
    registry.trigger("owner", "c-1", "Throw the DICE!")
    assert [tool.name for tool in registry.definitions("owner", "c-1")] == ["throw_dice"]
    with pytest.raises(ToolFailure, match="KeyError"):
        await registry.execute_tool(CONTEXT, ToolCall("1", "throw_dice", {}))


@pytest.fixture
def built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The recipe's folder, importable."""
    folder = tmp_path / "recipe_capabilities" / "dice"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(written("There, `dice/SKILL.md`"), encoding="utf-8")
    (folder / "tools.py").write_text(written("and `dice/tools.py`"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("recipe_capabilities.dice.tools")
    for name in [name for name in sys.modules if name.startswith("recipe_capabilities")]:
        del sys.modules[name]


class TestDice(CapabilityContract):
    @pytest.fixture
    def world(self, built_in: Any) -> World:
        functions = built_in.Dice(Random(1)).functions()
        face = asyncio.run(built_in.Dice(Random(1)).throw_dice(CONTEXT, {"count": 1}))
        folder = Path(built_in.__file__).parents[1]
        registry = Cerebellum({"dice": functions}, [folder])
        made = owners_world("dice", functions, {"throw_dice": {"count": 1}})
        return World("dice", registry, functions, made.owner, made.guest, face, face, made.calls)


def test_the_servers_are_written_as_settings() -> None:
    found = re.search(r"```toml\n(.*?)```", RECIPE, re.DOTALL)
    assert found
    servers = tomllib.loads(found[1])["mcp"]["servers"]
    assert servers == {
        "shelf": {"command": "shelf-server", "args": ["--quiet"], "env": {"SHELF_KEY": "env:SHELF_KEY"}},
        "far": {"url": "https://tools.example/mcp"},
    }
